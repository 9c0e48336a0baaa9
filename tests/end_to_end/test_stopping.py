"""The end of the real process, and of its workers: what is asked meanwhile, and what is logged."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.processes import SLOW_MODEL, START_SECONDS, Start, all_serve, ask, logged, wait_for

pytestmark = pytest.mark.long

WORKERS = pytest.mark.parametrize("count", ["1", "2"], ids=["one process", "two workers"])
BUSY_MODEL = """
from __future__ import annotations

import time

from keygraph import ID, Graph, Table, field, node


@node("THING#{thing_id}", item=False)
class Thing:
    thing_id: ID

    @field(needs=("thing_id",))
    async def busily(self) -> str:
        ended = time.monotonic() + 60
        while time.monotonic() < ended:
            pass
        return self.thing_id


graph = Graph(Table("Things", partition_key="pk"), Thing)
"""


class Asking:
    """Clients that ask one request after the other, half of them each on a new connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self._place = (host, int(port))
        self.seen: Counter[str] = Counter()

    async def run(self, count: int) -> None:
        await asyncio.gather(*(self._ask(is_kept=number % 2 == 0) for number in range(count)))

    async def _ask(self, *, is_kept: bool) -> None:
        body = json.dumps(
            {"query": '{ user(userId: "12345") { name orders { nodes { orderId } } } }'}
        ).encode()
        head = "POST /graphql HTTP/1.1\r\nHost: k\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self._place)
            except OSError:
                return
            is_new = True
            try:
                while is_new or is_kept:
                    writer.write(request)
                    answer = await reader.readuntil(b"\r\n\r\n")
                    found = re.search(rb"(?i)content-length: (\d+)", answer)
                    assert found is not None
                    await reader.readexactly(int(found[1]))
                    self.seen[answer[9:12].decode()] += 1
                    is_new = False
            except (ConnectionError, asyncio.IncompleteReadError):
                # A connection that has been used may be closed between two requests (RFC 9112, 9.3.1).
                self.seen["lost" if is_new else "closed"] += 1
            finally:
                writer.close()


@WORKERS
async def test_no_request_is_lost(start: Start, count: str) -> None:
    server = start("serve", "--port", "0", "--workers", count)
    asking = Asking(server.address())
    all_serve(server, int(count))
    running = asyncio.create_task(asking.run(24))
    await asyncio.sleep(1)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(running, 20)
    assert asking.seen["200"] > 24
    assert {name for name, number in asking.seen.items() if number} <= {"200", "closed"}
    assert await asyncio.to_thread(server.ended) == 0
    assert server.warnings() == []


@WORKERS
def test_what_cannot_be_finished_is_told(start: Start, tmp_path: Path, count: str) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", "--workers", count, KEYGRAPH_STOP_TIMEOUT="1")
    address = server.address()
    all_serve(server, int(count))
    answers: list[httpx.Response] = []
    body = {"query": '{ thing(thingId: "1") { slowly(seconds: 12) } }'}
    asking = threading.Thread(
        target=lambda: answers.append(httpx.post(f"{address}/graphql", json=body, timeout=START_SECONDS))
    )
    asking.start()
    wait_for(tmp_path / "asked")
    assert server.stop() == 0
    asking.join(START_SECONDS)
    (answer,) = answers
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "1"
    (error,) = answer.json()["errors"]
    assert error["extensions"]["code"] == "UNAVAILABLE"
    assert "Traceback" not in server.text("stderr")


class TestWorkers:
    def test_one_that_is_stopped_is_logged_and_replaced(self, start: Start) -> None:
        server = start("serve", "--port", "0", "--workers", "2", KEYGRAPH_WORKER_TIMEOUT="3")
        address = server.address()
        all_serve(server, 2)
        frozen = all_serve(server, 2)[0]
        os.kill(frozen, signal.SIGSTOP)
        assert frozen in logged(server, r"Worker (\d+) has been frozen for \d+ seconds: it is replaced")
        assert len(all_serve(server, 3)) >= 3
        assert ask(address, "{ __typename }") == {"data": {"__typename": "Query"}}
        assert server.stop() == 0

    def test_one_whose_loop_is_busy_is_logged_and_replaced(self, start: Start, tmp_path: Path) -> None:
        (tmp_path / "busy.py").write_text(BUSY_MODEL)
        words = ("--model", "busy", "--store", "sqlite:things.sqlite")
        assert start("table", "create", *words).ended() == 0
        server = start("serve", "--port", "0", "--workers", "2", *words, KEYGRAPH_WORKER_TIMEOUT="3")
        address = server.address()
        all_serve(server, 2)
        with pytest.raises(httpx.HTTPError):
            httpx.post(f"{address}/graphql", json={"query": '{ thing(thingId: "1") { busily } }'}, timeout=20)
        assert logged(server, r"Worker (\d+) has been frozen for \d+ seconds: it is replaced")
        assert len(all_serve(server, 3)) >= 3
        assert server.stop() == 0

    def test_a_frozen_one_does_not_hold_up_the_stop(self, start: Start) -> None:
        server = start("serve", "--port", "0", "--workers", "2", KEYGRAPH_STOP_TIMEOUT="1")
        server.address()
        frozen = all_serve(server, 2)[0]
        os.kill(frozen, signal.SIGSTOP)
        assert server.stop() == 0
        assert logged(server, r"Worker (\d+) does not stop: it is killed") == [frozen]

    def test_a_hangup_replaces_all_one_by_one(self, start: Start) -> None:
        server = start("serve", "--port", "0", "--workers", "2")
        address = server.address()
        before = all_serve(server, 2)
        server.process.send_signal(signal.SIGHUP)
        while len(set(all_serve(server, 4)) - set(before)) < 2:
            time.sleep(0.1)
        assert ask(address, "{ __typename }") == {"data": {"__typename": "Query"}}
        assert server.stop() == 0
        assert server.warnings() == []
