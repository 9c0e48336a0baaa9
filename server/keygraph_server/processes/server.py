"""A uvicorn server that takes over all connections before it stops, and can check whether its loop runs.

`uvicorn_internals` says what it depends on.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any

import uvicorn

from keygraph_server.connections import STOPS
from keygraph_server.connections.factory import Connections
from keygraph_server.connections.gate import both_forms
from keygraph_server.listening import end_new_connections, waiting_connections
from keygraph_server.processes.streams import flush_streams

_AT_ONCE = 16
"""The number of connections accepted in one turn of the loop. More would belong to other processes on the socket."""
_LOOKED_AT = 256
"""The same, with those that are refused."""


class Server(uvicorn.Server):
    """Serves until it is told to stop, and then answers all requests received so far."""

    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, config: uvicorn.Config, has_started: Callable[[], None] | None = None) -> None:
        """`has_started` is called as soon as it serves. Without it, a server can be pickled, as `--reload` does."""
        super().__init__(config)
        config.forwarded_allow_ips = both_forms(config.forwarded_allow_ips)
        self._has_started = has_started
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_taking = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes signals while it serves. At the end they are raised again, which may end the process at once."""
        with super().capture_signals():
            yield
            flush_streams()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to serve on the sockets."""
        self._loop = loop = asyncio.get_running_loop()
        self._make: Connections = self.config.http_protocol_class  # type: ignore[assignment]  # uvicorn calls it, as it calls a class

        def make(**given: Any) -> asyncio.Protocol:
            if not self._is_taking:
                self._is_taking = True
                loop.call_soon(self._take, sockets or [])
            return self._make(**given)

        self.config.http_protocol_class = make  # type: ignore[assignment]  # uvicorn calls it, as it calls a class
        for listening in sockets or []:
            # A worker has it from its parent, and a process that outlives both, such as a credential_process, would keep it.
            listening.set_inheritable(False)
        await super().startup(sockets)
        if self._has_started is not None:
            self._has_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts the connections in the system's queue, which closing the sockets would reset; then stops."""
        if multiprocessing.parent_process() is None:
            # Otherwise the socket is its parent's, and another worker may go on.
            for listening in sockets or []:
                end_new_connections(listening)
        self._take(sockets or [], None)
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        stop: Callable[[], None] | None = self.lifespan.state.get(STOPS)
        if stop is not None:
            stop()
        await asyncio.gather(*self._connecting)
        await super().shutdown(sockets)

    def _take(self, sockets: list[socket.socket], most: int | None = _AT_ONCE) -> None:
        """Accepts more waiting connections. uvloop accepts one in each turn, and the turns of a busy loop are long."""
        self._is_taking = False
        for listening in sockets:
            accepted = islice(waiting_connections(listening), most and _LOOKED_AT)
            for connection in islice(filter(self._make.takes, accepted), most):
                task = asyncio.ensure_future(self._connect(connection))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        given: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state}
        make = partial(self._make, config=self.config, **given)
        with suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(make, connection)

    def wait_for_loop(self) -> None:
        """Returns when the event loop has run. Called in another thread."""
        if self._loop is not None:
            has_run = threading.Event()
            # The loop is closed when the server has stopped.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(has_run.set)
                has_run.wait()
