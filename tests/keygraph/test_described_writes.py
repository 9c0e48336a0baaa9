"""The explanation of a write names every node that its transaction adds to."""

from __future__ import annotations

import pytest

from keygraph import ID, Graph, Index, Many, Table, counts, edge, node
from keygraph.dynamo.actions import UpdateItem
from keygraph.dynamo.store import Transaction
from keygraph.writing.requests import Create, Delete, Move, Put, WriteRequest
from keygraph.writing.sending.describe import describe_write
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore
from tests.tracing import TracingStore

by_guest = Index("by-guest", "gp", "gs")


@node("PERSON#{name}")
class Person:
    name: ID

    visits: Many[Seated]
    seats: Many[Seat]
    visit_count: int = counts("visits")
    seat_count: int = counts("seats")


@node("CLUB#{club_id}")
class Club:
    club_id: ID

    seated: Many[Seated]
    seated_count: int = counts("seated")


@edge("{person}", "SEAT#{club.club_id}", counterpart="Seated")
class Seat:
    person: Person
    club: Club
    row: int


@edge("{club}", "ROW#{row:02d}#{person.name}", by_guest("{person}", "{club}"))
class Seated:
    club: Club
    person: Person
    row: int


def graph_of(*, store_key_fields: bool) -> Graph:
    table = Table("Clubs", partition_key="pk", sort_key="sk", indexes=[by_guest])
    return Graph(table, Person, Club, Seat, Seated, store_key_fields=store_key_fields).check()


def requests(graph: Graph) -> list[WriteRequest]:
    _, _, seat, seated = graph.types.values()
    return [
        Delete(seat, ("Ann", "c1")),
        Delete(seated, ("c1", "01", "Ann")),
        Move(seat, ("Ann", "c1"), {"club": ("c2",)}),
        Move(seat, ("Ann", "c1"), {"person": ("Bob",)}),
        Move(seated, ("c1", "01", "Ann"), {"club": ("c2",), "row": 2}),
        Put(seat, {"person": ("Bob",), "club": ("c2",), "row": 3}),
    ]


@pytest.mark.parametrize("number", range(6))
async def test_it_names_each_node(number: int, make_store: MakeStore) -> None:
    """Without a row, the key of the other item is not known; without reading, nor whether an item is in an index."""
    graph = graph_of(store_key_fields=True)
    person, club, seat, _ = graph.types.values()
    traced = TracingStore(await make_store(graph.table))
    nodes = [Create(person, {"name": name}) for name in ("Ann", "Bob")]
    nodes += [Create(club, {"club_id": name}) for name in ("c1", "c2")]
    await write(graph, traced, nodes)
    await write(graph, traced, [Put(seat, {"person": ("Ann",), "club": ("c1",), "row": 1})])
    request = requests(graph)[number]
    [described] = describe_write(graph, [request]).transactions
    await write(graph, traced, [request])
    sent = [each for each in traced.requests if isinstance(each, Transaction)][-1]
    updated = {each.key[0] for each in sent.actions if isinstance(each, UpdateItem)}
    assert updated == {
        each.keys.partition(" AND ")[0].removeprefix("pk = ") for each in described.actions if each.changes
    }


def test_a_key_that_holds_all_is_not_written_twice() -> None:
    graph = graph_of(store_key_fields=False)
    [described] = describe_write(graph, [requests(graph)[3]]).transactions
    assert [each.attributes for each in described.actions if each.operation == "Put"] == ["", ""]
