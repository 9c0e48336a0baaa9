"""Connections of clients to the real process: kept open, closed when idle, and what is written on them."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.end_to_end.processes import Start

pytestmark = pytest.mark.long

FAST = pytest.mark.parametrize("is_fast", [True, False], ids=["as installed", "without the extra"])


class Connection:
    """A client's connection, on which requests are written byte by byte."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def ask(self, query: str, **fields: str) -> tuple[str, bytes]:
        self.write(query, **fields)
        return self.read()

    def write(self, query: str, **fields: str) -> None:
        body = json.dumps({"query": query}).encode()
        lines = [
            "POST /graphql HTTP/1.1",
            "Host: keygraph",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def read(self) -> tuple[str, bytes]:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._some()
        head, _, body = received.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)^content-length: (\d+)", head, re.MULTILINE)
        assert found is not None
        while len(body) < int(found[1]):
            body += self._some()
        return head.decode(), body

    def _some(self) -> bytes:
        some = self.socket.recv(65536)
        assert some, "the connection was closed"
        return some

    def is_closed_within(self, seconds: float) -> bool:
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False


Connect = Callable[[str], Connection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects to an address; what is open is closed with the test."""
    with ExitStack() as opened:

        def connect_one(address: str) -> Connection:
            connection = Connection(address)
            opened.enter_context(connection.socket)
            return connection

        yield connect_one


@FAST
def test_one_connection_carries_many_requests(start: Start, connect: Connect, is_fast: bool) -> None:
    server = start("serve", "--port", "0", is_fast=is_fast)
    connection = connect(server.address())
    for number in range(50):
        head, body = connection.ask(f"{{ a{number}: __typename }}")
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert body == b'{"data":{"a%d":"Query"}}' % number
    # A client that has given up waiting for its turn: the second is on its way before the first is answered.
    connection.write("{ first: __typename }")
    connection.write("{ second: __typename }")
    received = b""
    while b"second" not in received:
        received += connection.socket.recv(65536)
    assert received.index(b'{"data":{"first":"Query"}}') < received.index(b'{"data":{"second":"Query"}}')
    head, _ = connection.ask("{ __typename }", Connection="close")
    assert "\r\nconnection: close" in head.lower()
    assert connection.is_closed_within(5)
    assert server.stop() == 0
    assert server.warnings() == []


@FAST
def test_an_idle_connection_stays_as_long_as_is_said(start: Start, connect: Connect, is_fast: bool) -> None:
    server = start("serve", "--port", "0", is_fast=is_fast, KEYGRAPH_KEEP_ALIVE="3")
    connection = connect(server.address())
    connection.ask("{ __typename }")
    time.sleep(2)
    assert connection.ask("{ __typename }")[1] == b'{"data":{"__typename":"Query"}}'
    assert not connection.is_closed_within(2)
    assert connection.is_closed_within(10)


def test_by_itself_it_stays_longer_than_a_load_balancer_keeps_it(start: Start, connect: Connect) -> None:
    """uvicorn's own 5 seconds are less than the 60 that AWS's load balancers keep a connection for."""
    server = start("serve", "--port", "0")
    connection = connect(server.address())
    connection.ask("{ __typename }")
    assert not connection.is_closed_within(7)
    assert connection.ask("{ __typename }")[1] == b'{"data":{"__typename":"Query"}}'
    begun = time.monotonic()
    assert server.stop() == 0
    # Idle connections do not hold up its end.
    assert time.monotonic() - begun < 5
    assert connection.is_closed_within(1)


@FAST
def test_compression_is_by_the_clients_wish(start: Start, connect: Connect, is_fast: bool) -> None:
    server = start("serve", "--port", "0", is_fast=is_fast)
    connection = connect(server.address())
    query = "{ users { nodes { id name email createdAt orders { nodes { orderId total } } } } __schema { types { name } } }"
    _, plain = connection.ask(query)
    head, small = connection.ask(query, Accept_Encoding="gzip")
    assert "\r\ncontent-encoding: gzip" in head.lower()
    assert gzip.decompress(small) == plain
    assert len(plain) > 1400
    assert len(small) < len(plain) / 2
    assert connection.ask(query, Accept_Encoding="gzip;q=0")[1] == plain
