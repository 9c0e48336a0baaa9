"""Index keys that hold what nodes count: rendered anew in the transaction that changes the number."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, counts, edge, field, node, record, sums
from keygraph.dynamo.actions import Remove, SetTo, UpdateItem
from keygraph.dynamo.store import BatchGet, Transaction, Write
from keygraph.errors import WriteRefused
from keygraph.tables.repair import REPAIRS, Repairs
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put
from keygraph.writing.sending.describe import describe_write
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.written import Written
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

pytestmark = pytest.mark.parametrize("engine", ENGINES)

by_size, by_rank = Index("by-size", "sp", "ss"), Index("by-rank", "rp", "rs")


@node(
    "TALK#{talk_id}",
    by_size("TALKS#{room}", "{notes_count:06d}#{talk_id}"),
    by_rank("TALKS", "{rank}", lists="talks_by_rank"),
)
class Talk:
    talk_id: ID
    room: str | None = None

    notes: Many[Note]
    guests: Many[Guest]
    notes_count: int = counts("notes")
    stars: int = sums("notes.stars")
    guests_count: int = counts("guests")

    @field(needs=("stars", "talk_id"))
    def rank(self) -> str:
        return f"{self.stars:04d}#{self.talk_id}"


@node("PERSON#{name}", by_size("PEOPLE", "{guest_count:03d}#{name}"))
class Person:
    name: ID

    visits: Many[Guest]
    guest_count: int = counts("visits")


@record("{talk}", "NOTE#{number:03d}")
class Note:
    talk: Talk
    number: int
    stars: int = 0


@edge("{talk}", "GUEST#{person.name}", by_rank("{person}", "{talk}"))
class Guest:
    talk: Talk
    person: Person


graph = Graph(
    Table("Talks", partition_key="pk", sort_key="sk", indexes=[by_size, by_rank]),
    Talk,
    Person,
    Note,
    Guest,
    writes=True,
).check()
talk, person, note, guest = graph.types.values()


class Hall(Written):
    async def keys(self, key: str, *names: str) -> list[Any]:
        item = await self.item(key, key)
        assert item is not None
        return [item.get(name) for name in names]


@pytest.fixture
async def hall(make_store: MakeStore) -> Hall:
    hall = Hall(graph, await make_store(graph.table))
    await hall.write(Create(talk, {"talk_id": "1", "room": "A"}), Create(talk, {"talk_id": "2"}))
    await hall.write(*(Create(person, {"name": name}) for name in ("Ann", "Bob")))
    return hall


async def test_the_key_follows_the_number(hall: Hall) -> None:
    assert await hall.keys("TALK#1", "sp", "ss", "rs") == ["TALKS#A", "000000#1", "0000#1"]
    assert await hall.keys("TALK#2", "sp", "ss", "rs") == [None, None, "0000#2"]
    await hall.write(Create(note, {"talk": ("1",), "number": 1, "stars": 3}))
    assert await hall.keys("TALK#1", "ss", "rs", "notes_count") == ["000001#1", "0003#1", 1]
    await hall.write(
        Change(note, ("1", "001"), {"stars": 5}), Create(note, {"talk": ("2",), "number": 1, "stars": 2})
    )
    assert await hall.keys("TALK#1", "ss", "rs") == ["000001#1", "0005#1"]
    assert await hall.keys("TALK#2", "ss", "rs", "notes_count") == [None, "0002#2", 1]
    await hall.write(Change(talk, ("2",), {"room": "B"}))
    assert await hall.keys("TALK#2", "sp", "ss") == ["TALKS#B", "000001#2"]
    await hall.write(Put(note, {"talk": ("1",), "number": 1, "stars": 1}))
    await hall.write(Move(note, ("2", "001"), {"talk": ("1",), "number": 2}))
    assert await hall.keys("TALK#1", "ss", "rs") == ["000002#1", "0003#1"]
    assert await hall.keys("TALK#2", "ss", "rs") == ["000000#2", "0000#2"]
    await hall.write(Delete(note, ("1", "001")), Change(talk, ("1",), {"room": "C"}))
    assert await hall.keys("TALK#1", "sp", "ss", "rs") == ["TALKS#C", "000001#1", "0002#1"]
    assert await hall.wrong() == []


async def test_a_new_node_has_the_key_of_what_is_created_with_it(hall: Hall) -> None:
    notes = [Create(note, {"talk": ("3",), "number": number, "stars": 1}) for number in range(3)]
    done = await hall.write(Create(talk, {"talk_id": "3", "room": "A"}), *notes)
    assert await hall.keys("TALK#3", "ss", "rs") == ["000003#3", "0003#3"]
    assert done[0].item is not None
    assert done[0].item["ss"] == "000003#3"
    assert await hall.wrong() == []


async def test_many_writers_of_one_node(hall: Hall) -> None:
    await asyncio.gather(
        *(hall.write(Create(note, {"talk": ("1",), "number": number, "stars": 1})) for number in range(6))
    )
    assert await hall.keys("TALK#1", "ss", "rs") == ["000006#1", "0006#1"]
    assert await hall.wrong() == []


async def test_what_is_read_and_sent(hall: Hall) -> None:
    traced = TracingStore(hall.store)
    await write(graph, traced, [Create(note, {"talk": ("1",), "number": 1, "stars": 3})])
    assert [type(each) for each in traced.requests] == [BatchGet, Transaction]
    described = describe_write(graph, [Create(note, {"talk": ("1",), "number": 1, "stars": 3})])
    assert described.read is not None
    assert described.read.operation == "GetItem"
    [transaction] = described.transactions
    assert transaction.notes == (
        "sp, ss, rp and rs of the nodes that it adds to: rendered from the items that are read first.",
    )


async def test_an_update_in_between_is_not_lost(hall: Hall) -> None:
    others: list[Any] = [Change(talk, ("1",), {"room": "Z"}), Create(note, {"talk": ("1",), "number": 9})]

    async def before(request: object) -> None:
        if isinstance(request, Transaction) and others:
            await hall.write(others.pop())

    await write(
        graph, HeldStore(hall.store, before), [Create(note, {"talk": ("1",), "number": 1, "stars": 4})]
    )
    assert others == []
    assert await hall.keys("TALK#1", "sp", "ss", "rs") == ["TALKS#Z", "000002#1", "0004#1"]
    assert await hall.wrong() == []


@pytest.mark.long
async def test_a_node_that_goes_with_more_edges_than_one_transaction_holds(hall: Hall) -> None:
    names = [f"P{number:02d}" for number in range(60)]
    await hall.write(*(Create(person, {"name": name}) for name in names))
    for name in names:
        await hall.write(Create(guest, {"talk": ("1",), "person": (name,)}))
        if name < "P40":
            await hall.write(Create(guest, {"talk": ("2",), "person": (name,)}))
    assert await hall.keys("PERSON#P01", "ss") == ["002#P01"]
    [done] = await hall.write(Delete(talk, ("1",), on_edges=OnEdges.DETACH))
    assert done.detached == 60
    assert [await hall.keys(f"PERSON#{name}", "ss") for name in ("P01", "P50")] == [["001#P01"], ["000#P50"]]
    [done] = await hall.write(Delete(person, ("P01",), on_edges=OnEdges.DETACH))
    assert await hall.keys("TALK#2", "guests_count") == [39]
    assert await hall.wrong() == []


async def test_a_repaired_number_has_its_key(hall: Hall) -> None:
    await hall.write(Create(note, {"talk": ("1",), "number": 1, "stars": 3}))
    change = SetTo(("notes_count",), Decimal(7)), SetTo(("ss",), "000007#1")
    await hall.store.send(Write(UpdateItem(("TALK#1", "TALK#1"), change)))
    repairs = Repairs(graph, hall.store, ["counts"], lambda kind, changes: None)
    await verified(graph, hall.store, segments=1, repairs=repairs)
    assert await hall.keys("TALK#1", "notes_count", "ss") == [1, "000001#1"]
    assert await hall.wrong() == []


async def test_a_missing_number_hinders_no_write(hall: Hall) -> None:
    """Who adds to another number of the node, or changes it, was told that its key cannot be made."""
    missing = Remove(("notes_count",)), SetTo(("ss",), "000004#1")
    await hall.store.send(Write(UpdateItem(("TALK#1", "TALK#1"), missing)))
    await hall.write(Create(note, {"talk": ("1",), "number": 1, "stars": 3}))
    assert await hall.keys("TALK#1", "notes_count", "sp", "ss", "rs") == [
        None,
        "TALKS#A",
        "000004#1",
        "0003#1",
    ]
    await hall.write(Change(talk, ("1",), {"room": "B"}))
    assert await hall.keys("TALK#1", "notes_count", "sp", "ss") == [None, "TALKS#B", "000004#1"]
    without = Remove(("stars",)), Remove(("sp",)), Remove(("ss",))
    await hall.store.send(Write(UpdateItem(("TALK#1", "TALK#1"), without)))
    await hall.write(Change(talk, ("1",), {"room": "C"}), Create(note, {"talk": ("1",), "number": 2}))
    repairs = Repairs(graph, hall.store, REPAIRS, lambda kind, changes: None)
    await verified(graph, hall.store, segments=1, repairs=repairs)
    assert await hall.keys("TALK#1", "notes_count", "sp", "ss", "rs") == [2, "TALKS#C", "000002#1", "0003#1"]
    assert await hall.wrong() == []


async def test_a_number_that_no_key_can_hold(hall: Hall) -> None:
    """Who adds to a node need not see it, so its values are not in the message."""
    unfit = SetTo(("room",), "\U0010ffff"), SetTo(("sp",), "TALKS#\U0010ffff")
    await hall.store.send(Write(UpdateItem(("TALK#1", "TALK#1"), unfit)))
    with pytest.raises(WriteRefused) as refused:
        await hall.write(Create(note, {"talk": ("1",), "number": 1}))
    assert [str(each.message) for each in refused.value.refusals] == [
        "A key of the Talk that this adds to cannot hold what it would have then."
    ]
    assert await hall.keys("TALK#1", "notes_count") == [0]
