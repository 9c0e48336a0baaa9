"""The engines, which answer requests to a table.

`sqlite/` keeps a table in a file on this machine; `dynamodb/` sends requests to DynamoDB, or to a server with its API.
`open` chooses one by the store's address. Engines import `keygraph.dynamo` and small modules such as `keygraph.errors`
and `keygraph.kept`, but no other package, and never each other. To add an engine, write a class with the methods of
`keygraph.dynamo.store.Store` in a folder of its own, and name its addresses in `open.open_store`; the server names the
same addresses in `keygraph_server.settings` and in the help of `keygraph_server.options`.
"""
