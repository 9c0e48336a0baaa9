"""Observes the running server from outside. Only `app` and the commands import this package.

`process` observes every request in one server process, and reports each when it has ended: it writes a line of the log,
`metrics` counts, `hot_spots` counts costs (with a `sketch`), `tracing` makes spans. `snapshots` writes the counts that
`exposition`, in the process of `keygraph serve`, serves for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keygraph_server.settings import Settings


@contextmanager
def metrics_served(settings: Settings) -> Iterator[str | None]:
    """Serves the metrics if a port is set. Yields their address."""
    if settings.metrics_port is None:
        yield None
        return
    # Prometheus's library is imported only if it is used: it takes 3 MB.
    from keygraph_server.telemetry.exposition import serve_metrics

    with serve_metrics(settings.metrics_host, settings.metrics_port) as address:
        yield address
