"""The embedded engine: tables in one SQLite file, with DynamoDB's answer to every request.

Start at `engine`. `catalogue` finds the tables of the file, `layout` defines how a table and its items are stored;
`reads` and `writes` answer the requests.
"""
