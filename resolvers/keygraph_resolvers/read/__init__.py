"""Everything that steps and the engine need to read. This package does not use them itself.

`run` is one operation while it is read, `loaders` are the dataloaders that the engine dispatches, and `meter` counts every request, and the memory that operations hold. `connection` is one list of one
owner with its page, `cursors` encrypts the places in it, `walked` and `aggregates` are the results of walks and of
whole lists, `objects` are the objects of an answer while it is read. `access` decides what the viewer sees of lists; `links`
reads the other items that rules need, in separate batches.
`recording` takes down what an operation reads, and `changes` are changes of records. `consistent` makes reads see the latest
writes.
"""
