"""From declarations to record types: names are bound, templates written out, paths found.

`records` is the entry point; `record_types` connects the types of one table. Mistakes are collected, never raised one
by one. Only `keygraph.graph`, `keygraph.check` and the packages above them import these modules.
"""
