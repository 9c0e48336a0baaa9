"""docs/owners.md: a new type of relationship needs only its declaration."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from keygraph import Graph
from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.store import DescribeTable
from keygraph_examples import social
from tests.conftest import MakeStore
from tests.documents.samples import files_of
from tests.documents.served import Served, lines_of
from tests.keygraph.damaging import items_of
from tests.verified import verified

PAGE = (Path(__file__).parents[1] / "docs/owners.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    section = PAGE.partition("### A new type of relationship")[2].partition("## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """The model of the example with what the page adds, and nothing else."""
    source = Path(social.__file__).read_text("utf-8")
    edge, field = blocks("python")
    for place, addition in (
        ("    follows: ", field),
        ("graph = Graph(", edge),
        ("    Post,\n", "    Block,\n"),
    ):
        before, after = source.split(place)
        source = f"{before}{addition}{place}{after}"
    (tmp_path / "changed_social.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "changed_social", raising=False)
    graph: Graph = __import__("changed_social").graph
    return graph.check()


async def test_a_new_type_of_relationship_needs_only_its_declaration(
    make_store: MakeStore, changed: Graph
) -> None:
    store = await make_store(social.graph.table)
    old = Served(social.graph.check(), store)
    await old.load(*lines_of(*files_of("social")))
    before = await items_of(store)
    served = Served(changed, store)
    mutation, query = blocks("graphql")
    friends = (await served.ask(query))["user"]
    assert friends["blocks"] == {"edges": []}
    assert (await served.ask(mutation))["putBlock"] == {"block": {"since": "2024-05-01"}}
    found = (await served.ask(query))["user"]
    assert found["blocks"]["edges"] == [{"since": "2024-05-01", "node": {"name": "Bob The Builder"}}]
    assert found["friends"] == friends["friends"] != {"nodes": []}
    key = ("USER#Alice", "BLOCKS#USER#Bob")
    assert await items_of(store) == {
        **before,
        key: {"PK": key[0], "SK": key[1], "since": "2024-05-01"},
    }
    described = await store.send(DescribeTable())
    assert described is not None
    assert table_differences(changed.table, described) == []
    assert (await verified(changed, store)).found == {}
    # The previous version of the server ignores the new items.
    assert (await old.ask('{ user(userId: "Alice") { friends { nodes { name } } } }'))["user"] == {
        "friends": found["friends"]
    }
