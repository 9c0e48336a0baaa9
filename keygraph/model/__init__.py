"""A declared model: the record types, and how their keys and fields are read from items.

`keygraph.declare` has the declarations of a model file; `records`, `record_keys` and `fields` have their resolved form,
`instances` makes objects of its classes, `node_shards` spreads numbers of a node over items; `paths` has the access
paths, and `candidates` finds the possible ones; `shared_attributes` tells which fields and ends are stored in one attribute.
`keygraph.resolve` makes these, `keygraph.check` checks them, and `keygraph.graph` uses both.
"""
