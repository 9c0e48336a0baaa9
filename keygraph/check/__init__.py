"""Checks of a graph: each module checks one part of it and yields the mistakes.

Only `keygraph.graph` imports these modules; `Graph.check()` raises all mistakes at once.
"""
