"""The embedded engine: tables in one SQLite file, with DynamoDB's answer to every request.

`engine` is the way in. `catalogue` knows which tables the file has, `layout` how a table is stored, `rows` how an item is
stored; `reads` and `writes` answer the requests.
"""
