"""Times since 1970, numbers in reverse, numbers in other bases, and ids that begin with a time.

A log of a shop. Each of its events stands in an index for each way in which real tables write its time and its number:
a text or a number, in their order or against it. What is asked of each list is told by plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    KSUID,
    ULID,
    Epoch,
    Format,
    Graph,
    Index,
    Many,
    Table,
    field,
    many,
    node,
    record,
    stored,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Equals, Query
from keygraph.tables.interchange import Interchange
from keygraph_resolvers import check
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world
from tests.verified import verified

ROWS = {
    "seconds": ("{shop}", "AT#{at:s}"),
    "newest": ("{shop}", "{at:newest}#{event_id}"),
    "base36": ("{shop}", "{number:base36}"),
    "largest": ("{shop}", "N#{number:largest}#END"),
    "short": ("{shop}", "{at:short}"),
    "plain": ("{shop}", "{sent}"),
}
INDEXES = {name: Index(name, f"{name}PK", f"{name}SK") for name in ROWS}
as_number = Index("as_number", "plainPK", ("sent_ms", "N"))
backwards = Index("backwards", "plainPK", ("left", "N"))
MOST = 9_999_999_999_999


@node("SHOP#{shop_id}", "SHOP")
class Shop:
    shop_id: ID
    seconds: Many[Event] = many(index=INDEXES["seconds"])
    newest: Many[Event] = many(index=INDEXES["newest"])
    base36: Many[Event] = many(index=INDEXES["base36"])
    largest: Many[Event] = many(index=INDEXES["largest"])
    short: Many[Event] = many(index=INDEXES["short"])
    plain: Many[Event] = many(index=INDEXES["plain"])
    as_number: Many[Event] = many(index=as_number)
    backwards: Many[Event] = many(index=backwards)
    events: Many[Event] = many(index=None)
    orders: Many[Order] = many(index=None)
    receipts: Many[Receipt] = many(index=None)


@record(
    "{shop}",
    "EVENT#{event_id}",
    *(INDEXES[name](*templates) for name, templates in ROWS.items()),
    as_number(),
    backwards(),
)
class Event:
    shop: Shop
    event_id: ID
    at: datetime
    number: int
    sent: datetime = stored(format=Epoch("ms", text=True))
    again: datetime = stored("sent_ms", format=Epoch("ms"))
    left: int = stored(format=Format.reversed(999))
    expires: datetime | None = stored("ttl", format=Epoch())


@record("{shop}", "ORDER#{order_id}")
class Order:
    shop: Shop
    order_id: ULID

    @field(needs=("order_id",))
    def placed(self) -> datetime:
        return self.order_id.time


@record("{shop}", "RECEIPT#{receipt_id}#PDF")
class Receipt:
    shop: Shop
    receipt_id: KSUID
    follows: ULID | None

    @field(needs=("receipt_id",))
    def printed(self) -> datetime:
        return self.receipt_id.time


TABLE = Table("Log", partition_key="PK", sort_key="SK", indexes=[*INDEXES.values(), as_number, backwards])
graph = Graph(
    TABLE,
    Shop,
    Event,
    Order,
    Receipt,
    formats={
        "s": Epoch(),
        "newest": Format.reversed(MOST, of=Epoch("ms")),
        "base36": Format.base(36, width=3),
        "largest": Format.reversed(9999),
        "short": Format.base(36, width=9, upper=True, of=Epoch("ms")),
    },
)

FIRST = datetime(2001, 9, 9, 1, 46, 38, tzinfo=UTC)
"""999,999,998 seconds after 1970: the events go over to ten digits."""


def time_of(number: int) -> datetime:
    return FIRST + timedelta(seconds=number)


def text_of(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def in_base_36(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


def event(number: int) -> Item:
    seconds = 999_999_998 + number
    own = {
        "seconds": f"AT#{seconds:010d}",
        "newest": f"{MOST - seconds * 1000}#{number}",
        "base36": in_base_36(number * 10, 3),
        "largest": f"N#{9999 - number * 10:04d}#END",
        "short": in_base_36(seconds * 1000, 9).upper(),
        "plain": str(seconds * 1000).zfill(13),
    }
    keys = {f"{name}SK": text for name, text in own.items()} | {f"{name}PK": "SHOP#1" for name in own}
    return {
        "PK": "SHOP#1",
        "SK": f"EVENT#{number}",
        **keys,
        "at": text_of(time_of(number)),
        "number": Decimal(number * 10),
        "sent": own["plain"],
        "sent_ms": Decimal(seconds * 1000),
        "left": Decimal(999 - number * 10),
        **({"ttl": Decimal(seconds)} if number else {}),
    }


NUMBERS = range(5)
ULIDS = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEK0000000000000000", "01ARZ3NDEMZZZZZZZZZZZZZZZZ"]
KSUIDS = ["0ujtsYcgvSTl8PAuAdqWYSMnLOv", "0ujzPyRiIAffKhBux4PvQdDqMHY"]
ITEMS: list[Item] = [
    {"PK": "SHOP#1", "SK": "SHOP"},
    *map(event, NUMBERS),
    *({"PK": "SHOP#1", "SK": f"ORDER#{each}"} for each in ULIDS),
    *({"PK": "SHOP#1", "SK": f"RECEIPT#{each}#PDF", "follows": ULIDS[0]} for each in KSUIDS),
]

log = filled(graph, ITEMS)


def milliseconds(number: int) -> Any:
    return text_of(time_of(0) + timedelta(milliseconds=number))


LISTS: dict[str, tuple[str, bool, Callable[[int], Any]]] = {
    "seconds": ("at", False, milliseconds),
    "newest": ("at", True, milliseconds),
    "short": ("at", False, milliseconds),
    "plain": ("sent", False, milliseconds),
    "asNumber": ("again", False, milliseconds),
    "base36": ("number", False, lambda number: number // 100),
    "largest": ("number", True, lambda number: number // 100),
    "backwards": ("left", True, lambda number: number // 100),
}
"""For each list its argument, whether it begins with the largest, and the value of a time in milliseconds after the first."""
ENDS = [None, -5_000, 0, 500, 1_000, 2_500, 4_000, 99_999]
BOUNDS = [
    *((low, None) for low in ENDS),
    *((None, high) for high in ENDS),
    (500, 2_500),
    (1_000, 3_000),
    (2_500, 500),
]


def asked(name: str, range_: str, direction: str, more: str = "") -> str:
    argument, _, _ = LISTS[name]
    said = f"{argument}: {{{range_}}}, " if range_ else ""
    return f'{{ shop(shopId: "1") {{ {name}({said}direction: {direction}{more}) {{ totalCount nodes {{ eventId }} pageInfo {{ endCursor hasNextPage }} }} }} }}'


def shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


@in_one_world("name", LISTS)
async def test_ranges_are_of_values(log: World, name: str) -> None:
    _, is_descending, value_of = LISTS[name]
    for low, high in BOUNDS:
        if not isinstance(value_of(0), str):
            # Whole numbers have nothing between them, and no key holds a negative one in order.
            low, high = (each and max(each - each % 100, 0) for each in (low, high))
        bounds = {"from": low, "to": high}
        range_ = ", ".join(
            f"{word}: {shown(value_of(each))}" for word, each in bounds.items() if each is not None
        )
        wanted = [
            str(number) for number in NUMBERS
            if (low is None or number * 1000 >= low) and (high is None or number * 1000 <= high)
        ]  # fmt: skip
        for direction in ("ASC", "DESC"):
            found = (await log.ask(asked(name, range_, direction)))["shop"][name]
            in_order = wanted if (direction == "DESC") == is_descending else wanted[::-1]
            assert [each["eventId"] for each in found["nodes"]] == in_order, (range_, direction)
            assert found["totalCount"] == len(wanted), range_


@in_one_world("name", LISTS)
async def test_one_value(log: World, name: str) -> None:
    argument, _, value_of = LISTS[name]
    query = asked(name, f"eq: {shown(value_of(2000))}", "ASC")
    assert [each["eventId"] for each in (await log.ask(query))["shop"][name]["nodes"]] == ["2"]
    if argument == "at":
        # A time that no key can hold is no key's.
        query = asked(name, f"eq: {shown(value_of(2000)[:-1] + '.0005Z')}", "ASC")
        found = await log.service.execute(query)
        assert found.get("errors") or found["data"]["shop"][name]["nodes"] == []


@in_one_world(
    ("where", "wanted"),
    [
        (f'again: {{eq: "{milliseconds(1000)}"}}', "1"),
        (f'again: {{gt: "{milliseconds(1500)}"}}', "234"),
        (f'again: {{between: {{from: "{milliseconds(500)}", to: "{milliseconds(2000)}"}}}}', "12"),
        (f'sent: {{lte: "{milliseconds(1000)}"}}', "01"),
        (f'sent: {{in: ["{milliseconds(1000)}", "{milliseconds(1001)}"]}}', "1"),
        (f'expires: {{lt: "{milliseconds(2000)}"}}', "1"),
        (f'expires: {{eq: "{milliseconds(2500)}"}}', ""),
        ("expires: {exists: false}", "0"),
        # Numbers that are stored in reverse are compared by what they mean.
        ("left: {lt: 20}", "01"),
        ("left: {gte: 20}", "234"),
        ("left: {between: {from: 10, to: 30}}", "123"),
        ("left: {eq: 20}", "2"),
    ],
)
async def test_where(log: World, where: str, wanted: str) -> None:
    for name in ("events", "plain", "asNumber"):
        query = (
            f'{{ shop(shopId: "1") {{ {name}(where: {{{where}}}) {{ totalCount nodes {{ eventId }} }} }} }}'
        )
        found = (await log.ask(query))["shop"][name]
        assert "".join(each["eventId"] for each in found["nodes"]) == wanted
        assert found["totalCount"] == len(wanted)


# --- Ids that begin with a time -----------------------------------------------------------------------


async def test_ids_and_their_times(log: World) -> None:
    query = '{ shop(shopId: "1") { orders { nodes { orderId placed } } receipts { nodes { receiptId printed follows } } } }'
    found = (await log.ask(query))["shop"]
    assert found["orders"]["nodes"] == [
        {"orderId": ULIDS[1], "placed": "2016-07-30T23:54:10.259000Z"},
        {"orderId": ULIDS[0], "placed": "2016-07-30T23:54:10.259000Z"},
        {"orderId": ULIDS[2], "placed": "2016-07-30T23:54:10.260000Z"},
    ]
    assert found["receipts"]["nodes"] == [
        {"receiptId": KSUIDS[0], "printed": "2017-10-10T04:00:47Z", "follows": ULIDS[0]},
        {"receiptId": KSUIDS[1], "printed": "2017-10-10T04:46:20Z", "follows": ULIDS[0]},
    ]


@in_one_world(
    ("name", "range_", "wanted"),
    [
        ("orders", 'fromTime: "2016-07-30T23:54:10.2595Z"', [2]),
        ("orders", 'fromTime: "2016-07-30T23:54:10.259Z"', [1, 0, 2]),
        ("orders", 'toTime: "2016-07-30T23:54:10.2599Z"', [1, 0]),
        ("orders", 'fromTime: "1960-01-01T00:00:00Z", toTime: "9999-12-31T23:59:59Z"', [1, 0, 2]),
        ("orders", 'toTime: "1960-01-01T00:00:00Z"', []),
        ("orders", 'from: "01ARZ3NDEK1"', [0, 2]),
        ("orders", f'from: "{ULIDS[0]}", toTime: "2016-07-30T23:54:10.259Z"', [0]),
        ("orders", 'beginsWith: "01ARZ3NDEK"', [1, 0]),
        ("orders", f'eq: "{ULIDS[2]}"', [2]),
        ("receipts", 'fromTime: "2017-10-10T04:00:47.5Z"', [1]),
        ("receipts", 'toTime: "2017-10-10T04:00:47Z"', [0]),
        ("receipts", 'fromTime: "2014-01-01T00:00:00Z", toTime: "2200-01-01T00:00:00Z"', [0, 1]),
        ("receipts", 'fromTime: "2200-01-01T00:00:00Z"', []),
    ],
)  # fmt: skip
async def test_ranges_of_their_times(log: World, name: str, range_: str, wanted: list[int]) -> None:
    argument, ids = ("orderId", ULIDS) if name == "orders" else ("receiptId", KSUIDS)
    query = f'{{ shop(shopId: "1") {{ {name}({argument}: {{{range_}}}) {{ totalCount nodes {{ {argument} }} }} }} }}'
    found = (await log.ask(query))["shop"][name]
    assert [each[argument] for each in found["nodes"]] == [ids[number] for number in wanted]
    assert found["totalCount"] == len(wanted)


def test_what_a_type_checker_says() -> None:
    made: ULID = ULID(ULIDS[0])
    assert made == ULIDS[0]
    assert made.time == datetime(2016, 7, 30, 23, 54, 10, 259_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "01ARZ3NDEKTSV4RRFFQ69G5FA", "81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAI"]
)
def test_what_is_no_ulid(text: str) -> None:
    with pytest.raises(ValueError, match="no ULID"):
        ULID(text)


# --- Whole tables, and what is declared wrongly -------------------------------------------------------


async def test_verify(log: World) -> None:
    wrong = event(9)
    await log.put(
        {
            **wrong,
            "secondsSK": "AT#1700000000",
            "newestSK": f"{MOST}#9",
            "base36SK": "00a",
            "shortSK": "X",
            "ttl": "soon",
        },
        {"PK": "SHOP#1", "SK": f"RECEIPT#{KSUIDS[0][::-1]}#PDF", "follows": "none"},
        {"PK": "SHOP#1", "SK": f"ORDER#{KSUIDS[0]}"},
    )
    assert [(kind.type, kind.what) for kind, _ in (await verified(graph, log.tracer.store)).ordered()] == [
        (
            None,
            "its key fits none of the templates: SK does not fit ORDER#{order_id} of Order "
            "(no id stands for {order_id})",
        ),
        ("Event", "Event.expires of an item is not of type datetime: it is not an ISO 8601 date and time"),
        (
            "Receipt",
            "Receipt.follows of an item is not of type id: it is not written in its format, "
            "[0-7][0-9A-HJKMNP-TV-Z]{25}",
        ),
        ("Event", "base36: base36SK does not match number"),
        ("Event", "newest: newestSK does not match at"),
        ("Event", "seconds: secondsSK does not match at"),
        ("Event", "short: shortSK does not match {at:short}"),
    ]


async def test_writes(log: World) -> None:
    [old] = [each for each in ITEMS if each["SK"] == "EVENT#3"]
    await log.tracer.store.send(BatchWrite(deletes=(("SHOP#1", "EVENT#3"),)))
    at = milliseconds(3000)
    mutation = f"""mutation {{ putEvent(input: {{shopId: "1", eventId: "3", at: "{at}", number: 30, sent: "{at}", again: "{at}",
      left: 30, expires: "{at}"}}) {{ event {{ at sent again left expires }} }} }}"""
    written = {"at": at, "sent": at, "again": at, "left": 30, "expires": at}
    assert (await log.ask(mutation))["putEvent"]["event"] == written
    page = await log.tracer.store.send(Query("SHOP#1", None, Equals("EVENT#3")))
    assert {name: page.items[0][name] for name in old} == old
    order = f'mutation {{ putOrder(input: {{shopId: "1", orderId: "{ULIDS[0]}"}}) {{ order {{ placed }} }} }}'
    assert (await log.ask(order))["putOrder"] == {"order": {"placed": "2016-07-30T23:54:10.259000Z"}}
    for wrong in (
        'putOrder(input: {shopId: "1", orderId: "abc"}) { order { orderId } }',
        f'putReceipt(input: {{shopId: "1", receiptId: "{KSUIDS[0]}", follows: "abc"}}) {{ receipt {{ receiptId }} }}',
    ):
        assert await log.codes(f"mutation {{ {wrong} }}") == ["BAD_USER_INPUT"]


def test_lines() -> None:
    interchange = Interchange(graph)
    for each in ITEMS:
        assert interchange.read(interchange.write(each)) == each


def test_what_a_format_cannot_write() -> None:
    @node("A#{a_id}", "{at:newest}")
    class A:
        a_id: ID
        at: datetime

    @node("B#{b_id}")
    class B:
        b_id: ID
        made: str = stored(format=Epoch())
        seen: datetime = stored(format=5)  # type: ignore[arg-type]
        b: B | None = stored(format=Epoch())

    table = Table("Things", partition_key="PK", sort_key="SK")
    found = Graph(table, A, B, formats={"newest": Format.reversed(9999)}).mistakes
    use = "Use a format for such fields, or remove format=."
    assert [str(each) for each in found] == [
        f"B.made: its format is for datetime and cannot write a field of type string. {use}",
        f"B.seen: format=5 is not a Format. {use}",
        "B.b: format= is for fields; the key of a node is written as the node has it. "
        "Give it to the key field of the node.",
        'A: the template "{at:newest}": {at:newest}: its format is for int or long and cannot write a field of type '
        'datetime. Use another field or format, or declare it on the graph: formats={"newest": Format(…)}.',
    ]


@pytest.mark.parametrize(
    "make",
    [lambda: Format.reversed(0), lambda: Format.base(37), lambda: Format.base(16, 0), lambda: Epoch("min")],
)
def test_formats_that_there_are_not(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"not positive|a base is|the units are"):
        make()


# --- One format for all times, in partitions and in compound sort keys --------------------------------

by_ends = Index("by_ends", ("ends", "N"), "rank")


@node("JOB#{job_id}", by_ends("{ends}", "{tries:most}#{starts}#JOB", lists="jobs_ending"))
class Job:
    job_id: ID
    ends: datetime
    starts: datetime
    tries: int
    code: int = stored(format=Format.base(36, upper=True))


@node("SLOT#{starts}", "{name}", lists="slots")
class Slot:
    starts: datetime
    name: str
    holidays: list[datetime] | None


EVERY = Graph(
    Table("Jobs", partition_key="PK", sort_key="SK", indexes=[by_ends]),
    Job,
    Slot,
    formats={datetime: Epoch(), "most": Format.reversed(99)},
)


async def test_one_format_for_all_times(make_store: MakeStore) -> None:
    jobs = world(check(EVERY), await make_store(EVERY.table))
    end, begin = 1_700_000_000, 1_600_000_000
    await jobs.put(
        *(
            {
                "PK": f"JOB#{number}",
                "SK": f"JOB#{number}",
                "ends": Decimal(end),
                "starts": Decimal(begin + number),
                "tries": Decimal(number // 2),
                "code": "ZA"[number // 2 :],
                "rank": f"{99 - number // 2:02d}#{begin + number}#JOB",
            }
            for number in range(4)
        ),
        {"PK": f"SLOT#{begin}", "SK": "a", "holidays": [Decimal(begin), Decimal(end)]},
    )
    ends, starts = ("2023-11-14T22:13:20Z", "2020-09-13T12:26:40Z")

    async def found(more: str) -> str:
        query = f'{{ jobsEnding(ends: "{ends}"{more}) {{ totalCount nodes {{ jobId ends starts tries }} }} }}'
        answer = (await jobs.ask(query))["jobsEnding"]
        assert answer["totalCount"] == len(answer["nodes"])
        assert all(each["ends"] == ends for each in answer["nodes"])
        return "".join(each["jobId"] for each in answer["nodes"])

    assert await found("") == "2301"
    assert await found(", direction: DESC") == "1032"
    assert await found(', tries: {eq: 1}, starts: {from: "2020-09-13T12:26:42.5Z"}') == "3"
    assert await found(", tries: {to: 0}") == "01"
    assert await found(", tries: {from: 1, to: 500}") == "23"
    assert await found(", tries: {from: 100}") == ""
    assert await found(f', where: {{starts: {{lte: "{starts}"}}}}') == "0"
    query = f'{{ slots(starts: "{starts}") {{ nodes {{ starts name holidays }} }} }}'
    assert await jobs.ask(query) == {
        "slots": {"nodes": [{"starts": starts, "name": "a", "holidays": [starts, ends]}]}
    }
    query = f'{{ slots(starts: "{starts}", where: {{holidays: {{contains: "{ends}"}}}}) {{ totalCount }} }}'
    assert await jobs.ask(query) == {"slots": {"totalCount": 1}}
    assert await found(", where: {code: {eq: 1270}}") == "01"
    # `A` is after `ZA`, and 10 before 1270.
    query = f'{{ jobsEnding(ends: "{ends}", where: {{code: {{lt: 99}}}}) {{ totalCount }} }}'
    said = "where.code.lt: its values are written so that they have no order; use eq, ne or in"
    assert await jobs.errors(query) == [("BAD_USER_INPUT", said)]
    assert (await verified(EVERY, jobs.tracer.store)).ordered() == []
