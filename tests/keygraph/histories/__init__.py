"""Histories of writes: random requests of many writers at once, with faults, and whether what is left can be explained.

`declared` is their graph, `plain` the same in memory, `asking` makes requests, `table` reads what a store holds, `history` runs
writers and explains what they were told, `derived` computes what is kept of others, `jobs` repairs and summarizes meanwhile,
`killed` ends processes at any moment, and `following` the workers that follow a table. `python -m tests.keygraph.histories` runs many.
"""
