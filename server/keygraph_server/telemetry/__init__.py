"""What can be seen of the running server from outside. Only `app` and the commands import this room.

`process` puts together what one server process reports. `operations` watches every exchange over HTTP, and makes an
`EndedOperation` of it for those who report: `log_lines` writes a line of the log, `metrics` counts, `hot_spots` counts what is expensive (with a `sketch`), `tracing` makes spans. `snapshots` writes the
counts where `exposition`, in the process of `keygraph serve`, reads those of all processes and serves them.
"""
