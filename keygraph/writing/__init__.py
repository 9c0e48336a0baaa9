"""Computes writes: every item of a write goes into one transaction, with the conditions that keep the graph consistent.

`requests` has what may be requested. `reads` says which items a request depends on, `records` makes the steps of each
kind of request, and `steps` one transaction of them. All are functions over one `WriteContext`: the graph, the viewer,
the stored items, and the problems so far. `ends` are the nodes that a request names, `partners` the other items of
edges, `tallies` the counts and sums of nodes, `rules` the rules on values and viewers; `items` makes whole items.
Nothing here sends anything: the package `sending` reads, sends and explains.
"""
