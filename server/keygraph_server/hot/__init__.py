"""`keygraph hot`: the partitions and fields that cost most, by the count of a running server, and what would help.

`command` asks the metrics port, and shows what `keygraph_server.telemetry.hot_spots` has counted; `advice` says what the model
can do about it. Only the command line imports this room.
"""
