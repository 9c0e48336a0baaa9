"""What can be wrong with a graph: each module looks at one part of it and yields the mistakes.

Only `keygraph.graph` enters; `Graph.check()` raises all mistakes at once.
"""
