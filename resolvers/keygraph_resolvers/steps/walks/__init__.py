"""Steps over several levels: `walk` drives a walk, `node_walks` runs those of nodes, `cost` bounds the cost of one."""
