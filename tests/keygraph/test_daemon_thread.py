"""Calls that nobody can interrupt: a process ends without them, and they are made once for all who wait."""

from __future__ import annotations

import ast
import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as boto

from keygraph.daemon_thread import DaemonThreads, in_daemon_thread
from keygraph.engines.dynamodb.http1 import Pool

ROOT = Path(__file__).parents[2]
PACKAGES = ("keygraph", "resolvers", "server")

BEGIN = """
import asyncio, os, socket, time

def look_up(*arguments, **options):
    os.write(1, b"looks up")
    time.sleep(50)

socket.getaddrinfo = look_up
"""
END_WHILE = {
    "the keys of an issuer are fetched": """
from keygraph_server.auth import keys

keys.FETCH_SECONDS = 0.2

async def serve():
    try:
        await keys.PublishedKeys("http://issuer.test/keys").key("a", "RS256")
    except keys.KeysUnavailableError:
        pass

asyncio.run(serve())
""",
    "DynamoDB is looked up": """
from keygraph.engines.dynamodb.http1 import Pool

async def serve():
    pool = Pool("http://dynamodb.test", "dynamodb.test", None, connect_seconds=0.2, read_seconds=1.0)
    try:
        await pool.post("", b"")
    except Exception:
        pass
    await pool.close()

asyncio.run(serve())
""",
    "a command looks for it": """
from keygraph.dynamo.table import Table
from keygraph.errors import Unavailable
from keygraph_server.settings import read_settings
from keygraph_server.stores import live_table

try:
    asyncio.run(live_table(read_settings(store="http://dynamodb.test"), Table("T", partition_key="a")))
except Unavailable:
    pass
""",
    "the fan-out is looked up": """
from keygraph.changes import fan_out
from keygraph.dynamo.table import Table
from keygraph.errors import Unavailable

fan_out._TIMEOUT_SECONDS = 0.2

async def serve():
    async with fan_out.fan_out_client("valkey://valkey.test:6379") as client:
        try:
            await fan_out.PublishedChanges(client, Table("T", partition_key="a")).start_at_latest()
        except Unavailable:
            pass

asyncio.run(serve())
""",
    "aioboto3 looks it up": """
from keygraph.dynamo.store import ListTables
from keygraph.dynamo.table import Table
from keygraph.errors import StoreError
from keygraph.engines.dynamodb.engine import open_dynamodb

os.environ.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")

async def serve():
    opening = open_dynamodb(Table("T", partition_key="a"), None, "us-east-1", deadline=1.0, transport="aioboto3")
    async with opening as store:
        try:
            await store.send(ListTables())
        except StoreError:
            pass

asyncio.run(serve())
""",
}


@pytest.mark.long
@pytest.mark.parametrize("code", END_WHILE.values(), ids=END_WHILE)
def test_a_process_ends_while_the_system_looks_up_a_name(code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "resolvers"), str(ROOT / "server")]),
        },
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"looks up", b"")


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )


@pytest.mark.long
def test_no_code_uses_the_threads_of_asyncio() -> None:
    found = []
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for call in _calls(ast.parse(path.read_text("utf-8"))):
            name = call.func.attr  # type: ignore[attr-defined]  # `_calls` returns no others
            is_default = name == "run_in_executor" and ast.unparse(call.args[0]) == "None"
            if is_default or (
                name in {"to_thread", "getaddrinfo", "getnameinfo", "open_connection"}
                and "socket" not in ast.unparse(call.func)
            ):
                found.append(f"{path.name}: {ast.unparse(call)}")
    assert found == []


async def test_it_returns_or_raises_what_the_function_does() -> None:
    assert await in_daemon_thread(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        await in_daemon_thread(divmod, 1, 0)


@pytest.mark.parametrize("call", [in_daemon_thread, DaemonThreads().submit])
async def test_nobody_has_to_wait_for_it(call: Callable[..., asyncio.Future[bool]]) -> None:
    goes_on = threading.Event()
    calling = call(goes_on.wait, 10)
    calling.cancel()
    goes_on.set()
    await asyncio.sleep(0.05)
    assert calling.cancelled()


async def test_all_who_wait_for_an_address_wait_for_one_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, looked_up = threading.Event(), list[str]()
    refusing = socket.create_server(("127.0.0.1", 0))
    port = refusing.getsockname()[1]
    refusing.close()

    def look_up(host: str, *_: Any) -> Any:
        looked_up.append(host)
        goes_on.wait(10)
        # The second address is the same as the first one, and another family.
        return [(0, 0, 0, "", ("127.0.0.1", port))] * 2 + [(0, 0, 0, "", ("::1", port, 0, 0))]

    pool = Pool(f"http://dynamodb.test:{port}", "dynamodb.test", None, connect_seconds=0.3, read_seconds=1.0)
    # uvloop looks up nothing that is an address already.
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    late = await asyncio.gather(*(pool.post("", b"") for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in late} == {boto.ConnectTimeoutError}
    assert looked_up == ["dynamodb.test"]
    asking = asyncio.create_task(pool.post("", b""))
    await asyncio.sleep(0.05)
    goes_on.set()
    with pytest.raises(boto.EndpointConnectionError):
        await asking
    assert looked_up == ["dynamodb.test"]
    await pool.close()
