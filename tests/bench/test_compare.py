"""The comparison with other servers: what would make its figures wrong without anybody noticing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
import pytest
from graphql import parse, validate

from bench.compare.figures import Counted, Figures, Turns
from bench.compare.load import Clients, Connection, WrongAnswerError, http_post
from bench.compare.proxy import Proxy
from bench.compare.queries import QUERIES, queries
from bench.compare.servers import KEYGRAPH, PLAIN, Running
from bench.compare.turns import DifferentAnswersError, compare_answers
from keygraph_examples.commerce import graph
from tests.schemas import schema_of

# --- The proxy ----------------------------------------------------------------------------------------


@dataclass
class FakeStore:
    """A store that answers each request with its own body."""

    pieces: int = 1
    is_chunked: bool = False
    got: list[bytes] = field(default_factory=list)
    connections: int = 0
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.is_idle.clear()
        try:
            await self._answer(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()
        finally:
            self.connections -= 1
            if not self.connections:
                self.is_idle.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            self.got.append(body)
            if self.is_chunked:
                answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                answer += b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            else:
                answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            size = -(-len(answer) // self.pieces)
            for start in range(0, len(answer), size):
                writer.write(answer[start : start + size])
                await asyncio.sleep(0.001)


@asynccontextmanager
async def proxied(
    store: FakeStore, delay_seconds: float = 0.004, quiet_seconds: float = 0.05
) -> AsyncIterator[int]:
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    proxy = Proxy("127.0.0.1", server.sockets[0].getsockname()[1], delay_seconds)
    proxy.counters.quiet_seconds = quiet_seconds
    listening = await proxy.listen()
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        server.close()
        # Clients have closed: the proxy closes behind them.
        async with asyncio.timeout(5):
            await store.is_idle.wait()


async def control(port: int, what: str) -> dict[str, int]:
    connection = Connection(port)
    told: dict[str, int] = orjson.loads(await connection.ask(f"GET /-/{what} HTTP/1.1\r\n\r\n".encode()))
    connection.close()
    return told


def post(port: int, body: bytes) -> Callable[[Connection], Awaitable[bytes]]:
    return lambda connection: connection.ask(http_post(port, "/", body))


@pytest.mark.parametrize("reset", ["reset", "reset?hold"])
async def test_what_is_asked_at_once_is_one_round_trip(reset: str) -> None:
    async with proxied(FakeStore(), delay_seconds=0.02) as port:
        await control(port, reset)
        connections = [Connection(port) for _ in range(3)]
        for together in (3, 2, 1):
            await asyncio.gather(*map(post(port, b"{}"), connections[:together]))
        assert await control(port, "counters") == {"requests": 6, "round_trips": 3}
        await control(port, "reset")
        assert await control(port, "counters") == {"requests": 0, "round_trips": 0}
        for each in connections:
            each.close()


async def test_a_slow_sender_takes_no_more_round_trips_where_answers_are_held() -> None:
    async with proxied(FakeStore(), quiet_seconds=0.5) as port:
        connections = [Connection(port) for _ in range(4)]

        async def one_after_another() -> None:
            tasks = []
            for connection in connections:
                tasks.append(asyncio.ensure_future(post(port, b"{}")(connection)))
                await asyncio.sleep(0.02)
            await asyncio.gather(*tasks)

        await control(port, "reset")
        await one_after_another()
        assert (await control(port, "counters"))["round_trips"] > 1
        await control(port, "reset?hold")
        await one_after_another()
        assert await control(port, "counters") == {"requests": 4, "round_trips": 1}
        for each in connections:
            each.close()


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("pieces", [1, 7, 400])
async def test_answers_go_through_whole(pieces: int, is_chunked: bool) -> None:
    body = orjson.dumps({"text": "0\r\n\r\n" * 200, "more": "x" * 5000})
    async with proxied(FakeStore(pieces=pieces, is_chunked=is_chunked)) as port:
        connection = Connection(port)
        await control(port, "reset")
        for _ in range(2):
            assert await post(port, body)(connection) == body
        assert await control(port, "counters") == {"requests": 2, "round_trips": 2}
        connection.close()


# --- The clients --------------------------------------------------------------------------------------


async def test_a_turn_asks_every_body_in_turn_and_notes_each_answer() -> None:
    """Operations a second and processor time an operation are divided by how many answers there were."""
    store = FakeStore()
    async with proxied(store, delay_seconds=0) as port:
        clients = Clients(port, 2)
        turn = await clients.turn([http_post(port, "/", body) for body in (b"1", b"2", b"3")], 0, at_least=6)
        assert sorted(store.got) == [b"1", b"1", b"2", b"2", b"3", b"3"]
        assert len(turn.latencies) == 6
        assert turn.seconds >= max(turn.latencies)
        clients.close()


async def test_an_answer_with_errors_ends_the_run() -> None:
    async with proxied(FakeStore()) as port:
        connection = Connection(port)
        with pytest.raises(WrongAnswerError, match="no such field"):
            await post(port, b'{"errors":[{"message":"no such field"}]}')(connection)
        connection.close()


async def test_servers_that_answer_differently_are_not_compared() -> None:
    async def answering(data: bytes) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = b'{"data":%b}' % data
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            writer.close()
            await writer.wait_closed()

        return await asyncio.start_server(serve, "127.0.0.1", 0)

    one, same, other = [
        await answering(data) for data in (b'{"a":1,"b":"x"}', b'{"b":"x","a":1}', b'{"a":2,"b":"x"}')
    ]
    mine, alike, different = [
        Running(server, listening.sockets[0].getsockname()[1], 0)
        for server, listening in ((KEYGRAPH, one), (PLAIN, same), (PLAIN, other))
    ]
    await compare_answers(queries(["list"]), [mine, alike])
    with pytest.raises(
        DifferentAnswersError, match=r'(?s)list: keygraph and floor-plain.*- "a": 1.*\+ "a": 2'
    ):
        await compare_answers(queries(["list"]), [mine, different])
    for each in (one, same, other):
        each.close()


def test_the_queries_are_those_of_the_model() -> None:
    schema = schema_of(graph)
    for query in QUERIES:
        assert validate(schema._schema, parse(query.document)) == []


def test_a_turn_is_the_median_and_latencies_are_pooled() -> None:
    turns = Turns()
    turns.add(0.1, 1.0, [0.01] * 10)
    turns.add(0.2, 1.0, [0.02] * 10)
    turns.add(9.0, 2.0, [0.50] * 10)
    found = Figures.of("keygraph", "nested", 16, turns, Counted(64, 4))
    assert found == Figures("keygraph", "nested", 16, 20.0, 10.0, 20.0, 500.0, 64, 4)
