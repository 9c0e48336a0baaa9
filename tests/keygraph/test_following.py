"""Copies that follow their source: whatever happens, an item has what its node has now."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, copy, edge, node, record, rule, sums, version
from keygraph.dynamo.actions import Remove, SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, PassingStore, Query, Request, Scan, Write, pages
from keygraph.errors import Unavailable, WriteRefused
from keygraph.tables.bulk import WriteRate
from keygraph.tables.repair import Repairs
from keygraph.writing.marks import COPYING, MARK, continued
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put, Upsert, WriteRequest
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.written import Written
from tests.tracing import CutStore, TracingStore
from tests.verified import verified

gsi = Index("gsi", "gp", "gs")
by_name = Index("by-name", "np", "ns")


@node("PERSON#{person_id}", gsi("BOSS#{boss.person_id}", "{person_id}"))
class Person:
    person_id: ID
    name: str
    age: int | None = None
    boss: Person | None = None
    boss_name: str | None = copy("boss.name", follows=True)
    version: int = version()

    tasks: Many[Task]


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str
    total_age: int = sums("members.age")

    members: Many[Membership]


@edge("{team}", "{person}", gsi("{person}", "{team}"), by_name("{team}", "{person_name}#{person.person_id}"))
class Membership:
    team: Team
    person: Person
    person_name: str = copy("person.name", follows=True)
    team_name: str = copy("team.name", follows=True)
    age: int | None = copy("person.age", "memberAge", follows=True)
    joined_as: str = copy("person.name")
    role: str | None = None


@node("TASK#{task_id}", gsi("{owner}", "TASK#{task_id}"))
class Task:
    task_id: ID
    owner: Person | Team
    owner_name: str = copy("owner.name", follows=True)


@edge("{giver}", "GIFT#{taker.person_id}", counterpart="Received")
class Given:
    giver: Person
    taker: Person
    taker_name: str = copy("taker.name", follows=True)


@edge("{taker}", "GOT#{giver.person_id}")
class Received:
    taker: Person
    giver: Person
    taker_name: str = copy("taker.name", follows=True)


@record("{person}#{shard}", "NOTE#{number:06d}", shards=3)
class Note:
    person: Person
    number: int
    name: str = copy("person.name", follows=True)


graph = Graph(
    Table("People", partition_key="pk", sort_key="sk", indexes=[gsi, by_name]),
    Person,
    Team,
    Membership,
    Task,
    Given,
    Received,
    Note,
    type_attribute="kind",
).check()
person, team, membership, task, given, received, note = graph.types.values()
ANN, BOB, RED = ("ann",), ("bob",), ("red",)


class People(Written):
    """A store with a writer, and what is in it."""

    async def items(self) -> list[Item]:
        return [item async for page in pages(self.store, Scan(consistent=True)) for item in page.items]

    async def values(self, name: str) -> list[Any]:
        return sorted({str(item[name]) for item in await self.items() if name in item})

    async def problems(self) -> list[str]:
        """What `verify` finds, and marks that are left."""
        report = await verified(graph, self.store)
        found = [f"{kind.problem} {kind.type}: {kind.what}" for kind, _ in report.ordered()]
        return [
            *found,
            *(f"{item['pk']} is marked" for item in await self.items() if {MARK, COPYING} & item.keys()),
        ]

    async def rename(self, key: str, name: str) -> None:
        await self.write(Change(person, (key,), {"name": name}))


@pytest.fixture
async def people(make_store: MakeStore) -> People:
    people = People(graph, await make_store(graph.table))
    await people.write(
        Create(person, {"person_id": "ann", "name": "Ann", "age": 40}),
        Create(person, {"person_id": "bob", "name": "Bob", "boss": ANN}),
        Create(team, {"team_id": "red", "name": "Red"}),
    )
    return people


async def many_notes(people: People, count: int) -> None:
    for start in range(0, count, 90):
        numbers = range(start, min(start + 90, count))
        await people.write(*[Put(note, {"person": ANN, "number": number}) for number in numbers])


@on_exact_engines
async def test_the_copies_change_with_their_source(people: People) -> None:
    await people.write(
        Put(membership, {"team": RED, "person": ANN}),
        Create(task, {"task_id": "1", "owner": ("PERSON#ann",)}),
        Create(task, {"task_id": "2", "owner": ("TEAM#red",)}),
        Put(given, {"giver": BOB, "taker": ANN}),
    )
    await many_notes(people, 5)
    traced = TracingStore(people.store)
    await write(graph, traced, [Change(person, ANN, {"name": "Anna", "age": 41})])
    assert [type(each).__name__ for each in traced.requests].count("Transaction") == 1
    joined = await people.item("TEAM#red", "PERSON#ann") or {}
    assert joined == {
        **joined,
        "person_name": "Anna",
        "joined_as": "Ann",
        "memberAge": 41,
        "ns": "Anna#ann",
        "team_name": "Red",
    }
    assert (await people.item("PERSON#bob", "PERSON#bob") or {})["boss_name"] == "Anna"
    assert await people.values("owner_name") == ["Anna", "Red"]
    assert await people.values("taker_name") == ["Anna"]
    assert (await people.item("TEAM#red", "TEAM#red") or {})["total_age"] == 41
    page = await people.store.send(Query("TEAM#red", index="by-name"))
    assert [item["ns"] for item in page.items] == ["Anna#ann"]
    await people.write(Change(team, RED, {"name": "Crimson"}))
    assert await people.values("owner_name") == ["Anna", "Crimson"]
    assert await people.problems() == []


@on_exact_engines
async def test_a_change_of_anything_else_reads_no_copies(people: People) -> None:
    await many_notes(people, 3)
    for change, requests in (
        ({"boss": None}, ["Transaction"]),
        ({"name": "Ann"}, ["BatchGet", "Transaction"]),
    ):
        traced = TracingStore(people.store)
        await write(graph, traced, [Change(person, ANN, change)])
        assert [type(each).__name__ for each in traced.requests][-len(requests) :] == requests
        assert not [each for each in traced.requests if isinstance(each, Query)]


@on_exact_engines
async def test_more_than_one_transaction_holds(people: People) -> None:
    await many_notes(people, 230)
    await people.rename("ann", "Anna")
    assert await people.problems() == []
    assert [item["name"] for item in await people.items() if item["kind"] == "Note"] == ["Anna"] * 230


@on_exact_engines
async def test_other_parts_of_the_same_write(people: People) -> None:
    await people.write(
        Put(membership, {"team": RED, "person": ANN}), Put(membership, {"team": RED, "person": BOB})
    )
    await people.write(
        Change(person, ANN, {"name": "Anna"}),
        Change(person, BOB, {"name": "Bobby", "boss": BOB}),
        Change(membership, ("red", "ann"), {"role": "captain"}),
        Put(membership, {"team": RED, "person": BOB, "role": "goal"}),
        Put(given, {"giver": BOB, "taker": ANN}),
    )
    assert await people.problems() == []
    assert (await people.item("TEAM#red", "PERSON#ann") or {})["role"] == "captain"
    # It names itself.
    await people.write(Change(person, BOB, {"name": "Robert"}))
    assert (await people.item("PERSON#bob", "PERSON#bob") or {})["boss_name"] == "Robert"
    await people.write(
        Upsert(person, {"person_id": "bob", "name": "Rob", "boss": ANN}),
        Upsert(person, {"person_id": "cy", "name": "Cy", "boss": BOB}),
        Delete(membership, ("red", "bob")),
    )
    assert await people.values("boss_name") == ["Anna", "Rob"]
    await people.write(
        Change(person, ANN, {"name": "Anne"}),
        Delete(person, ("cy",), on_edges=OnEdges.DETACH),
        Delete(team, RED, on_edges=OnEdges.DETACH),
    )
    assert await people.values("boss_name") == ["Anne"]
    # An upsert that creates changes nothing that is copied.
    await people.write(
        Upsert(person, {"person_id": "dee", "name": "Dee"}), Delete(person, ("bob",), on_edges=OnEdges.DETACH)
    )
    assert await people.problems() == []


@on_exact_engines
async def test_a_value_that_a_copy_cannot_have_is_refused(people: People) -> None:
    await people.write(Put(membership, {"team": RED, "person": ANN}))
    [refusal] = await people.refusals(Change(person, ANN, {"name": ""}, where=("input",)))
    assert (refusal.code, refusal.path) == ("BAD_USER_INPUT", ("input",))
    assert "person_name" in refusal.message
    assert await people.problems() == []


async def let_marks_expire(people: People) -> None:
    for item in await people.items():
        old = [SetTo((COPYING, "until"), Decimal(0))] if COPYING in item else []
        old += [SetTo((MARK,), continued(item)[0] + "0")] if MARK in item else []
        if old:
            await people.store.send(Write(UpdateItem((item["pk"], item["sk"]), tuple(old))))


@pytest.mark.long
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("how", ["again", "another", "put", "repair"])
@on_exact_engines
async def test_a_crash_at_any_point(people: People, how: str, is_done: bool) -> None:
    """What is left is found, and done by the next who reads it, or by a repair."""
    await many_notes(people, 105)
    for at in range(1, 9):
        # A mark, the node, whom she leads, the pages of three shards, the end of this pass and of another one.
        store, name = CutStore(people.store, at, is_done=is_done), f"Ann {at}"
        try:
            await write(graph, store, [Change(person, ANN, {"name": name})])
        except Unavailable:
            assert at <= 2
        await let_marks_expire(people)
        left = [each for each in await people.problems() if each.startswith("stale")]
        assert bool(left) == (at in range(2 + (not is_done), 6 + (not is_done)))
        match how:
            case "again":
                await people.rename("ann", name)
            case "another":
                await people.rename("ann", f"Anne {at}")
            case "put":
                for number in range(20):
                    await people.write(Put(note, {"person": ANN, "number": number}))
            case _:
                repairs = Repairs(graph, people.store, None, lambda kind, changes: None)
                await verified(graph, people.store, repairs=repairs)
        assert [each for each in await people.problems() if each.startswith("stale")] == []
        assert not [item for item in await people.items() if COPYING in item]
        if how == "repair":
            await people.rename("ann", f"Anne {at}")  # which removes the other mark
        assert await people.problems() == []


async def repair(people: People, **options: Any) -> list[str]:
    """Repairs what a repair without --only does. Returns what it says."""
    done = list[str]()
    repairs = Repairs(graph, people.store, None, lambda kind, changes: done.append(kind.what), **options)
    await verified(graph, people.store, segments=1, repairs=repairs)
    return done


async def test_a_repair_ends_a_change_that_was_interrupted(people: People) -> None:
    """It wrote the copies again, and left the mark."""
    await many_notes(people, 105)
    with suppress(Unavailable):
        await write(graph, CutStore(people.store, 4, is_done=True), [Change(person, ANN, {"name": "Anna"})])
    assert await repair(people) == []  # somebody may still be at it
    await let_marks_expire(people)
    interrupted = "a change was interrupted before all copies of it were written"
    assert interrupted in await repair(people, is_dry_run=True)
    assert len(await people.problems()) > 1
    assert interrupted in await repair(people, rate=WriteRate(100_000))
    assert await people.problems() == []
    assert [item["name"] for item in await people.items() if item["kind"] == "Note"] == ["Anna"] * 105


async def test_a_copy_without_a_node_is_removed(people: People) -> None:
    """Another program has removed the end, and nobody saw what it left."""
    without = Remove(("boss_id",)), Remove(("gp",)), Remove(("gs",))
    await people.store.send(Write(UpdateItem(("PERSON#bob", "PERSON#bob"), without)))
    what = "boss_name has a value, and boss names no node"
    assert await people.problems() == [f"stale Person: {what}"]
    assert await repair(people) == [what]
    assert await people.problems() == []
    assert await people.values("boss_name") == []


async def settled(people: People, request: WriteRequest) -> None:
    """Writes until it is done or refused for another reason than others who write the same."""
    while True:
        try:
            await people.write(request)
        except WriteRefused as refused:
            if refused.refusals[0].code == "CONFLICT":
                await asyncio.sleep(random.uniform(0, 0.01))
                continue
        return


@pytest.mark.parametrize("count", [0, pytest.param(120, marks=pytest.mark.long)])
@on_exact_engines
@pytest.mark.long
async def test_everybody_at_once(people: People, count: int) -> None:
    """Whoever writes records while their nodes change, each has what its node has in the end."""
    await many_notes(people, count)
    requests: list[WriteRequest] = []
    for number in range(4):
        requests += [
            Change(person, ANN, {"name": f"Ann {number}"}),
            Change(team, RED, {"name": f"Red {number}"}),
            Put(note, {"person": ANN, "number": 1000 + number}),
            Put(membership, {"team": RED, "person": (ANN, BOB)[number % 2]}),
            Change(person, BOB, {"boss": (ANN, BOB)[number % 2], "name": f"Bob {number}"}),
            Put(given, {"giver": BOB, "taker": ANN}),
            Create(task, {"task_id": str(number), "owner": ("PERSON#ann",)}),
            Delete(membership, ("red", "ann")),
        ]
    await asyncio.gather(*(settled(people, request) for request in requests))
    assert await people.problems() == []


@dataclass(eq=False)
class Putting(PassingStore):
    """A store in which somebody begins to put a record just before the n-th request."""

    left: int
    people: People
    number: int
    task: asyncio.Task[None] | None = None

    async def send(self, request: Request[Answer], /) -> Answer:
        self.left -= 1
        if self.left == 0:
            self.task = asyncio.create_task(
                settled(self.people, Put(note, {"person": ANN, "number": self.number}))
            )
            # If it waits for the mark, it ends later.
            await asyncio.wait([self.task], timeout=0.03)
        return await self.store.send(request)


@on_exact_engines
@pytest.mark.long
async def test_a_record_that_is_put_while_its_node_changes(people: People) -> None:
    """Before the search for copies or after it, at each request: the new record has what its node has."""
    for at in range(14):
        store = Putting(people.store, at + 1, people, at)
        await write(graph, store, [Change(person, ANN, {"name": f"Ann {at}"})])
        if store.task is not None:
            await store.task
        assert await people.problems() == []


def mistakes(value: Any, annotation: str = "str", **options: Any) -> list[str]:
    @node("BOX#{box_id}", **options.get("box", {}))
    class Box:
        box_id: ID
        label: str
        seen: datetime | None = options.get("seen")
        changes: int = version()

    @edge("{box}", "THING#{other.box_id}", **options.get("thing", {}))
    class Thing:
        box: Box
        other: Box
        copied: ... = value

    Thing.__annotations__["copied"] = annotation
    made = Graph(Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_other]), Box, Thing)
    return [f"{each.problem} {each.fix}" for each in made.mistakes]


by_other = Index("by-other", "OtherPK", "OtherSK")


def test_mistakes() -> None:
    assert mistakes(copy("box.label", follows=True)) == []
    assert mistakes(copy("other.label", follows=True)) == [
        "no key finds every Thing of a Box, so they could not be changed with it. "
        "Give Thing an index whose partition key is {other}, or leave follows=True out."
    ]
    indexed = {"thing": {"mirror": False}}
    assert mistakes(copy("box.changes", follows=True), "int", **indexed) == [
        "the server sets Box.changes. Leave follows=True out, or copy another field."
    ]
    ruled = {"thing": {"check": [rule({"copied": {"ne": "x"}}, "No x.")]}}
    assert mistakes(copy("box.label", follows=True), **ruled) == [
        "a rule in check= is about it, and writes of other items change it. Remove the rule."
    ]


@on_exact_engines
async def test_a_record_that_moves_while_its_copies_are_written(people: People) -> None:
    """It may move to where the search has been, so it takes what its node has now along."""
    await many_notes(people, 120)
    with suppress(Unavailable):
        await write(graph, CutStore(people.store, 3, is_done=False), [Change(person, ANN, {"name": "Anna"})])
    key = ("ann", "000117")
    await people.write(Move(note, key, {"number": 500}))
    moved = [item for item in await people.items() if item.get("number") == 500]
    assert [(item["name"], item["kind"]) for item in moved] == [("Anna", "Note")]
    # What is not copied again stays.
    await people.write(
        Put(membership, {"team": RED, "person": ANN}), Create(team, {"team_id": "blue", "name": "Blue"})
    )
    await people.rename("ann", "Anne")
    await people.write(Move(membership, ("red", "ann"), {"team": ("blue",)}))
    joined = await people.item("TEAM#blue", "PERSON#ann") or {}
    assert [joined[name] for name in ("person_name", "joined_as", "team_name")] == ["Anne", "Anna", "Blue"]
    assert await people.problems() == []


@on_exact_engines
async def test_what_is_added_and_removed(people: People) -> None:
    """The sum over the copies changes too, and writers who add at the same time lose nothing."""
    await people.write(Put(membership, {"team": RED, "person": ANN}))
    await asyncio.gather(*(settled(people, Change(person, ANN, {}, added={"age": 1})) for _ in range(5)))
    for age in (45, None, 7):
        if age != 45:
            await people.write(Change(person, ANN, {"age": age}))
        joined = await people.item("TEAM#red", "PERSON#ann") or {}
        assert joined.get("memberAge") == age
        assert (await people.item("TEAM#red", "TEAM#red") or {})["total_age"] == (age or 0)
    assert await people.problems() == []


@node("CITY#{city_id}#{shard}", "CITY", shards=3)
class City:
    city_id: ID
    name: str


@record("STREET#{street_id}", "STREET", gsi("{city.city_id}", "{street_id}"))
class Street:
    street_id: ID
    city: City
    city_name: str = copy("city.name", follows=True)


@on_exact_engines
async def test_a_node_in_shards(make_store: MakeStore) -> None:
    places = Graph(
        Table("Places", partition_key="pk", sort_key="sk", indexes=[gsi]), City, Street, type_attribute="kind"
    ).check()
    city, street = places.types.values()
    store = Written(places, await make_store(places.table))
    await store.write(Create(city, {"city_id": "ulm", "name": "Ulm"}))
    for start in (0, 60):
        numbers = range(start, start + 60)
        await store.write(*[Put(street, {"street_id": f"{each:03d}", "city": ("ulm",)}) for each in numbers])
    for name in ("Ulm on the Danube", "Neu-Ulm"):
        await store.write(Change(city, ("ulm",), {"name": name}))
        items = [item async for page in pages(store.store, Scan(consistent=True)) for item in page.items]
        assert {item["city_name"] for item in items if item["kind"] == "Street"} == {name}
        assert not [item for item in items if {MARK, COPYING} & item.keys()]


@pytest.mark.parametrize(
    "odd",
    [
        "?",
        Decimal(3),
        None,
        {},
        [[]],
        {
            "token": "x",
            "until": Decimal(0),
            "search": Decimal(-1),
            "after": [],
            "repeated": False,
        },
        {"token": "x", "until": "0", "search": Decimal(0), "after": [{}], "repeated": False},
        {"token": "x", "until": Decimal(0), "search": Decimal(7), "after": [], "repeated": False},
        {
            "token": "x",
            "until": Decimal("1e11"),
            "search": Decimal(0),
            "after": ["elsewhere"],
            "repeated": False,
        },
    ],
)
@pytest.mark.long
async def test_a_mark_that_cannot_be_read_is_one_that_was_left(odd: Any, make_store: MakeStore) -> None:
    """Another program, or a backup, may have stored it. The next write makes all copies again."""
    store = await make_store(graph.table)
    await write(graph, store, [Create(person, {"person_id": "ann", "name": "Ann"})])
    await write(graph, store, [Create(task, {"task_id": "1", "owner": ("PERSON#ann",)})])
    await store.send(
        Write(UpdateItem(("PERSON#ann",) * 2, (SetTo((COPYING,), odd), SetTo(("name",), "Anna"))))
    )
    assert [kind.problem for kind in (await verified(graph, store)).found] == ["stale"]
    await write(graph, store, [Change(task, ("1",), {"owner": ("PERSON#ann",)})])
    await write(graph, store, [Change(person, ANN, {"age": 3})])
    await write(graph, store, [Change(person, ANN, {"name": "Anne"})])
    items = [item async for page in pages(store, Scan()) for item in page.items]
    assert not any(COPYING in item for item in items)
    assert {item["owner_name"] for item in items if "owner_name" in item} == {"Anne"}


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("odd", ["", "x", "x#²", "x#99999999999", "x#" + "9" * 5000, Decimal(5), None, {}])
async def test_a_mark_of_another_program_blocks_neither_writes_nor_deletes(
    odd: Any, make_store: MakeStore
) -> None:
    store = await make_store(graph.table)
    await write(graph, store, [Create(person, {"person_id": "ann", "name": "Ann"})])
    for request in (Change(person, ANN, {"name": "Anne"}), Delete(person, ANN)):
        await store.send(Write(UpdateItem(("PERSON#ann",) * 2, (SetTo((MARK,), odd),))))
        await write(graph, store, [request])
    assert not (await store.send(Scan())).items


async def test_a_mark_of_what_no_copy_follows_is_removed(make_store: MakeStore) -> None:
    """The model may have had such copies. An edge has none in any model."""
    store = await make_store(graph.table)
    for request in (
        Create(person, {"person_id": "ann", "name": "Ann"}),
        Create(team, {"team_id": "red", "name": "Red"}),
        Put(membership, {"team": RED, "person": ANN}),
        Create(task, {"task_id": "1", "owner": ("PERSON#ann",)}),
    ):
        await write(graph, store, [request])
    for key in (("TASK#1", "TASK#1"), ("TEAM#red", "PERSON#ann")):
        await store.send(Write(UpdateItem(key, (SetTo((COPYING,), "?"),))))
        await write(graph, store, [Change(membership, ("red", "ann"), {"role": "captain"})])
        repairs = Repairs(graph, store, None, lambda *_: None)
        await verified(graph, store, repairs=repairs)
        items = [item async for page in pages(store, Scan()) for item in page.items]
        assert not any(COPYING in item for item in items)
