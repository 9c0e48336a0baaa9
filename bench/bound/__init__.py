"""The bound of an operation: the least that it can cost, computed from the keys alone.

`bound` walks the operation, `document` reads it, `items` is the table, `requests` counts the requests that are needed.
It shares nothing with the plan and the execution, so that it can judge them.
"""
