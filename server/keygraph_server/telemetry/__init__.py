"""Observes the running server from outside. Only `app` and the commands import this package.

`process` observes every request in one server process, and reports each when it has ended: it writes a line of the log,
`metrics` counts, `hot_spots` counts costs (with a `sketch`), `tracing` makes spans. `snapshots` writes the counts that
`exposition`, in the process of `keygraph serve`, serves for all.
"""
