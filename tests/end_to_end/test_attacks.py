"""What hostile clients do to the real process with their connections, and what its memory and others see of it."""

from __future__ import annotations

import json
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.processes import SLOW_MODEL, Start, ask, wait_for

pytestmark = pytest.mark.long

FAST = pytest.mark.parametrize("is_fast", [True, False], ids=["as installed", "without the extra"])
LARGE_USER = (
    'mutation ($name: String!) { createUser(input: { userId: "large", name: $name, email: "e", userType: CUSTOMER, '
    'createdAt: "2024-01-01T00:00:00Z" }) { user { userId } } }'
)
JSON = {"content-type": "application/json"}
TYPENAME = b'{"query": "{ __typename }"}'
JAVA = """
import java.net.URI;
import java.net.http.*;

public class Ask {
    public static void main(String[] words) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int number = 0; number < 3; number++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(words[0]))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\\"query\\": \\"{ __typename }\\"}")).build();
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(response.statusCode() + " " + response.body());
        }
    }
}
"""


class Attacker:
    """Connections that write what they like."""

    def __init__(self, address: str, opened: ExitStack) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self.place = (host, int(port))
        self._opened = opened

    def connect(self) -> socket.socket:
        return self._opened.enter_context(socket.create_connection(self.place, timeout=20))

    def send_all(self, data: bytes, count: int, seconds: float) -> int:
        """Sends the same again and again until the server closes, or takes nothing more; how many bytes it took."""
        connection, sent = self.connect(), 0
        ended = time.monotonic() + seconds
        connection.setblocking(False)
        while sent < count and time.monotonic() < ended:
            if select.select([], [connection], [], 0.1)[1]:
                try:
                    sent += connection.send(data)
                except ConnectionError:
                    break
        return sent


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def post(body: bytes, *fields: str) -> bytes:
    lines = [
        "POST /graphql HTTP/1.1",
        "Host: keygraph",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *fields,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@FAST
class TestMemory:
    def test_a_head_without_an_end(self, start: Start, opened: ExitStack, is_fast: bool) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast)
        attacker = Attacker(server.address(), opened)
        before = server.peak
        for first in (b"GET /", b"GET / HTTP/1.1\r\nAccept: "):
            connection = attacker.connect()
            connection.sendall(first)
            connection.close()
            assert attacker.send_all(first + b"a" * 65536, 30_000_000, 5) < 30_000_000
        assert server.peak - before < 15
        assert server.stop() == 0
        assert server.warnings() == []

    def test_who_sends_and_never_reads(self, start: Start, opened: ExitStack, is_fast: bool) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast)
        attacker = Attacker(server.address(), opened)
        assert ask(server.address(), "{ __schema { types { name } } }")["data"]
        before = server.peak
        query = json.dumps({"query": "{ __schema { types { name fields { name description } } } }"}).encode()
        for data in (post(TYPENAME) * 300, post(query) * 100):
            assert attacker.send_all(data, 60_000_000, 3) < 60_000_000
        assert server.peak - before < 30
        assert ask(server.address(), "{ __typename }") == {"data": {"__typename": "Query"}}

    def test_many_who_ask_for_much_and_never_read(
        self, start: Start, opened: ExitStack, is_fast: bool
    ) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast)
        address, attacker = server.address(), Attacker(server.address(), opened)
        created = {"query": LARGE_USER, "variables": {"name": "n" * 380_000}}
        assert "errors" not in httpx.post(f"{address}/graphql", json=created, timeout=20).json()
        names = " ".join(f'a{number}: user(userId: "large") {{ name again: name }}' for number in range(9))
        body = json.dumps({"query": f"{{ {names} }}"}).encode()
        # A document that is known is begun at once.
        assert "errors" not in httpx.post(f"{address}/graphql", content=body, headers=JSON, timeout=60).json()
        before = server.peak
        connections = [opened.enter_context(socket.socket()) for _ in range(64)]
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(attacker.place)
        for connection in connections:
            connection.sendall(post(body))
        ended = time.monotonic() + 60
        while "too much memory" not in server.text("stderr"):
            assert time.monotonic() < ended
            time.sleep(0.1)
        # What comes now has its turn behind all that was asked before.
        assert "errors" not in httpx.post(f"{address}/graphql", content=body, headers=JSON, timeout=60).json()
        assert server.peak - before < 120

    def test_half_bodies(self, start: Start, opened: ExitStack, is_fast: bool) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast, KEYGRAPH_CONNECTION_MEMORY="5000000")
        attacker = Attacker(server.address(), opened)
        before = server.peak
        for _ in range(60):
            connection = attacker.connect()
            connection.sendall(post(TYPENAME + b" " * 950_000)[:-1])
        assert server.peak - before < 30
        assert ask(server.address(), "{ __typename }") == {"data": {"__typename": "Query"}}


@FAST
def test_half_heads_lock_nobody_out(start: Start, opened: ExitStack, is_fast: bool) -> None:
    server = start("serve", "--port", "0", is_fast=is_fast, KEYGRAPH_MAX_CONNECTIONS="100")
    attacker = Attacker(server.address(), opened)
    for _ in range(300):
        attacker.connect().sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
    for _ in range(5):
        begun = time.monotonic()
        assert ask(server.address(), "{ __typename }") == {"data": {"__typename": "Query"}}
        assert time.monotonic() - begun < 2
    assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 150


@FAST
def test_a_half_closed_client_gets_its_answer(
    start: Start, opened: ExitStack, tmp_path: Path, is_fast: bool
) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", is_fast=is_fast)
    connection = Attacker(server.address(), opened).connect()
    query = json.dumps({"query": '{ thing(thingId: "1") { slowly(seconds: 2) } }'}).encode()
    connection.sendall(post(query))
    connection.shutdown(socket.SHUT_WR)
    received = b""
    while some := connection.recv(65536):
        received += some
    assert received.endswith(b'{"data":{"thing":{"slowly":"1"}}}')
    assert server.stop() == 0
    assert server.warnings() == []


@FAST
def test_a_client_that_goes_ends_its_operation(start: Start, tmp_path: Path, is_fast: bool) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", is_fast=is_fast)
    query = '{ thing(thingId: "1") { slowly(seconds: 60) } }'
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.address()}/graphql", json={"query": query}, timeout=1)
    begun = time.monotonic()
    wait_for(tmp_path / "cancelled")
    assert time.monotonic() - begun < 10
    assert server.stop() == 0
    assert server.warnings() == []


@FAST
class TestHTTP2:
    """Clients that offer HTTP/2 by an upgrade, which is ignored."""

    @pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
    def test_curl(self, start: Start, is_fast: bool) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast)
        content = ("-H", "Content-Type: application/json", "-d", TYPENAME.decode())
        words = ["curl", "--http2", "-sS", "--max-time", "20", *content, f"{server.address()}/graphql"]
        if "HTTP2" not in subprocess.check_output(["curl", "--version"], text=True):
            pytest.skip("curl has no HTTP/2")
        assert subprocess.check_output(words, text=True) == '{"data":{"__typename":"Query"}}'

    @pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed")
    def test_java(self, start: Start, tmp_path: Path, is_fast: bool) -> None:
        server = start("serve", "--port", "0", is_fast=is_fast)
        (tmp_path / "Ask.java").write_text(JAVA)
        answered = subprocess.run(
            ["java", tmp_path / "Ask.java", f"{server.address()}/graphql"],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert answered.stdout == '200 {"data":{"__typename":"Query"}}\n' * 3, answered.stderr
