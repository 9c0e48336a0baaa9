"""Compiles a document into a plan of its reads and writes, a graph of steps (`keygraph_resolvers.steps`).

`documents` parses and caches documents, `variables` reads the values of their variables, `selections` finds what they
select of each type, `compile` makes the plan. `bound` adds up the most that its steps can cost, `cost` reports it, `explain`
makes a tree of it, which `explained` writes as text and as JSON.
"""
