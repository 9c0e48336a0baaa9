"""The real process: started as a newcomer starts it, asked over HTTP, stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
KEYGRAPH = Path(sys.executable).with_name("keygraph")
WITHOUT_EXTRA = [
    sys.executable,
    "-c",
    # To import a module that is None here fails as if it was not installed.
    "import sys; sys.modules['uvloop'] = sys.modules['httptools'] = None; from server.cli import main; main()",
]
START_SECONDS = 30.0

CUSTOMER = (
    '{ user(userId: "12345") { name orders(first: 1) { nodes { orderId total items { nodes { name } } } } } }'
)
ANSWER = {
    "user": {
        "name": "John Doe",
        "orders": {
            "nodes": [
                {
                    "orderId": "ORD001",
                    "total": "199.99",
                    "items": {"nodes": [{"name": "Wireless Headphones"}]},
                }
            ]
        },
    }
}


class Process:
    """A `keygraph` that runs in a folder, what it has written so far, and the address it has printed."""

    def __init__(self, folder: Path, *words: str, is_fast: bool = True, **settings: str) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KEYGRAPH_", "COVERAGE"))
        }
        environment |= {"PYTHONUNBUFFERED": "1", **settings}
        self.process = subprocess.Popen(
            [*([KEYGRAPH] if is_fast else WITHOUT_EXTRA), *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Of a group of its own, so that its workers can be found and ended with it.
            start_new_session=True,
        )
        self.lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._readers = [self._read("stdout", self.process.stdout), self._read("stderr", self.process.stderr)]

    def _read(self, name: str, stream: IO[str] | None) -> threading.Thread:
        assert stream is not None

        def read_lines() -> None:
            with stream:
                for line in stream:
                    self.lines[name].append(line)

        thread = threading.Thread(target=read_lines, daemon=True)
        thread.start()
        return thread

    def text(self, name: str) -> str:
        return "".join(self.lines[name])

    def warnings(self) -> list[str]:
        """What it has written to standard error that is more than information."""
        return [line for line in self.lines["stderr"] if " INFO " not in line]

    def address(self) -> str:
        """Where it serves; waits until it has said so and answers."""
        ended = time.monotonic() + START_SECONDS
        while time.monotonic() < ended and self.process.poll() is None:
            found = re.search(r"GraphQL +(http://\S+)/graphql", self.text("stdout"))
            if found:
                # It listens already, so this waits until it is there to answer.
                assert httpx.get(f"{found[1]}/healthz", timeout=START_SECONDS).text == "ok"
                return found[1]
            time.sleep(0.02)
        raise AssertionError(f"it does not serve: {self.text('stdout')}{self.text('stderr')}")

    def ended(self) -> int:
        """Its exit code, when it has ended and everything that it wrote has been read."""
        code = self.process.wait(START_SECONDS)
        for reader in self._readers:
            reader.join(START_SECONDS)
        return code

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.process.send_signal(number)
        return self.ended()


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes in a fresh folder; those that still run are ended with the test."""
    started: list[Process] = []

    def start_one(*words: str, is_fast: bool = True, **settings: str) -> Process:
        started.append(Process(tmp_path, *words, is_fast=is_fast, **settings))
        return started[-1]

    yield start_one
    for process in started:
        if process.process.poll() is None:
            os.killpg(process.process.pid, signal.SIGKILL)
        process.ended()


def ask(address: str, query: str) -> Any:
    response = httpx.post(f"{address}/graphql", json={"query": query}, timeout=START_SECONDS)
    assert response.status_code == 200
    return response.json()


def test_the_first_start_serves_the_sample(start: Start, tmp_path: Path) -> None:
    """`keygraph serve` in an empty folder would not be what the README promises a newcomer."""
    server = start("serve", "--port", "0")
    address = server.address()
    assert ask(address, CUSTOMER) == {"data": ANSWER}
    assert httpx.get(f"{address}/readyz").json() == {"ready": True}
    assert "type OrderItemsEdge {" in httpx.get(f"{address}/schema.graphql").text
    assert "CustomerWithOrders" in httpx.get(f"{address}/").text
    assert server.stop() == 0

    shown = server.text("stdout")
    assert shown.startswith(
        "Made .keygraph/commerce.sqlite with the sample of examples.commerce: 102 items.\n"
        "Keygraph serves EcommerceData (examples.commerce:graph) from sqlite:.keygraph/commerce.sqlite\n"
    )
    assert f"  playground  {address}/\n" in shown
    assert re.search(r'^  CustomerWithOrders +user\(userId: "12345"\)$', shown, re.MULTILINE)
    assert re.search(r'^  ProductPage +product\(productId: "ABC123"\)$', shown, re.MULTILINE)
    assert re.search(r'^  CategoryTree +category\(categoryId: "electronics"\)$', shown, re.MULTILINE)
    assert server.warnings() == []
    assert sorted(file.name for file in (tmp_path / ".keygraph").iterdir()) == [
        "commerce.sqlite",
        "commerce.sqlite.secret",
    ]


def test_the_second_start_keeps_the_data(start: Start, tmp_path: Path) -> None:
    """What somebody changed would be gone after a restart; or every start would load the sample again."""
    first = start("serve", "--port", "0")
    address = first.address()
    cursor = ask(address, "{ users(first: 1) { pageInfo { endCursor } } }")["data"]["users"]["pageInfo"]
    assert first.stop() == 0
    (tmp_path / "more.jsonl").write_text(
        '{"PK": "USER#777", "SK": "USER#777", "Type": "User", "userId": "777", "name": "New", "email": "n@x.org", '
        '"userType": "customer", "GSI1PK": "USER", "GSI1SK": "2026-01-01T00:00:00Z"}\n'
    )
    assert start("load", "more.jsonl").ended() == 0

    second = start("serve", "--port", "0")
    address = second.address()
    assert ask(address, '{ user(userId: "777") { name } }') == {"data": {"user": {"name": "New"}}}
    content = ask(address, f'{{ users(first: 1, after: "{cursor["endCursor"]}") {{ nodes {{ userId }} }} }}')
    assert content == {"data": {"users": {"nodes": [{"userId": "67890"}]}}}
    assert second.stop() == 0
    assert second.text("stdout").startswith("Keygraph serves EcommerceData ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(start: Start, number: int) -> None:
    """A service manager would take every stop for a crash; Ctrl-C would end in a traceback."""
    server = start("serve", "--port", "0")
    server.address()
    assert server.stop(number) == 0
    assert server.warnings() == []


@pytest.mark.skipif(
    find_spec("uvloop") is None or find_spec("httptools") is None, reason="the extra `fast` is not installed"
)
def test_with_the_extra_it_runs_on_uvloop_and_httptools(start: Start) -> None:
    """Who installed the extra would go on paying twice the processor time, and nothing would say so."""
    server = start("serve", "--port", "0")
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    pid = server.process.pid
    assert f"INFO server.process: Process {pid} serves on uvloop and httptools\n" in server.text("stderr")
    assert server.warnings() == []


def test_without_the_extra_it_runs_on_what_is_always_there(start: Start) -> None:
    """On Windows, where there is no uvloop, it would not start."""
    server = start("serve", "--port", "0", is_fast=False)
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    assert "serves on asyncio and h11\n" in server.text("stderr")
    assert server.warnings() == []


SLOW_MODEL = """
from __future__ import annotations

import asyncio
from pathlib import Path

from keygraph import ID, Graph, Table, field, node


@node("THING#{thing_id}", item=False)
class Thing:
    thing_id: ID

    @field(needs=("thing_id",))
    async def slowly(self, seconds: int) -> str:
        Path("asked").touch()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            Path("cancelled").touch()
            raise
        return self.thing_id


graph = Graph(Table("Things", partition_key="pk"), Thing)
"""


def wait_for(file: Path) -> None:
    """Returns when the file is there."""
    ended = time.monotonic() + START_SECONDS
    while not file.exists():
        assert time.monotonic() < ended, f"{file.name} was not made"
        time.sleep(0.02)


def test_a_request_under_way_is_answered_before_the_end(start: Start, tmp_path: Path) -> None:
    """Every deployment would break requests off."""
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0")
    address = server.address()
    answers: list[Any] = []
    query = '{ thing(thingId: "1") { slowly(seconds: 1) } }'
    asking = threading.Thread(target=lambda: answers.append(ask(address, query)))
    asking.start()
    wait_for(tmp_path / "asked")
    assert server.stop() == 0
    asking.join(START_SECONDS)
    assert answers == [{"data": {"thing": {"slowly": "1"}}}]
    assert not (tmp_path / "cancelled").exists()


def test_a_client_that_goes_ends_its_operation(start: Start, tmp_path: Path) -> None:
    """Operations that nobody waits for would go on reading from DynamoDB, and be paid for."""
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    server = start("serve", "--model", "slow", "--port", "0")
    address = server.address()
    query = '{ thing(thingId: "1") { slowly(seconds: 60) } }'
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{address}/graphql", json={"query": query}, timeout=1)
    wait_for(tmp_path / "cancelled")
    assert httpx.get(f"{address}/healthz").text == "ok"
    assert server.stop() == 0
    assert server.warnings() == []


def test_workers_serve_one_store_with_one_secret(start: Start) -> None:
    """With several workers every other page of a list would be refused."""
    server = start("serve", "--port", "0", "--workers", "2")
    address = server.address()
    first = ask(address, "{ users(first: 1) { pageInfo { endCursor } } }")
    cursor = first["data"]["users"]["pageInfo"]["endCursor"]
    query = f'{{ users(first: 1, after: "{cursor}") {{ nodes {{ userId }} }} }}'
    # Every request is a connection of its own, which any of the workers may take.
    assert [ask(address, query) for _ in range(10)] == [
        {"data": {"users": {"nodes": [{"userId": "67890"}]}}}
    ] * 10
    assert server.stop() == 0
    assert server.text("stdout").count("Keygraph serves") == 1


def test_reload_serves_a_changed_model(start: Start, tmp_path: Path) -> None:
    """`--reload` would go on serving the model as it was, or print its greeting again and again."""
    text = (ROOT / "examples/commerce.py").read_text("utf-8")
    (tmp_path / "shop.py").write_text(text)
    server = start("serve", "--model", "shop", "--port", "0", "--reload")
    address = server.address()
    assert "Somebody who buys or sells." in httpx.get(f"{address}/schema.graphql").text
    # The reloader compares times of modification, which may be as coarse as a second.
    time.sleep(1)
    (tmp_path / "shop.py").write_text(text.replace("Somebody who buys or sells.", "Buyers and sellers."))
    ended = time.monotonic() + START_SECONDS
    shown = ""
    while "Buyers and sellers." not in shown and time.monotonic() < ended:
        time.sleep(0.2)
        shown = httpx.get(f"{address}/schema.graphql", timeout=START_SECONDS).text
    assert "Buyers and sellers." in shown
    assert server.stop() == 0
    assert server.text("stdout").count("Keygraph serves") == 1


def test_a_port_in_use_is_a_line(start: Start) -> None:
    """A second server would end in a traceback."""
    server = start("serve", "--port", "0")
    port = server.address().rpartition(":")[2]
    second = start("serve", "--port", port)
    assert second.ended() == 1
    assert second.text("stdout") == ""
    assert second.text("stderr") == (
        f"keygraph: port {port} on 127.0.0.1 is in use. "
        f"End what listens there, or choose another: --port {int(port) + 1}.\n"
    )


def test_a_missing_table_is_a_line_with_the_mend(start: Start, tmp_path: Path) -> None:
    """The server would start and every query would fail; and the command that mends it would not be known."""
    words = ("--model", "examples.commerce:graph", "--store", "sqlite:shop.sqlite")
    server = start("serve", "--port", "0", *words)
    assert server.ended() == 1
    assert server.text("stderr") == (
        "keygraph: there is no table EcommerceData in sqlite:shop.sqlite. "
        f"Create it with `keygraph table create {' '.join(words)}`.\n"
    )
    assert start("table", "create", *words).ended() == 0
    again = start("serve", "--port", "0", *words)
    assert ask(again.address(), CUSTOMER) == {"data": {"user": None}}
    assert (tmp_path / "shop.sqlite.secret").exists()


def test_settings_come_from_the_environment(start: Start) -> None:
    """A container's environment would be ignored."""
    server = start("serve", KEYGRAPH_PORT="0", KEYGRAPH_STORE="sqlite:nowhere.sqlite")
    assert server.ended() == 1
    assert "there is no table EcommerceData in sqlite:nowhere.sqlite" in server.text("stderr")
