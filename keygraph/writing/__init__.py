"""What a write does: every item that belongs to it, in one transaction, with the conditions that keep the graph whole.

`requests` says what can be asked for, `items` makes a record's items of its fields. The steps (`step`) of a transaction stand
on `ground` and `ends`; `new`, `changes` and `moves` make those of each kind of request, `steps` those of all, on conditions of
what is there (`presence`) and on the model's rules (`rules`), with what a client is told where one fails. `tallies` adds what
nodes count.
All of that only computes: the room `sending` reads and sends.
"""
