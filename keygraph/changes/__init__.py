"""What changes in the table, as it changes.

`stream` reads a table's stream through its store, on every engine. `counting` adds changes to the values that the stream keeps,
exactly once by the notes of `ledger`; `totals` compares and corrects them. `following` is the worker, which shares a stream with
others by `leases`. The live operations of resolvers, and the server's commands and Lambda functions, may enter; it gives out
changes, as `keygraph.dynamo.streams` has them.
"""
