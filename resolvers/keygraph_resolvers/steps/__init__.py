"""The steps of plans. A step (`step`) runs, prices and explains itself.

`get` reads nodes, `several_types` those whose type is known only after the read, `lists` pages and counts, `gather` a
node with its lists, `walks` cover several levels, `questions` are about several nodes at once, `call` calls the model's
methods, `write` executes mutations, and `payload` continues from the written records. `list_cost` and `list_requests`
give the cost of lists and explain their requests. Steps work on an operation's selections (`selection`), and describe
themselves in terms of `explained`. To change when something is read, start in `step`.
"""
