"""A declared model: the record types, and how their keys and fields are read from items.

What a model file says is in `keygraph.declare`; `records`, `record_keys` and `fields` are what it becomes, `instances`
makes objects of its classes; `paths` says how one node reaches many, and `candidates` which paths there are.
`keygraph.resolve` makes these, `keygraph.check` checks them, and `keygraph.graph` uses both.
"""
