"""The names and descriptions of types, fields and mutations, and the ids of nodes.

`names` derives names from the model and checks that they are unique; `mutation_names`, `descriptions` and `global_ids`
do the same for mutations, for texts, and for objects. This package does not use Strawberry.
"""
