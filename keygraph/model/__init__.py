"""A declared model: the record types, and how their keys and fields are read from items.

What a model file says is in `keygraph.declare`; `records`, `record_keys` and `fields` are what it becomes; `paths` says
how one node reaches many. `keygraph.resolve` makes these, `keygraph.check` checks them, and `keygraph.graph` uses both.
"""
