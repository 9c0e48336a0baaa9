"""The engines: what answers requests to a table.

`sqlite/` keeps a table in one file on this machine; `dynamodb/` sends requests to DynamoDB, or to what speaks its API.
`open` chooses one by its address. An engine imports `keygraph.dynamo` and nothing above it. To add an engine, write a
class with the methods of `keygraph.dynamo.store.Store` in a folder of its own, and name its addresses in `open`.
"""
