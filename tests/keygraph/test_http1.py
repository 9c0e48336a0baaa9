"""HTTP/1.1: an answer is what was sent, however it arrives, and a connection is used again only after a whole one."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from botocore import exceptions as boto
from hypothesis import given
from hypothesis import strategies as st

from keygraph.admission import Overloaded
from keygraph.engines.dynamodb.http1 import AnswerTooLarge, LargeReplies, Malformed, Pool, Reply
from keygraph.turns import BUDGET, WorkBudget
from tests.listening import Handler, listening


def chunked(body: bytes, sizes: list[int]) -> bytes:
    """The body in chunks of these sizes, the last as long as need be."""
    parts = []
    for size in sizes:
        parts.append(body[:size])
        body = body[size:]
    parts.append(body)
    return b"".join(b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n"


# --- Answers ------------------------------------------------------------------------------------------


@given(
    body=st.binary(max_size=300),
    sizes=st.lists(st.integers(1, 50), max_size=5),
    is_chunked=st.booleans(),
    trailers=st.booleans(),
    first=st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]),
    cuts=st.lists(st.integers(0, 700), max_size=8),
)
def test_an_answer_in_pieces(
    body: bytes, sizes: list[int], is_chunked: bool, trailers: bool, first: bytes, cuts: list[int]
) -> None:
    if is_chunked:
        end = b"X-Trailer: 1\r\n\r\n" if trailers else b"\r\n"
        sent = b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, sizes) + end
    else:
        sent = b"content-LENGTH:  %d \r\n\r\n" % len(body) + body
    whole = first + b"HTTP/1.1 200 OK\r\nX-One: a: b\r\n" + sent
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    answer = Reply()
    replies = [answer.feed(whole[a:b]) for a, b in pairwise(places)]
    assert replies[:-1] == [None] * (len(replies) - 1)
    reply = replies[-1]
    assert reply is not None
    assert (reply.status, reply.headers["x-one"], reply.body) == (200, "a: b", body)
    assert answer.may_go_on
    assert answer.end() is None


@pytest.mark.parametrize(
    ("head", "goes_on"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nHTTP/1.1", False),
    ],
)
def test_what_may_follow(head: bytes, goes_on: bool) -> None:
    answer = Reply()
    reply = answer.feed(head)
    assert reply is not None
    assert (reply.status, reply.body, answer.may_go_on) == (200, b"{}", goes_on)


def test_an_answer_that_ends_with_the_connection() -> None:
    """What stands between us and DynamoDB may be old."""
    answer = Reply()
    assert answer.feed(b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n{") is None
    assert answer.feed(b"}") is None
    reply = answer.end()
    assert reply is not None
    assert (reply.status, reply.headers, reply.body) == (200, {"server": "x"}, b"{}")
    cut = Reply()
    cut.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
    assert cut.end() is None


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X" * 70_000,
    ],
)
def test_what_is_no_answer(sent: bytes) -> None:
    with pytest.raises(Malformed):
        Reply().feed(sent)


@pytest.mark.parametrize(
    ("framing", "part"),
    [
        (b"Content-Length: 1001\r\n", b""),
        (b"Transfer-Encoding: chunked\r\n", b"3e9\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"64\r\n" + b"x" * 100 + b"\r\n"),
        (b"Connection: close\r\n", b"x" * 100),
    ],
)
def test_an_answer_that_is_too_large_is_not_read(framing: bytes, part: bytes) -> None:
    with pytest.raises(AnswerTooLarge):
        Reply(1000).feed(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n" + part * 11)
    assert Reply(2000).feed(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n" + part * 9) is None


@pytest.mark.parametrize("step", [1_000, 65_536])
@pytest.mark.parametrize(
    "line",
    [
        b"1\r\n \r\n",
        b"2\r\n  \r\n",
        b"40\r\n" + b" " * 64 + b"\r\n",
        b"1;" + b"x" * 10_000 + b"\r\n \r\n",
        b"0\r\n" + b"a:\r\n" * 60_000,
        b"0\r\n" + (b"a:" + b"x" * 9_000 + b"\r\n") * 60,
    ],
    ids=lambda line: line[:5],
)
def test_an_answer_is_not_mostly_framing(line: bytes, step: int) -> None:
    sent = line * max(1, 300_000 // len(line))
    taken = 0

    def receive() -> None:
        nonlocal taken
        reply = Reply()
        reply.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while taken < len(sent):
            taken += step
            reply.feed(sent[taken - step : taken])

    with pytest.raises(Malformed):
        receive()
    assert taken <= 40_000 + step


@pytest.mark.parametrize("step", [1, 700, 65_536])
@pytest.mark.parametrize("size", [1, 64, 1_024, 100_000])
def test_chunks_of_a_usual_size_are_read(size: int, step: int) -> None:
    count = {1: 120, 64: 120}.get(size, 300_000 // size)
    sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent += b"%x;a=b\r\n%s\r\n" % (size, b"x" * size) * count + b"0\r\na: b\r\n\r\n"
    reply = Reply()
    found = [reply.feed(sent[start : start + step]) for start in range(0, len(sent), step)]
    assert found[:-1] == [None] * (len(found) - 1)
    assert found[-1] is reply
    assert reply.body == b"x" * size * count


def test_interim_answers_have_an_end() -> None:
    interim, answer = (
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    )
    reply = Reply().feed(interim * 16 + answer)
    assert reply is not None
    assert (reply.status, reply.body) == (200, b"{}")
    with pytest.raises(Malformed):
        Reply().feed(interim * 17 + answer)


# --- Connections --------------------------------------------------------------------------------------


@asynccontextmanager
async def pool_of(handler: Handler, read_seconds: float = 2.0) -> AsyncIterator[Pool]:
    """A pool of connections to a server that does this with each."""
    tasks = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    async with listening(serve) as host:
        pool = Pool(f"http://{host}", host, None, connect_seconds=2.0, read_seconds=read_seconds)
        try:
            yield pool
        finally:
            await pool.close()
            if tasks:
                await asyncio.wait(tasks, timeout=5)


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def _answered(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(_answered(await _request(reader)))


async def test_each_request_has_its_own_answer() -> None:
    async with pool_of(_echo) as pool:
        bodies = [b"%d" % number * (number + 1) for number in range(300)]
        places = asyncio.Semaphore(4)

        async def post(body: bytes) -> Reply:
            async with places:
                return await pool.post("Host: x\r\n", body)

        replies = await asyncio.gather(*map(post, bodies))
    assert [reply.body for reply in replies] == bodies


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 12000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"]
)
async def test_large_answers_wait_until_earlier_ones_are_used(framing: bytes) -> None:
    is_chunked, body = framing.startswith(b"T"), b"x" * 12_000_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            text = _answered(b"small")
            if await _request(reader) == b"large":
                chunks = b"10000\r\n%b\r\n" % body[:65_536] * 180 + b"0\r\n\r\n"
                text = b"HTTP/1.1 200 OK\r\n" + framing + (chunks if is_chunked else body)
            writer.write(text)
            await writer.drain()

    async with pool_of(answer, read_seconds=1.0) as pool:
        waiting = {asyncio.create_task(pool.post("", b"large", 13_000_000)) for _ in range(3)}
        while waiting:
            [done], waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            reply = done.result()
            assert len(reply.body) > 11_000_000
            # However long it is used, small ones come beside it, and no other large one.
            for _ in range(300):
                assert (await pool.post("", b"small")).body == b"small"
            assert not any(each.done() for each in waiting)
            del done, reply


async def test_clients_take_turns_with_large_answers_and_too_many_are_refused() -> None:
    large, read = LargeReplies(), list[str]()

    async def take(client: str) -> None:
        budget = WorkBudget()
        budget.client = client
        BUDGET.set(budget)
        await large.take(Reply(10_000_000))
        read.append(client)

    taken = await asyncio.gather(*map(take, "aaaaaaaaab"), return_exceptions=True)
    assert [type(each) for each in taken if each is not None] == [Overloaded] * 2
    assert read == ["a", "a", "b", "a", "a", "a", "a", "a"]


async def test_a_large_answer_that_nobody_waits_for_gives_its_place_to_others() -> None:
    is_read = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = await _request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12000000\r\n\r\n" + b"x" * int(length))
        await writer.drain()
        is_read.set()
        await reader.read()

    async with pool_of(answer) as pool:
        given_up = [asyncio.create_task(pool.post("", b"6000000")) for _ in range(3)]
        await is_read.wait()
        whole = asyncio.create_task(pool.post("", b"12000000"))
        await asyncio.wait([*given_up, whole], timeout=0.3)
        assert not whole.done()
        for task in given_up:
            task.cancel()
        del task
        await asyncio.wait(given_up)
        del given_up
        assert len((await whole).body) == 12_000_000


async def test_a_stale_connection_is_replaced() -> None:
    served: list[int] = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(1)
        writer.write(_answered(await _request(reader)))
        # It hears another request on the connection, and ends it instead.
        await reader.readexactly(1)

    async with pool_of(once) as pool:
        for number in range(3):
            assert (await pool.post("", b"%d" % number)).body == b"%d" % number
    assert len(served) == 3


async def test_silence_is_told_and_slowness_is_not() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = await _request(reader)
        for byte in _answered(body):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.005)
        await _request(reader)
        await reader.read()

    async with pool_of(drip, read_seconds=0.15) as pool:
        assert (await pool.post("", b"{}")).body == b"{}"
        with pytest.raises(boto.ReadTimeoutError):
            await pool.post("", b"{}")


async def test_a_request_that_is_given_up_leaves_nothing_behind() -> None:
    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            body = await _request(reader)
            await asyncio.sleep(0.05 if body == b"late" else 0)
            writer.write(_answered(body))

    async with pool_of(late) as pool:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(pool.post("", b"late"), 0.02)
            assert (await pool.post("", b"next")).body == b"next"


@pytest.mark.long
async def test_no_socket_is_lost_while_it_connects() -> None:
    for turns in [*range(12)] * 6:
        async with pool_of(_echo) as pool:
            running = [asyncio.create_task(pool.post("", b"{}")) for _ in range(4)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    # What was lost is told when it is collected, and fails the test.
    await asyncio.sleep(0)
    gc.collect()


async def test_closing_ends_what_is_under_way() -> None:
    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with pool_of(quiet) as pool:
        running = asyncio.create_task(pool.post("", b"{}"))
        await asyncio.sleep(0.05)
        await pool.close()
        with pytest.raises(boto.ConnectionClosedError):
            await running
        with pytest.raises(RuntimeError, match="the store is closed"):
            await pool.post("", b"{}")


async def test_an_idle_connection_is_not_used_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(1)
        await _echo(reader, writer)

    async with pool_of(serve) as pool:
        for seconds, expected in ((30.0, 1), (30.0, 1), (0.01, 2), (30.0, 2)):
            monkeypatch.setattr("keygraph.engines.dynamodb.http1._IDLE_SECONDS", seconds)
            await asyncio.sleep(0.03)
            assert (await pool.post("", b"{}")).body == b"{}"
            assert len(served) == expected


async def test_a_connection_from_before_a_freeze_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[object] = []

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer)
        await _echo(reader, writer)

    async with pool_of(counted) as pool:
        for _ in range(2):
            await pool.post("", b"{}")
        now = time.time()
        # The time of the event loop stood still.
        monkeypatch.setattr("keygraph.engines.dynamodb.http1.time.time", lambda: now + 60)
        await pool.post("", b"{}")
    assert len(served) == 2


async def test_a_connection_that_is_never_made_is_told() -> None:
    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with listening(quiet) as host:
        tls = ssl.create_default_context()
        pool = Pool(f"https://{host}", host, tls, connect_seconds=0.05, read_seconds=5.0)
        with pytest.raises(boto.ConnectTimeoutError):
            await pool.post("", b"{}")
        await pool.close()
        # The server hears that the connection has ended.
        await asyncio.sleep(0.02)


async def test_silences_are_looked_for_only_while_answers_are_due() -> None:
    async with pool_of(_echo, read_seconds=0.05) as pool:
        await pool.post("", b"{}")
        await asyncio.sleep(0.02)
        assert pool._looking is None
        assert (await pool.post("", b"{}")).body == b"{}"
