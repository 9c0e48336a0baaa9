"""What things are called: the names and descriptions of types, fields and mutations, and the ids of nodes.

`names` derives them from the model and checks that no two are alike; `mutation_names`, `descriptions` and `global_ids` do
the same for mutations, for texts, and for objects. This room knows no Strawberry.
"""
