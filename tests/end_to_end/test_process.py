"""The real process: started as a newcomer starts it, asked over HTTP, stopped."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.processes import SLOW_MODEL, START_SECONDS, Start, ask, wait_for

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


@pytest.mark.long
def test_tests_that_run_in_the_background_can_interrupt_what_they_start() -> None:
    """The tests of Ctrl-C would fail under `nohup` and `&`."""
    code = "import signal, tests.conftest; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", code]
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(start: Start, number: int) -> None:
    """A service manager would take every stop for a crash; Ctrl-C would end in a traceback."""
    server = start("serve", "--port", "0")
    server.address()
    assert server.stop(number) == 0
    assert server.warnings() == []


@pytest.mark.long
@pytest.mark.skipif(
    find_spec("uvloop") is None or find_spec("httptools") is None, reason="the extra `fast` is not installed"
)
def test_with_the_extra_it_runs_on_uvloop_and_httptools(start: Start) -> None:
    """Who installed the extra would go on paying twice the processor time, and nothing would say so."""
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
    """On Windows, where there is no uvloop, it would not start."""
    server = start("serve", "--port", "0", is_fast=False)
    assert ask(server.address(), CUSTOMER) == {"data": ANSWER}
    assert server.stop() == 0
    assert "serves on asyncio and h11\n" in server.text("stderr")
    assert server.warnings() == []


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_reload_serves_a_changed_model(start: Start, tmp_path: Path) -> None:
    """`--reload` would go on serving the model as it was, or print its greeting again and again."""
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


def test_a_port_in_use_is_a_line(start: Start) -> None:
    """A second server would end in a traceback."""
    server = start("serve", "--port", "0")
    port = server.address().rpartition(":")[2]
    second = start("serve", "--port", port)
    assert second.ended() == 1
    assert second.text("stdout") == ""
    assert second.text("stderr") == (
        f"keygraph: port {port} on 127.0.0.1 is in use. "
        f"Stop the program that uses it, or choose another: --port {int(port) + 1}.\n"
    )


def test_a_missing_table_is_a_line_with_the_mend(start: Start, tmp_path: Path) -> None:
    """Without its volume, the server would start with another table; and the command that makes one would not be known."""
    words = ("--model", "keygraph_examples.commerce:graph", "--store", "sqlite:shop.sqlite")
    server = start("serve", "--port", "0", *words, KEYGRAPH_ENV="production")
    assert server.ended() == 1
    assert server.text("stderr") == (
        "keygraph: there is no table EcommerceData in sqlite:shop.sqlite. "
        f"Create it with `keygraph table create {' '.join(words)}`.\n"
    )
    assert start("table", "create", *words).ended() == 0
    again = start("serve", "--port", "0", *words)
    assert ask(again.address(), CUSTOMER) == {"data": {"user": None}}
    assert (tmp_path / "shop.sqlite.secret").exists()


@pytest.mark.long
def test_settings_come_from_the_environment(start: Start) -> None:
    """A container's environment would be ignored."""
    given = {"KEYGRAPH_PORT": "0", "KEYGRAPH_STORE": "sqlite:nowhere.sqlite", "KEYGRAPH_ENV": "production"}
    server = start("serve", **given)
    assert server.ended() == 1
    assert "there is no table EcommerceData in sqlite:nowhere.sqlite" in server.text("stderr")
