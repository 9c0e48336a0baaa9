"""A declared model: the decorators, the record types, and how their keys and fields are read from items.

`declaration` has what a model file imports; `records`, `record_keys` and `fields` are what it becomes; `paths` says how
one node reaches many. `keygraph.resolve` makes these, `keygraph.check` checks them, and `keygraph.graph` uses both.
"""
