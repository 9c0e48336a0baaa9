"""What can be seen of the running server from outside. Only `app` and the commands import this room.

`operations` watches every exchange over HTTP, and makes an `EndedOperation` of it for those who report: `log_lines` writes
a line of the log.
"""
