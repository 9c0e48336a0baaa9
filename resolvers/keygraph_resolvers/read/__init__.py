"""Reading: what steps need to read, without knowing any step.

`scheduler` decides when a batch of keys leaves; `loaders` are the dataloaders that it drives, and `meter` notes every
request, and the memory that operations hold. `connection` is one list of one owner with its page, `cursors` seals the places in it, `objects` are the objects of
an answer while it is read.
"""
