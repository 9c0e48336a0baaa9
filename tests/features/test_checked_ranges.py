"""Ranges that are checked on the value: of padded numbers, of texts that lose a part, of methods; times with an offset."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from keygraph import ID, Format, Graph, Index, Many, Table, edge, field, many, node, record
from keygraph.dynamo.items import Item, number
from keygraph_resolvers.schema.types import build_schema
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.worlds import World, filled, world

by_state = Index("ByState", "StatePK", "StateSK")
by_month = Index("ByMonth", "MonthPK", "MonthSK")
keys_only = Index("KeysOnly", "OnlyPK", "OnlySK", projection="KEYS_ONLY")
states_only = Index("StatesOnly", "StatePK", "StateSK", projection="KEYS_ONLY")


@node("SHOP#{shop_id}", "META")
class Shop:
    shop_id: ID
    orders: Many[Order]
    sizes: Many[Size]
    visits: Many[Visit]
    stays: Many[Stay] = many(index=by_month)


@record(
    "{shop}",
    "ORDER#{seq:04d}",
    by_state("STATE", "{state_key}#{seq}", lists="orders_by_state", finds="order_in_state"),
    states_only(lists="orders_by_state_only"),
    by_month("{shop}", "{at:%Y-%m}#{seq}", lists="orders_by_month"),
    keys_only("ONLY", "{at:%Y-%m}", lists="orders_by_key"),
)
class Order:
    shop: Shop
    seq: int
    state: str
    at: datetime

    @field(needs=("state", "at"))
    def state_key(self) -> str:
        return f"{self.state}#{self.at:%Y}"


@record("{shop}", "SIZE#{size:hundreds}")
class Size:
    shop: Shop
    size: int


@record("{shop}", "VISIT#{at}#{who}")
class Visit:
    shop: Shop
    at: datetime
    who: str
    left: datetime | None


@node("GUEST#{guest_id}")
class Guest:
    guest_id: ID


@edge("{shop}", "{guest}", by_month("STAYS#{shop.shop_id}", "{since:%Y-%m}", lists=False))
class Stay:
    shop: Shop
    guest: Guest
    since: datetime


graph = Graph(
    Table("Shops", partition_key="PK", sort_key="SK", indexes=[by_state, states_only, by_month, keys_only]),
    Shop,
    Order,
    Size,
    Visit,
    Guest,
    Stay,
    formats={"hundreds": Format(lambda size: f"{size // 100:03d}", ordered=True)},
)


def order(seq: int, state: str, at: str) -> Item:
    return {
        "PK": "SHOP#1",
        "SK": f"ORDER#{seq:04d}",
        "StatePK": "STATE",
        "StateSK": f"{state}#{at[:4]}#{seq}",
        "MonthPK": "SHOP#1",
        "MonthSK": f"{at[:7]}#{seq}",
        "OnlyPK": "ONLY",
        "OnlySK": at[:7],
        "state": state,
        "at": at,
    }


ITEMS: list[Item] = [
    {"PK": "SHOP#1", "SK": "META"},
    order(2, "OPEN", "2023-12-31T23:00:00Z"),
    order(500, "OPEN", "2024-01-10T00:00:00Z"),
    order(1500, "OPEN#LATE", "2024-01-20T00:00:00Z"),
    order(9999, "DONE", "2024-02-01T00:00:00Z"),
    order(12345, "DONE", "2024-02-15T00:00:00Z"),
    order(100000, "DONE", "2025-01-01T00:00:00Z"),
    *(
        {"PK": "SHOP#1", "SK": f"SIZE#{size // 100:03d}", "size": number(size)}
        for size in (99, 150, 250, 399)
    ),
    {"PK": "SHOP#1", "SK": "VISIT#2024-01-01T10:00:00+02:00#ada", "left": "2024-01-01T11:00:00+02:00"},
    {"PK": "SHOP#1", "SK": "VISIT#2024-01-01T08:00:00Z#bob", "left": "2024-01-01T09:00:00Z"},
    {"PK": "SHOP#1", "SK": "VISIT#2024-01-01T08:30:00Z#eve", "left": "2024-01-01T09:30:00Z"},
]

shops = filled(graph, ITEMS)


async def found(shops: World, asked: str, field_name: str) -> list[Any]:
    """What a list gives, of which the count, the last page and each page of one are the same."""
    answer = await shops.ask(
        f"{{ shop(shopId: 1) {{ list: {asked} {{ totalCount nodes {{ {field_name} }} }} }} }}"
    )
    made = answer["shop"]["list"]
    assert made["totalCount"] == len(made["nodes"])
    return [each[field_name] for each in made["nodes"]]


async def at_root(shops: World, asked: str, field_name: str = "seq") -> list[Any]:
    answer = await shops.ask(f"{{ list: {asked} {{ totalCount nodes {{ {field_name} }} }} }}")
    assert answer["list"]["totalCount"] == len(answer["list"]["nodes"])
    return [each[field_name] for each in answer["list"]["nodes"]]


@in_one_world(
    ("range_", "wanted"),
    [
        ("from: 2, to: 12345", [2, 12345, 500, 1500, 9999]),
        ("from: 500, to: 2000", [500, 1500]),
        ("to: 2", [2]),
        ("from: 12345", [100000, 12345]),
        ("from: 9999", [9999, 100000, 12345]),
        ("from: 1500, to: 12345", [1500, 9999, 12345]),
        ("from: 10001, to: 99999", [12345]),
        ("eq: 12345", [12345]),
    ],
)
async def test_a_padded_number_out_of_order(shops: World, range_: str, wanted: list[int]) -> None:
    assert sorted(await found(shops, f"orders(seq: {{{range_}}})", "seq")) == sorted(wanted)


def test_what_an_index_does_not_hold_cannot_be_checked() -> None:
    schema = build_schema(graph).as_str()
    arguments = schema.partition("ordersByKey(")[2].partition(")")[0]
    assert "at: DateTimeEquals" in arguments


@in_one_world(
    ("range_", "wanted"),
    [
        ('beginsWith: "OPEN"', [500, 2, 1500]),
        ('beginsWith: "OPEN#2"', [2, 500]),
        ('eq: "OPEN#2024"', [500]),
        ('eq: "OPEN#LATE#2024"', [1500]),
        ('from: "DONE#2025", to: "OPEN#2023"', [100000, 2]),
        ('from: "OPEN#2024"', [500, 1500]),
    ],
)
async def test_a_methods_text_has_ranges_and_prefixes(shops: World, range_: str, wanted: list[int]) -> None:
    assert sorted(await at_root(shops, f"ordersByState(stateKey: {{{range_}}})")) == sorted(wanted)
    if "eq" not in range_:
        only = await at_root(shops, f"ordersByStateOnly(stateKey: {{{range_}}})")
        assert sorted(only) == sorted(wanted)


async def test_a_finder_takes_all_its_key_fields(shops: World) -> None:
    answer = await shops.ask(
        """{
            any: orderInState { seq }
            late: orderInState(stateKey: "OPEN#LATE#2024") { seq }
            exact: orderInState(stateKey: "DONE#2024", seq: 9999) { seq }
            none: orderInState(stateKey: "DONE#2024", seq: 1) { seq }
        }"""
    )
    assert {name: each and each["seq"] for name, each in answer.items()} == {
        "any": 12345,
        "late": 1500,
        "exact": 9999,
        "none": None,
    }
    [(code, message)] = await shops.errors("{ orderInState(seq: 9999) { seq } }")
    assert code == "BAD_USER_INPUT"
    assert message == "seq: stateKey comes before it in the key: give it with eq"


@in_one_world(
    ("asked", "wanted"),
    [
        ('at: {eq: "2024-01-01T10:00:00+02:00"}', ["bob", "ada"]),
        ('at: {eq: "2024-01-01T10:00:00+02:00"}, who: {eq: "ada"}', ["ada"]),
        ('at: {eq: "2024-01-01T08:00:00Z"}', ["bob"]),
        ('where: {left: {eq: "2024-01-01T11:00:00+02:00"}}', ["bob", "ada"]),
        ('where: {left: {in: ["2024-01-01T11:00:00+02:00"]}}', ["bob", "ada"]),
        ('where: {left: {ne: "2024-01-01T11:00:00+02:00"}}', ["eve"]),
    ],
)
async def test_a_stored_time_with_an_offset_is_found(shops: World, asked: str, wanted: list[str]) -> None:
    assert await found(shops, f"visits({asked})", "who") == wanted


@node("MEETING#{at}", by_state("{at}", "MEETING", lists="meetings"))
class Meeting:
    at: datetime


async def test_a_partition_is_not_asked_for_with_an_offset(make_store: MakeStore) -> None:
    table = Table("Meetings", partition_key="PK", sort_key="SK", indexes=[by_state])
    made = world(Graph(table, Meeting).check(), await make_store(table))
    at = "2024-01-01T08:00:00Z"
    await made.put({"PK": f"MEETING#{at}", "SK": f"MEETING#{at}", "StatePK": at, "StateSK": "MEETING"})
    for asked in ("meeting(at: $at) { at }", "meetings(at: $at) { nodes { at } }"):
        document = f"query ($at: DateTime!) {{ {asked} }}"
        assert str(await made.ask(document, at=at)).count(at) == 1
        told = f"at: a time that keys are found by is in UTC, with T: write {at}"
        for other in ("2024-01-01T10:00:00+02:00", "2024-01-01 08:00:00Z"):
            assert await made.errors(document, at=other) == [("BAD_USER_INPUT", told)]
