"""Compiles a document into a plan of its reads and writes, a graph of steps (`keygraph_resolvers.steps`).

`documents` parses and caches documents, `variables` reads the values of their variables, `compile` makes the plan.
`bound` adds up the most that its steps can cost, `cost` reports it, `explain` prints the steps.
"""
