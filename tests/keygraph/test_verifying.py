"""Verifying whole tables: what is found, and what is read for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from keygraph import Format, Graph, Table, edge, node, record
from keygraph.dynamo.items import Item, number
from keygraph.dynamo.store import BatchGet, BatchWrite, PassingStore, Scan
from keygraph.tables.verify import Verification
from tests.conftest import MakeStore
from tests.keygraph.verified_net import Pages, friend, graph, note, stay, told, user
from tests.tracing import TracingStore
from tests.verified import verified

RIGHT: list[Item] = [
    *map(user, ("ann", "bob", "cid")),
    friend("ann", "bob"),
    friend("bob", "ann"),
    # Somebody who is their own friend is so once.
    friend("cid", "cid"),
    {"PK": "USER#ann", "SK": "TAGGED#TAG#new", "type": "Tagged"},
    {"PK": "ROOM#1#2", "SK": "ROOM", "type": "Room"},
    *stay("ann", "1"),
    note("ann", "2024-02-03", about_id="bob"),
    note("ann", "2024-02-04"),
]

WRONG: list[Item] = [
    {"PK": "USER#ann", "SK": "LOGIN", "type": "Login"},
    {"PK": "USER#ann", "SK": "NOTE#soon", "type": "Note"},
    {**user("dan"), "NameSK": "Dan", "NamePK": "NAME#D"},
    {**user("eve"), "name": 5},
    {**note("bob", "2024-02-03"), "stars": "many"},
    note("bob", "2024-02-04", about_id="nobody"),
    note("bob", "2024-02-05", about_id=True),
    note("nobody", "2024-02-05"),
    friend("ann", "cid"),
    friend("bob", "dan", mood="good"),
    friend("dan", "bob", "2024-02-04"),
    stay("bob", "1")[0],
    stay("cid", "1")[1],
    *stay("cid", "9"),
    stay("dan", "1")[0],
    {**stay("dan", "1")[1], "since": "2025-01-01"},
    {**stay("eve", "1")[0]},
    {**stay("eve", "1")[1], "type": "Friend"},
    {"PK": "ROOM#7#0", "SK": "ROOM", "type": "Room"},
    {"PK": "ROOM#7#2", "SK": "ROOM", "type": "Room"},
]


def typed(items: list[Item]) -> tuple[Item, ...]:
    return tuple(
        {n: number(v) if type(v) is int else v for n, v in item.items()}  # type: ignore[misc]  # an int is no Value
        for item in items
    )


FOUND = [
    "unknown None: its key fits none of the templates: SK does not fit NOTE#{written} of Note "
    "(no date stands for {written}) (1): USER#ann/NOTE#soon",
    "unknown None: no declared type has its type (the declared ones: Friend, Guest, Note, Room, Stay, Tagged, User) (1): "
    "USER#ann/LOGIN",
    "unknown None: its key fits none of the templates: PK does not fit USER#{user.user_id} of Friend "
    '(it does not begin with "USER#") (1): '
    "ROOM#1/GUEST#eve",
    "unfit Note: Note.about of an item is not a key of User (1): USER#bob/NOTE#2024-02-05",
    "unfit Note: Note.stars of an item is not of type int: it is a str (1): USER#bob/NOTE#2024-02-03",
    "unfit Room: an item in another shard has its key (1): ROOM#7#0/ROOM -> ROOM#7#2/ROOM",
    "unfit User: User.name of an item is not of type string: it is a Decimal (1): USER#eve/USER#eve",
    "key User: ByName: NamePK does not match initial (1): USER#dan/USER#dan",
    "key User: ByName: NameSK does not match name (1): USER#dan/USER#dan",
    "dangling Guest: room points to a missing Room (1): ROOM#9/GUEST#cid -> ROOM#9#0/ROOM",
    "dangling Note: about points to a missing User (1): USER#bob/NOTE#2024-02-04 -> USER#nobody/USER#nobody",
    "dangling Note: user points to a missing User (1): USER#nobody/NOTE#2024-02-05 -> USER#nobody/USER#nobody",
    "dangling Stay: room points to a missing Room (1): USER#cid/IN#9 -> ROOM#9#0/ROOM",
    "one-sided Friend: its mirror is missing (1): USER#ann/FRIEND#cid -> USER#cid/FRIEND#ann",
    "one-sided Guest: its counterpart Stay is missing (1): ROOM#1/GUEST#cid -> USER#cid/IN#1",
    "one-sided Stay: its counterpart Guest is missing (1): USER#bob/IN#1 -> ROOM#1/GUEST#bob",
    "one-sided Stay: its counterpart Guest is of another type (1): USER#eve/IN#1 -> ROOM#1/GUEST#eve",
    "differing Friend: since differs in its mirror (1): USER#bob/FRIEND#dan -> USER#dan/FRIEND#bob",
    "differing Friend: an undeclared attribute differs in its mirror (1): USER#bob/FRIEND#dan -> USER#dan/FRIEND#bob",
    "differing Guest: since differs in its counterpart Stay (1): ROOM#1/GUEST#dan -> USER#dan/IN#1",
]


async def test_a_right_table_has_nothing(make_store: MakeStore) -> None:
    store = await make_store(graph.table, *typed(RIGHT))
    report = await verified(graph, store)
    assert told(report) == []
    assert report.items == {"User": 3, "Friend": 3, "Tagged": 1, "Room": 1, "Stay": 1, "Guest": 1, "Note": 2}


# --- What is found ------------------------------------------------------------------------------------


async def test_everything_that_is_wrong_is_found(make_store: MakeStore) -> None:
    store = await make_store(graph.table, *typed(RIGHT + WRONG))
    report = await verified(graph, store)
    assert sorted(told(report)) == sorted(FOUND)
    assert report.items[None] == 3
    assert report.total == len(RIGHT) + len(WRONG)


async def test_the_report_does_not_depend_on_the_segments(make_store: MakeStore) -> None:
    store = await make_store(graph.table, *typed(RIGHT + WRONG))
    reports = [await verified(graph, store, segments=segments) for segments in (1, 3, 7)]
    assert {str(told(report)) for report in reports} == {str(told(reports[0]))}


async def test_the_examples_are_a_few_with_the_smallest_keys(make_store: MakeStore) -> None:
    store = await make_store(graph.table, *typed([friend("ann", f"f{n:03}") for n in range(50)]))
    report = await verified(graph, store, examples=2)
    assert told(report)[0] == (
        "dangling Friend: friend points to a missing User (50): USER#ann/FRIEND#f000 -> USER#f000/USER#f000, "
        "USER#ann/FRIEND#f001 -> USER#f001/USER#f001"
    )
    assert [found.count for _, found in report.ordered()] == [50, 50, 50]
    none = await verified(graph, store, examples=0)
    assert [(found.count, found.examples) for _, found in none.ordered()] == [(50, [])] * 3


def test_a_mirror_that_could_have_no_key_is_told() -> None:
    @node("P#{name}", "PROFILE")
    class Person:
        name: str

    @edge("{one}", "KNOWS#{other.name}", mirror=True)
    class Knows:
        one: Person
        other: Person

    @record("P#chief", "KNOWS#{name}")
    class Chief:
        name: str

    people = Graph(Table("Net", partition_key="PK", sort_key="SK"), Person, Knows, Chief).check()

    class One(Pages):
        def item(self, number: int) -> Item:
            return {"PK": "P#kim", "SK": "KNOWS#chief"}

    verification = Verification(people, One(people.table, 1, 1), segments=1)
    asyncio.run(verification.run(lambda items: None))
    assert "one-sided Knows: its mirror cannot have a key (1): P#kim/KNOWS#chief" in told(verification.report)


def test_one_item_that_the_model_cannot_take_does_not_end_it() -> None:
    @dataclass
    class Mood:
        text: str

        def __post_init__(self) -> None:
            raise LookupError(self.text)

    def strict(value: str) -> str:
        raise LookupError(value)

    @node("P#{name}", "{nick:strict}")
    class Person:
        name: str
        nick: str
        mood: Mood | None

    formats = {"strict": Format(strict)}
    people = Graph(Table("Net", partition_key="PK", sort_key="SK"), Person, formats=formats).check()

    class Two(Pages):
        def item(self, number: int) -> Item:
            own: Item = {"nick": "Kim"} if number else {"mood": {"text": "a secret"}}
            return {"PK": f"P#{number}", "SK": "kim", "name": str(number), **own}

    verification = Verification(people, Two(people.table, 1, 2), segments=1)
    asyncio.run(verification.run(lambda items: None))
    assert told(verification.report) == [
        "unfit Person: Person.nick is missing in an item (1): P#0/kim",
        "unfit Person: it cannot be checked: LookupError (1): P#0/kim",
        "key Person: nick cannot be written in a key (1): P#1/kim",
    ]


# --- What is read -------------------------------------------------------------------------------------


async def test_it_writes_nothing_and_reads_each_node_once(make_store: MakeStore) -> None:
    people = [user(f"u{n}") for n in range(12)]
    notes = [note(f"u{n}", f"2024-02-{day:02}", about_id="ann") for n in range(12) for day in range(1, 9)]
    store = await make_store(graph.table, *typed([user("ann"), *people, *notes]))
    tracer = TracingStore(store)
    await verified(graph, tracer, segments=2)
    kinds = {type(request) for request in tracer.requests}
    assert kinds <= {Scan, BatchGet}
    for request in tracer.requests:
        assert isinstance(request, Scan | BatchGet)
        assert request.consistent
        if isinstance(request, BatchGet):
            assert len(set(request.keys)) == len(request.keys)
            # The nodes that the window has itself are not read again, and of others keys alone.
            assert set(request.keys) <= {("USER#ann", "USER#ann")}
            assert request.projection == (("PK",), ("SK",))


@dataclass(eq=False)
class Changing(PassingStore):
    """A store in which an item is gone by the time that what it leads to is looked for."""

    item: Item

    async def send(self, request: Any, /) -> Any:
        if isinstance(request, BatchGet):
            await self.store.send(BatchWrite(deletes=(self.table.key_of(self.item),)))
        return await self.store.send(request)


async def test_an_edge_that_is_deleted_meanwhile_is_not_told(make_store: MakeStore) -> None:
    item = friend("ann", "bob")
    store = await make_store(graph.table, item)
    assert told(await verified(graph, Changing(store, item))) == []
