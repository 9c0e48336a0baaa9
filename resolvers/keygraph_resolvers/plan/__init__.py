"""What will be read and written: a document is compiled into a plan, which is a graph of steps (`keygraph_resolvers.steps`).

`documents` parses and keeps documents, `variables` reads the values of their variables, `compile` makes the plan of one. `bound` adds up what its steps take at most, `cost`
reports it, `explain` prints the steps.
"""
