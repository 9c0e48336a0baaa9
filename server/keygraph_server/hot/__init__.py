"""`keygraph hot`: the partitions and fields that cost a running server most, and how to reduce the cost.

`command` asks the metrics port and shows the counts of `keygraph_server.telemetry.hot_spots`; `advice` suggests changes
of the model. Only the command line imports this package.
"""
