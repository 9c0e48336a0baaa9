"""How a server process takes the connections of clients."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import ExitStack

import pytest

from keygraph_server.connections.h11_protocol import H11Connection
from tests.server.raw_http import running

COUNT = 100


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_busy_loop_takes_many_connections_in_a_turn(loop: str) -> None:
    factory = pytest.importorskip(loop, reason="the extra `fast` is not installed").new_event_loop
    turns = 0

    async def taking() -> None:
        async with running(H11Connection) as server:
            await server.connect()
            with ExitStack() as opened:
                for _ in range(COUNT):
                    opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                begun = turns
                while server.gate is None or server.gate.count <= COUNT:
                    assert turns - begun <= COUNT / 4
                    turn()
                    await asyncio.sleep(0)

    def turn() -> None:
        nonlocal turns
        turns += 1
        time.sleep(0.001)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(taking())
