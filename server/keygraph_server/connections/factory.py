"""Makes uvicorn's connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from keygraph_server.connections.gate import GATES, ConnectionGate
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.connections.settings import ConnectionSettings

try:
    from keygraph_server.connections.httptools_protocol import HttpToolsConnection as FastestConnection
except ImportError:
    from keygraph_server.connections.h11_protocol import H11Connection as FastestConnection  # type: ignore[assignment]  # the slower one


@dataclass(eq=False)
class Connections:
    """Makes the connections of a process, as uvicorn's `http=`. It can be pickled for processes that uvicorn starts.

    httptools parses by default if it is installed. `https_only` tells browsers to use only HTTPS. Requests to other
    `hosts` are refused; None for none. With `has_websockets`, connections may become WebSockets. Unless `is_counted`, the metrics leave the connections out.
    """

    settings: ConnectionSettings
    protocol: type[GuardedConnection] = FastestConnection
    _: KW_ONLY
    https_only: bool = False
    hosts: Sequence[str] | None = None
    is_counted: bool = True
    has_websockets: bool = False
    _gate: ConnectionGate | None = None

    def __call__(self, **given: Any) -> GuardedConnection:
        if self._gate is None:
            self._gate = ConnectionGate(
                self.settings,
                https_only=self.https_only,
                hosts=self.hosts,
                has_websockets=self.has_websockets,
            )
            if not self.is_counted:
                GATES.discard(self._gate)
        return self.protocol(gate=self._gate, **given)
