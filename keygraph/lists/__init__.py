"""One list: its range of keys, the items that it leaves out, its pages and its count.

`query` has the list as a value, `ListQuery`; `extent` is the part of it that is wanted. `ranges` applies a client's
arguments to the range of keys, `siblings` leaves out items of other types, `checks` checks each item, and `projection`
selects the attributes to request. `reading` has the generators that answer a query, `read` and `count`, and what sends
their requests; `aggregating` sums a list; `gather` decides what one Query reads together, and `named_edges` reads
edges to named nodes. `describe` and `placeholders` describe the reads for owners that are not known yet, and
`describe_types` does so for all types, with who may read and write them.
"""
