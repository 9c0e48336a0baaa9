"""DynamoDB as values: items, tables, conditions, limits, prices, and the requests that a store answers.

Every other room builds on these. Nothing here knows a model, and nothing here does I/O. `store` names the seam: a request is
a value, and an engine answers it. `limits` has every number that DynamoDB sets; `rules` refuse what DynamoDB refuses, for all
engines alike. Besides `keygraph.errors` and `keygraph.kept` this room imports nothing of Keygraph.
"""
