"""Everything that steps need to read. This package does not use steps itself.

`run` is one operation while it is read. `scheduler` decides when a batch of keys is sent; `loaders` are the dataloaders
that it drives, and `meter` counts every request, and the memory that operations hold. `connection` is one list of one
owner with its page, `cursors` encrypts the places in it, `walked` and `aggregates` are the results of walks and of
whole lists, `objects` are the objects of an answer while it is read. `access` decides what the viewer sees; `links`
reads the other items that rules need, in separate batches. `consistent` makes reads see the latest writes.
"""
