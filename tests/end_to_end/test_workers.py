"""Several processes on one port: how they start, stop, and are replaced."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.end_to_end.processes import SLOW_MODEL, START_SECONDS, Start, all_serve, ask, logged, wait_for

pytestmark = pytest.mark.long

QUERY = '{ user(userId: "12345") { name } }'
ANSWER = {"data": {"user": {"name": "John Doe"}}}


def wait_until_gone(*numbers: int) -> None:
    ended = time.monotonic() + START_SECONDS
    for number in numbers:
        while _is_there(number):
            assert time.monotonic() < ended, f"process {number} has not ended"
            time.sleep(0.02)


def _is_there(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_first_start_makes_its_file_once(start: Start, tmp_path: Path) -> None:
    server = start("serve", "--port", "0", KEYGRAPH_WORKERS="2")
    address = server.address()
    assert [ask(address, QUERY) for _ in range(6)] == [ANSWER] * 6
    first, second = all_serve(server, 2)
    assert first != second
    assert server.process.pid not in (first, second)
    assert server.stop() == 0
    assert server.text("stdout").count("Created .keygraph/commerce.sqlite") == 1
    assert server.warnings() == []
    assert sorted(file.name for file in (tmp_path / ".keygraph").iterdir()) == [
        "commerce.sqlite",
        "commerce.sqlite.secret",
    ]


@pytest.mark.parametrize("word", ["--workers=2", "--reload"])
def test_packages_of_ones_own(start: Start, tmp_path: Path, word: str) -> None:
    for name in ("server", "resolvers", "examples"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is not Keygraph')")
    server = start("serve", "--port", "0", word)
    assert ask(server.address(), QUERY) == ANSWER
    assert server.stop() == 0
    assert "this is not Keygraph" not in server.text("stderr")


def test_a_worker_that_dies_is_replaced(start: Start) -> None:
    server = start("serve", "--port", "0", "--workers", "2")
    address = server.address()
    before = all_serve(server, 2)
    os.kill(before[0], signal.SIGKILL)
    assert logged(server, r"Worker (\d+) was killed by SIGKILL: it is replaced") == [before[0]]
    after = all_serve(server, 3)
    assert len(set(after)) == 3
    assert [ask(address, QUERY) for _ in range(6)] == [ANSWER] * 6
    assert server.stop() == 0
    wait_until_gone(*after)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_what_is_under_way_is_answered(
    start: Start, tmp_path: Path, number: int
) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", "--workers", "2")
    address = server.address()
    found = all_serve(server, 2)
    answers: list[Any] = []
    query = '{ thing(thingId: "1") { slowly(seconds: 2) } }'
    asking = threading.Thread(target=lambda: answers.append(ask(address, query)))
    asking.start()
    wait_for(tmp_path / "asked")
    if number == signal.SIGINT:
        # Ctrl-C in a terminal is sent to all of them.
        os.killpg(server.process.pid, number)
        assert server.ended() == 0
    else:
        assert server.stop(number) == 0
    asking.join(START_SECONDS)
    assert answers == [{"data": {"thing": {"slowly": "1"}}}]
    assert server.warnings() == []
    wait_until_gone(*found)


def test_who_connects_while_they_end_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", "--workers", "2")
    address = server.address()
    all_serve(server, 2)
    query = '{ thing(thingId: "1") { slowly(seconds: 5) } }'
    asking = threading.Thread(target=lambda: ask(address, query))
    asking.start()
    wait_for(tmp_path / "asked")
    os.kill(server.process.pid, signal.SIGTERM)
    place = urlsplit(address)
    until = time.monotonic() + 4
    while True:
        try:
            # The system tries again after a second if the first try comes right before the socket is closed.
            socket.create_connection((place.hostname, place.port), timeout=3).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < until
        time.sleep(0.05)
    assert server.process.poll() is None
    asking.join(START_SECONDS)
    assert server.ended() == 0


def test_workers_end_with_the_process_that_started_them(start: Start) -> None:
    server = start("serve", "--port", "0", "--workers", "2")
    server.address()
    found = all_serve(server, 2)
    server.process.kill()
    wait_until_gone(*found)
    assert "The parent process is gone: stopping" in "".join(server.warnings())


def test_a_worker_that_cannot_start_later_is_tried_again(start: Start, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0", "--workers", "2")
    address = server.address()
    found = all_serve(server, 2)
    (tmp_path / "slow.py").write_text("graph = None\n")
    os.kill(found[0], signal.SIGKILL)
    ended = time.monotonic() + START_SECONDS
    while "cannot start: it is tried again and again" not in server.text("stderr"):
        assert time.monotonic() < ended, server.text("stderr")
        time.sleep(0.02)
    assert "ERROR keygraph_server.app: slow:graph" in server.text("stderr")
    assert ask(address, "{ __typename }") == {"data": {"__typename": "Query"}}
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    found = all_serve(server, 3)
    assert server.stop() == 0
    wait_until_gone(*found)


def test_reload_with_workers_of_the_environment_is_a_line(start: Start) -> None:
    server = start("serve", "--port", "0", "--reload", KEYGRAPH_WORKERS="2")
    assert server.ended() == 2
    assert "--reload works with one worker only: remove KEYGRAPH_WORKERS" in server.text("stderr")


def test_health_is_of_every_worker(start: Start) -> None:
    server = start("serve", "--port", "0", "--workers", "2")
    address = server.address()
    all_serve(server, 2)
    assert [httpx.get(f"{address}/readyz").json() for _ in range(8)] == [{"ready": True}] * 8
