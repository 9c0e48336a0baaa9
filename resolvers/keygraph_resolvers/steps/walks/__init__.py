"""Steps that walk over several levels: `walk` drives a walk, `node_walks` runs those that nodes declare, `cost` says what one takes at most."""
