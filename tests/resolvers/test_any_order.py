"""An operation sends the same, in whatever order the store answers. `tests.resolvers.any_order` runs more operations."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.model import expiry
from keygraph_resolvers.engine.engine import Engine
from tests.resolvers.any_order import FROZEN, Asked, broken
from tests.resolvers.bounds import BOUNDED
from tests.resolvers.differential import served
from tests.resolvers.operations import GRAPHS, OPERATIONS
from tests.resolvers.operations import served as served_items
from tests.schemas import schema_of

SHORT = ("commerce", "several", "walks")


@pytest.fixture(autouse=True)
async def nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The event loop reports no error that nothing has waited for."""
    reported = list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    monkeypatch.setattr(expiry, "time", FROZEN)
    monkeypatch.setattr(logging.getLogger("keygraph"), "disabled", True)  # errors are meant
    yield
    gc.collect()
    assert reported == []


@pytest.mark.parametrize(
    "name", [each if each in SHORT else pytest.param(each, marks=pytest.mark.long) for each in BOUNDED]
)
@pytest.mark.long
async def test_any_order_of_arrival_gives_one_set_of_batches_the_fewest(name: str, tmp_path: Path) -> None:
    async with served(name, 0, tmp_path) as world:
        for number in range(8):
            found, _ = await broken(world, Random(f"any order {number}").randrange)
            assert found == []


async def broken_by_usual_operations(name: str, folder: Path) -> tuple[list[str], Counter[str]]:
    found, kinds, graph = list[str](), Counter[str](), GRAPHS[name]
    async with open_store(f"sqlite:{folder / 'usual.db'}", graph.table) as store:
        await store.send(CreateTable())
        await served_items(name, store)
        for each in OPERATIONS[name]:
            problems, counted = await Asked(
                schema_of(graph), store, each.document, each.variables[0]
            ).broken()
            found += problems
            kinds += counted
    return found, kinds


@pytest.mark.parametrize("name", OPERATIONS)
async def test_any_order_of_arrival_does_so_for_usual_operations(name: str, tmp_path: Path) -> None:
    found, kinds = await broken_by_usual_operations(name, tmp_path)
    assert found == []
    assert kinds["exact"] >= 3


async def test_the_law_sees_a_batch_that_is_sent_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "_may_grow", lambda *_: False)
    found, _ = await broken_by_usual_operations("commerce", tmp_path)
    assert any("has batches of [" in each for each in found)
