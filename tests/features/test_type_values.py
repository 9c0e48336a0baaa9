"""Items told apart by what they say: by two attributes, by one value and their keys, by more values than others.

A table of cases. What stands in a case's partition are its notes (some are pinned), its calls and its letters, under
keys that do not tell them apart; calls and letters share one type value, as their keys tell them apart.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Count
from keygraph.tables.interchange import Interchange
from tests.conftest import in_one_world
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled

by_day = Index("by-day", "Day", "Place", projection=["entity"])


@node("CASE#{case_id}", "CASE", type={"entity": "case"})
class Case:
    case_id: ID
    notes: Many[Note] = many()
    pinned: Many[Pinned] = many()
    calls: Many[Call] = many()
    letters: Many[Letter] = many()


@record("{case}", "{number:03d}", type={"entity": "file", "kind": "note"})
class Note:
    case: Case
    number: int
    text: str | None


@record("{case}", "{number:03d}", type={"entity": "file", "kind": "note", "state": "pinned"})
class Pinned:
    case: Case
    number: int


@record("{case}", "{number:03d}", by_day("CALLS#{day}", "{number:03d}", lists="calls"), type="contact")
class Call:
    case: Case
    number: int
    day: date


@record("{case}", "{day}", by_day("LETTERS#{day}", "{case}", lists="letters"), type="contact")
class Letter:
    case: Case
    day: date


TABLE = Table("Cases", partition_key="PK", sort_key="SK", indexes=[by_day])
graph = Graph(TABLE, Case, Note, Pinned, Call, Letter, type_attribute="entity")


def item(sort: str, **said: str) -> Item:
    return {"PK": "CASE#1", "SK": sort, **said}


ITEMS: list[Item] = [
    item("CASE", entity="case"),
    item("001", entity="file", kind="note", text="a"),
    item("002", entity="file", kind="note", state="pinned"),
    item("003", entity="contact", Day="CALLS#2024-01-03", Place="003"),
    item("004", entity="file", kind="note", state="closed"),
    item("005", entity="file", kind="scan"),
    item("006", entity="contact", kind="note", Day="CALLS#2024-01-04", Place="006"),
    item("2024-01-03", entity="contact", Day="LETTERS#2024-01-03", Place="CASE#1"),
]

cases = filled(graph, ITEMS)


@in_one_world(
    ("asked", "wanted"),
    [
        ("notes { totalCount nodes { number text } }",
            {"notes": {"totalCount": 2, "nodes": [{"number": 1, "text": "a"}, {"number": 4, "text": None}]}}),
        ("pinned { totalCount nodes { number } }", {"pinned": {"totalCount": 1, "nodes": [{"number": 2}]}}),
        ("calls(number: {from: 2}, direction: DESC) { totalCount nodes { number day } }",
            {"calls": {"totalCount": 2, "nodes": [{"number": 6, "day": "2024-01-04"}, {"number": 3, "day": "2024-01-03"}]}}),
        ("letters { totalCount nodes { day case { caseId } } }",
            {"letters": {"totalCount": 1, "nodes": [{"day": "2024-01-03", "case": {"caseId": "1"}}]}}),
    ],
)  # fmt: skip
async def test_lists(cases: World, asked: str, wanted: dict[str, Any]) -> None:
    assert await cases.ask(f'{{ case(caseId: "1") {{ {asked} }} }}') == {"case": wanted}


async def test_what_the_store_counts(cases: World) -> None:
    await cases.ask('{ case(caseId: "1") { pinned { totalCount } } }')
    assert any(isinstance(request, Count) for request in cases.tracer.requests)
    cases.forget()
    await cases.ask('{ case(caseId: "1") { notes { totalCount } } }')
    assert not any(isinstance(request, Count) for request in cases.tracer.requests)


async def test_writes(cases: World) -> None:
    note = 'mutation { putNote(input: {caseId: "1", number: 7, text: "z"}) { note { text } } }'
    assert await cases.ask(note) == {"putNote": {"note": {"text": "z"}}}
    pinned = 'mutation { putPinned(input: {caseId: "1", number: 8}) { pinned { number } } }'
    assert await cases.ask(pinned) == {"putPinned": {"pinned": {"number": 8}}}
    query = '{ case(caseId: "1") { notes { nodes { number } } pinned { nodes { number } } } }'
    assert await cases.ask(query) == {
        "case": {
            "notes": {"nodes": [{"number": number} for number in (1, 4, 7)]},
            "pinned": {"nodes": [{"number": 2}, {"number": 8}]},
        }
    }


def test_plain_lines() -> None:
    line = Interchange(graph).write(
        {"kind": "note", "SK": "001", "entity": "file", "n": Decimal(1), "PK": "CASE#1"}
    )
    assert line == b'{"PK": "CASE#1", "SK": "001", "entity": "file", "kind": "note", "n": 1}'


def test_what_is_not_told_apart() -> None:
    @record("A#{number}", "B", type={"a": "1"})
    class One:
        number: int

    @record("A#{text}", "B", type={"b": "2"})
    class Special:
        text: ID

    @record("A#{text}", "B", type={"a": "1", "b": "3"})
    class Wide:
        text: ID

    keys = "(A#{number} / B and A#{text} / B)"
    said = "they do not exclude each other by their type values, and a key such as A#1 / B can belong to both"
    fix = 'Give one of them its own type value or literal prefix, or say that items of One do not have b: type={…, "b": None}.'
    assert mistakes(One, Special, Wide, type_attribute=None) == [
        f"One: its items cannot be distinguished from those of {other}: {said} {keys}. {fix}"
        for other in ("Special", "Wide")
    ]


# --- Partitions of two types --------------------------------------------------------------------------


@node("{service_id}", "META")
class Service:
    service_id: ID
    logs: Many[Log]


@record("{service}", "LOG#{number}")
class Log:
    service: Service
    number: int
    text: str | None = None
