"""The socket that the server listens on, and the hosts that requests to it may name."""

from __future__ import annotations

import errno
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from keygraph_server.connections.factory import Connections
from keygraph_server.errors import SettingsError
from keygraph_server.listening import answered_hosts, end_new_connections, listen, waiting_connections
from keygraph_server.settings import read_settings
from tests.server.raw_http import RESETS_AT_ONCE

ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the filter is Linux's")
LOCAL = ["localhost", "127.0.0.1", "[::1]"]


@pytest.mark.parametrize(
    ("host", "allowed", "answered"),
    [
        ("127.0.0.1", None, [*LOCAL, "127.0.0.1"]),
        ("127.0.0.2", None, [*LOCAL, "127.0.0.2"]),
        ("localhost", None, [*LOCAL, "localhost"]),
        ("::ffff:127.0.0.1", None, [*LOCAL, "[::ffff:127.0.0.1]"]),
        ("127.0.0.1", "Shop.test, *.apps.test", [*LOCAL, "127.0.0.1", "shop.test", "*.apps.test"]),
        ("127.0.0.1", "*", None),
        ("0.0.0.0", None, None),
        ("0.0.0.0", "shop.test", [*LOCAL, "0.0.0.0", "shop.test"]),
    ],
)
def test_a_loopback_address_answers_its_own_names(
    host: str, allowed: str | None, answered: list[str] | None
) -> None:
    with closing(listen(host, 0)) as listening:
        assert answered_hosts(listening, host, allowed) == answered


@pytest.mark.parametrize("text", ["http://shop.test", "shop.test:8000", "a b/c", "*, shop.test", "*."])
def test_what_is_no_host_is_refused_at_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYGRAPH_ALLOWED_HOSTS", text)
    with pytest.raises(
        SettingsError, match=r"KEYGRAPH_ALLOWED_HOSTS cannot be used: .* is not a host such as"
    ):
        read_settings()


# --- Its end ------------------------------------------------------------------------------------------


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


@ON_LINUX
def test_who_has_connected_and_is_still_there_is_accepted(listening: socket.socket) -> None:
    with begun(listening) as gone:
        gone.setsockopt(*RESETS_AT_ONCE)
    with begun(listening) as client:
        assert is_connected(client)
        end_new_connections(listening)
        (accepted,) = filter(Connections(pytest.fail).takes, waiting_connections(listening))
        with accepted:
            client.send(b"?")
            assert accepted.recv(1) == b"?"


@ON_LINUX
def test_who_comes_later_is_refused_and_not_reset(listening: socket.socket) -> None:
    end_new_connections(listening)
    with begun(listening) as client:
        assert not is_connected(client)
        assert not list(waiting_connections(listening))
        listening.close()
        # The system tries again by itself, after a second.
        assert select.select([], [client], [], 30)[1]
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
