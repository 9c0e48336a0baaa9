"""What commands print: tables, keys and progress (`output`), and the requests of an operation over time (`waterfall`).

Only `commands` imports from here.
"""
