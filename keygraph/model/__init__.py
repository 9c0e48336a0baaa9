"""A declared model: its words, its record types, and how their keys and fields are read from items.

`declaration` has the words that a model file imports; `records`, `record_keys` and `fields` are what they become;
`paths` says how one node reaches many. `keygraph.resolve` makes these, `keygraph.check` looks them over, `keygraph.graph` ties them.
"""
