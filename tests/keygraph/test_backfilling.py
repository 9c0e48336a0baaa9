"""Backfills: what items lack since their model has changed is written, and no write of others is lost."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
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
    ttl,
)
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item, base64_text
from keygraph.dynamo.store import BatchGet, Store, Transaction, Write
from keygraph.errors import Unavailable
from keygraph.tables.backfill import Backfill
from keygraph.tables.findings import Report
from keygraph.tables.repair import BACKFILLED, Repairs
from keygraph.tables.verify import Verification
from keygraph.writing.requests import Change, Create
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore
from tests.keygraph.damaging import items_of
from tests.keygraph.test_repairing import Listed
from tests.keygraph.verified_net import told
from tests.tracing import HeldStore, TracingStore
from tests.verified import verified

by_level = Index("ByLevel", "lp", "ls")
by_slug = Index("BySlug", "slug")
by_state = Index("ByState", "sp", "ss")


@node("USER#{user_id}", by_level("LEVEL#{level}", "{user_id}"), by_slug("{slug}"))
class User:
    user_id: ID
    name: str
    orders: Many[Order]
    level: int = 1
    slug: str | None = None
    tags: set[str] = stored(default=set())
    size: str = stored("data", "size", default="M")
    open_orders: int = counts("orders")

    @field(needs=("name",))
    def make_slug(self) -> str | None:
        return None if self.name == "?" else self.name.lower()


@record("{user}", "ORDER#{order_id}", by_state("STATE#{state}", "{order_id}"))
class Order:
    user: User
    order_id: ID
    state: str = "open"
    price: int | None = copy("user.level")
    """What it was then."""
    customer: str | None = copy("user.name")
    until: int | None = None


@edge("{user}", "FRIEND#{friend.user_id}", mirror=True)
class Friendship:
    user: User
    friend: User
    mood: str = "good"


graph = Graph(
    Table("People", partition_key="pk", sort_key="sk", indexes=[by_level, by_slug, by_state]),
    *(User, Order, Friendship),
    type_attribute="t",
)


def user(name: str, **more: Any) -> Item:
    return {"pk": f"USER#{name}", "sk": f"USER#{name}", "t": "User", "name": name.title(), **more}


def order(name: str, number: int, **more: Any) -> Item:
    return {"pk": f"USER#{name}", "sk": f"ORDER#{number}", "t": "Order", **more}


OLD: list[Item] = [
    user("ann"),
    user("bob", level=Decimal(5), lp="LEVEL#5", ls="bob", data={"hue": "red"}),
    order("ann", 1, price=Decimal(9)),
    order("bob", 2, state="paid"),
    {"pk": "USER#ann", "sk": "FRIEND#bob", "t": "Friendship"},
    {"pk": "USER#bob", "sk": "FRIEND#ann", "t": "Friendship"},
    {"pk": "ELSE#1", "sk": "-", "t": "Other"},
]


def filled(name: str, **more: Any) -> Item:
    return {
        "open_orders": Decimal(0),
        "level": Decimal(1),
        "lp": "LEVEL#1",
        "ls": name,
        "data": {"size": "M"},
        **user(name),
        **more,
    }


NEW: list[Item] = [
    filled("ann", open_orders=Decimal(1)),
    filled("bob", open_orders=Decimal(1), level=Decimal(5), lp="LEVEL#5", data={"hue": "red", "size": "M"}),
    order("ann", 1, price=Decimal(9), state="open", sp="STATE#open", ss="1", customer="Ann"),
    order("bob", 2, price=Decimal(5), state="paid", sp="STATE#paid", ss="2", customer="Bob"),
    {"pk": "USER#ann", "sk": "FRIEND#bob", "t": "Friendship", "mood": "good"},
    {"pk": "USER#bob", "sk": "FRIEND#ann", "t": "Friendship", "mood": "good"},
    {"pk": "ELSE#1", "sk": "-", "t": "Other"},
]


def by_key(items: list[Item]) -> dict[Any, Item]:
    return {graph.table.key_of(item): item for item in items}


async def made(make_store: MakeStore, items: list[Item] = OLD) -> Store:
    return await make_store(graph.table, *items)


async def backfilled(
    store: Store, of: Backfill | None = None, *, segments: int = 1, **options: Any
) -> tuple[list[str], Report]:
    """What was changed, in lines, and the report."""
    listed = Listed()
    repairs = Repairs(graph.check(), store, BACKFILLED, listed, backfill=of or Backfill(), **options)
    return listed.lines, await verified(graph, store, segments=segments, repairs=repairs)


async def test_what_items_lack_is_written(make_store: MakeStore) -> None:
    store = await made(make_store)
    planned, report = await backfilled(store, is_dry_run=True)
    assert await items_of(store) == by_key(OLD)
    assert report.problems == 12
    lines, report = await backfilled(store)
    assert await items_of(store) == by_key(NEW)
    assert (report.found, report.total) == ({}, 7)
    assert {*planned} <= {*lines} | {"USER#bob/ORDER#2: sp None → STATE#paid, ss None → 2"}
    [unknown] = told(await verified(graph, store))
    assert unknown.startswith("unknown ")
    tracer = TracingStore(store)
    assert (await backfilled(tracer))[0] == []
    assert not [each for each in tracer.requests if isinstance(each, Write | Transaction)]


async def test_an_item_without_a_list_costs_one_write(make_store: MakeStore) -> None:
    """Its ends and counterparts are not read: its own condition is enough."""
    store = TracingStore(await made(make_store, OLD[4:6]))
    await backfilled(store)
    assert [type(each).__name__ for each in store.requests if not isinstance(each, BatchGet)] == [
        *("Scan", "Write", "Write")
    ]


async def test_many_items_are_read_and_verified_together(make_store: MakeStore) -> None:
    """Each costs one write. What all depend on is read by few requests."""
    others = [order("ann", number, state="paid", price=Decimal(1)) for number in range(90)]
    store = TracingStore(await made(make_store, [filled("ann", open_orders=Decimal(90)), *others]))
    await backfilled(store, Backfill(index="ByState"))
    await backfilled(store, Backfill(field="customer"))
    sent = Counter(type(each).__name__ for each in store.requests)
    assert sent["Write"] + sent["Transaction"] == 180
    assert sent["BatchGet"] < 20
    assert told(await verified(graph, store)) == []


async def test_a_copy_is_written_with_what_else_an_item_lacks(make_store: MakeStore) -> None:
    store = TracingStore(await made(make_store, [OLD[1], {**OLD[3], "state": None}]))
    lines, report = await backfilled(store)
    assert report.found == {}
    [line] = [each for each in lines if "ORDER#2" in each]
    assert all(
        name in line for name in ("state None → open", "price None → 5", "customer None → Bob", "sp None")
    )


@pytest.mark.parametrize(
    ("of", "changed"),
    [
        (Backfill(index="ByState"), ["USER#bob/ORDER#2: sp None → STATE#paid, ss None → 2"]),
        (
            Backfill(field="level"),
            ["USER#ann/USER#ann: level None → 1, lp None → LEVEL#1, ls None → ann"],
        ),
        (
            Backfill(field="customer"),
            ["USER#ann/ORDER#1: customer None → Ann", "USER#bob/ORDER#2: customer None → Bob"],
        ),
        (
            Backfill(field="slug", method="make_slug"),
            ["USER#ann/USER#ann: slug None → ann", "USER#bob/USER#bob: slug None → bob"],
        ),
        (Backfill(field="slug"), []),
        (Backfill(index="BySlug"), []),
        (
            Backfill(index="ByState", field="mood"),
            [
                "USER#ann/FRIEND#bob: mood None → good",
                "USER#bob/FRIEND#ann: mood None → good",
                "USER#bob/ORDER#2: sp None → STATE#paid, ss None → 2",
            ],
        ),
    ],
)
async def test_one_index_or_one_field(make_store: MakeStore, of: Backfill, changed: list[str]) -> None:
    store = await made(make_store)
    lines, report = await backfilled(store, of)
    assert (sorted(lines), report.found) == (changed, {})


async def test_what_an_item_has_stays(make_store: MakeStore) -> None:
    """Copies and results of methods that items have may be old on purpose; wrong keys follow their values."""
    store = await made(
        make_store,
        [
            filled("ann", open_orders=Decimal(1), slug="other", lp="LEVEL#7", level=Decimal(2)),
            filled("?"),
            order("ann", 1, state="paid", sp="STATE#paid", ss="1", price=Decimal(9), customer="Anna"),
        ],
    )
    lines, _ = await backfilled(store)
    assert lines == ["USER#ann/USER#ann: lp LEVEL#7 → LEVEL#2"]
    assert (await backfilled(store, Backfill(field="slug", method="make_slug")))[0] == []
    assert (await backfilled(store, Backfill(field="customer")))[0] == []


async def test_an_order_that_enters_a_list_is_counted(make_store: MakeStore) -> None:
    """Its node has a count: an item whose keys are written is added to it, as by an update."""
    by_open = Index("ByOpen", "op", "os")

    @node("BOX#{box_id}")
    class Box:
        box_id: ID
        parts: Many[Part]
        size: int = counts("parts")

    @node("PART#{part_id}", by_open("{box}", "{rank}"))
    class Part:
        part_id: ID
        box: Box
        rank: str = "last"

    of = Graph(
        Table("Boxes", partition_key="pk", sort_key="sk", indexes=[by_open]), Box, Part, type_attribute="t"
    )
    box: Item = {"pk": "BOX#1", "sk": "BOX#1", "t": "Box", "size": Decimal(0)}
    parts: list[Item] = [
        {"pk": f"PART#{n}", "sk": f"PART#{n}", "t": "Part", "boxId": "1", "box_id": "1"} for n in range(4)
    ]
    store = await make_store(of.table, box, *parts)
    repairs = Repairs(of.check(), store, BACKFILLED, Listed(), backfill=Backfill())
    await verified(of, store, repairs=repairs)
    items = await items_of(store)
    assert items["BOX#1", "BOX#1"]["size"] == 4
    assert {items[f"PART#{n}", f"PART#{n}"]["os"] for n in range(4)} == {"last"}
    assert told(await verified(of, store)) == []


async def test_expired_items_and_those_on_which_a_method_fails_stay(make_store: MakeStore) -> None:
    @node("OFFER#{offer_id}")
    class Offer:
        offer_id: ID
        until: datetime | None = ttl("until")
        size: int = 3
        word: str | None = None

        @field(needs=("until",))
        def make_word(self) -> str:
            return str(10 // (int(self.until.timestamp() if self.until else 0) - 9_000_000_000))

    of = Graph(Table("Offers", partition_key="pk"), Offer)
    ends = (1_700_000_000, 9_000_000_000, 9_000_000_010)
    store = await make_store(of.table, *({"pk": f"OFFER#{end}", "until": Decimal(end)} for end in ends))
    for backfill, changed in (
        (Backfill(), ["OFFER#9000000000: size None → 3", "OFFER#9000000010: size None → 3"]),
        (Backfill(field="word", method="make_word"), ["OFFER#9000000010: word None → 1"]),
    ):
        listed = Listed()
        repairs = Repairs(of.check(), store, BACKFILLED, listed, backfill=backfill)
        report = await verified(of, store, repairs=repairs)
        assert sorted(listed.lines) == changed
    assert told(report) == [
        "unfit Offer: it cannot be checked: ZeroDivisionError (not repaired: only you know what is right) (1): "
        "OFFER#9000000000"
    ]


async def test_a_new_count_is_computed(make_store: MakeStore) -> None:
    """Also one that an interrupted backfill has left at 0, to which others have added since then."""
    orders = [order("ann", number, state="x", sp="STATE#x", ss=str(number)) for number in range(3)]
    store = await made(make_store, [{**filled("ann"), "open_orders": None}, filled("bob"), *orders])
    await store.send(
        Write(UpdateItem(("USER#bob", "ORDER#7"), (SetTo(("t",), "Order"), SetTo(("state",), "x"))))
    )
    lines, report = await backfilled(store, Backfill(field="open_orders"))
    assert sorted(lines) == [
        "USER#ann/USER#ann: open_orders 0 → 3",
        "USER#ann/USER#ann: open_orders None → 0",
        "USER#bob/USER#bob: open_orders 0 → 1",
    ]
    assert report.found == {}
    await backfilled(store)
    assert told(await verified(graph, store)) == []


async def test_writers_at_the_same_time_lose_nothing(make_store: MakeStore) -> None:
    """Many writers change, add and delete what is backfilled."""
    names = [f"n{number}" for number in range(12)]
    store = await made(make_store, [user(name) for name in names])
    users, orders = graph.check().types["User"], graph.types["Order"]
    dice, written = random.Random(3), dict[str, str]()
    started = asyncio.Event()

    async def writes(own: list[str]) -> None:
        await started.wait()
        for turn in range(6):
            name = dice.choice(own)
            await write(graph, store, [Change(users, (name,), {"name": f"{name} {turn}"})])
            written[name] = f"{name} {turn}"
            new = {"user": (name,), "order_id": f"{name}-{turn}", "until": turn}
            await write(graph, store, [Create(orders, new)])

    async def before(request: object) -> None:
        if isinstance(request, Write | Transaction):
            started.set()
            await asyncio.sleep(0)

    await asyncio.gather(
        *(writes(names[at::3]) for at in range(3)), backfilled(HeldStore(store, before), segments=2)
    )
    await backfilled(store)
    assert told(await verified(graph, store)) == []
    items = await items_of(store)
    for name in names:
        item = items[f"USER#{name}", f"USER#{name}"]
        assert item["name"] == written.get(name, name.title())
        assert (item["level"], item["lp"], item["data"]) == (1, "LEVEL#1", {"size": "M"})
    assert len([item for item in items.values() if item["t"] == "Order"]) == 18


async def test_an_item_that_changes_in_between_is_decided_again(make_store: MakeStore) -> None:
    store = await made(make_store, OLD[:1])
    changes = [SetTo(("level",), Decimal(3))]

    async def before(request: object) -> None:
        if isinstance(request, Write) and changes:
            await store.send(Write(UpdateItem(("USER#ann", "USER#ann"), (changes.pop(),))))

    lines, report = await backfilled(HeldStore(store, before))
    assert report.found == {}
    assert await items_of(store) == by_key([filled("ann", level=Decimal(3), lp="LEVEL#3")])
    assert lines[0].startswith("USER#ann/USER#ann: data None → {'size': 'M'}, lp None → LEVEL#3")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_an_interrupted_backfill_goes_on(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """It fails at random writes, and goes on from what it has saved, in another process."""
    monkeypatch.setattr("keygraph.tables.verify._WINDOW_ITEMS", 5)
    dice = random.Random(seed)
    store = await made(make_store, [user(f"n{number}") for number in range(40)])
    saved: Any = None
    turns = itertools.count()
    while True:
        next(turns)
        left = dice.randrange(1, 12)

        async def before(request: object) -> None:
            nonlocal left
            if isinstance(request, Write):
                left -= 1
                if left < 0:
                    raise Unavailable("gone")

        listed = Listed()
        held = HeldStore(store, before)
        repairs = Repairs(graph.check(), held, BACKFILLED, listed, backfill=Backfill())
        verification = Verification(graph, held, segments=2, repairs=repairs)
        if saved is not None:
            verification.resume(orjson.loads(saved))
        try:
            await verification.run(lambda _: None)
        except Unavailable:
            saved = orjson.dumps(verification.to_json(), default=base64_text)
        else:
            break
    assert next(turns) > 2
    assert (verification.report.total, verification.report.found) == (40, {})
    assert await items_of(store) == by_key([filled(f"n{number}") for number in range(40)])


async def test_kept_values_of_every_kind_are_right_after_a_source_has_moved(make_store: MakeStore) -> None:
    @node("USER#{user_id}")
    class User:
        user_id: ID
        name: str
        orders: Many[Order]
        by_job: int | None = counts("orders", kept="job")
        mean: float | None = average("orders.total")
        large: int = counts("orders", where={"total": {"gt": 3}})

    @record("{user}", "ORDER#{order_id}")
    class Order:
        user: User
        order_id: ID
        total: int = stored("sum", was="total", default=4)
        customer: str | None = copy("user.name", follows=True)

    of = Graph(Table("Kept", partition_key="pk", sort_key="sk"), User, Order, type_attribute="t").check()
    orders = [order("ann", number, total=Decimal(number)) for number in range(6)]
    store = await make_store(of.table, user("ann"), *orders, order("ann", 9))
    repairs = Repairs(of, store, BACKFILLED, Listed(), backfill=Backfill())
    assert (await verified(of, store, repairs=repairs)).found == {}
    await write(of, store, [Change(of.types["Order"], ("ann", "9"), {}, {"total": Decimal(2)})])
    after = await items_of(store)
    assert after["USER#ann", "USER#ann"] == {
        **user("ann"),
        "mean": {"sum": Decimal(21), "count": Decimal(7)},
        "large": Decimal(3),
    }
    totals = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 9: 6}
    for number, total in totals.items():
        item = after["USER#ann", f"ORDER#{number}"]
        assert item == order("ann", number, sum=Decimal(total), customer="Ann")
    assert (await verified(of, store)).found == {}
