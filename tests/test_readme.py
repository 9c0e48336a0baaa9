"""The README: what it shows is what happens."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from keygraph.dynamo.store import BatchWrite, Store
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.requests import render
from keygraph.tables.interchange import Interchange
from keygraph_examples import commerce
from keygraph_resolvers import Service, build_schema
from tests.documents.samples import sample_of
from tests.tracing import TracingStore

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def league(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The README's own model, as a file that somebody has saved."""
    file = tmp_path / "league.py"
    file.write_text(blocks("python")[0], "utf-8")
    spec = spec_from_file_location("league", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "league", module)
    spec.loader.exec_module(module)
    return module


async def test_the_nested_query_has_the_answer_and_the_cost_that_are_shown(
    make_store: Callable[[Table], Awaitable[Store]],
) -> None:
    store = TracingStore(await make_store(commerce.graph.table))
    await store.store.send(BatchWrite(tuple(sample_of("commerce"))))
    service = Service(build_schema(commerce.graph), store, secret=b"a secret")

    answer = await service.execute(blocks("graphql")[0])

    assert answer == json.loads(blocks("json")[0])
    sent = [wire.operation for request in store.requests for wire in render(request, store.table)]
    # The first two are sent at the same time.
    assert sorted(sent[:2]) == ["GetItem", "Query"]
    assert sent[2:] == ["Query", "Query", "BatchGetItem"]


async def test_the_model_is_served(
    league: ModuleType, make_store: Callable[[Table], Awaitable[Store]]
) -> None:
    store = await make_store(league.graph.table)
    service = Service(build_schema(league.graph), store, secret=b"a secret")
    interchange = Interchange(league.graph)
    await store.send(BatchWrite(tuple(interchange.read(line) for line in blocks("json")[1].splitlines())))

    def told(**shirts: int) -> dict[str, Any]:
        members = [{"shirtNumber": shirt, "node": {"name": player}} for player, shirt in shirts.items()]
        return {"data": {"team": {"name": "Rovers", "members": {"edges": members}}}}

    assert await service.execute(blocks("graphql")[1]) == told(Ada=10)
    assert "errors" not in await service.execute(blocks("graphql")[2])
    assert await service.execute(blocks("graphql")[1]) == told(Ada=10, Grace=7)


def test_the_files_of_keygraph_init_are_those_that_are_shown() -> None:
    examples = ROOT / "examples/keygraph_examples"
    assert (examples / "league.py").read_text("utf-8") == blocks("python")[0]
    assert (examples / "league.jsonl").read_text("utf-8") == blocks("json")[1]
