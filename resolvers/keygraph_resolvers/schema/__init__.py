"""The GraphQL schema of a graph, derived by rule.

`types` makes it from the other modules, with the names of `keygraph_resolvers.naming`. The kind of a field
(`field_kinds`) says which part of the graph answers it; the plan is made of kinds. Only `strawberry_internals` uses
undocumented parts of Strawberry. This package does not use plans or reads.
"""
