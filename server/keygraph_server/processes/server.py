"""A uvicorn server that takes over all connections before it stops, and can be asked whether its loop runs.

`uvicorn_internals` says what it depends on.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

import uvicorn


class Server(uvicorn.Server):
    """Serves until it is told to stop, and then answers everything that has been asked."""

    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve on the sockets."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the connections that the system has accepted, which closing the sockets would reset; then stop."""
        accepted = [connection for listening in sockets or [] for connection in _all_accepted(listening)]
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        loop = asyncio.get_running_loop()
        for connection in accepted:
            with suppress(OSError):
                await loop.connect_accepted_socket(self._new_connection, connection)
        await super().shutdown(sockets)

    def wait_for_loop(self) -> None:
        """Returns when the event loop has run. Called in another thread."""
        if self._loop is not None:
            has_run = threading.Event()
            # The loop is closed when the server has stopped.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(has_run.set)
                has_run.wait()

    def _new_connection(self) -> asyncio.Protocol:
        given: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state}
        return self.config.http_protocol_class(config=self.config, **given)  # type: ignore[call-arg]


def _all_accepted(listening: socket.socket) -> list[socket.socket]:
    """The connections of clients that nobody has taken yet."""
    found: list[socket.socket] = []
    # The socket does not block.
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            connection.setblocking(False)
            found.append(connection)
    return found
