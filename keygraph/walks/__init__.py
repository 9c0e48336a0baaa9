"""Walks: questions that take several levels of lists, such as everything below a node. A walk sends nothing.

`walk` is the seam: what a walk asks for, and what it is given. `levels` reads the lists of a level side by side within a
budget, and `reach` finds all nodes below one. `keygraph_resolvers.steps.walks.walk` runs any walk; a test answers one from dicts.
"""
