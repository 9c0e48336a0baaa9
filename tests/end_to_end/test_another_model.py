"""Another model in the place of commerce: a file is put into a folder, and nothing else is edited."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path

import httpx
import pytest

from keygraph.dynamo.store import DeleteTable
from keygraph.engines.open import open_store
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers import build_schema
from keygraph_server.models import load_model
from tests.end_to_end.processes import Start, ask

DESIGNS = pytest.mark.parametrize(("name", "own"), [("library", "type Edition "), ("queue", "type Worker ")])
"""Two published designs, and what the schema of each says and no other's."""


def put(name: str, folder: Path, file: str) -> list[str]:
    """Writes the design's module, and its items beside it, which are returned."""
    design = import_module(f"tests.designs.{name}")
    (folder / file).write_text(Path(str(design.__file__)).read_text("utf-8"), "utf-8")
    (folder / "own.items").write_text(design.ITEMS.strip(), "utf-8")
    return list(design.ITEMS.strip().splitlines())


@DESIGNS
def test_another_model_in_process(
    name: str, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(name, tmp_path, "own_model.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        sdl = load_model("own_model:graph").schema.as_str()
    finally:
        sys.modules.pop("own_model", None)
    assert own in sdl
    assert own not in build_schema(commerce).as_str()
    for each in ("User", "Product", "Order", "Review", "Category"):
        assert f"type {each} " not in sdl


@pytest.mark.long
@DESIGNS
def test_another_model_by_the_commands(
    name: str, own: str, tmp_path: Path, start: Start, engine: str, request: pytest.FixtureRequest
) -> None:
    items = put(name, tmp_path, "own_model.py")
    store = "sqlite:own.db" if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
    options = ["--model", "own_model:graph", "--store", store]
    try:
        assert start("table", "create", *options).ended() == 0
        load = start("load", "own.items", *options)
        assert load.ended() == 0
        assert f"{len(items)} items" in load.text("stdout")
        address = start("serve", "--port", "0", *options).address()
        assert own in httpx.get(f"{address}/schema.graphql", timeout=30).text
        design = import_module(f"tests.designs.{name}")
        for asked in design.ASKED.strip().split("\n\n"):
            pattern, query, answer = asked.split("\n")
            if answer.startswith("{"):
                assert ask(address, query) == {"data": json.loads(answer)}, pattern
    finally:
        if engine != "sqlite":
            asyncio.run(drop_table(name, store))


@pytest.mark.long
def test_another_model_in_the_place_of_the_default_one(tmp_path: Path, start: Start) -> None:
    (tmp_path / "keygraph_examples").mkdir()
    (tmp_path / "keygraph_examples/__init__.py").touch()
    put("library", tmp_path, "keygraph_examples/commerce.py")
    schema, table = start("schema"), start("table", "describe", "--cloudformation")
    assert (schema.ended(), table.ended()) == (0, 0)
    assert "type Edition " in schema.text("stdout")
    assert "type User " not in schema.text("stdout")
    assert "electro" in table.text("stdout")


async def drop_table(name: str, address: str) -> None:
    """Leaves the store, which other tests use too, as it was."""
    async with open_store(address, import_module(f"tests.designs.{name}").graph.table) as store:
        await store.send(DeleteTable())
