"""What can be asked: the GraphQL schema of a graph, derived by rule.

`types` makes it, of `mutation_types`, `definitions`, `inputs` and `scalars`, with the names of `keygraph_resolvers.naming`. Every field has a kind (`field_kinds`),
which says what part of the graph answers it; the plan is made of kinds. `strawberry_internals` is the only module that
uses what Strawberry does not document. This room knows nothing of plans and reads.
"""
