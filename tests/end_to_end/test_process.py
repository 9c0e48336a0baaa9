"""The real process: started as a newcomer starts it, asked over HTTP, stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from annotated_types import Le

from keygraph.limits import MOST
from keygraph_server.settings import Settings, environment_name
from tests.end_to_end.processes import KEYGRAPH, SLOW_MODEL, START_SECONDS, Start, ask, wait_for

ROOT = Path(__file__).parents[2]
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


def test_the_first_start_serves_the_sample(start: Start, tmp_path: Path) -> None:
    server = start("serve", "--port", "0")
    address = server.address()
    assert ask(address, CUSTOMER) == {"data": ANSWER}
    most = ask(
        address, "{ mostReviewedProducts(first: 1, direction: DESC) { nodes { productId reviewCount } } }"
    )
    assert most == {"data": {"mostReviewedProducts": {"nodes": [{"productId": "ABC123", "reviewCount": 3}]}}}
    assert httpx.get(f"{address}/readyz").json() == {"ready": True}
    assert "type OrderItemsEdge {" in httpx.get(f"{address}/schema.graphql").text
    assert "CustomerWithOrders" in httpx.get(f"{address}/").text
    assert server.stop() == 0

    shown = server.text("stdout")
    assert shown.startswith(
        "Created .keygraph/commerce.sqlite with the sample of keygraph_examples.commerce: 102 items.\n"
        "Keygraph serves EcommerceData (keygraph_examples.commerce:graph) from sqlite:.keygraph/commerce.sqlite\n"
    )
    assert f"  playground  {address}/\n" in shown
    assert "  access      open: the model has no access rules" in shown
    assert re.search(r'^  CustomerWithOrders +user\(userId: "12345"\)$', shown, re.MULTILINE)
    assert re.search(r'^  ProductPage +product\(productId: "ABC123"\)$', shown, re.MULTILINE)
    assert re.search(r'^  CategoryTree +category\(categoryId: "electronics"\)$', shown, re.MULTILINE)
    assert server.warnings() == []
    assert sorted(file.name for file in (tmp_path / ".keygraph").iterdir()) == [
        "commerce.sqlite",
        "commerce.sqlite.secret",
    ]


@pytest.mark.long
def test_a_foreign_host_is_refused_on_every_path(start: Start) -> None:
    server = start("serve", "--port", "0", KEYGRAPH_ALLOWED_HOSTS="")
    address = server.address()
    port = address.rpartition(":")[2]
    for path in ("/", "/graphql", "/schema.graphql", "/healthz", "/readyz", "/playground/examples"):
        assert httpx.get(address + path, headers={"Host": f"localhost:{port}"}).status_code != 421
        refused = httpx.get(address + path, headers={"Host": f"evil.example:{port}"})
        assert refused.status_code == 421
    body = {"query": 'mutation { deleteUser(input: { userId: "12345" }) { deletedId } }'}
    refused = httpx.post(f"{address}/graphql", json=body, headers={"Host": f"evil.example:{port}"})
    assert refused.status_code == 421
    assert refused.json()["errors"][0]["message"] == (
        "this server does not answer requests to evil.example: if that name should lead here, add it to KEYGRAPH_ALLOWED_HOSTS"
    )
    assert ask(address, CUSTOMER) == {"data": ANSWER}


@pytest.mark.long
def test_the_second_start_keeps_the_data(start: Start, tmp_path: Path) -> None:
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
@pytest.mark.long
def test_a_signal_ends_it_with_0(start: Start, number: int) -> None:
    server = start("serve", "--port", "0")
    server.address()
    assert server.stop(number) == 0
    assert server.warnings() == []


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
class TestHangups:
    @pytest.fixture(autouse=True)
    def hangups_count(self) -> Iterator[None]:
        """Under `nohup` the tests would inherit that hangups are ignored, and the servers with them."""
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        yield
        signal.signal(signal.SIGHUP, before)

    @pytest.mark.parametrize("words", [[], ["--reload"]], ids=["one process", "reload"])
    def test_a_single_process_ignores_one(self, start: Start, words: list[str]) -> None:
        server = start("serve", "--port", "0", *words)
        address = server.address()
        os.killpg(server.process.pid, signal.SIGHUP)
        assert ask(address, CUSTOMER) == {"data": ANSWER}
        assert server.stop() == 0
        [warning] = server.warnings()
        assert warning.endswith("SIGHUP is ignored: only several workers are replaced. Restart the server\n")

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_terminal_that_is_closed_ends_it(self, tmp_path: Path, workers: int) -> None:
        terminal, own = os.openpty()
        words = [str(KEYGRAPH), "serve", "--port", "0", "--workers", str(workers)]
        # The session's own terminal, as that of a shell is.
        code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        server = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            stdin=own,
            stdout=own,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        os.close(own)
        try:
            assert server.stderr is not None
            for _ in range(workers):
                assert any("serves on" in line for line in server.stderr)
            os.close(terminal)
            assert server.wait(START_SECONDS) == 0
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
            server.communicate()


@pytest.mark.long
@pytest.mark.skipif(
    find_spec("uvloop") is None or find_spec("httptools") is None, reason="the extra `fast` is not installed"
)
def test_with_the_extra_it_runs_on_uvloop_and_httptools(start: Start) -> None:
    server = start("serve", "--port", "0")
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    pid = server.process.pid
    assert (
        f"INFO keygraph_server.processes.process: Process {pid} serves on uvloop and httptools\n"
        in server.text("stderr")
    )
    assert server.warnings() == []


@pytest.mark.long
def test_without_the_extra_it_runs_on_what_is_always_there(start: Start) -> None:
    server = start("serve", "--port", "0", is_fast=False)
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    assert "serves on asyncio and h11\n" in server.text("stderr")
    assert server.warnings() == []


@pytest.mark.long
def test_a_request_under_way_is_answered_before_the_end(start: Start, tmp_path: Path) -> None:
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


@pytest.mark.long
def test_reload_serves_a_changed_model(start: Start, tmp_path: Path) -> None:
    text = (ROOT / "examples/keygraph_examples/commerce.py").read_text("utf-8")
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


@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2"])
def test_in_production_all_that_it_writes_is_json(start: Start, workers: str) -> None:
    given = {"KEYGRAPH_ENV": "production", "KEYGRAPH_PORT": "0", "KEYGRAPH_WORKERS": workers}
    server = start("serve", **given)
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    wrong = start("serve", **given, KEYGRAPH_STORE="sqlite:nowhere.sqlite")
    assert wrong.ended() == 1
    for process, told in (
        (server, "Keygraph serves EcommerceData "),
        (wrong, "there is no table EcommerceData "),
    ):
        assert process.text("stdout") == ""
        lines = [json.loads(line) for line in process.lines["stderr"]]
        assert [line["event"].startswith(told) for line in lines].count(True) == 1


@pytest.mark.long
def test_the_largest_numbers_serve(start: Start) -> None:
    """What a setting accepts, the server can use: no timer and no limit of the system is too small for it."""
    largest = {
        environment_name(name): str(
            min([*(each.le for each in field.metadata if isinstance(each, Le)), MOST])
        )
        for name, field in Settings.model_fields.items()
        if type(field.default) in (int, float) and name not in ("port", "workers")
    }
    assert len(largest) > 30
    signed = {"KEYGRAPH_AUTH": "jwt", "KEYGRAPH_JWT_KEY": "a key of many characters, thirty-two and more"}
    server = start("serve", **{**largest, **signed, "KEYGRAPH_PORT": "0", "KEYGRAPH_COST_LIMIT": "0"})
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    assert [line for line in server.warnings() if "so few open files" not in line] == []
