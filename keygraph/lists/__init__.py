"""One list: the range of keys that it reads, what is left out of it, its pages, its count.

`listing` is a list of one owner; `reading` fills its pages and `counting` counts it through a store; `siblings` leaves
out items of other types; `describe` and `placeholders` say what will be read of owners that are not known yet, `describe_types`
and `describe_access` of all types.
"""
