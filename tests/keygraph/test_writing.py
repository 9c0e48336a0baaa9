"""Writing records: every item that belongs to a write, in one transaction, whole or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, cast

import pytest

from keygraph import (
    ID,
    Epoch,
    Graph,
    Index,
    Many,
    Table,
    created,
    edge,
    field,
    new_id,
    node,
    record,
    updated,
    version,
)
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Query, Write
from keygraph.errors import WriteRefused
from keygraph.model.record_keys import Texts
from keygraph.writing.requests import Change, Create, Delete, OnEdges, Put, WriteRequest, with_ids
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.keygraph.written import Written

pytestmark = pytest.mark.parametrize("engine", ENGINES)

by_place = Index("by-place", "gp", "gs")


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@node("PERSON#{name}", by_place("TOWN#{town}#{mood}", "{joined}#{name}"))
class Person:
    name: ID
    town: str | None = None
    mood: Mood = Mood.GOOD
    joined: datetime
    tags: set[str] | None = None
    seen: list[str] | None = None
    points: int | None = None

    friends: Many[Friend]
    letters: Many[Letter]


@edge("{one}", "FRIEND#{other.name}", mirror=True)
class Friend:
    one: Person
    other: Person
    since: int


@record("{to}", "LETTER#{number:04d}", by_place("{sender}", "{state_key}"))
class Letter:
    to: Person
    number: int
    sender: Person
    text: str
    is_read: bool = False

    @field(needs=("is_read", "number"))
    def state_key(self) -> str:
        return f"{'READ' if self.is_read else 'NEW'}#{self.number}"


@record("{person}#{shard}", "DID#{at}", shards=4)
class Deed:
    person: Person
    at: int
    what: str


graph = Graph(
    Table("People", partition_key="pk", sort_key="sk", indexes=[by_place]),
    Person,
    Friend,
    Letter,
    Deed,
    type_attribute="kind",
    writes=True,
).check()
person, friend, letter, deed = graph.types.values()
JOINED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class People(Written):
    """A store with a writer, and what is in it."""

    async def refused(self, *requests: WriteRequest) -> list[tuple[str, str, tuple[str | int, ...]]]:
        return [(each.code, each.message, each.path) for each in await self.refusals(*requests)]

    async def in_index(self, partition: str) -> list[Any]:
        page = await self.store.send(Query(partition, index="by-place"))
        return [item["gs"] for item in page.items]


@pytest.fixture
async def people(make_store: MakeStore) -> People:
    people = People(graph, await make_store(graph.table))
    await people.write(
        *[Create(person, {"name": name, "joined": JOINED, "town": "Ulm"}) for name in ("Ann", "Bob")]
    )
    return people


ANN: Texts = ("Ann",)
BOB: Texts = ("Bob",)
ANN_KEY = ("PERSON#Ann", "PERSON#Ann")


async def test_a_create_does_not_overwrite(people: People) -> None:
    created = Create(person, {"name": "Ann", "joined": JOINED, "points": 3}, ("input",))
    assert await people.refused(created) == [
        ("ALREADY_EXISTS", "There is already a Person with this key.", ("input",))
    ]


async def test_everything_wrong_is_told_at_once(people: People) -> None:
    values = {"one": ANN, "other": BOB}
    assert await people.refused(
        Put(friend, values, ("input",)), Create(person, {"name": "a#b"}, ("more", 1))
    ) == [
        ("BAD_USER_INPUT", "since of Friend is missing.", ("input", "since")),
        ("BAD_USER_INPUT", "joined of Person is missing.", ("more", 1, "joined")),
    ]


async def test_what_is_wrong_with_one_part_leaves_the_others_whole(people: People) -> None:
    gone = Delete(friend, ("Ann", "Bob"), where=("actions", 0))
    joined = Put(friend, {"one": ANN, "other": BOB, "since": 1}, ("actions", 1))
    assert ("NOT_FOUND", "There is no Friend with this key.", ("actions", 0)) in await people.refused(
        gone, joined
    )


async def test_ends_exist(people: People) -> None:
    values = {"one": ANN, "other": ("Nobody",), "since": 1}
    missing = [("NOT_FOUND", "other_name: there is no Person with this key.", ("input", "other_name"))]
    assert await people.refused(Put(friend, values, ("input",))) == missing
    assert await people.item("PERSON#Ann", "FRIEND#Nobody") is None
    nobody = Create(person, {"name": "Nobody", "joined": JOINED})
    await people.write(nobody, Put(friend, values))
    assert await people.item("PERSON#Nobody", "FRIEND#Ann") is not None


async def test_what_is_added_taken_and_removed(people: People) -> None:
    await people.write(Change(person, ANN, {}, {"points": 2, "tags": {"a", "b"}, "seen": ["x"]}))
    await people.write(
        Change(person, ANN, {"mood": Mood.GOOD}, {"points": -5, "seen": ["y"]}, {"tags": {"b"}})
    )
    ann = await people.item(*ANN_KEY)
    assert ann is not None
    assert (ann["points"], ann["tags"], ann["seen"]) == (Decimal(-3), frozenset({"a"}), ["x", "y"])
    await people.write(Change(person, ANN, {"points": None, "seen": None}, {}, {"tags": {"a"}}))
    ann = await people.item(*ANN_KEY)
    assert ann is not None
    assert not ann.keys() & {"points", "tags", "seen"}


async def test_changes_that_are_refused(people: People) -> None:
    changes = Change(person, ANN, {"name": "Anna", "joined": None}, where=("input",))
    assert await people.refused(changes) == [
        (
            "BAD_USER_INPUT",
            "name is part of the key of Person and cannot be changed. Use movePerson.",
            ("input", "name"),
        ),
        ("BAD_USER_INPUT", "joined of Person cannot be removed.", ("input", "joined")),
    ]
    gone = [("NOT_FOUND", "There is no Person with this key.", ())]
    assert await people.refused(Change(person, ("Nobody",), {"points": 1})) == gone
    assert await people.refused(Change(person, ("Nobody",), {"mood": Mood.BAD})) == gone
    assert await people.refused(Delete(person, ("Nobody",))) == gone


async def test_shards_are_computed_and_others_are_found(people: People) -> None:
    values: dict[str, Any] = {"person": ANN, "at": 5, "what": "sang"}
    [done] = await people.write(Create(deed, values))
    assert done.item is not None
    again = [("ALREADY_EXISTS", "There is already a Deed with this key.", ())]
    assert await people.refused(Create(deed, values)) == again
    elsewhere = {
        **done.item,
        "pk": next(f"PERSON#Ann#{n}" for n in range(4) if f"#{n}" not in str(done.item["pk"])[10:]),
    }
    await people.store.send(Write(PutItem(elsewhere)))
    twice = [("CONFLICT", "There are two items of this Deed, in two shards: delete one of them first.", ())]
    assert await people.refused(Change(deed, done.identity, {"what": "hummed"})) == twice
    assert await people.refused(Delete(deed, done.identity)) == twice
    others = {**elsewhere, "sk": "DID#6", "at": Decimal(6)}
    await people.store.send(Write(PutItem(others)))
    await people.write(Change(deed, ("Ann", "6"), {"what": "hummed"}))
    assert await people.item(str(elsewhere["pk"]), "DID#6") == {**others, "what": "hummed"}
    await people.write(Put(deed, {**values, "at": 6, "what": "slept"}))
    assert await people.item(str(elsewhere["pk"]), "DID#6") == {**others, "what": "slept"}
    await people.write(Delete(deed, ("Ann", "6")))
    assert await people.item(str(elsewhere["pk"]), "DID#6") is None


async def test_two_parts_of_one_item(people: People) -> None:
    double = [Create(person, {"name": "Cy", "joined": JOINED}, ("actions", 0)), Delete(person, ("Cy",))]
    assert [code for code, *_ in await people.refused(*double)] == ["BAD_USER_INPUT"]
    joined = Put(friend, {"one": ANN, "other": BOB, "since": 1}, ("actions", 1))
    assert await people.refused(Delete(person, BOB), joined) == [
        ("NOT_FOUND", "other_name: there is no Person with this key.", ("actions", 1, "other_name"))
    ]


# --- What the server keeps ------------------------------------------------------------------------------


@node("NOTE#{note_id}")
class Note:
    note_id: ID = new_id()
    text: str
    made: datetime = created("madeAt")
    changed: datetime = updated("changedAt", format=Epoch("ms"))
    version: int = version()


@record("NOTE#{note.note_id}", "TAG#{name}")
class NoteTag:
    note: Note
    name: str
    weight: int = 0
    made: datetime = created()
    times: int = version()


notes = Graph(Table("Notes", partition_key="pk", sort_key="sk"), Note, NoteTag, writes=True).check()


async def test_what_the_server_keeps(make_store: MakeStore) -> None:
    store = await make_store(notes.table)
    writer = partial(write, notes, store)

    async def stored(*requests: WriteRequest) -> Item:
        done = (await writer(requests))[0]
        [item] = (await store.send(BatchGet(tuple(notes.table_keys(done.record, done.identity))))).items
        assert item is not None
        return item

    made = with_ids(note, {"text": "a"})
    other = with_ids(note, {"text": "b"})
    assert made["note_id"] < other["note_id"]
    first = await stored(Create(note, made))
    second = await stored(Change(note, (made["note_id"],), {"text": "c"}, version=1))
    assert (first["version"], second["version"], second["madeAt"]) == (
        Decimal(1),
        Decimal(2),
        first["madeAt"],
    )
    assert isinstance(first["changedAt"], Decimal)
    assert cast(Decimal, second["changedAt"]) >= first["changedAt"]
    for late in (
        Change(note, (made["note_id"],), {"text": "d"}, version=1),
        Delete(note, (made["note_id"],), 1),
    ):
        with pytest.raises(WriteRefused) as refused:
            await writer([late])
        [refusal] = refused.value.refusals
        assert (refusal.code, refusal.details) == ("CONFLICT", {"currentVersion": 2})
        assert refusal.message == "This Note has changed: its version is 2."
    tag = {"note": (made["note_id"],), "name": "x"}
    before = await stored(Put(note_tag, tag))
    after = await stored(Put(note_tag, {**tag, "weight": 3}))
    assert (after["made"], after["times"], after["weight"]) == (before["made"], Decimal(2), Decimal(3))
    await writer([Delete(note, (made["note_id"],), 2, on_edges=OnEdges.DETACH)])


note, note_tag = notes.types.values()
