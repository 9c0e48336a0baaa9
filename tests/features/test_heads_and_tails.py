"""Keys with constant text before or behind what varies, and types of one value that only this text tells apart.

Two types of one partition stand among each other: their keys differ in the tail alone. A third has no head. Nodes are
known by ids and times in formats of their own, and are found from both ends of an edge.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from keygraph import ID, ULID, Epoch, Format, Graph, Index, Many, Table, many, node, record, stored
from keygraph import edge as edge_of
from keygraph.dynamo.items import Item
from tests.conftest import in_one_world
from tests.resolvers.worlds import World, filled

reverse = Index("reverse", "SK", "PK")
by_hour = Index("by-hour", "Hour", "HourSK")


@node("{shop_id}#SHOP", "v0")
class Shop:
    shop_id: ID
    name: str
    orders: Many[Order] = many()
    invoices: Many[Invoice] = many()
    notes: Many[Note] = many()
    visits: Many[Visit] = many(index=None)
    newest: Many[Visit] = many(index=by_hour)


@record("{shop}", "{day}#{number}#ORDER", type="entry")
class Order:
    shop: Shop
    day: str
    number: int
    total: int


@record("{shop}", "{day}#{number}#INVOICE", type="entry")
class Invoice:
    shop: Shop
    day: str
    number: int
    paid: bool


@record("{shop}", "{text}", type="entry")
class Note:
    shop: Shop
    text: str


@node("WHO#{born:ms}#{guest_id}", "WHO", type="entry")
class Guest:
    born: datetime
    guest_id: ULID
    name: str
    visits: Many[Visit] = many(index=reverse)


@edge_of("{shop}", "{guest}", by_hour("{shop}", "{at:newest}@{guest.guest_id}"), type="visit")
class Visit:
    shop: Shop
    guest: Guest = stored(born="guestBorn", guest_id="guest")
    at: datetime
    until: datetime = stored(format=Epoch("us"))


TABLE = Table("Heads", partition_key="PK", sort_key="SK", indexes=[reverse, by_hour])
graph = Graph(
    TABLE,
    Shop,
    Order,
    Invoice,
    Note,
    Guest,
    Visit,
    type_attribute="kind",
    formats={"ms": Epoch("ms"), "newest": Format.reversed(9_999_999_999, of=Epoch())},
)

ADA, BOB = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01HWRQ6W00J3ZM8QK6Y0W5T2AB"
BORN = {ADA: 1_000_000_000_000, BOB: 1_100_000_000_000}


def entry(sort: str, **more: Any) -> Item:
    return {"PK": "1#SHOP", "SK": sort, "kind": "entry", **more}


def visit(guest: str, second: int) -> Item:
    at = datetime(2024, 5, 1, tzinfo=UTC)
    seconds = int(at.timestamp()) + second
    return {
        "PK": "1#SHOP",
        "SK": f"WHO#{BORN[guest]}#{guest}",
        "Hour": "1#SHOP",
        "HourSK": f"{9_999_999_999 - seconds}@{guest}",
        "kind": "visit",
        "at": f"2024-05-01T00:00:{second:02d}Z",
        "until": Decimal((seconds + 60) * 1_000_000),
    }


def guest(guest_id: str, name: str) -> Item:
    return {"PK": f"WHO#{BORN[guest_id]}#{guest_id}", "SK": "WHO", "kind": "entry", "name": name}


ITEMS: list[Item] = [
    {"PK": "1#SHOP", "SK": "v0", "kind": "Shop", "name": "one"},
    entry("2024-01-01#1#ORDER", total=Decimal(1)),
    entry("2024-01-01#1#INVOICE", paid=True),
    entry("2024-01-02#2#ORDER", total=Decimal(2)),
    entry("2024-01-02#10#INVOICE", paid=False),
    entry("2024-01-03#3#ORDER", total=Decimal(3)),
    entry("2024-01-03#3#order"),
    guest(ADA, "Ada"),
    guest(BOB, "Bob"),
    visit(ADA, 1),
    visit(BOB, 2),
]

heads = filled(graph, ITEMS)


@in_one_world(
    ("asked", "wanted"),
    [
        ("orders { totalCount nodes { day total } }",
            {"totalCount": 3, "nodes": [{"day": f"2024-01-0{n}", "total": n} for n in (1, 2, 3)]}),
        ('orders(day: {from: "2024-01-02"}, direction: DESC) { totalCount nodes { number } }',
            {"totalCount": 2, "nodes": [{"number": 3}, {"number": 2}]}),
        ('orders(day: {eq: "2024-01-02"}, number: {eq: 2}) { totalCount nodes { total } }',
            {"totalCount": 1, "nodes": [{"total": 2}]}),
        ('invoices(day: {eq: "2024-01-02"}, where: {paid: {eq: false}}) { totalCount nodes { number } }',
            {"totalCount": 1, "nodes": [{"number": 10}]}),
        ('invoices(day: {beginsWith: "2024-01-0"}) { totalCount nodes { paid } }',
            {"totalCount": 2, "nodes": [{"paid": True}, {"paid": False}]}),
        ("notes { totalCount nodes { text } }", {"totalCount": 1, "nodes": [{"text": "2024-01-03#3#order"}]}),
        ("visits { totalCount edges { at until node { born guestId name } } }",
            {"totalCount": 2, "edges": [
                {"at": "2024-05-01T00:00:01Z", "until": "2024-05-01T00:01:01Z", "node": {"born": "2001-09-09T01:46:40Z", "guestId": ADA, "name": "Ada"}},
                {"at": "2024-05-01T00:00:02Z", "until": "2024-05-01T00:01:02Z", "node": {"born": "2004-11-09T11:33:20Z", "guestId": BOB, "name": "Bob"}},
            ]}),
        ("newest { nodes { name } }", {"nodes": [{"name": "Bob"}, {"name": "Ada"}]}),
        ('newest(at: {to: "2024-05-01T00:00:01.5Z"}) { nodes { name } totalCount }', {"nodes": [{"name": "Ada"}], "totalCount": 1}),
        ('newest(at: {from: "2024-05-01T00:00:02Z"}) { nodes { name } totalCount }', {"nodes": [{"name": "Bob"}], "totalCount": 1}),
    ],
)  # fmt: skip
async def test_lists(heads: World, asked: str, wanted: dict[str, Any]) -> None:
    name = asked.split("(")[0].split()[0]
    assert (await heads.ask(f'{{ shop(shopId: "1") {{ {asked} }} }}'))["shop"][name] == wanted


async def test_nodes(heads: World) -> None:
    at = "2001-09-09T01:46:40"
    query = f'{{ guest(born: "{at}Z", guestId: "{ADA}") {{ id name visits {{ edges {{ at node {{ name }} }} }} }} }}'
    found = (await heads.ask(query))["guest"]
    assert found["visits"]["edges"] == [{"at": "2024-05-01T00:00:01Z", "node": {"name": "one"}}]
    query = f'{{ guest(born: "{at}+00:00", guestId: "{ADA}") {{ id }} }}'
    assert (await heads.ask(query))["guest"]["id"] == found["id"]
    query = "query($id: ID!) { node(id: $id) { ... on Guest { born guestId name } } }"
    assert await heads.ask(query, id=found["id"]) == {
        "node": {"born": f"{at}Z", "guestId": ADA, "name": "Ada"}
    }
    query = 'query($to: [ID!]) { shop(shopId: "1") { visits(to: $to) { nodes { name } } newest(to: $to) { nodes { name } } } }'
    there = {"nodes": [{"name": "Ada"}]}
    assert await heads.ask(query, to=[found["id"]]) == {"shop": {"visits": there, "newest": there}}
    for wrong in (f'born: "{at}.0005Z", guestId: "{ADA}"', f'born: "{at}Z", guestId: "ada"'):
        assert await heads.codes(f"{{ guest({wrong}) {{ name }} }}") == ["BAD_USER_INPUT"]
