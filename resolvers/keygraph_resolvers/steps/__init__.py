"""The steps of plans. A new kind of step is a class with two methods (`step`), which `keygraph_resolvers.plan.compile`
makes for a kind of selected field.

`get` reads nodes, and has the gate of access that all steps go through (`filter_visible`); `ends` continues to the
nodes that objects name, `lists` reads pages and counts, `partial_page` those of an index that lacks something,
`gather` a node with its lists, `walks` cover several levels, `questions` are about several nodes at once, `call`
calls the model's methods, `write` executes mutations and continues from the written records, `changes` answers with a
change. `list_worst` has the arithmetic of lists. Steps work on an operation's selections (`selection`). To change
when a batch is sent, start in `keygraph_resolvers.engine`.
"""
