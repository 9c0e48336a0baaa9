"""Makes uvicorn's connections."""

from __future__ import annotations

from typing import Any

from keygraph_server.connections.gate import Gate
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.settings.connections import ConnectionSettings

try:
    from keygraph_server.connections.httptools_protocol import HttpToolsConnection as FastestConnection
except ImportError:
    from keygraph_server.connections.h11_protocol import H11Connection as FastestConnection  # type: ignore[assignment]


class Connections:
    """Makes the connections of a process, as uvicorn's `http=`. It can be pickled for processes that uvicorn starts."""

    def __init__(
        self,
        settings: ConnectionSettings,
        protocol: type[GuardedConnection] = FastestConnection,
        *,
        https_only: bool = False,
    ) -> None:
        """httptools parses by default if it is installed. `https_only` tells browsers to use only HTTPS."""
        self._settings = settings
        self._https_only = https_only
        self._protocol = protocol
        self._gate: Gate | None = None

    def __call__(self, **given: Any) -> GuardedConnection:
        if self._gate is None:
            self._gate = Gate(self._settings, https_only=self._https_only)
        return self._protocol(gate=self._gate, **given)
