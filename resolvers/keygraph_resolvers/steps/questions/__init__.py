"""Steps that answer questions about several nodes at once: what they have in common (`common`), and how they are
connected (`ways`); and those answered from numbers stored on a node (`numbers`).

They walk through lists (`keygraph.walks`), using the steps that read lists and nodes.
"""
