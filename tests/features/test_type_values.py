"""Items told apart by what they say: by two attributes, by one value and their keys, by more values than others.

A table of cases. What stands in a case's partition are its notes (some are pinned), its calls and its letters, under
keys that do not tell them apart; calls and letters share one type value, as their keys tell them apart.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Count, Scan
from keygraph.tables.interchange import Interchange
from keygraph.tables.verify import Verification
from keygraph_resolvers import check
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, world

by_day = Index("by-day", "Day", "Place", projection=["entity"])
INDEX = ("{day}", "{case}#{number:03d}")


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


@pytest.fixture
async def cases(make_store: MakeStore) -> World:
    made = world(check(graph), await make_store(TABLE))
    await made.put(*ITEMS)
    return made


@pytest.mark.parametrize(
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
    """A list, or its count, would hold items of another type."""
    assert await cases.ask(f'{{ case(caseId: "1") {{ {asked} }} }}') == {"case": wanted}


async def test_what_the_store_counts(cases: World) -> None:
    """Pinned notes would be read one by one to be counted, or a note that is pinned be counted as one that is not."""
    await cases.ask('{ case(caseId: "1") { pinned { totalCount } } }')
    assert any(isinstance(request, Count) for request in cases.tracer.requests)
    cases.forget()
    await cases.ask('{ case(caseId: "1") { notes { totalCount } } }')
    assert not any(isinstance(request, Count) for request in cases.tracer.requests)


async def test_pages(cases: World) -> None:
    """A page would end at an item of a type that says as much."""
    query = """query($after: String) {
      case(caseId: "1") { notes(first: 1, after: $after) { pageInfo { endCursor hasNextPage } nodes { number } } } }"""
    first = (await cases.ask(query))["case"]["notes"]
    second = (await cases.ask(query, after=first["pageInfo"]["endCursor"]))["case"]["notes"]
    assert [page["nodes"] for page in (first, second)] == [[{"number": 1}], [{"number": 4}]]
    assert [page["pageInfo"]["hasNextPage"] for page in (first, second)] == [True, False]


async def test_an_index_without_one_of_them(cases: World) -> None:
    """Types that an index does not tell by their values are told by their keys there."""
    query = '{ calls(day: "2024-01-03") { nodes { number } } letters(day: "2024-01-03") { nodes { case { caseId } } } }'
    assert await cases.ask(query) == {
        "calls": {"nodes": [{"number": 3}]},
        "letters": {"nodes": [{"case": {"caseId": "1"}}]},
    }


async def test_writes(cases: World) -> None:
    """An item would be written as one of another type, or put in the place of one."""
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


async def test_verify(cases: World) -> None:
    """Whoever looks for what no type accepts would not be told what it says."""
    verification = Verification(graph, cases.tracer.store)
    await verification.run(lambda total: None)
    assert [kind.what for kind, _ in verification.report.ordered()] == [
        "no declared type has its entity and kind and state "
        "(the declared ones: case, contact, file and note, file and note and pinned)"
    ]


def test_plain_lines() -> None:
    """An exported item would not say its type in front."""
    line = Interchange(graph).write(
        {"kind": "note", "SK": "001", "entity": "file", "n": Decimal(1), "PK": "CASE#1"}
    )
    assert line == b'{"PK": "CASE#1", "SK": "001", "entity": "file", "kind": "note", "n": 1}'


def test_what_is_not_told_apart() -> None:
    """Items would be of either type, by the order in which they are declared."""

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
    mend = "Give one of them its own type value or literal prefix."
    assert mistakes(One, Special, Wide, type_attribute=None) == [
        f"One: its items cannot be distinguished from those of {other}: {said} {keys}. {mend}"
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


@record("{service.service_id}-{job:d}", "LOG#{line}")
class Line:
    service: Service
    job: int
    line: int
    text: str | None = None


async def test_a_node_whose_partition_is_another_types_too(make_store: MakeStore) -> None:
    """A service could be loaded and listed, but not found by its id, or it would show the lines of a job as its logs."""
    graph = Graph(
        Table("Services", partition_key="PK", sort_key="SK"), Service, Log, Line, type_attribute="Type"
    )
    services = world(graph, await make_store(graph.table))
    create = """mutation { createService(input: {serviceId: "jobs-4"}) { service { serviceId } }
      owner: createService(input: {serviceId: "jobs"}) { service { serviceId } }
      putLog(input: {serviceId: "jobs-4", number: 1, text: "own"}) { log { number } }
      putLine(input: {serviceId: "jobs", job: 4, line: 2, text: "job"}) { line { line } } }"""
    await services.ask(create)
    document = """{ service(serviceId: "jobs-4") { serviceId
      logs { totalCount nodes { number text } aggregate { count } } last: logs(last: 1) { nodes { number } } } }"""
    assert await services.ask(document) == {
        "service": {
            "serviceId": "jobs-4",
            "logs": {"totalCount": 1, "nodes": [{"number": 1, "text": "own"}], "aggregate": {"count": 1}},
            "last": {"nodes": [{"number": 1}]},
        }
    }
    deleted = 'mutation { deleteService(input: {serviceId: "jobs-4", onEdges: DETACH}) { detached } }'
    assert await services.ask(deleted) == {"deleteService": {"detached": 1}}
    document = '{ service(serviceId: "jobs-4") { serviceId } node: service(serviceId: "jobs") { serviceId } }'
    assert await services.ask(document) == {"service": None, "node": {"serviceId": "jobs"}}
    left = (await services.tracer.send(Scan(consistent=True))).items
    assert sorted(str(item.get("text")) for item in left) == ["None", "job"]
