"""Subscriptions over WebSockets (graphql-transport-ws) and as server-sent events (graphql-sse)."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from pydantic import SecretStr
from wsproto import WSConnection
from wsproto.events import CloseConnection
from wsproto.utilities import LocalProtocolError

from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.dynamo.streams import EnableStream
from keygraph.engines.open import open_store
from keygraph_resolvers.live.listeners import EXPIRED, Listener
from keygraph_server.app import create_app
from keygraph_server.connections.guarded import GuardedConnection
from keygraph_server.connections.h11_protocol import H11Connection
from keygraph_server.connections.httptools_protocol import HttpToolsConnection
from keygraph_server.connections.websocket import WebSocketConnection
from keygraph_server.http.sockets import _Socket
from keygraph_server.models import load_model
from keygraph_server.settings import Settings
from tests.resolvers.worlds import shop_items
from tests.server.raw_http import Client, Running, running
from tests.server.socket_client import Closed, SocketClient, refused, socket_to

pytestmark = pytest.mark.timeout(60)

MODEL = "keygraph_examples.commerce:graph"
KEY = "the key of tokens in these tests"
NAME = 'subscription { user(userId: "12345") { name } }'
QUERY = '{ user(userId: "12345") { name } }'
SECONDS = 20.0


def rename(name: str) -> str:
    return f'mutation {{ updateUser(input: {{userId: "12345", name: "{name}"}}) {{ user {{ name }} }} }}'


@dataclass
class Serving:
    """A server with subscriptions."""

    server: Running
    client: httpx.AsyncClient
    app: Any

    @property
    def port(self) -> int:
        return self.server.port

    async def ask(self, query: str, **headers: str) -> Any:
        return (await self.client.post("/graphql", json={"query": query}, headers=headers)).json()

    @asynccontextmanager
    async def events(self, query: str, **headers: str) -> AsyncIterator[Callable[[], Any]]:
        """Opens a stream; each call waits for the next event, as its name and its data."""
        sent = {"accept": "text/event-stream"} | headers
        async with self.client.stream("POST", "/graphql", json={"query": query}, headers=sent) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.aiter_lines()

            async def event() -> Any:
                name, data = "", ""
                async with asyncio.timeout(SECONDS):
                    async for line in lines:
                        if not line and name:
                            return name, json.loads(data) if data else None
                        field, _, value = line.partition(":")
                        if field == "event":
                            name = value.strip()
                        elif field == "data":
                            data = value.strip()
                return None

            yield event


@asynccontextmanager
async def serving(
    folder: Path, protocol: type[GuardedConnection] = HttpToolsConnection, **settings: Any
) -> AsyncIterator[Serving]:
    file, graph = folder / "shop.sqlite", load_model(MODEL).graph
    if not file.exists():
        async with open_store(f"sqlite:{file}", graph.table) as store:
            await store.send(CreateTable())
            await store.send(BatchWrite(puts=tuple(shop_items())))
            await store.send(EnableStream())
    chosen = Settings(model=MODEL, store=f"sqlite:{file}", secret=SecretStr("x" * 32), live=True, **settings)
    app = create_app(chosen)
    limits = {
        name: settings[name]
        for name in ("max_connections", "write_timeout", "body_timeout", "connection_memory")
        if name in settings
    }
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            running(protocol, hosts=["localhost", "127.0.0.1"], served=app, **limits)
        )
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=SECONDS)
        )
        yield Serving(server, client, app)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as found:
        yield found


def named(name: str, key: str = "1") -> Any:
    return {"id": key, "type": "next", "payload": {"data": {"user": {"name": name}}}}


async def test_a_subscription_that_cannot_begin_names_nothing_of_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The table has no stream."""
    async with open_store(f"sqlite:{tmp_path / 'shop.sqlite'}", load_model(MODEL).graph.table) as store:
        await store.send(CreateTable())
    for env, told in (("development", "the stream of the table"), ("production", "The data cannot be read")):
        async with (
            serving(tmp_path, env=env) as shop,
            socket_to(shop.port) as client,
            shop.events(NAME) as event,
        ):
            await client.begin()
            await client.subscribe("1", NAME)
            answers = [(await event())[1]["errors"], (await client.read())["payload"]]
        assert [error["message"].startswith(told) for [error] in answers] == [True, True]
    assert "the stream of the table EcommerceData is off" in caplog.text


# --- WebSockets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [HttpToolsConnection, H11Connection])
async def test_a_subscription_over_a_websocket(tmp_path: Path, protocol: type[GuardedConnection]) -> None:
    async with serving(tmp_path, protocol) as shop, socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("1", NAME)
        assert await client.read() == named("John Doe")
        await shop.ask(rename("Jane"))
        assert await client.read() == named("Jane")
        await client.send({"id": "1", "type": "complete"})
        await client.subscribe("2", QUERY)
        assert await client.read() == named("Jane", "2")
        assert await client.read() == {"id": "2", "type": "complete"}
        assert shop.app.state.live.listeners == 0


async def test_queries_mutations_and_errors_go_over_it_too(shop: Serving) -> None:
    async with socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("m", rename("Jane"))
        payload = {"data": {"updateUser": {"user": {"name": "Jane"}}}}
        assert await client.read() == {"id": "m", "type": "next", "payload": payload}
        assert await client.read() == {"id": "m", "type": "complete"}
        for query, code in (
            ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
            ("subscription { nothing }", "GRAPHQL_VALIDATION_FAILED"),
            ("", "GRAPHQL_PARSE_FAILED"),
        ):
            await client.subscribe("e", query)
            message = await client.read()
            assert (message["id"], message["type"]) == ("e", "error")
            assert [each["extensions"]["code"] for each in message["payload"]] == [code]
        await client.send({"type": "ping"})
        assert await client.read() == {"type": "pong"}


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (["no JSON"], 4400),
        (['{"type": "unknown"}'], 4400),
        (["[]"], 4400),
        ([{"id": "1", "type": "subscribe", "payload": {"query": QUERY}}], 4401),
        ([{"type": "connection_init"}, {"type": "connection_init"}], 4429),
        ([{"type": "connection_init", "payload": 5}], 4400),
        (
            [
                {"type": "connection_init"},
                {"id": "x" * 200, "type": "subscribe", "payload": {"query": QUERY}},
            ],
            4400,
        ),
        ([{"type": "connection_init"}, {"id": "1", "type": "subscribe", "payload": 5}], 4400),
        (
            [
                {"type": "connection_init"},
                *[{"id": "1", "type": "subscribe", "payload": {"query": NAME}}] * 2,
            ],
            4409,
        ),
        ([{"type": "connection_init", "payload": {"x": "x" * 3_000}}], 1009),
    ],
)
async def test_what_breaks_the_protocol_is_closed(tmp_path: Path, sent: list[Any], code: int) -> None:
    async with serving(tmp_path, max_body_bytes=2_000) as shop, socket_to(shop.port) as client:
        for message in sent:
            await client.send(message)
        assert (await client.closing()).code == code
        assert shop.app.state.live.listeners == 0


async def test_who_speaks_another_protocol_reads_which_it_is(shop: Serving) -> None:
    async with socket_to(shop.port, protocols=["graphql-ws"]) as client:
        closed = await client.closing()
        assert (closed.code, closed.reason) == (4406, "this server speaks graphql-transport-ws")


async def test_pages_of_other_origins_and_other_hosts_get_no_websocket(shop: Serving) -> None:
    foreign = await refused(shop.port, headers=[(b"origin", b"https://evil.example")])
    assert foreign.status_code == 403
    rebound = await refused(shop.port, host="evil.example")
    assert rebound.status_code == 421
    async with socket_to(shop.port, headers=[(b"origin", b"http://localhost:3000")]) as client:
        await client.begin()


async def test_who_never_says_who_they_are_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygraph_server.http.sockets._INIT_SECONDS", 0.1)
    async with serving(tmp_path) as shop, socket_to(shop.port) as client:
        assert (await client.closing()).code == 4408


async def test_a_websocket_without_subscriptions_is_closed_after_a_while(tmp_path: Path) -> None:
    async with serving(tmp_path, live_idle=0.2) as shop, socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("1", NAME)
        assert await client.read() == named("John Doe")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.read()
        await client.send({"id": "1", "type": "complete"})
        closed = await client.closing()
        assert (closed.code, closed.reason) == (1000, "no subscription for a while")


async def test_a_connection_has_so_many_operations_and_a_process_so_many_subscriptions(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, live_operations_by_connection=2, live_operations=6) as shop,
        socket_to(shop.port) as client,
        socket_to(shop.port) as other,
    ):
        for each in (client, other):
            await each.begin()
        for key in ("1", "2"):
            await client.subscribe(key, NAME)
            assert await client.read() == named("John Doe", key)
        await client.subscribe("3", NAME)
        message = await client.read()
        assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", "LIVE_LIMIT")
        # One address has half of the process's.
        await other.subscribe("1", NAME)
        assert await other.read() == named("John Doe")
        await other.subscribe("2", NAME)
        message = await other.read()
        assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", "LIVE_LIMIT")
        assert (await shop.ask(QUERY))["data"] == {"user": {"name": "John Doe"}}


def token(**claims: Any) -> str:
    return "Bearer " + jwt.encode({"sub": "ann", "exp": time.time() + 100, **claims}, KEY, "HS256")


JWT = {"auth": "jwt", "jwt_key": SecretStr(KEY), "jwt_leeway": 0.0}


async def test_a_token_comes_in_the_first_message_or_in_a_header(tmp_path: Path) -> None:
    async with serving(tmp_path, **JWT) as shop:
        odd: tuple[Any, ...] = ("Bearer nonsense", "Bearer", 1, False, [token()], {"bearer": token()})
        for payload in (
            *({"Authorization": each} for each in odd),
            {"AUTHORIZATION": token(), "authorization": 1},
        ):
            async with socket_to(shop.port) as client:
                await client.send({"type": "connection_init", "payload": payload})
                assert (await client.closing()).code == 4403
        async with socket_to(shop.port) as client:
            await client.begin({"Authorization": None})
        async with socket_to(shop.port) as client:
            await client.begin({"Authorization": ""})
        async with socket_to(shop.port) as client:
            await client.begin({"authorization": token()})
            await client.subscribe("1", NAME)
            assert await client.read() == named("John Doe")
        async with socket_to(shop.port, headers=[(b"authorization", token().encode())]) as client:
            await client.begin()


async def test_a_token_that_expires_ends_the_subscription_and_then_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, **JWT) as shop, socket_to(shop.port) as client:
        await client.begin({"Authorization": token(exp=time.time() + 1)})
        await client.subscribe("1", NAME)
        assert await client.read() == named("John Doe")
        message = await client.read()
        assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", "UNAUTHENTICATED")
        await client.subscribe("2", NAME)
        assert (await client.closing()).code == 4403


async def test_the_first_message_sets_no_header_of_a_gateway(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, auth="header", auth_headers="Authorization: sub") as shop,
        socket_to(shop.port) as client,
    ):
        await client.begin({"Authorization": "root"})
        await client.subscribe("1", NAME)
        await client.read()
        [operation] = shop.app.state.live._operations.values()
        assert operation.request.viewer == {}


async def test_messages_that_come_at_once_wait_in_the_client(shop: Serving) -> None:
    async with socket_to(shop.port) as client:
        await client.begin()
        for number in range(200):
            await client.subscribe(str(number), QUERY)
        answers = [await client.read() for _ in range(400)]
        assert {each["id"] for each in answers if each["type"] in ("complete", "error")} == {
            *map(str, range(200))
        }


HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)


async def raw_socket(shop: Serving, receives: int = 4096, address: str = "127.0.0.1") -> Client:
    """A WebSocket that was opened, whose frames are written by hand."""
    client = await shop.server.connect(address, receives)
    await client.send(HANDSHAKE)
    await client.reader.readuntil(b"\r\n\r\n")
    return client


def frame(first: int, payload: bytes) -> bytes:
    """A frame with this first byte (its opcode, and 128 if it is the last of its message), masked with zeros."""
    short = len(payload) < 126
    size = bytes([128 + len(payload)]) if short else b"\xfe" + len(payload).to_bytes(2, "big")
    return bytes([first]) + size + bytes(4) + payload


PING, TEXT, BEGIN, MORE = 0x89, 0x81, 0x01, 0x00


async def test_who_pings_and_never_reads_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, write_timeout=0.2) as shop:
        client = await raw_socket(shop)
        pings = frame(PING, bytes(125)) * 1_000
        gate, most = shop.server.gate, 0
        async with asyncio.timeout(SECONDS):
            while not gate.closed["answer not taken"]:
                with suppress(ConnectionError, TimeoutError):
                    await asyncio.wait_for(client.send(pings), 0.05)
                most = max(most, gate.held)
        assert most < 1_000_000


async def test_frames_are_read_a_few_at_a_time(shop: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, pings = 0, Counter[int]()

    def handle(self: WebSocketConnection, event: object) -> None:
        pings[rounds] += 1

    monkeypatch.setattr(WebSocketConnection, "handle_ping", handle)
    client = await raw_socket(shop)
    await client.send(frame(PING, b"") * 2_000)
    async with asyncio.timeout(SECONDS):
        while pings.total() < 2_000:
            rounds += 1
            await asyncio.sleep(0)
    assert max(pings.values()) <= 32


@pytest.mark.parametrize(
    ("owner", "method", "sent"),
    [(WSConnection, "receive_data", HANDSHAKE), (_Socket, "_handle", frame(TEXT, b'{"type":"ping"}'))],
)
async def test_messages_and_handshakes_begin_in_the_rounds_of_requests(
    shop: Serving, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, sent: bytes
) -> None:
    # Each takes a while, as one does that many clients send at once.
    rounds, handled = 0, Counter[int]()
    handle = getattr(owner, method)

    def handling(*given: Any) -> Any:
        handled[rounds] += 1
        time.sleep(0.005)
        return handle(*given)

    opened = shop.server.connect if sent == HANDSHAKE else partial(raw_socket, shop, receives=65_536)
    clients = [await opened() for _ in range(40)]
    monkeypatch.setattr(owner, method, handling)
    for client in clients:
        client.writer.write(sent)
    async with asyncio.timeout(SECONDS):
        while handled.total() < 40:
            rounds += 1
            await asyncio.sleep(0)
    assert max(handled.values()) <= 24


async def test_a_handshake_that_is_not_ascii_is_refused(shop: Serving) -> None:
    client = await shop.server.connect()
    await client.send(HANDSHAKE.replace(b"graphql-transport-ws", b"\xff"))
    assert (await client.read()).status == 400


@pytest.mark.parametrize("protocol", [HttpToolsConnection, H11Connection])
async def test_long_offers_of_a_handshake_are_not_read(
    tmp_path: Path, protocol: type[GuardedConnection]
) -> None:
    async with serving(tmp_path, protocol) as shop:
        client = await shop.server.connect()
        await client.send(HANDSHAKE.replace(b"graphql-transport-ws", b"a, " * 200))
        assert b"Sec-WebSocket-Protocol" not in await client.reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize("is_slow", [False, True])
async def test_an_endless_message_is_closed(tmp_path: Path, *, is_slow: bool) -> None:
    async with serving(tmp_path, body_timeout=0.2 if is_slow else 30) as shop:
        client = await raw_socket(shop)
        await client.send(frame(BEGIN, b"{") + (b"" if is_slow else frame(MORE, b" ") * 500))
        closing = await client.rest()
        assert closing is not None
        assert (closing[0], int.from_bytes(closing[2:4], "big")) == (0x88, 1008)
        assert closing[4:].startswith(
            b"a message took too long" if is_slow else b"a message may have 128 frames"
        )


async def test_who_sends_a_message_that_is_too_large_learns_it(
    shop: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph_server.connections.websocket._STOP_SECONDS", 60)
    shop.server.server.config.ws_max_size = 100_000
    client = await raw_socket(shop)
    client.writer.write(frame(BEGIN, b"{" * 50_000) + 40 * frame(MORE, b"{" * 50_000))
    closing = await client.rest()
    assert closing is not None
    assert (closing[0], int.from_bytes(closing[2:4], "big")) == (0x88, 1009)
    async with asyncio.timeout(SECONDS):
        while not client.writer.is_closing():
            await client.send(bytes(65_536))


async def _pinging(client: SocketClient) -> Closed:
    """How the server closes the connection of a client that sends nothing but pings."""
    try:
        while True:
            with suppress(LocalProtocolError):  # the close has come with the last pong
                await client.send({"type": "ping"})
            assert await client.read() == {"type": "pong"}
    except Closed as closed:
        return closed


@pytest.mark.parametrize(("begins", "code"), [(False, 4408), (True, 1000)])
async def test_pings_keep_no_connection_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, begins: bool, code: int
) -> None:
    monkeypatch.setattr("keygraph_server.http.sockets._INIT_SECONDS", 0.3)
    async with serving(tmp_path, live_idle=0.3) as shop, socket_to(shop.port) as client:
        if begins:
            await client.begin()
        async with asyncio.timeout(SECONDS):
            assert (await _pinging(client)).code == code


async def test_a_client_that_reads_no_large_answer_holds_nothing_of_others(tmp_path: Path) -> None:
    # Nothing that waits for its client has the turn to write, or memory of operations; what is unread is limited.
    async with serving(tmp_path, connection_memory=2_000_000) as shop:
        name = "x" * 50_000
        await shop.ask(rename(name))
        fields = " ".join(f"a{number}: name" for number in range(14))
        query = f'{{ user(userId: "12345") {{ {fields} }} }}'
        client, memory = await raw_socket(shop), shop.app.state.service.memory
        await client.send(frame(TEXT, b'{"type":"connection_init"}'))
        for number in range(20):
            payload = {"id": str(number), "type": "subscribe", "payload": {"query": query}}
            await client.send(frame(TEXT, json.dumps(payload).encode()))
        async with asyncio.timeout(SECONDS):
            while not shop.server.gate.closed["too much memory"]:
                await asyncio.sleep(0.01)
                assert memory.large_answers.running <= 1
            while memory.held or memory.large_answers.running:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len((await shop.ask(query))["data"]["user"]) == 14


async def test_an_answer_is_counted_once_more_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def long(response: object) -> bytes:
        return b"x" * 3_000

    monkeypatch.setattr("keygraph_server.http.graphql_http.written", long)
    async with serving(tmp_path, answer_limit=2_000) as shop, socket_to(shop.port) as client:
        await client.begin()
        for key, document in (("1", QUERY), ("2", NAME)):
            await client.subscribe(key, document)
            [error] = (await client.read())["payload"]["errors"]
            assert error["extensions"]["code"] == "ANSWER_LIMIT"
            if key == "1":
                await client.read()


async def test_large_messages_are_held_until_their_operations_end(shop: Serving) -> None:
    memory = shop.app.state.service.memory
    gate = asyncio.Event()
    execute, waiting = shop.app.state.service.execute, []

    async def late(request: Any) -> Any:
        waiting.append(memory.large_bodies.taken.get("", 0))
        await gate.wait()
        return await execute(request)

    shop.app.state.service.execute = late
    async with socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("1", QUERY, variables={"x": "x" * 20_000})
        async with asyncio.timeout(SECONDS):
            while not waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert memory.large_bodies.taken[""] > 0
        gate.set()
        assert await client.read() == named("John Doe")
        await client.read()
        assert memory.large_bodies.taken == {}


async def test_those_who_listen_to_one_document_share_it(shop: Serving) -> None:
    long = NAME + "#" * 50_000
    async with socket_to(shop.port) as client:
        await client.begin()
        for number in range(3):
            await client.subscribe(str(number), long, variables={"only_here": ["x" * 50_000]})
            assert await client.read() == named("John Doe", str(number))
        gc.collect()
        variables = [each for each in gc.get_objects() if type(each) is dict and "only_here" in each]
        assert len(variables) == 1


async def test_a_websocket_with_subscriptions_is_not_closed_for_others(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections=4) as shop, socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("1", NAME)
        await client.read()
        for _ in range(8):
            await raw_socket(shop)
        await shop.ask(rename("Jane"))
        assert await client.read() == named("Jane")


async def test_a_refused_websocket_is_answered_like_any_request(shop: Serving) -> None:
    foreign = await refused(shop.port, headers=[(b"origin", b"https://evil.example")])
    client = await shop.server.connect()
    await client.send(
        b"GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    )
    no_handshake = await client.read()
    old = await shop.server.connect()
    await old.send(HANDSHAKE.replace(b"HTTP/1.1", b"HTTP/1.0"))  # which has no upgrades
    too_old = await old.read()
    for status, fields in (
        (foreign.status_code, {name.decode().lower() for name, _ in foreign.headers}),
        (no_handshake.status, {*no_handshake.fields}),
        (too_old.status, {*too_old.fields}),
    ):
        assert status in (400, 403)
        assert {"x-content-type-options", "content-security-policy", "x-request-id"} <= fields


async def test_a_stop_completes_subscriptions_and_says_goodbye(tmp_path: Path) -> None:
    async with serving(tmp_path) as shop, socket_to(shop.port) as client, shop.events(NAME) as event:
        await client.begin()
        await client.subscribe("1", NAME)
        await client.read()
        await event()
        shop.server.server.should_exit = True
        assert await client.read() == {"id": "1", "type": "complete"}
        with pytest.raises(Closed) as closed:
            await client.read()
        assert closed.value.code == 1001
        assert await event() == ("complete", None)


@pytest.mark.long
@pytest.mark.parametrize("transport", ["websocket", "events"])
async def test_no_answer_is_kept_for_a_subscription_that_waits(shop: Serving, transport: str) -> None:
    size, count = 90_000, 20
    assert "errors" not in await shop.ask(rename("n" * size))
    aliased = [NAME.replace("name", f"n{number}: name") for number in range(count)]
    tracemalloc.start()
    async with AsyncExitStack() as stack:
        before = tracemalloc.get_traced_memory()[0]
        if transport == "websocket":
            client = await stack.enter_async_context(socket_to(shop.port))
            await client.begin()
            for each in aliased:
                await client.subscribe(each, each)
                assert (await client.read())["type"] == "next"
        else:
            for each in aliased:
                event = await stack.enter_async_context(shop.events(each))
                assert (await event())[0] == "next"
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # The client of the events keeps some of them.
    assert grown < 4 * size * count


async def test_a_connection_that_is_gone_leaves_nothing(shop: Serving) -> None:
    live = shop.app.state.live
    async with socket_to(shop.port) as client:
        await client.begin()
        await client.subscribe("1", NAME)
        await client.read()
        assert live.listeners == 1
    async with asyncio.timeout(SECONDS):
        while live.listeners or shop.server.gate.count:  # noqa: ASYNC110  # the server has no event for it
            await asyncio.sleep(0.01)


@pytest.mark.long
@pytest.mark.parametrize("expires", [False, True])
async def test_subscriptions_that_end_at_once_do_so_in_turns(
    shop: Serving, monkeypatch: pytest.MonkeyPatch, *, expires: bool
) -> None:
    live, end, rounds, ended = shop.app.state.live, Listener.end, 0, Counter[int]()

    def ending(listener: Listener, *last: Any) -> None:
        ended[rounds] += 1
        end(listener, *last)

    async with socket_to(shop.port) as client:
        await client.begin()
        for number in range(100):
            await client.subscribe(str(number), NAME)
            await client.read()
        monkeypatch.setattr(Listener, "end", ending)
        [operation] = live._operations.values()
        for listener in [*operation.listeners] if expires else ():
            listener.end_after(0.0, EXPIRED)
        if not expires:
            client.writer.close()
        async with asyncio.timeout(SECONDS):
            while live.listeners:
                rounds += 1
                await asyncio.sleep(0)
    assert max(ended.values()) <= 32


@pytest.mark.parametrize("leaves", ["closes", "breaks", "goes", "completes"])
async def test_no_subscription_leaves_garbage(shop: Serving, leaves: str) -> None:
    async def one() -> None:
        async with socket_to(shop.port) as client:
            await client.begin()
            await client.subscribe("1", NAME, variables={"only_here": ["x"]})
            await client.read()
            match leaves:
                case "closes":
                    client.writer.write(client.connection.send(CloseConnection(code=1000)))
                case "breaks":
                    await client.send("no JSON")
                case "completes":
                    await client.send({"id": "1", "type": "complete"})
                case _:
                    return
            if leaves != "completes":
                await client.closing()

    async def all_left() -> None:
        async with asyncio.timeout(SECONDS):
            while shop.app.state.live.listeners or shop.server.gate.count:  # noqa: ASYNC110  # no event for it
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)

    await one()
    await all_left()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            await one()
            await all_left()
        kinds = Counter(type(each).__name__ for each in gc.get_objects())
        found = {name: kinds[name] for name in ("WebSocketConnection", "_Socket", "Listener", "_Operation")}
    finally:
        gc.enable()
    assert found == dict.fromkeys(found, 0)


# --- Server-sent events -------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, text/event-stream;q=0.5"])
async def test_a_subscription_as_events(shop: Serving, accept: str) -> None:
    async with shop.events(NAME, accept=accept) as event:
        assert await event() == ("next", {"data": {"user": {"name": "John Doe"}}})
        await shop.ask(rename("Jane"))
        assert await event() == ("next", {"data": {"user": {"name": "Jane"}}})
    async with asyncio.timeout(SECONDS):
        while shop.app.state.live.listeners:  # noqa: ASYNC110  # the server has no event for it
            await asyncio.sleep(0.01)


async def test_changes_over_both(shop: Serving) -> None:
    document = 'subscription { userChanged(userId: "12345") { kind old { name } new { name } } }'
    changes = [
        {"kind": "UPDATED", "old": {"name": one}, "new": {"name": other}}
        for one, other in pairwise(("John Doe", "Jane", "Joan"))
    ]
    async with socket_to(shop.port) as socket, shop.events(document) as event:
        await socket.begin()
        await socket.subscribe("1", document)
        live = shop.app.state.live
        async with asyncio.timeout(SECONDS):
            while live.listeners < 2 or not live.index.changes:  # noqa: ASYNC110  # nothing says when
                await asyncio.sleep(0.01)
        for name in ("Jane", "Joan"):
            await shop.ask(rename(name))
        for each in changes:
            answer = {"data": {"userChanged": each}}
            assert await event() == ("next", answer)
            assert await socket.read() == {"id": "1", "type": "next", "payload": answer}


async def test_a_query_and_an_error_as_events(shop: Serving) -> None:
    async with shop.events(QUERY) as event:
        assert await event() == ("next", {"data": {"user": {"name": "John Doe"}}})
        assert await event() == ("complete", None)
    for query in ("{ nothing }", "subscription { nothing }"):
        async with shop.events(query) as event:
            name, answer = await event()
            assert (name, answer["errors"][0]["extensions"]["code"]) == ("next", "GRAPHQL_VALIDATION_FAILED")
            assert await event() == ("complete", None)


async def test_a_subscription_of_a_client_that_takes_no_events_is_refused_in_words(shop: Serving) -> None:
    [error] = (await shop.ask(NAME))["errors"]
    assert error["message"].startswith("A subscription has many answers: send it over a WebSocket")


async def test_streams_have_half_of_the_connections(tmp_path: Path) -> None:
    # They have four of eight, and one address two.
    async with (
        serving(tmp_path, max_connections=8) as shop,
        shop.events(NAME) as first,
        shop.events(NAME) as second,
    ):
        await first()
        await second()
        async with shop.events(NAME) as third:
            name, answer = await third()
            assert (name, answer["errors"][0]["extensions"]["code"]) == ("next", "LIVE_LIMIT")
        assert (await shop.ask(QUERY))["data"] == {"user": {"name": "John Doe"}}


async def test_a_page_of_another_origin_gets_no_events(shop: Serving) -> None:
    headers = {"accept": "text/event-stream", "origin": "https://evil.example"}
    response = await shop.client.post("/graphql", json={"query": NAME}, headers=headers)
    assert response.status_code == 403
