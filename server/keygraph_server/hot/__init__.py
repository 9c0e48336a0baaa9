"""`keygraph hot`: the partitions and fields that cost most, counted by a running server, and possible improvements.

`command` asks the metrics port and shows the counts of `keygraph_server.telemetry.hot_spots`; `advice` suggests changes
of the model. Only the command line imports this room.
"""
