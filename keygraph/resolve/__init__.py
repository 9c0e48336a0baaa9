"""From declarations to record types: names are bound, templates written out, paths found.

`records` is the way in; `record_types` ties the types of one table together. Mistakes are collected, never raised one
by one. Only `keygraph.graph`, `keygraph.check` and the rooms above them import these modules.
"""
