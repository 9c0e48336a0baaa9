"""The engines, which answer requests to a table.

`sqlite/` keeps a table in a file on this machine; `dynamodb/` sends requests to DynamoDB, or to a server with its API. `open`
chooses one by the store's address. Engines import `keygraph.dynamo` and `keygraph.errors`, never each other. To add an engine,
write a class with the methods of `keygraph.dynamo.store.Store` in a folder of its own, and name its addresses in `open`.
"""
