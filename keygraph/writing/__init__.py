"""Computes writes: every item of a write goes into one transaction, with the conditions that keep the graph consistent.

`requests` has the possible requests, `items` makes a record's items from its fields. The `step`s of a transaction are
built on `ground` and `ends`; `new`, `changes` and `moves` make those of each kind of request, and `steps` combines
them, with conditions on stored items (`presence`) and the model's rules (`rules`), and the refusals for clients.
`tallies` adds to the counts and sums of nodes. These modules only compute; the package `sending` reads and sends.
"""
