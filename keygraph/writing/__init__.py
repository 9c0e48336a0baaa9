"""Writing records: every item that belongs to a write, in one transaction, with the conditions that keep the graph whole.

`requests` says what can be asked for, `items` makes a record's items of its fields, `steps` makes the steps (`step`) of a
transaction on their conditions (`presence`), with what a client is told where one of them fails. `edges` finds what names a
node, `removal` deletes and moves what is named, `sending` sends, and `writer` carries requests out.
"""
