"""Repairing tables: what becomes of each kind of damage, what stays, and that no write is lost meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    average,
    copy,
    counts,
    edge,
    field,
    node,
    record,
    stored,
    sums,
    ttl,
    version,
)
from keygraph.dynamo.actions import AddNumber, SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    BatchGet,
    BatchWrite,
    PassingStore,
    Query,
    Request,
    Store,
    Transaction,
    Write,
)
from keygraph.dynamo.table import Key
from keygraph.errors import Unavailable
from keygraph.model.expiry import now
from keygraph.resolve.derived import WRITES
from keygraph.tables.backfill import Backfill
from keygraph.tables.bulk import WriteRate
from keygraph.tables.findings import FindingKind, Report
from keygraph.tables.interchange import Interchange
from keygraph.tables.repair import BACKFILLED, REPAIRS, ItemChange, Repairs
from keygraph.writing.requests import Change, Create, Delete, Put
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore, on_exact_engines
from tests.designs.test_designs import NAMES
from tests.keygraph.damaging import added_up, damage, items_of
from tests.keygraph.histories import declared
from tests.keygraph.histories.asking import friend as friends
from tests.keygraph.histories.asking import note as notes
from tests.keygraph.histories.history import Event, asked, begin, carry_out, problems, run
from tests.keygraph.test_verifying import RIGHT, WRONG, typed
from tests.keygraph.verified_net import friend, graph, told, user
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

ALL = [kind for kind in REPAIRS if kind != "copies"]


class Listed:
    """What repairs changed, in lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, kind: FindingKind, changes: list[ItemChange]) -> None:
        for key, before, after in changes:
            old, new = before or {}, after or {}
            names = sorted(name for name in {**old, **new} if old.get(name, "") != new.get(name, ""))
            values = [f"{name} {old.get(name)} → {new.get(name)}" for name in names]
            what = "deleted" if after is None else "created" if before is None else ", ".join(values)
            self.lines.append(f"{'/'.join(map(str, key))}: {what}")


async def repaired(store: Store, *kinds: str, of: Graph = graph, **options: Any) -> tuple[list[str], Report]:
    """What repairs changed, and the report."""
    listed = Listed()
    repairs = Repairs(of, store, kinds or ALL, listed, **options)
    return listed.lines, await verified(of, store, segments=1, repairs=repairs)


async def made(make_store: MakeStore, *items: Item) -> Store:
    return await make_store(graph.table, *typed([*items]))


# --- What becomes of it -------------------------------------------------------------------------------


async def test_a_right_table_stays_as_it_is(make_store: MakeStore) -> None:
    store = await made(make_store, *RIGHT)
    before, tracer = await items_of(store), TracingStore(store)
    lines, report = await repaired(tracer, *REPAIRS)
    assert (lines, told(report)) == ([], [])
    assert not [each for each in tracer.requests if isinstance(each, Write | Transaction)]
    assert await items_of(store) == before


async def test_what_is_wrong_is_repaired_but_for_what_nobody_can_decide(make_store: MakeStore) -> None:
    store = await made(make_store, *RIGHT, *WRONG)
    before = await items_of(store)
    planned, _ = await repaired(store, is_dry_run=True)
    assert await items_of(store) == before
    lines, report = await repaired(store)
    # A dry run lists an edge without a node from both of its items.
    assert {*planned} == {*lines}
    assert sorted(lines) == [
        "ROOM#1/GUEST#bob: created",
        "ROOM#1/GUEST#dan: since 2025-01-01 → 2024-02-03",
        "ROOM#9/GUEST#cid: deleted",
        "USER#bob/NOTE#2024-02-04: about_id nobody → None",
        "USER#cid/FRIEND#ann: created",
        "USER#cid/IN#1: created",
        "USER#cid/IN#9: deleted",
        "USER#dan/FRIEND#bob: mood None → good, since 2024-02-04 → 2024-02-03",
        "USER#dan/USER#dan: NamePK NAME#D → NAME#d, NameSK Dan → dan",
        "USER#nobody/NOTE#2024-02-05: deleted",
    ]
    left = [kind for kind, _ in report.ordered()]
    assert Counter(kind.problem for kind in left) == {"unknown": 3, "unfit": 4, "one-sided": 1}
    assert all("(not repaired: " in kind.what for kind in left)
    assert left[-1].what.endswith("is of another type (not repaired: an item of another type has its key)")
    assert report.repaired.total() == 12
    left_now = [kind.what for kind, _ in (await verified(graph, store)).ordered()]
    assert left_now == [kind.what.partition(" (not repaired: ")[0] for kind in left]
    right = {store.table.key_of(item) for item in RIGHT}
    after = await items_of(store)
    assert {key: after[key] for key in right} == {key: before[key] for key in right}


async def test_only_some_kinds_are_repaired(make_store: MakeStore) -> None:
    store = await made(make_store, user("ann"), user("bob"), friend("ann", "bob"), friend("bob", "nobody"))
    lines, report = await repaired(store, "mirrors")
    assert lines == ["USER#bob/FRIEND#ann: created"]
    assert told(report) == [
        "dangling Friend: friend points to a missing User (1): USER#bob/FRIEND#nobody -> USER#nobody/USER#nobody",
        "one-sided Friend: its mirror is missing (not repaired: a node at one of its ends is missing) (1): "
        "USER#bob/FRIEND#nobody -> USER#nobody/FRIEND#bob",
    ]


# --- Keys of indexes ----------------------------------------------------------------------------------

by_state = Index("ByState", "lane", "rank")
by_shelf = Index("ByShelf", "row", "spot")


@node("BOX#{number:03d}", by_state("LANE#{state?}", "{due}"), by_shelf("ROW#{shelf}", "{place}"))
class Box:
    number: int
    state: str | None
    due: date | None
    shelf: str | None
    place: str | None = stored(in_key=True, default=None)


@edge("{one}", "NEAR#{other.number:03d}", mirror=True)
class Near:
    one: Box
    other: Box
    meters: int
    times: int | None = version()


@node("PART#{part_id}")
class Part:
    part_id: ID
    box: Box
    label: str | None = copy("box.state")


boxes = Graph(
    Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_state, by_shelf]), Box, Near, Part
).check()


def box(of: int, **more: Any) -> Item:
    return {"PK": f"BOX#{of:03d}", "SK": f"BOX#{of:03d}", "number": Decimal(of), **more}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("state=full due=may lane=LANE#old rank=may", "lane LANE#old → LANE#full"),
        ("state=full due=may lane=LANE#full", "rank None → may"),
        ("state=full due=may", "lane None → LANE#full, rank None → may"),
        ("due=may lane=LANE#undefined rank=may", "lane LANE#undefined → LANE#"),
        ("state=full lane=LANE#full rank=undefined", "lane LANE#full → None, rank undefined → None"),
        ("state=full lane=LANE#full", "lane LANE#full → None"),
        ("shelf=a row=ROW#b spot=7", "row ROW#b → ROW#a"),
        ("shelf=a row=b spot=7", "row b → ROW#a"),
        ("shelf=a row=ROW#a spot=undefined", "row ROW#a → None, spot undefined → None"),
    ],
)
async def test_keys_of_indexes_follow_the_attributes(
    make_store: MakeStore, attributes: str, expected: str
) -> None:
    def with_dates(text: str) -> str:
        return text.replace("may", "2024-05-01")

    more = dict(each.split("=") for each in with_dates(attributes).split())
    store = await make_store(boxes.table, box(1, **more), box(2, state="new"))
    lines, report = await repaired(store, of=boxes)
    assert (lines, told(report)) == ([f"BOX#001/BOX#001: {with_dates(expected)}"], [])
    assert told(await verified(boxes, store)) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"lane": "LANE#", "rank": "2024-05-01"},
            "ByState: rank has a value for due, which the item lacks: declare it with stored(in_key=True) if only the "
            "key has it (not repaired: no other key follows from its values)",
        ),
        (
            {"number": Decimal(2)},
            "PK does not match number (not repaired: its key in the table is not changed)",
        ),
        (
            {"state": "x" * 2050, "due": "2024-05-01"},
            "ByState: the item is not in the index: it has no lane and no rank (not repaired: ",
        ),
    ],
)
async def test_other_keys_stay(make_store: MakeStore, more: dict[str, Any], why: str) -> None:
    store = await make_store(boxes.table, box(1, **more))
    before = await items_of(store)
    lines, report = await repaired(store, of=boxes)
    assert lines == []
    assert [kind.what[: len(why)] for kind, _ in report.ordered()][:1] == [why]
    assert await items_of(store) == before


# --- The right one of two -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "right"), [((3, 2), "one"), ((2, 3), "two"), ((2, 2), "one"), ((None, 2), "one")]
)
async def test_the_newer_one_of_two_mirrors_is_right(
    make_store: MakeStore, times: tuple[int | None, int], right: str
) -> None:
    def near(one: int, other: int, meters: int, version: int | None) -> Item:
        own: Item = {} if version is None else {"times": Decimal(version)}
        return {"PK": f"BOX#{one:03d}", "SK": f"NEAR#{other:03d}", "meters": Decimal(meters), **own}

    store = await make_store(boxes.table, box(1), box(2), near(1, 2, 10, times[0]), near(2, 1, 20, times[1]))
    _, report = await repaired(store, of=boxes)
    assert told(report) == []
    items = await items_of(store)
    number = 0 if right == "one" else 1
    expected = ([10, 20][number], times[number])
    for key in (("BOX#001", "NEAR#002"), ("BOX#002", "NEAR#001")):
        assert (items[key]["meters"], items[key].get("times")) == expected


async def test_a_counterpart_that_needs_more_is_not_made(make_store: MakeStore) -> None:
    @edge("{one}", "HAS#{part.part_id}", counterpart="Holder", writes=["delete"])
    class Has:
        one: Box
        part: Part

    @edge("{part}", "IN#{one.number:03d}")
    class Holder:
        part: Part
        one: Box
        since: date

    holders = Graph(
        Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_state, by_shelf]),
        Box,
        Part,
        Has,
        Holder,
    )
    items: list[Item] = [
        box(1),
        {"PK": "PART#a", "SK": "PART#a", "part_id": "a", "box_number": Decimal(1)},
        {"PK": "BOX#001", "SK": "HAS#a"},
    ]
    store = await make_store(holders.table, *items)
    lines, report = await repaired(store, of=holders)
    assert lines == []
    assert told(report) == [
        "one-sided Has: its counterpart Holder is missing (not repaired: write the Holder yourself: it needs since) (1): "
        "BOX#001/HAS#a -> PART#a/IN#001"
    ]


async def test_a_node_that_needs_a_missing_one_stays(make_store: MakeStore) -> None:
    part: Item = {"PK": "PART#a", "SK": "PART#a", "part_id": "a", "box_number": Decimal(1)}
    store = await make_store(boxes.table, part)
    lines, report = await repaired(store, of=boxes)
    assert (lines, [kind.what for kind, _ in report.ordered()]) == (
        [],
        [
            "box points to a missing Box (not repaired: Part needs it: create the Box, or delete the Part)",
        ],
    )


async def test_what_the_model_fails_on_stays(make_store: MakeStore) -> None:
    @node("M#{name}")
    class Member:
        name: ID

    @edge("{one}", "KNOWS#{mood}#{other.name}", mirror=True)
    class Knows:
        one: Member
        other: Member
        since: str | None

        @field(needs=("since",))
        def mood(self) -> str:
            return {"then": "old"}[self.since or "then"]

    of = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Member, Knows)
    store = await make_store(of.table, {"PK": "M#a", "SK": "KNOWS#old#b", "since": "never"})
    lines, report = await repaired(store, of=of)
    failed = " (not repaired: it cannot be computed: KeyError)"
    assert (lines, [kind.what for kind, _ in report.ordered()]) == (
        [],
        [
            "Knows.mood of an item fails with KeyError (not repaired: only you know what is right)",
            f"one points to a missing Member{failed}",
            f"other points to a missing Member{failed}",
            f"its mirror cannot have a key{failed}",
        ],
    )


async def test_copies_are_made_again_on_request(make_store: MakeStore) -> None:
    part: Item = {"PK": "PART#a", "SK": "PART#a", "part_id": "a", "box_number": Decimal(1), "label": "old"}
    store = await make_store(boxes.table, box(1, state="new"), part, box(2))
    assert told(await verified(boxes, store)) == []
    assert (await repaired(store, of=boxes))[0] == []
    lines, report = await repaired(store, "copies", of=boxes)
    assert (lines, told(report)) == (["PART#a/PART#a: label old → new"], [])
    assert [each.what for each in report.repaired] == ["label is not what the node has now"]
    assert (await repaired(store, "copies", of=boxes))[0] == []


async def test_of_a_missing_copy_it_says_what_writes_it(make_store: MakeStore) -> None:
    @node("HALL#{hall_id}")
    class Hall:
        hall_id: ID
        name: str

    @record("{hall}", "SEAT#{number}")
    class Seat:
        hall: Hall
        number: int
        hall_name: str = copy("hall.name")

    of = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Hall, Seat)
    hall: Item = {"PK": "HALL#a", "SK": "HALL#a", "name": "A"}
    store = await make_store(of.table, hall, {"PK": "HALL#a", "SK": "SEAT#1"})
    _, report = await repaired(store, of=of)
    [(kind, _)] = report.ordered()
    assert kind.what.endswith("is missing in an item (not repaired: --only copies or a backfill writes it)")
    assert told((await repaired(store, "copies", of=of))[1]) == []


async def test_an_expired_item_stays(make_store: MakeStore) -> None:
    @record("{box}", "OFFER#{number}")
    class Offer:
        box: Box
        number: int
        until: datetime | None = ttl("until")

    offers = Graph(
        Table("Boxes", partition_key="PK", sort_key="SK", indexes=[by_state, by_shelf]), Box, Offer
    )
    offer: Item = {"PK": "BOX#001", "SK": "OFFER#1", "until": Decimal(1_700_000_000)}
    store = await make_store(offers.table, offer)
    lines, report = await repaired(store, of=offers)
    assert (lines, [kind.what for kind, _ in report.ordered()]) == (
        [],
        ["box points to a missing Box (not repaired: it has expired)"],
    )


# --- The law ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
async def test_a_damaged_design_is_as_before(name: str, make_store: MakeStore) -> None:
    """What was not damaged stays byte for byte; what names a deleted node is as if that was deleted with its edges."""
    design = import_module(f"tests.designs.{name}")
    of: Graph = design.graph.check()
    read = Interchange(of).read
    items = [
        item for line in design.ITEMS.strip().splitlines() if not of.is_expired(item := read(line), now())
    ]
    store = await make_store(of.table, *items)
    expected, _ = await damage(of, store, random.Random(name), 0.3)
    assert await _left(of, store) == []
    assert await items_of(store) == expected


@pytest.mark.parametrize("seed", [5, 6, *(pytest.param(n, marks=pytest.mark.long) for n in range(7, 40))])
async def test_a_damaged_table_is_as_before(
    seed: int, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Repairs of one window change what others have read.
    monkeypatch.setattr("keygraph.tables.verify._WINDOW_ITEMS", random.Random(seed).choice([1, 3, 1000]))
    store = await make_store(declared.graph.table)
    await begin(store)
    for number in range(30):
        await carry_out(store, Event(0, requests=asked(f"{seed} {number}")))
    expected, done = await damage(declared.graph, store, random.Random(seed), 0.7)
    assert len(done) > 1
    assert await _left(declared.graph, store) == []
    after = await items_of(store)
    assert {key: item for key, item in after.items() if key not in expected} == {}
    assert _without_writes(added_up(declared.graph, after)) == _without_writes(
        added_up(declared.graph, expected)
    )


def _without_writes(items: dict[Key, Item]) -> dict[Key, Item]:
    """The items without how often a list was written, which a repair also is."""
    return {
        key: {
            name: {each: inner for each, inner in value.items() if each != WRITES}
            if isinstance(value, dict)
            else value
            for name, value in item.items()
        }
        for key, item in items.items()
    }


@pytest.mark.parametrize("writes", [0, 1, 4])
async def test_repairs_that_stop_anywhere_go_on(writes: int, make_store: MakeStore) -> None:
    store = await make_store(declared.graph.table)
    await begin(store)
    expected, done = await damage(declared.graph, store, random.Random(7), 0.7)
    assert len(done) > 4
    sent = itertools.count()

    async def before(request: object) -> None:
        if isinstance(request, Write | Transaction) and next(sent) == writes:
            raise Unavailable("gone")

    with pytest.raises(Unavailable):
        await repaired(HeldStore(store, before), of=declared.graph)
    assert await _left(declared.graph, store) == []
    after = added_up(declared.graph, await items_of(store))
    assert _without_writes(after) == _without_writes(added_up(declared.graph, expected))


async def test_what_another_has_repaired_is_not_left(make_store: MakeStore) -> None:
    """A count was missing when the item was read, and is there when its list was read."""

    @node("USER#{name}")
    class User:
        name: ID
        orders: Many[Order]
        size: int = counts("orders")

    @record("{user}", "ORDER#{number}")
    class Order:
        user: User
        number: int

    of = Graph(Table("Orders", partition_key="pk", sort_key="sk"), User, Order, type_attribute="t").check()
    store = await make_store(of.table, {"pk": "USER#a", "sk": "USER#a", "t": "User"})

    async def before(request: object) -> None:
        if isinstance(request, Query):
            await store.send(Write(UpdateItem(("USER#a", "USER#a"), (SetTo(("size",), Decimal(0)),))))

    assert told(await verified(of, store)) != []
    lines, report = await repaired(HeldStore(store, before), of=of)
    assert (lines, told(report)) == ([], [])


async def test_an_item_whose_key_is_repaired_after_its_node_is_counted(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was in no list of the node, or in it by its wrong key. SQLite scans nodes of names before and after it."""
    monkeypatch.setattr("keygraph.tables.verify._WINDOW_ITEMS", 1)
    by_author = Index("ByAuthor", "gp", "gs")

    @node("{name}")
    class Author:
        name: ID
        texts: Many[Text]
        count: int = counts("texts")

    @node("TEXT#{text_id}", by_author("{author}", "TEXT#{title}"))
    class Text:
        text_id: ID
        title: str
        author: Author

    of = Graph(
        Table("Texts", partition_key="pk", sort_key="sk", indexes=[by_author]),
        Author,
        Text,
        type_attribute="t",
    )
    store, (author, text) = await make_store(of.table), of.check().types.values()
    names = [f"{letter}{number}" for number in range(4) for letter in "AZ"]
    await write(of, store, [Create(author, {"name": name}) for name in names])
    for name in names:
        texts = [{"text_id": f"{name}-{n}", "title": "a", "author": (name,)} for n in range(4)]
        await write(of, store, [Create(text, values) for values in texts])
    right = await items_of(store)
    damages: list[Item] = [{"gp": "undefined"}, {"gs": "undefined"}, {"gs": "TEXT#wrong"}, {"gp": "A0"}]
    titled = [item for item in right.values() if "title" in item]
    await store.send(BatchWrite(tuple({**item, **damages[n % 4]} for n, item in enumerate(titled))))
    assert await _left(of, store) == []
    assert await items_of(store) == right


async def _left(of: Graph, store: Store) -> list[str]:
    """What repairs leave, and what is found afterwards."""
    _, report = await repaired(store, of=of)
    return told(report) + told(await verified(of, store))


_by_boat = Index("ByBoat", "gp", "gs")


@node("BOAT#{boat_id}", "BOAT")
class Boat:
    boat_id: ID
    berths: Many[Berth]
    count: int = counts("berths")


@node("BERTH#{berth_id}", "BERTH", _by_boat("{boat}", "BERTH#{berth_id}"))
class Berth:
    berth_id: ID
    boat: Boat


COUNTED = Graph(Table("Boats", partition_key="pk", sort_key="sk", indexes=[_by_boat]), Boat, Berth)


# --- With others at work ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "other"),
    [
        (lambda item: {**item, "gs": "NOTE#wrong"}, Change(notes, ("n1",), {"title": "another"})),
        (lambda item: {**item, "gp": "undefined"}, Change(notes, ("n1",), {"author": None})),
    ],
)
async def test_a_write_between_reading_and_repairing_is_kept(
    make_store: MakeStore, broken: Any, other: Change
) -> None:
    store = await make_store(declared.graph.table)
    await begin(store)
    others = [other]

    async def before(request: object) -> None:
        if isinstance(request, Write | Transaction) and others:
            await write(declared.graph, store, [others.pop()])

    key = next(key for key in await items_of(store) if key[0] == "NOTE#n1")
    right = (await items_of(store))[key]
    await store.send(BatchWrite((broken(right),)))
    _, report = await repaired(HeldStore(store, before), of=declared.graph)
    assert (others, told(report), told(await verified(declared.graph, store))) == ([], [], [])
    [(name, value)] = other.values.items()
    assert (await items_of(store))[key].get("title" if name == "title" else "author_name") == value


class LateStore(PassingStore):
    """A store whose indexes lack some items until the wait for them."""

    late = True

    async def send(self, request: Request[Any], /) -> Any:
        answer = await self.store.send(request)
        if isinstance(request, Query) and request.index is not None and self.late:
            self.late = False
            return replace(answer, items=answer.items[1:])
        return answer


async def test_a_number_is_decided_when_its_index_is_up_to_date(make_store: MakeStore) -> None:
    """DynamoDB writes global indexes later: a right count would be set to what the index has, which is wrong for good."""
    of, store = COUNTED.check(), await make_store(COUNTED.table)
    boat, berth = (of.types[name] for name in ("Boat", "Berth"))
    await write(of, store, [Create(boat, {"boat_id": "b"})])
    for number in "12":
        await write(of, store, [Create(berth, {"berth_id": number, "boat": ("b",)})])
    right = await items_of(store)
    late = LateStore(store)
    for repairs in (None, Repairs(of, late, ["counts"], Listed())):
        late.late = True
        report = await verified(of, late, segments=1, repairs=repairs, late_seconds=0.001)
        assert not late.late
        assert told(report) == []
    assert await items_of(store) == right


@pytest.mark.parametrize("is_repaired", [False, True])
async def test_a_number_of_a_node_that_changes_all_the_time_is_reported(
    make_store: MakeStore, is_repaired: bool
) -> None:
    """It was taken for right, though nobody had compared it."""
    of, store = COUNTED.check(), await make_store(COUNTED.table)
    boat = of.types["Boat"]
    await write(of, store, [Create(boat, {"boat_id": "b"}), Create(boat, {"boat_id": "quiet"})])
    [key] = of.table_keys(boat, ("b",))
    await store.send(Write(UpdateItem(key, (AddNumber(("count",), Decimal(5)),))))

    class Busy(PassingStore):
        """A store in which others write while a list is read."""

        async def send(self, request: Request[Any], /) -> Any:
            if isinstance(request, Query):
                await self.store.send(Write(UpdateItem(key, (AddNumber(("turn",), Decimal(1)),))))
            return await self.store.send(request)

    busy = Busy(store)
    repairs = Repairs(of, busy, ["counts"], Listed()) if is_repaired else None
    [found] = told(await verified(of, busy, segments=1, repairs=repairs))
    assert "does not match its list (not repaired: others change it all the time) (1)" in found


async def test_a_number_that_is_again_what_it_was_before_its_list_was_read_stays(
    make_store: MakeStore,
) -> None:
    """Something was added before the list was read, and removed after that."""
    of, store = COUNTED.check(), await make_store(COUNTED.table)
    boat, berth = of.types["Boat"], of.types["Berth"]
    await write(of, store, [Create(boat, {"boat_id": "b"})])
    right, reads = await items_of(store), list[object]()

    async def before(request: object) -> None:
        if isinstance(request, Query) or reads:
            reads.append(request)
        if len(reads) == 1:
            await write(of, store, [Create(berth, {"berth_id": "1", "boat": ("b",)})])
        if len(reads) == 3:  # the list in the index, its items, the node again
            await write(of, store, [Delete(berth, ("1",))])

    lines, report = await repaired(HeldStore(store, before), "counts", of=of)
    assert len(reads) > 2
    assert (lines, told(report), await items_of(store)) == ([], [], right)


async def test_a_number_that_others_change_once_it_was_repaired_is_reported(make_store: MakeStore) -> None:
    """It was in no report, neither as repaired nor as left."""
    of, store = COUNTED.check(), await make_store(COUNTED.table)
    await write(of, store, [Create(of.types["Boat"], {"boat_id": "b"})])
    [key] = of.table_keys(of.types["Boat"], ("b",))
    more = Write(UpdateItem(key, (AddNumber(("count",), Decimal(1)),)))
    await store.send(more)
    is_busy = False

    async def before(request: Request[Any]) -> None:
        nonlocal is_busy
        is_busy = is_busy or isinstance(request, Write)
        if is_busy and isinstance(request, Query):
            await store.send(more)

    lines, report = await repaired(HeldStore(store, before), "counts", of=of)
    assert len(lines) == 1
    [found] = told(report)
    assert "does not match its list (not repaired: others change it all the time) (1)" in found
    assert (report.repaired, report.repaired_items) == ({}, 0)


@pytest.mark.parametrize("seed", ["1", *(pytest.param(str(n), marks=pytest.mark.long) for n in range(2, 30))])
async def test_no_write_is_lost_while_keys_and_counts_are_repaired(seed: str, make_store: MakeStore) -> None:
    """What many writers are told stays true of what is left, and nothing is wrong with that."""
    store, dice = await make_store(declared.graph.table), random.Random(seed)
    before = await begin(store)
    items = await items_of(store)
    for item in items.values():
        key = {"gs": "undefined"} if "gs" in item and dice.random() < 0.3 else {}
        number = {"notes_count": Decimal(50)} if "notes_count" in item else {}
        await store.send(BatchWrite(({**item, **key, **number},)))
    events, (_, report) = await asyncio.gather(run(store, seed, 8, 3), repaired(store, of=declared.graph))
    await repaired(store, of=declared.graph)
    assert report.repaired.total() > 0
    assert await problems(store, before, events) == []


async def test_what_writers_add_to_edges_is_kept_while_mirrors_are_repaired(make_store: MakeStore) -> None:
    store = await make_store(declared.graph.table)
    await begin(store)
    key: Key = ("PERSON#Bob", "FRIEND#Ann")
    await write(declared.graph, store, [Put(friends, {"one": ("Ann",), "other": ("Bob",), "since": 5})])
    done: list[str] = []

    async def adds(number: int) -> None:
        for turn in range(6):
            texts = ("Ann", "Bob") if turn % 2 else ("Bob", "Ann")
            stamp = f"{number}-{turn}"
            await write(declared.graph, store, [Change(friends, texts, {}, {"log": [stamp]})])
            done.append(stamp)

    async def breaks_and_repairs() -> None:
        for number in range(6):
            await store.send(Write(UpdateItem(key, (SetTo(("since",), Decimal(90 + number)),))))
            await repaired(store, of=declared.graph)

    await asyncio.gather(adds(1), adds(2), breaks_and_repairs())
    assert await _left(declared.graph, store) == []
    items = await items_of(store)
    for each in (key, ("PERSON#Ann", "FRIEND#Bob")):
        log: Any = items[each]["log"]
        assert {*log} >= {*done}


@pytest.mark.parametrize("key", [("PERSON#Bob", "FRIEND#Ann"), ("PERSON#Ann", "FRIEND#Bob")])
async def test_what_others_have_repaired_meanwhile_is_not_changed(make_store: MakeStore, key: Key) -> None:
    store = await make_store(declared.graph.table)
    await begin(store)
    await write(declared.graph, store, [Put(friends, {"one": ("Ann",), "other": ("Bob",), "since": 5})])
    right = await items_of(store)
    await store.send(Write(UpdateItem(key, (SetTo(("since",), Decimal(4)),))))
    reads = 0

    async def before(request: object) -> None:
        nonlocal reads
        if isinstance(request, BatchGet):
            reads += 1
            if reads == 2:  # the findings are there
                await store.send(Write(UpdateItem(key, (SetTo(("since",), Decimal(5)),))))
        if isinstance(request, Transaction):
            # DynamoDB refuses them; neither SQLite nor DynamoDB Local does.
            assert all(each.changes for each in request.actions if isinstance(each, UpdateItem))

    await repaired(HeldStore(store, before), "mirrors", of=declared.graph)
    assert await items_of(store) == right


# --- How ----------------------------------------------------------------------------------------------


@on_exact_engines
async def test_a_rate_limits_the_write_units_a_second(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, slept = [0.0], []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock[0] += seconds

    store = await make_store(boxes.table, *(box(number, state="s", due="2024-05-01") for number in range(4)))
    monkeypatch.setattr("keygraph.tables.bulk.time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr("keygraph.tables.bulk.asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    lines, _ = await repaired(store, of=boxes, rate=WriteRate(4))
    assert len(lines) == 4
    assert slept == [0.0, 0.5, 0.5, 0.5]  # each takes a unit in the table, and one in the index


async def test_what_others_change_all_the_time_is_left(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygraph.tables.repair._PAUSE", 0)
    store = await make_store(boxes.table, box(1, state="s", due="2024-05-01"))
    turns = iter(range(100))

    async def before(request: object) -> None:
        if isinstance(request, Write):
            change = SetTo(("state",), f"s{next(turns)}")
            await store.send(Write(UpdateItem(("BOX#001", "BOX#001"), (change,))))

    lines, report = await repaired(HeldStore(store, before), of=boxes)
    assert lines == []
    assert [kind.what for kind, _ in report.ordered()] == [
        "ByState: the item is not in the index: it has no lane and no rank "
        "(not repaired: others change it all the time)"
    ]


@pytest.mark.parametrize("kinds", [["counts"], [*BACKFILLED]])
async def test_a_number_that_none_can_hold_stays_missing(kinds: list[str], make_store: MakeStore) -> None:
    """What can be computed is written; of the rest nothing is, as mutations would add to it."""

    @node("JAR#{name}")
    class Jar:
        name: ID
        coins: Many[Coin]
        coins_count: int | None = counts("coins")
        worth: Decimal | None = sums("coins.value")
        mean: float | None = average("coins.value")

    @record("{jar}", "COIN#{number}")
    class Coin:
        jar: Jar
        number: int
        value: Decimal

    jars = Graph(Table("Jars", partition_key="pk", sort_key="sk"), Jar, Coin).check()
    coins: list[Item] = [
        {"pk": "JAR#a", "sk": f"COIN#{number}", "number": Decimal(number), "value": Decimal("9.9E125")}
        for number in range(2)
    ]
    store = await make_store(jars.table, {"pk": "JAR#a", "sk": "JAR#a", "name": "a"}, *coins)
    backfill = Backfill() if len(kinds) > 1 else None
    for _ in range(2):
        repairs = Repairs(jars, store, kinds, lambda *_: None, backfill=backfill)
        report = await verified(jars, store, repairs=repairs)
        items = await items_of(store)
        assert items["JAR#a", "JAR#a"] == {"pk": "JAR#a", "sk": "JAR#a", "name": "a", "coins_count": 2}
        assert {kind.what.partition(" ")[0] for kind in report.found} == {"mean", "worth"}


@pytest.mark.parametrize("is_dry_run", [False, True])
async def test_a_value_to_which_nothing_can_be_added_stops_no_other_repair(
    is_dry_run: bool, make_store: MakeStore
) -> None:
    """Another program has stored it in a node from whose sum the repair of an edge would take something."""

    @node("BOX#{name}")
    class Box:
        name: ID
        contents: Many[Inside]
        weight: int = sums("contents.weight")

    @node("THING#{name}")
    class Thing:
        name: ID

    @edge("{box}", "{thing}")
    class Inside:
        box: Box
        thing: Thing
        weight: int

    boxes = Graph(Table("Boxes", partition_key="pk", sort_key="sk"), Box, Thing, Inside).check()
    items: list[Item] = [
        {"pk": "BOX#a", "sk": "BOX#a", "name": "a", "weight": "heavy"},
        {"pk": "BOX#a", "sk": "THING#gone", "weight": Decimal(1)},
    ]
    store = await make_store(boxes.table, *items)
    lines, report = await repaired(store, "ends", of=boxes, is_dry_run=is_dry_run)
    assert not lines
    assert "(not repaired: " in next(kind.what for kind in report.found if kind.problem == "dangling")
