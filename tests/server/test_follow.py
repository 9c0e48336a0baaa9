"""`keygraph follow` as a process, and the same as a Lambda function."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from keygraph import open_store
from keygraph.changes.stream import StreamReader
from keygraph.dynamo.items import Item, typed_item
from keygraph.dynamo.store import BatchGet, BatchWrite, CreateTable
from keygraph.dynamo.streams import EnableStream, StreamRecord
from keygraph.errors import Unavailable
from keygraph_server.lambdas.changes_handler import ChangesHandler
from tests.keygraph.streamed import graph, of_member, of_team
from tests.server.command_line import run

MODEL = "tests.keygraph.streamed:graph"
ROOT = Path(__file__).parents[2]


async def _write(store: str, *items: Item) -> None:
    async with open_store(store, graph.table) as opened:
        await opened.send(BatchWrite(items))


async def _delete(store: str, item: Item) -> None:
    async with open_store(store, graph.table) as opened:
        await opened.send(BatchWrite(deletes=(graph.table.key_of(item),)))


async def _made(store: str, *items: Item) -> None:
    async with open_store(store, graph.table) as opened:
        await opened.send(CreateTable())
        await opened.send(EnableStream())
        await opened.send(BatchWrite(items))


async def _size_is(store: str, size: int) -> None:
    """Waits until the team has so many members."""
    key = graph.table.key_of(of_team("t0"))
    async with open_store(store, graph.table) as opened, asyncio.timeout(40):
        while True:
            [item] = (await opened.send(BatchGet((key,), consistent=True))).items
            if item is not None and item.get("size") == size:
                return
            await asyncio.sleep(0.05)


@contextmanager
def following(store: str, model: str = MODEL, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A worker, which is killed at the end if it still runs."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from keygraph_server.cli import main; main()",
            "follow",
            "--model",
            model,
            "--store",
            store,
            "--lease",
            "1",
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "KEYGRAPH_LOG_FORMAT": "text", **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_with(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"it ended without {text}")


@pytest.mark.long
def test_it_follows_until_it_is_told_to_stop_and_one_that_was_killed_is_replaced(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'league.sqlite'}"
    asyncio.run(_made(store, of_team("t0"), of_member("t0", "p0", 5)))
    with following(store, KEYGRAPH_METRICS_PORT="0") as first:
        address = line_with(first, "Metrics are served at ").split()[-1]
        line_with(first, "Following the table League")
        asyncio.run(_size_is(store, 1))
        with urllib.request.urlopen(address) as answer:
            text = answer.read().decode()
        assert "keygraph_follow_lag_seconds{" in text
        assert "keygraph_follow_changes_total{" in text
        first.kill()
        asyncio.run(_write(store, of_member("t0", "p1", None)))
        with following(store) as second:
            asyncio.run(_size_is(store, 2))
            second.send_signal(signal.SIGTERM)
            line_with(second, "Stopped: every change that was read is handled")
            assert second.wait(20) == 0


def test_what_it_cannot_do(folder: Path) -> None:
    nothing = run("follow")
    assert (nothing.exit_code, nothing.stderr) == (
        1,
        "keygraph: the model declares nothing that the stream keeps. Declare a count, a sum or an average: "
        'counts("orders", kept="stream"), or set KEYGRAPH_FAN_OUT.\n',
    )
    store = "sqlite:league.sqlite"
    run("table", "create", "--model", MODEL, "--store", store)
    off = run("follow", "--model", MODEL, "--store", store)
    assert off.exit_code == 1
    assert "is off: turn it on with `keygraph table update --stream`" in off.stderr


# --- Lambda ---------------------------------------------------------------------------------------------

Handle = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = "sqlite:league.sqlite"
    monkeypatch.setenv("KEYGRAPH_MODEL", MODEL)
    monkeypatch.setenv("KEYGRAPH_STORE", address)
    asyncio.run(_made(address, of_team("t0"), of_member("t0", "p0", 5), of_member("t0", "p1", 6)))
    return address


@pytest.fixture
def handler(store: str) -> Iterator[ChangesHandler]:
    with ExitStack() as stack:
        made = ChangesHandler()
        stack.callback(made.close)
        yield made


def event(store: str) -> dict[str, Any]:
    """The event with all changes, as Lambda sends it."""

    async def read() -> list[tuple[str, StreamRecord]]:
        async with open_store(store, graph.table) as opened:
            return await StreamReader(opened).read()

    found = asyncio.run(read())
    records = [
        {
            "eventID": each.position,
            "eventName": "INSERT" if each.old is None else "MODIFY",
            "eventSource": "aws:dynamodb",
            "dynamodb": {
                "ApproximateCreationDateTime": each.at,
                "Keys": typed_item({"pk": each.key[0], "sk": each.key[1]}),
                "SequenceNumber": each.position,
                **({} if each.old is None else {"OldImage": typed_item(each.old)}),
                **({} if each.new is None else {"NewImage": typed_item(each.new)}),
            },
        }
        for _, each in found
    ]
    return {"Records": records, "shardId": found[0][0], "window": {}, "state": {}}


def test_a_batch_is_applied_once_however_often_it_is_sent(handler: ChangesHandler, store: str) -> None:
    for _ in range(2):
        assert handler(event(store)) == {"state": {}, "batchItemFailures": []}
    asyncio.run(_size_is(store, 2))
    assert handler({"Records": [], "shardId": "s", "isFinalInvokeForWindow": True}) == {
        "state": {},
        "batchItemFailures": [],
    }


def test_a_batch_that_fails_is_sent_again_from_its_first_record(
    handler: ChangesHandler, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = event(store)
    first = sent["Records"][0]["dynamodb"]["SequenceNumber"]
    handler.start()

    async def refuse(*_: object) -> None:
        raise Unavailable("no")

    with monkeypatch.context() as patch:
        patch.setattr("keygraph.changes.counting.StreamCounter.apply", refuse)
        assert handler(sent) == {"state": {}, "batchItemFailures": [{"itemIdentifier": first}]}
    assert handler(event(store))["batchItemFailures"] == []
    asyncio.run(_size_is(store, 2))


def test_what_dynamodb_has_deleted_because_it_expired_is_counted_no_longer(
    handler: ChangesHandler, store: str
) -> None:
    handler(event(store))
    asyncio.run(_size_is(store, 2))
    asyncio.run(_delete(store, of_member("t0", "p0", 5)))
    sent = event(store)
    [deletion] = [each for each in sent["Records"] if "NewImage" not in each["dynamodb"]]
    deletion |= {
        "eventName": "REMOVE",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
    }
    assert handler(sent)["batchItemFailures"] == []
    asyncio.run(_size_is(store, 1))


def test_events_of_another_kind_are_refused(handler: ChangesHandler, store: str) -> None:
    with pytest.raises(ValueError, match="set TumblingWindowInSeconds"):
        handler({**event(store), "shardId": None})
    for other in ({}, {"Records": {}}):
        with pytest.raises(ValueError, match="no event of a DynamoDB stream"):
            handler(other)
    with pytest.raises(ValueError, match="no record of the stream of the table League"):
        handler({"Records": [{"dynamodb": {"Keys": {}}}], "shardId": "s"})


@pytest.mark.long
def test_the_handlers_have_names_that_lambda_can_look_up() -> None:
    program = "import keygraph_server.lambdas as lambdas; print(type(lambdas.changes).__name__, type(lambdas.graphql).__name__)"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ended.stdout == "ChangesHandler Handler\n"
