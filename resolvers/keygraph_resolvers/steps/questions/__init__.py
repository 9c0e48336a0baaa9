"""Steps for questions about several nodes at once: what they have in common (`common`), and how they are connected
(`paths`). `numbers` answers questions from numbers that a node stores.

They walk through lists (`keygraph.walks`), using the steps that read lists and nodes.
"""
