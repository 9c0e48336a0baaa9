"""Indexes that share key attributes with the table, with one another or with a field; sparse ones; virtual nodes.

One small table of desks: an inverted index, one that shares a half with the table, a local one on a plain field, one
whose keys are the attributes of an end and a field, and a sparse one whose sort key has an optional part.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph_resolvers import check
from tests.conftest import MakeStore
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, world

inverted = Index("inverted", "SK", "PK")
by_floor = Index("by-floor", "floor", "PK")
by_day = Index("by-day", "PK", "since", local=True)
by_owner = Index("by-owner", "ownerName", "bought")
by_manager = Index("by-manager", "Manager", "ManagerSK")


@node("DESK#{desk_id}", by_floor(lists="desks_on"), by_owner())
class Desk:
    desk_id: ID
    floor: str
    owner: Firm | None
    bought: date | None
    users: Many[Use] = many()
    latest: Many[Use] = many(index=by_day)


@node("STAFF#{staff_id}", by_manager("TEAM#{manager.staff_id?}", "{desk_name?}#{staff_id}", lists="team"))
class Staff:
    staff_id: ID
    manager: Staff | None
    desk_name: str | None
    desks: Many[Use] = many()


@edge("{desk}", "{staff}")
class Use:
    desk: Desk
    staff: Staff
    since: date


@node("FIRM#{name}", item=False)
class Firm:
    name: ID
    desks: Many[Desk] = many()


TABLE = Table(
    "Desks",
    partition_key="PK",
    sort_key="SK",
    indexes=[inverted, by_floor, by_day, by_owner, by_manager],
)
graph = Graph(TABLE, Desk, Staff, Use, Firm, attribute_case="camel")

ITEMS: list[Item] = [
    {
        "PK": "DESK#1",
        "SK": "DESK#1",
        "deskId": "1",
        "floor": "2",
        "ownerName": "acme",
        "bought": "2024-02-01",
    },
    {
        "PK": "DESK#2",
        "SK": "DESK#2",
        "deskId": "2",
        "floor": "2",
        "ownerName": "acme",
        "bought": "2024-01-01",
    },
    {"PK": "DESK#3", "SK": "DESK#3", "deskId": "3", "floor": "3", "ownerName": "acme"},
    {"PK": "STAFF#ada", "SK": "STAFF#ada", "Manager": "TEAM#", "ManagerSK": "#ada"},
    {
        "PK": "STAFF#bob",
        "SK": "STAFF#bob",
        "managerId": "ada",
        "deskName": "window",
        "Manager": "TEAM#ada",
        "ManagerSK": "window#bob",
    },
    {"PK": "STAFF#cyd", "SK": "STAFF#cyd", "managerId": "ada", "Manager": "TEAM#ada", "ManagerSK": "#cyd"},
    {"PK": "STAFF#dan", "SK": "STAFF#dan", "managerId": "ada"},
    {"PK": "DESK#1", "SK": "STAFF#ada", "since": "2024-03-01"},
    {"PK": "DESK#1", "SK": "STAFF#bob", "since": "2024-01-05"},
    {"PK": "DESK#2", "SK": "STAFF#ada", "since": "2023-01-05"},
]


@pytest.fixture
async def office(make_store: MakeStore) -> World:
    made = world(graph.check(), await make_store(TABLE))
    await made.put(*ITEMS)
    return made


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # inverted
        (
            '{ staff(staffId: "ada") { desks { edges { since node { floor } } totalCount } } }',
            {
                "staff": {
                    "desks": {
                        "edges": [
                            {"since": "2024-03-01", "node": {"floor": "2"}},
                            {"since": "2023-01-05", "node": {"floor": "2"}},
                        ],
                        "totalCount": 2,
                    }
                }
            },
        ),
        # half of the table's key, and a field
        (
            '{ desksOn(floor: "2", deskId: {from: "2"}) { totalCount nodes { deskId } } }',
            {"desksOn": {"totalCount": 1, "nodes": [{"deskId": "2"}]}},
        ),
        # a local index on a plain field
        (
            '{ desk(deskId: "1") { latest(direction: DESC) { edges { since node { staffId } } } } }',
            {
                "desk": {
                    "latest": {
                        "edges": [
                            {"since": "2024-03-01", "node": {"staffId": "ada"}},
                            {"since": "2024-01-05", "node": {"staffId": "bob"}},
                        ]
                    }
                }
            },
        ),
        (
            '{ desk(deskId: "1") { latest(since: {to: "2024-02-01"}) { totalCount nodes { staffId } } } }',
            {"desk": {"latest": {"totalCount": 1, "nodes": [{"staffId": "bob"}]}}},
        ),
        # of an end and a field, of a virtual node; a desk without a day is not in it
        (
            '{ firm(name: "acme") { name desks { nodes { deskId bought owner { name } } } } }',
            {
                "firm": {
                    "name": "acme",
                    "desks": {
                        "nodes": [
                            {"deskId": "2", "bought": "2024-01-01", "owner": {"name": "acme"}},
                            {"deskId": "1", "bought": "2024-02-01", "owner": {"name": "acme"}},
                        ]
                    },
                }
            },
        ),
        # sparse; what stands there without its optional part comes first
        (
            '{ team(managerId: "ada") { totalCount nodes { staffId deskName } } }',
            {
                "team": {
                    "totalCount": 2,
                    "nodes": [{"staffId": "cyd", "deskName": None}, {"staffId": "bob", "deskName": "window"}],
                }
            },
        ),
        ("{ team { nodes { staffId } } }", {"team": {"nodes": [{"staffId": "ada"}]}}),
        (
            '{ team(managerId: "ada", deskName: {beginsWith: "w"}) { nodes { staffId } } }',
            {"team": {"nodes": [{"staffId": "bob"}]}},
        ),
        # a virtual node is never null
        (
            '{ firm(name: "nobody") { name desks { totalCount } } }',
            {"firm": {"name": "nobody", "desks": {"totalCount": 0}}},
        ),
    ],
)
async def test_each_index_gives_what_it_holds(office: World, query: str, wanted: Any) -> None:
    """A list of an index that shares its keys would be empty, or hold what is not in it."""
    assert await office.ask(query) == wanted


async def test_the_optional_part_of_a_partition_is_an_optional_argument(office: World) -> None:
    """Those without a manager could not be listed, or whoever leaves the argument out would get everybody."""
    schema = office.service.schema.as_str()
    assert "  team(\n" in schema or "  team(" in schema
    assert "managerId: ID!" not in schema[schema.index("  team(") :].partition("):")[0]


def test_mistakes_of_shared_keys() -> None:
    """One attribute would be written with two values, of which one list finds nothing."""

    @record("{desk}", "NOTE#{text}", by_day("{desk}", "{text}"))
    class Note:
        desk: Desk
        text: str
        since: date

    @record("{desk}", "BILL#{number}", inverted("BILL#{number}"))
    class Bill:
        desk: Desk
        number: int

    @record("{desk}", "FEE#{number}", by_floor())
    class Fee:
        desk: Desk
        number: int

    @record("{desk}", "TAX#{number}", by_owner("{desk}"), inverted(lists="taxes"))
    class Tax:
        desk: Desk
        number: int
        owner: str = stored("ownerName")

    types = (Desk, Staff, Use, Firm, Note, Bill, Fee, Tax)
    told = mistakes(*types, table=TABLE, attribute_case="camel", check=check)
    assert told == [
        'Note: since is the attribute of {since}, but by-day gives it the template "{text}". '
        "Leave that template out, or store {since} in another attribute.",
        "Bill: inverted is called with 1 template. It needs none: all its keys are known.",
        'Fee: by-floor is called without a template for floor. Say by-floor("…").',
        "the root: 2 fields are called taxes in the schema: "
        "the list of Tax in the inverted index inverted, the list of Tax in the index by-owner. "
        'Rename all but one: lists="…" names a list, and lists=False removes it.',
    ]


def test_mistakes_of_virtual_nodes() -> None:
    """A field would be null for each of them, and an end to one that the key does not tell be lost."""

    @node("FIRM#{name}", item=False)
    class Firm:
        name: ID
        city: str

    assert mistakes(Firm) == [
        "Firm.city: no item holds it, and it is not in the key. Add it to the key template, or remove it."
    ]


# --- Types of one key, in an index without their attribute --------------------------------------------

by_box = Index("by-box", "BoxPK", "BoxSK", projection="KEYS_ONLY")


@node("BOX#{box_id}", item=False)
class Box:
    box_id: ID
    pens: Many[Pen]
    caps: Many[Cap]


@node("DRAWER#{drawer_id}", item=False)
class Drawer:
    drawer_id: ID


@record("{drawer}", "{number:02d}")
class Clip:
    """Has the keys of a pen, and is in no index."""

    drawer: Drawer
    number: int


@record("{drawer}", "{number:02d}", by_box("{box}", "PEN#{number}"))
class Pen:
    drawer: Drawer
    box: Box
    number: int


@record("{drawer}", "{number:02d}", by_box("{box}", "CAP#{number}"))
class Cap:
    drawer: Drawer
    box: Box
    number: int


async def test_an_index_of_keys_tells_types_by_its_own_keys(make_store: MakeStore) -> None:
    """A list would be empty where the table has another type whose items have such keys."""
    table = Table("Drawers", partition_key="PK", sort_key="SK", indexes=[by_box])
    graph = Graph(table, Box, Drawer, Clip, Pen, Cap, type_attribute="Type").check()
    made = world(graph, await make_store(table))
    for number, kind in enumerate(("Pen", "Cap", "Pen")):
        keys = {
            "PK": "DRAWER#1",
            "SK": f"{number:02d}",
            "BoxPK": "BOX#1",
            "BoxSK": f"{kind.upper()}#{number}",
        }
        await made.put({**keys, "Type": kind, "drawer_id": "1", "box_id": "1"})
    asked = '{ box(boxId: "1") { pens { totalCount nodes { number } } caps { nodes { number } } } }'
    assert (await made.ask(asked))["box"] == {
        "pens": {"totalCount": 2, "nodes": [{"number": 0}, {"number": 2}]},
        "caps": {"nodes": [{"number": 1}]},
    }
