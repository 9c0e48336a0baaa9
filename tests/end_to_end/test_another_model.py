"""Another model in the place of commerce: a file is put into a folder, and nothing else is edited.

Each model is served in process, and by the real commands, which find it in the working directory.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from keygraph.dynamo.store import DeleteTable
from keygraph.engines.open import open_store
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import build_schema
from keygraph_server.models import load_model
from tests.conftest import MakeStore
from tests.documents.served import Served
from tests.end_to_end.other_models import CARGO, CARGO_ITEMS, HELPDESK, HELPDESK_ITEMS


@dataclass(frozen=True)
class Case:
    """A model, its items, a query with its answer, and the requests that it takes."""

    module: str
    source: str
    items: str
    query: str
    answer: dict[str, Any]
    sent: list[str]
    told: str
    """What its schema says and no other's."""


LOADED = {"linkedBy": "MyLoadingCompany", "linkedAtLocation": "JPA.Docks"}

CARGO_CASE = Case(
    "cargo",
    CARGO,
    CARGO_ITEMS,
    """{
      container(containerId: "009998") {
        operator
        pallets { edges { linkedDatetime linkedBy linkedAtLocation node { palletId } } }
      }
      pallet(palletId: "B021002") {
        origin destination
        container { linkedBy linkedAtLocation node { containerId operator } }
        boxes { nodes { boxId weightInKg isDangerous } }
      }
      box(boxId: "A03828") { pallet { linkedDatetime node { palletId } } }
    }""",
    {
        "container": {
            "operator": "TheBoatingCompany",
            "pallets": {
                "edges": [
                    {"linkedDatetime": "2022-07-19T17:59:58Z", **LOADED, "node": {"palletId": "B021002"}},
                    {"linkedDatetime": "2022-07-19T18:01:58Z", **LOADED, "node": {"palletId": "B021003"}},
                ]
            },
        },
        "pallet": {
            "origin": "BR",
            "destination": "DE",
            "container": {**LOADED, "node": {"containerId": "009998", "operator": "TheBoatingCompany"}},
            "boxes": {
                "nodes": [
                    {"boxId": "A03828", "weightInKg": "20.56", "isDangerous": False},
                    # DynamoDB keeps no trailing zeros: 21.20 is 21.2 there.
                    {"boxId": "A03829", "weightInKg": "21.2", "isDangerous": False},
                ]
            },
        },
        "box": {"pallet": {"linkedDatetime": "2022-07-19T10:13:12Z", "node": {"palletId": "B021002"}}},
    },
    [
        "BatchGetItem BOX_A03828 / BOX_A03828, CONTAINER_009998 / CONTAINER_009998, PALLET_B021002 / PALLET_B021002",
        "GetItem BOX_A03829 / BOX_A03829",
        "Query reverse-lookup-index: relatedObjectId = BOX_A03828 AND begins_with(objectId, PALLET_)",
        "Query reverse-lookup-index: relatedObjectId = PALLET_B021002 AND begins_with(objectId, CONTAINER_)",
        "Query: objectId = CONTAINER_009998 AND begins_with(relatedObjectId, PALLET_)",
        "Query: objectId = PALLET_B021002 AND begins_with(relatedObjectId, BOX_)",
    ],
    "type ContainerPalletsEdge ",
)

HELPDESK_CASE = Case(
    "helpdesk",
    HELPDESK,
    HELPDESK_ITEMS,
    """{
      agent(agentId: "ada") { name tickets { edges { hours node { ticketId subject urgency } } } }
      ticket(ticketId: "7") {
        ticketId queue opened
        agents { edges { hours node { agentId } } }
        notes { nodes { written text author { name } } }
      }
      tickets(queue: "home", opened: {from: "2024-04-01T00:00:00Z"}) { totalCount nodes { subject opened } }
    }""",
    {
        "agent": {
            "name": "Ada",
            "tickets": {
                "edges": [
                    {
                        "hours": 2,
                        "node": {"ticketId": "7", "subject": "The printer sings", "urgency": "CAN_WAIT"},
                    },
                    {"hours": 5, "node": {"ticketId": "8", "subject": "No light", "urgency": "NOW"}},
                ]
            },
        },
        "ticket": {
            "ticketId": "7",
            "queue": "office",
            "opened": "2024-03-31T10:00:00Z",
            "agents": {
                "edges": [{"hours": 2, "node": {"agentId": "ada"}}, {"hours": 1, "node": {"agentId": "bo"}}]
            },
            "notes": {
                "nodes": [
                    {"written": "2024-03-31T11:00:00Z", "text": "It hums now.", "author": {"name": "Bo"}}
                ]
            },
        },
        "tickets": {"totalCount": 1, "nodes": [{"subject": "A cold desk", "opened": "2024-04-02T09:00:00Z"}]},
    },
    [
        "BatchGetItem AGENT#ada / METADATA, TICKET#7 / METADATA",
        "BatchGetItem AGENT#bo / METADATA, TICKET#8 / METADATA",
        "Count GSI1: GSI1-PK = QUEUE#home AND GSI1-SK >= 2024-04-01, of these EntityType = TICKET"
        " AND begins_with(PK, TICKET#) AND SK = METADATA",
        "Query GSI1: GSI1-PK = QUEUE#home AND GSI1-SK >= 2024-04-01",
        "Query GSI1: GSI1-PK = TICKET#7 AND begins_with(GSI1-SK, AGENT#)",
        "Query: PK = AGENT#ada AND begins_with(SK, TICKET#)",
        "Query: PK = TICKET#7 AND begins_with(SK, NOTE#)",
    ],
    "type TicketAgentsConnection {",
)

CASES = pytest.mark.parametrize("case", [CARGO_CASE, HELPDESK_CASE], ids=["cargo", "helpdesk"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory, whose modules are forgotten when the test ends."""
    made = tmp_path / "elsewhere"
    made.mkdir()
    monkeypatch.chdir(made)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield made
    for case in (CARGO_CASE, HELPDESK_CASE):
        sys.modules.pop(case.module, None)


def put(case: Case, folder: Path) -> None:
    """Writes the model's file, and its items beside it."""
    (folder / f"{case.module}.py").write_text(case.source, "utf-8")
    (folder / f"{case.module}.items").write_text(case.items, "utf-8")


@CASES
async def test_another_model_in_process(case: Case, folder: Path, make_store: MakeStore) -> None:
    """Whoever declares a table of their own would get commerce's schema, errors, or other values than their items'."""
    put(case, folder)
    model = load_model(f"{case.module}:graph")
    served = Served(model.graph, await make_store(model.graph.table))
    await served.load(*case.items.splitlines())
    assert await served.ask(case.query) == case.answer
    assert served.sent == case.sent
    sdl = model.schema.as_str()
    assert case.told in sdl
    assert case.told not in build_schema(commerce).as_str()
    for name in ("User", "Product", "Order", "Review", "Category"):
        assert f"type {name} " not in sdl


@pytest.mark.long
@CASES
def test_another_model_by_the_commands(
    case: Case, folder: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    """`--model` would not find the file that lies in front of the user, or a command would know commerce alone."""
    put(case, folder)
    store = "sqlite:own.db" if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
    options = ["--model", f"{case.module}:graph", "--store", store]
    try:
        keygraph("table", "create", *options)
        loaded = keygraph("load", f"{case.module}.items", *options)
        assert f"{len(case.items.splitlines())} items" in loaded
        assert case.told in keygraph("schema", "--model", f"{case.module}:graph")
        with serving(*options) as address:
            answer = httpx.post(f"{address}/graphql", json={"query": case.query}, timeout=30).json()
            assert answer == {"data": case.answer}
            assert case.told in httpx.get(f"{address}/schema.graphql", timeout=30).text
    finally:
        if engine != "sqlite":
            asyncio.run(drop_table(case, store))


def test_another_model_in_the_place_of_the_default_one(folder: Path) -> None:
    """Somebody who pulls the model file out and puts a different one in would have to edit more than that file."""
    (folder / "keygraph_examples").mkdir()
    (folder / "keygraph_examples/__init__.py").touch()
    (folder / "keygraph_examples/commerce.py").write_text(CARGO, "utf-8")
    schema = keygraph("schema")
    assert CARGO_CASE.told in schema
    assert "type User " not in schema
    assert "my-table-name" in keygraph("table", "describe", "--cloudformation")


async def drop_table(case: Case, address: str) -> None:
    """Leaves the store, which other tests use too, as it was."""
    async with open_store(address, load_model(case.module).graph.table) as store:
        await store.send(DeleteTable())


# --- The commands -------------------------------------------------------------------------------------

COMMAND = str(Path(sys.executable).with_name("keygraph"))


def environment() -> dict[str, str]:
    """The environment without the settings of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KEYGRAPH_")}


def keygraph(*words: str) -> str:
    """What a command prints that ends well."""
    ended = subprocess.run(
        [COMMAND, *words], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """The address of a server that runs meanwhile, on a free port."""
    command = [COMMAND, "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        # A server that does not start is ended, so that reading what it says ends too.
        timer = threading.Timer(60, process.kill)
        timer.start()
        try:
            yield _address_said(process)
        finally:
            timer.cancel()
            process.terminate()
            process.wait(30)


def _address_said(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stdout or ():
        said.append(line)
        if found := re.search(r"playground\s+(http://\S+)/", line):
            _wait_until_ready(found[1])
            return found[1]
    raise AssertionError(f"the server has ended: {''.join(said)}")


def _wait_until_ready(address: str) -> None:
    # The socket listens before the greeting: a request that comes early waits there.
    answer = httpx.get(f"{address}/readyz", timeout=30)
    assert answer.json() == {"ready": True}
