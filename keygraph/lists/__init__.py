"""One list: its range of keys, the items that it leaves out, its pages and its count.

`listing` is a list of one owner. `ranges` applies its arguments to the range of keys, `checks` checks each item, and
`projection` selects the attributes to request. `reading` fills its pages, `counting` counts and `aggregating` sums it
through a store; `gather` decides what one Query reads together, and `named_edges` reads edges to named nodes.
`siblings` leaves out items of other types; `describe` and `placeholders` describe the reads for owners that are not
known yet, `describe_types` and `describe_access` do so for all types.
"""
