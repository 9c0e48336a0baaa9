"""Writing records: every item that belongs to a write, in one transaction, with the conditions that keep the graph whole.

`requests` says what can be asked for, `items` makes a record's items of its fields, `steps` makes the actions of a
transaction, with what a client is told where one of them fails, `edges` finds what names a node, and `writer` sends.
"""
