"""Reading: what steps need to read, without knowing any step.

`run` is one operation while it is read. `scheduler` decides when a batch of keys leaves; `loaders` are the dataloaders that it
drives, and `meter` notes every request, and the memory that operations hold. `connection` is one list of one owner with its
page, `cursors` seals the places in it, `walked` and `aggregates` are what was found of walks and of whole lists, `objects` are
the objects of an answer while it is read. `access` says what the viewer sees; `links` reads the other items that rules ask
for, in batches of its own. With `consistent`, what was just written is seen.
"""
