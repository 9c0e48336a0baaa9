"""The guide to writing a model: its Python is a model, and what it says of it is so."""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from keygraph import Graph, ModelError
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.tables.interchange import Interchange
from keygraph.tables.verify import Verification
from keygraph_resolvers import check
from tests.conftest import MakeStore
from tests.resolvers.worlds import world
from tests.server.command_line import run

GUIDE = (Path(__file__).parents[1] / "docs/models.md").read_text("utf-8")
MODEL = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
WRONG = re.findall(r"^```python wrong\n(.*?)^```\n\n```text\n(.*?)\n```$", GUIDE, re.MULTILINE | re.DOTALL)

ITEMS: list[Item] = [
    {"PK": "STATION#central", "SK": "STATION#central", "name": "Central"},
    {
        "PK": "BIKE#7",
        "SK": "BIKE#7",
        "GSI1PK": "STATION#central",
        "GSI1SK": "BIKE#7",
        "model": "Cargo",
        "stationId": "central",
    },
    {"PK": "RIDER#ada", "SK": "PROFILE", "name": "Ada"},
    {
        "PK": "RIDER#ada",
        "SK": "RIDE#2024-05-01T08:00:00Z",
        "GSI1PK": "BIKE#7",
        "GSI1SK": "2024-05-01T08:00:00Z",
        "bikeId": "7",
        "minutes": Decimal(12),
    },
    {"PK": "BIKE#7", "SK": "REPAIR#2024-05-02", "cost": Decimal("9.5")},
]


def module_of(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with that text, as if somebody had saved it."""
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, f"{name}.py", "exec"), vars(made))
    return made


EXAMPLES = re.findall(
    r"^### ([^\n]+)$.*?^```python example\n(.*?)^```$.*?^```jsonl\n(.*?)^```$.*?^```graphql example\n(.*?)^```$.*?"
    r"^```json\n(.*?)^```$",
    GUIDE,
    re.MULTILINE | re.DOTALL,
)
"""Titles, models, items, queries and answers."""


async def test_the_model_is_served(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever follows the steps would end with a model that is none, or does not read the items of step 1."""
    graph: Graph = module_of(MODEL, "bikes", monkeypatch).graph.check()
    made = world(graph, await make_store(graph.table))
    await made.put(*ITEMS)
    [query] = re.findall(r"^```graphql\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert await made.ask(query) == {
        "bike": {
            "model": "Cargo",
            "station": {"name": "Central"},
            "rides": {
                "nodes": [{"started": "2024-05-01T08:00:00Z", "minutes": 12, "rider": {"name": "Ada"}}]
            },
            "repairs": {"nodes": [{"day": "2024-05-02", "cost": "9.5"}]},
        }
    }


def test_describe_shows_what_the_guide_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever compares would think that the model was wrong."""
    (tmp_path / "bikes.py").write_text(MODEL, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "bikes", raising=False)
    shown = "\n".join(line.rstrip() for line in run("describe", "--model", "bikes:graph").stdout.splitlines())
    [excerpt] = [
        text
        for text in re.findall(r"^```text\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
        if "Query" in text
    ]
    assert excerpt in shown


def test_every_example_is_whole() -> None:
    """One without items, a query or an answer would not be looked at, or with those of another."""
    assert len(EXAMPLES) == len(re.findall(r"^```python example$", GUIDE, re.MULTILINE)) > 0


@pytest.mark.parametrize(
    ("source", "lines", "query", "answer"),
    [parts for _, *parts in EXAMPLES],
    ids=[name for name, *_ in EXAMPLES],
)
async def test_an_example_answers(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, source: str, lines: str, query: str, answer: str
) -> None:
    """Whoever has such a table would copy a model that does not read it."""
    graph: Graph = check(module_of(source, "example", monkeypatch).graph)
    made = world(graph, await make_store(graph.table))
    reading = Interchange(graph)
    await made.put(*(reading.read(line) for line in lines.splitlines()))
    assert await made.ask(query) == json.loads(answer)
    verification = Verification(graph, made.tracer.store)
    await verification.run(lambda total: None)
    assert verification.report.ordered() == []


def test_there_are_mistakes() -> None:
    """None of them would be looked at."""
    assert len(WRONG) == 4


@pytest.mark.parametrize(("source", "said"), WRONG)
def test_a_mistake_is_told_in_these_words(source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks a message up would not find it."""
    made = vars(module_of(f"{MODEL}\n\n{source}", "wrong", monkeypatch))
    types: list[Any] = [
        made[name] for name in re.findall(r"^class (\w+)", f"{MODEL}\n{source}", re.MULTILINE)
    ]
    table: Table = made["graph"].table
    with pytest.raises(ModelError) as refused:
        Graph(table, *types, attribute_case="camel").check()
    assert [str(mistake) for mistake in refused.value.mistakes] == [said]
