"""Published designs and usual ones, declared by what docs/language.md and docs/lists.md say: each of their access patterns is answered, in reads and writes.

A design's module has its `graph`, `ITEMS` of our own in its shapes, and what is `ASKED`: for each published access pattern
its name, a query, and the answer in JSON; where the keys cannot answer it, the reason in words, and the query is refused.
Five have keys without prefixes, or several meanings of one index: complaints, funds, players, relational and titles.

`WRITES` are blocks of a name, a mutation, a query and its answer afterwards; or of a name, a mutation and the message of its
refusal.
"""

from __future__ import annotations

import json
from importlib import import_module
from types import ModuleType

import pytest

from keygraph.tables.attributes import unmatched
from keygraph_resolvers import check
from tests.conftest import MakeStore
from tests.designs.drafts import DESIGNS
from tests.documents.served import Served, blocks
from tests.documents.test_verified import told
from tests.verified import verified

MODULES = {name: import_module(f"tests.designs.{name}") for name in DESIGNS}
SHORT = [name for name, design in MODULES.items() if len(blocks(design.ASKED)) <= 2]
"""Designs with the keys of others, of which an access pattern or two are asked on one engine."""
NAMES = [name for name in MODULES if name not in SHORT]
WRITTEN = [name for name, design in MODULES.items() if hasattr(design, "WRITES")]


async def serve(design: ModuleType, make_store: MakeStore) -> Served:
    served = Served(check(design.graph), await make_store(design.graph.table))
    await served.load(*design.ITEMS.strip().splitlines())
    return served


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
async def test_each_access_pattern_is_answered(name: str, make_store: MakeStore) -> None:
    design = MODULES[name]
    served = await serve(design, make_store)
    for pattern, query, answer in blocks(design.ASKED):
        found = await served.service.execute(query)
        if answer.startswith("{"):
            assert found == {"data": json.loads(answer)}, pattern
        else:
            assert "data" not in found, pattern
            assert found["errors"][0]["message"].startswith("Cannot query field"), pattern
    report = await verified(served.graph, served.store)
    assert told(report) == []
    assert [str(each) for each in unmatched(served.graph, report.attributes)] == []


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.long
async def test_a_short_design_is_answered(name: str, make_store: MakeStore) -> None:
    await test_each_access_pattern_is_answered(name, make_store)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.long
async def test_each_write_leaves_what_it_should(name: str, make_store: MakeStore) -> None:
    design = MODULES[name]
    served = await serve(design, make_store)
    for pattern, mutation, *after in blocks(design.WRITES):
        made = await served.service.execute(mutation)
        if len(after) == 1:
            assert [error["message"] for error in made["errors"]] == after, pattern
        else:
            query, answer = after
            assert "errors" not in made, pattern
            assert await served.service.execute(query) == {"data": json.loads(answer)}, pattern
    assert told(await verified(served.graph, served.store)) == []
