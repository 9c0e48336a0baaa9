"""The steps of plans. A step (`step`) runs, prices and explains itself.

`get` reads nodes, `several_types` those whose type is known last, `lists` pages and counts, `gather` a node with its
lists, `walks` go over several levels, `questions` are about several nodes at once, `call` calls the model's methods,
`write` carries mutations out, and `payload` goes on from what they have written. What lists cost, and how their requests
are explained, is in `list_cost` and `list_requests`. Steps work on what an operation selects (`selection`), and describe
themselves in the words of `explained`. To change when something is read, start in `step`.
"""
