"""Observes the running server from outside. Only `app` and the commands import this package.

`process` assembles the reports of one server process. `operations` watches every HTTP exchange and passes an
`EndedOperation` to reporters: `log_lines` logs, `metrics` counts, `hot_spots` counts costs (with a `sketch`), `tracing`
makes spans. `snapshots` writes the counts that `exposition`, in the process of `keygraph serve`, serves for all.
"""
