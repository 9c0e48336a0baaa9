"""Walks: questions that take several levels of lists, such as everything below a node. A walk sends no requests.

`walk` is the interface: the requests of a walk, and the results that it receives. `levels` reads the lists of a level
side by side in a budget, `reach` finds all nodes below one. `keygraph_resolvers.steps.walks.walk` runs any walk; a test
can use dicts.
"""
