"""One list: the range of keys that it reads, what is left out of it, its pages, its count.

`listing` is a list of one owner. `ranges`, `checks` and `projection` define what its arguments narrow, what is checked
in each item, and which attributes are requested. `reading` fills its pages, `counting` counts and `aggregating` sums it
through a store; `gather` decides what one Query reads together, and `named_edges` reads edges to named nodes.
`siblings` leaves out items of other types; `describe` and `placeholders` describe what will be read for owners that are
not known yet, `describe_types` and `describe_access` do so for all types.
"""
