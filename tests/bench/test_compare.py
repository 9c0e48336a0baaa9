"""The comparison with other servers: what would make its figures wrong without anybody noticing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from graphql import parse, validate

from bench.compare import __main__ as command
from bench.compare import data
from bench.compare.figures import Counted, Figures, Found, Turns, percentile
from bench.compare.load import Clients, Connection, WrongAnswerError, http_post
from bench.compare.proxy import Proxy
from bench.compare.queries import QUERIES, queries
from bench.compare.report import goals_table, memory_line, processor_table, quick_table, whole_table
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


async def test_each_request_waits() -> None:
    async with proxied(FakeStore(), delay_seconds=0.05) as port:
        loop, connection = asyncio.get_running_loop(), Connection(port)
        began = loop.time()
        await post(port, b"{}")(connection)
        assert loop.time() - began >= 0.05
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


# --- The data -----------------------------------------------------------------------------------------


def test_the_table_is_what_the_queries_say() -> None:
    kinds: dict[str, int] = {}
    keys = set()
    for item in data.items():
        kinds[str(item["Type"])] = kinds.get(str(item["Type"]), 0) + 1
        keys.add((item["PK"], item["SK"]))
    assert kinds == {
        "Category": 1 + 3 + 9 + 27 + 81,
        "CategoryChild": 3 + 9 + 27 + 81,
        "User": 100,
        "Product": 800,
        "ProductCategory": 800,
        "Order": 200,
        "OrderItem": 1000,
    }
    assert len(keys) == sum(kinds.values())


def test_the_queries_are_those_of_the_model() -> None:
    schema = schema_of(graph)
    for query in QUERIES:
        assert validate(schema._schema, parse(query.document)) == []


# --- The figures and the page -------------------------------------------------------------------------


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([5.0], 95) == 5.0
    assert percentile([float(value) for value in range(100, 0, -1)], 50) == 50.0
    assert percentile([float(value) for value in range(100, 0, -1)], 95) == 95.0
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0


def figures(server: str, query: str, clients: int, processor_ms: float, round_trips: int = 4) -> Figures:
    return Figures(server, query, clients, processor_ms, 100.0, processor_ms * 2, 99.0, 64, round_trips)


def test_a_turn_is_the_median_and_latencies_are_pooled() -> None:
    turns = Turns()
    turns.add(0.1, 1.0, [0.01] * 10)
    turns.add(0.2, 1.0, [0.02] * 10)
    turns.add(9.0, 2.0, [0.50] * 10)
    found = Figures.of("keygraph", "nested", 16, turns, Counted(64, 4))
    assert found == Figures("keygraph", "nested", 16, 20.0, 10.0, 20.0, 500.0, 64, 4)


NAMES = {"keygraph": "Keygraph", "apollo": "Apollo", "floor-plain": "floor"}
FOUND = Found(
    [
        figures("keygraph", "nested", 1, 6.0),
        figures("apollo", "nested", 1, 12.0, 6),
        figures("keygraph", "nested", 16, 10.0),
        figures("apollo", "nested", 16, 20.0, 6),
        figures("floor-plain", "nested", 16, 12.5, 6),
        figures("keygraph", "list", 16, 3.0, 1),
        figures("floor-plain", "list", 16, 1.0, 1),
    ],
    {"keygraph": 99.6, "floor-plain": 45.2},
)


def test_the_page_shows_ratios_of_the_run_with_the_most_clients() -> None:
    assert processor_table(FOUND, NAMES) == (
        "| query | Keygraph | Apollo | floor | Keygraph / Apollo | Keygraph / floor |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| nested | 10.00 | 20.00 | 12.50 | 0.50 | 0.80 |\n"
        "| list | 3.00 | – | 1.00 | – | 3.00 |\n"
    )


def test_goals_are_told_as_reached_only_where_they_are() -> None:
    lines = goals_table(FOUND).splitlines()
    assert "| nested: at most 0.6 of the floor's processor time | 0.80 | **no** |" in lines
    assert "| list: at most 1 of the floor's processor time | 3.00 | **no** |" in lines
    assert "| nested: at most 0.4 of Apollo's processor time | 0.50 | **no** |" in lines
    assert "| wide: at most 0.7 of the floor's processor time | – | not measured |" in lines
    assert "| nested: 4 round trips | 4.00 | yes |" in lines
    assert "| nested: at most 0.6 of Apollo's p50, one client | 0.50 | yes |" in lines


def test_the_whole_table_has_a_row_for_each_setting() -> None:
    lines = whole_table(FOUND, NAMES).splitlines()
    assert len(lines) == 2 + len(FOUND.figures)
    assert lines[2] == "| nested | 1 | Keygraph | 12.0 | 99.0 | 100.0 | 6.00 | 64 | 4 |"
    assert memory_line(FOUND, NAMES) == "Peak memory in MB, all queries together: Keygraph 100, floor 45.\n"


def test_a_quick_run_tells_the_change_of_ratios_and_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "made" / "quick.json"
    assert command.compare_with_last(FOUND, file) == quick_table(FOUND, {})
    assert orjson.loads(file.read_bytes()) == {"nested": 0.8, "list": 3.0}
    file.write_bytes(orjson.dumps({"nested": 1.6, "wide": 4.0}))
    [_, nested, listed] = command.compare_with_last(FOUND, file).splitlines()
    assert nested.split() == ["nested", "10.00", "12.50", "0.80", "1.60", "-50%"]
    assert listed.split() == ["list", "3.00", "1.00", "3.00", "–", "–"]
    assert orjson.loads(file.read_bytes()) == {"nested": 0.8, "wide": 4.0, "list": 3.0}


def test_what_is_absent_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.compare.servers.shutil.which", lambda _: None)
    names = [server.name for server in command.present(None)]
    assert names == ["keygraph", "strawberry", "floor-plain", "floor-merged"]
    assert capsys.readouterr().err == "without apollo: node was not found: install Node.js 20 or newer\n"
    with pytest.raises(ValueError, match="there is no server yoga: choose from keygraph, apollo"):
        command.present(["yoga"])
