"""The embedded engine: a table in one SQLite file, answering every request as DynamoDB would.

`engine` is the way in. `catalogue` and `layout` say how tables stand in the file, `rows` how items stand in a row;
`reads` and `writes` answer.
"""
