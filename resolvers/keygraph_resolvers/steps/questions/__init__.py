"""Steps that answer questions about several nodes at once: what they have in common (`common`), how one
leads to another (`ways`); and those that numbers of a node answer (`numbers`).

They walk through lists (`keygraph.walks`) and stand on the steps that read lists and nodes.
"""
