"""What will be read: a document is compiled into a plan, which is a graph of steps.

`documents` parses and keeps documents, `compile` makes the plan of one. A step (`step`) runs, prices and explains itself:
`get` reads nodes, `lists` pages and counts, `gather` a node with its lists, `call` calls the model's methods. `bound`
adds the prices up, `cost` reports them, `explain` prints the steps. To change when something is read, start in `step`.
"""
