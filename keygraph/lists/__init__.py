"""One list: the range of keys that it reads, what is left out of it, its pages, its count.

`listing` is a list of one owner, and `ranges`, `checks` and `projection` what its arguments narrow, what is looked at in each
item, and which attributes are asked for. `reading` fills its pages, `counting` counts and `aggregating` sums it through a
store; `gather` says what one Query reads together, and `named_edges` reads edges to named nodes. `siblings` leaves out items
of other types; `describe` and `placeholders` say what will be read of owners that are not known yet, `describe_types`
and `describe_access` of all types.
"""
