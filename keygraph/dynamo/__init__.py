"""DynamoDB as values: items, tables, conditions, limits, prices, and what can be asked of a store.

Everything above builds on these; nothing here knows a model, and nothing here reads or writes.
`store` names the seam: a request is a value, and an engine answers it.
"""
