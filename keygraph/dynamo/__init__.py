"""DynamoDB as values: items, tables, conditions, limits, prices, and the requests that a store answers.

All other packages build on this one. It contains no model and does no I/O. `store` is the interface: a request is a
value, and an engine answers it. `limits` has every number that DynamoDB sets; `rules` refuse what DynamoDB refuses, for
all engines. The package imports only `keygraph.errors` and `keygraph.kept` of Keygraph.
"""
