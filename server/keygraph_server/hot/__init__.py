"""`keygraph hot`: the partitions and fields that cost a running server most, and how to reduce the cost.

`command` asks the metrics port, and shows what `keygraph_server.telemetry.hot_spots` has counted; `advice` says what the model
can do about it. Only the command line imports this room.
"""
