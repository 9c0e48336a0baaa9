"""Makes uvicorn's connections."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from keygraph_server.connections.gate import ConnectionGate, network_of
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.connections.refusals import TOO_MANY_CONNECTIONS

try:
    from keygraph_server.connections.httptools_protocol import HttpToolsConnection as FastestConnection
except ImportError:
    from keygraph_server.connections.h11_protocol import H11Connection as FastestConnection  # type: ignore[assignment]  # the slower one


@dataclass(eq=False)
class Connections:
    """Makes the connections of a process, as uvicorn's `http=`. It can be pickled for processes that uvicorn starts.

    Each process makes its own gate. httptools parses by default if it is installed.
    """

    make_gate: Callable[[], ConnectionGate]
    protocol: type[GuardedConnection] = FastestConnection
    _gate: ConnectionGate | None = None

    def __call__(self, **given: Any) -> GuardedConnection:
        if self._gate is None:
            self._gate = self.make_gate()
        return self.protocol(gate=self._gate, **given)

    def takes(self, accepted: socket.socket) -> bool:
        """Whether a connection may be made of what was accepted. Closes it if the client has reset it, or there are too many."""
        with suppress(OSError):
            host, *_ = accepted.getpeername()
            if self._gate is None or self._gate.has_room(network_of(host)):
                return True
            accepted.send(self._gate.refusal(TOO_MANY_CONNECTIONS))
        accepted.close()
        return False
