"""Command output: tables, keys and progress (`output`), and the requests of an operation over time (`waterfall`).

Only `commands`, and the command in `hot`, import from here.
"""
