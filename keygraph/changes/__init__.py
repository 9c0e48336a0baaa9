"""What changes in the table, as it changes.

`stream` reads a table's stream through its store, on every engine. The live operations of resolvers, and the server's commands
and Lambda functions, may enter; it gives out changes, as `keygraph.dynamo.streams` has them.
"""
