"""The end of a listening socket: nobody who has connected is reset."""

from __future__ import annotations

import errno
import select
import socket
import sys
from collections.abc import Iterator

import pytest

from keygraph_server.processes.listening import end_new_connections, waiting_connections

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the filter is Linux's")


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def begun(listening: socket.socket) -> socket.socket:
    """A client that connects. On one machine it is connected at once."""
    client = socket.socket()
    client.setblocking(False)
    assert client.connect_ex(listening.getsockname()) in (0, errno.EINPROGRESS)
    return client


def is_connected(client: socket.socket) -> bool:
    return bool(select.select([], [client], [], 0)[1])


def test_who_has_connected_is_accepted(listening: socket.socket) -> None:
    with begun(listening) as client:
        assert is_connected(client)
        end_new_connections(listening)
        (accepted,) = waiting_connections(listening)
        with accepted:
            client.send(b"?")
            assert accepted.recv(1) == b"?"


def test_who_comes_later_is_refused_and_not_reset(listening: socket.socket) -> None:
    end_new_connections(listening)
    with begun(listening) as client:
        assert not is_connected(client)
        assert not list(waiting_connections(listening))
        listening.close()
        # The system tries again by itself, after a second.
        assert select.select([], [client], [], 30)[1]
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
