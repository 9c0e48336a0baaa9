"""A field whose attribute has a new name is read from both, and written to one.

The oracle is the same model without `was=`, over items that all have the new names: whatever is asked, and whatever is
written, both answer alike.
"""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, copy, edge, node, read, record, rule, stored, write
from keygraph.dynamo.items import Item
from keygraph.tables.backfill import Backfill
from keygraph.tables.repair import BACKFILLED, Repairs
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.keygraph.damaging import items_of
from tests.resolvers.worlds import World, world
from tests.verified import verified

by_name = Index("ByName", "np", "ns")
by_city = Index("ByCity", "cp", "cs", projection=["fullName", "state", "status"])
TABLE = Table("People", partition_key="pk", sort_key="sk", indexes=[by_name, by_city])
FORMER = {
    "User": {"fullName": "name", "state": "status", "points": "score", "labels": "tags", "entries": "log"},
    "Note": {"body": "text"},
    "Friendship": {"from": "since"},
}


def declared(*, has_former: bool) -> Graph:
    """The model; without the former names, the oracle."""

    def moved(attribute: str, was: str, **options: Any) -> Any:
        return stored(attribute, was=was if has_former else "", **options)

    @node(
        "USER#{user_id}",
        by_name("NAMES", "{full_name}#{city}", lists="users"),
        by_city("CITY#{city}", "{user_id}", lists="citizens"),
        access=[
            read(where={"status": {"ne": "hidden"}}),
            write(where={"status": {"ne": "locked"}}),
        ],
        check=[rule({"score": {"lte": 100}}, "A score is at most 100.")],
    )
    class User:
        user_id: ID
        full_name: str = moved("fullName", "name")
        city: str
        status: str | None = moved("state", "status", default=None)
        score: int = moved("points", "score", default=3)
        tags: set[str] = moved("labels", "tags", default=set())
        log: list[str] = moved("entries", "log", default=[])
        notes: Many[Note]
        friends: Many[Friendship]

    @record("{author}", "NOTE#{number}", access=[read()])
    class Note:
        author: User
        number: int
        author_name: str | None = copy("author.full_name")
        text: str | None = moved("body", "text", default=None)

    @edge("{user}", "FRIEND#{friend.user_id}", mirror=True, access=[read(), write()])
    class Friendship:
        user: User
        friend: User
        since: str | None = moved("from", "since", default=None)

    graph = Graph(TABLE, User, Note, Friendship, type_attribute="t", writes=True)
    return graph.check()


def user(name: str, city: str, **more: Any) -> Item:
    keys = {"np": "NAMES", "ns": f"{name}#{city}", "cp": f"CITY#{city}", "cs": name}
    return {
        "pk": f"USER#{name}",
        "sk": f"USER#{name}",
        "t": "User",
        "user_id": name,
        "fullName": name,
        "city": city,
        **keys,
        **more,
    }


def friend(one: str, other: str, **more: Any) -> Item:
    keys = {"pk": f"USER#{one}", "sk": f"FRIEND#{other}", "user_id": one, "friend_id": other}
    return {**keys, "t": "Friendship", **more}


def note(number: int) -> Item:
    keys = {"pk": "USER#ann", "sk": f"NOTE#{number}", "author_id": "ann", "number": Decimal(number)}
    return {**keys, "t": "Note", "body": f"note {number}"}


NEW: list[Item] = [
    user("ann", "Bern", state="on", points=Decimal(7), labels=frozenset({"a", "b"}), entries=["x"]),
    user("bob", "Bern", state="locked", points=Decimal(100)),
    user("cid", "Rome", state="hidden"),
    user("dan", "Rome", labels=frozenset({"a"}), entries=["y", "z"]),
    user("eve", "Bern", points=Decimal(3), state="off"),
    *map(note, range(4)),
    friend("ann", "bob", **{"from": "2020"}),
    friend("bob", "ann", **{"from": "2020"}),
    friend("ann", "eve"),
    friend("eve", "ann"),
    friend("dan", "cid"),
    friend("cid", "dan"),
]


def older(item: Item, dice: random.Random, share: float) -> Item:
    """The item with some of its values in their former attributes, and a null in the present ones of some of these."""
    names, found = FORMER[str(item["t"])], Item()
    for name, value in item.items():
        is_moved = name in names and dice.random() < share
        found[names[name] if is_moved else name] = value
        if is_moved and dice.random() < 0.5:
            found[name] = None
    return found


def newer(item: Item) -> Item:
    """The item with all values in their present attributes."""
    names = {former: name for name, former in FORMER[str(item["t"])].items()}
    return {names.get(name, name): value for name, value in item.items() if value is not None}


SHARES = [1.0, 0.5]
"""How many of the values are in their former attributes."""


async def worlds(make_store: MakeStore, share: float) -> tuple[World, World]:
    """The oracle, and the model over items with former names."""
    oracle = world(declared(has_former=False), await make_store(TABLE, *NEW))
    made = await make_store(Table("Older", partition_key="pk", sort_key="sk", indexes=TABLE.indexes))
    moved = world(declared(has_former=True), made)
    dice = random.Random(share)
    await moved.put(*(older(item, dice, share) for item in NEW))
    return oracle, moved


async def answer(of: World, document: str, where: Any = None) -> Any:
    of.forget()
    found = await of.service.execute(OperationRequest(document, {"where": where}, with_cost=True))
    if found.get("data") is not None:
        assert sum(of.operations.values()) <= found["extensions"]["cost"]["bound"]["requests"]
    errors = [(each["extensions"]["code"], each["message"]) for each in found.get("errors", [])]
    return found.get("data"), errors


FIELDS = "userId fullName status score tags log"
READS = [
    f"{{ users {{ totalCount nodes {{ {FIELDS} }} }} }}",
    f'{{ users(first: 2, fullName: {{beginsWith: "d"}}) {{ nodes {{ {FIELDS} }} }} }}',
    f'{{ citizens(city: "Bern") {{ totalCount nodes {{ {FIELDS} }} }} }}',
    "{ users { aggregate { sum(field: SCORE) max(field: SCORE) } } }",
    f'{{ user(userId: "ann") {{ {FIELDS} notes {{ nodes {{ number text author {{ fullName }} }} }} }} }}',
    f'{{ user(userId: "ann") {{ friends {{ edges {{ since node {{ {FIELDS} }} }} }} }} }}',
    f'{{ user(userId: "cid") {{ {FIELDS} }} }}',
    '{ user(userId: "cid") { city } bob: user(userId: "bob") { city } }',
    "{ users { totalCount nodes { city } } }",
    '{ citizens(city: "Rome") { totalCount nodes { city } } }',
    '{ user(userId: "dan") { friends { edges { since node { city } } } } }',
    '{ user(userId: "dan") { friends { totalCount nodes { userId } } } }',
]
WHERE: list[Any] = [
    {"fullName": {"eq": "ann"}},
    {"fullName": {"ne": "ann"}},
    {"status": {"eq": None}},
    {"status": {"exists": True}},
    {"not": {"status": {"exists": True}}},
    {"status": {"in": ["on", "off"]}},
    {"status": {"beginsWith": "o"}},
    {"not": {"status": {"contains": "f"}}},
    {"score": {"eq": 3}},
    {"score": {"gt": 3}},
    {"score": {"between": {"from": 2, "to": 7}}},
    {"not": {"score": {"lt": 7}}},
    {"tags": {"contains": "a"}},
    {"not": {"tags": {"contains": "a"}}},
    {"log": {"contains": "y"}},
    {"or": [{"status": {"eq": "on"}}, {"and": [{"score": {"lte": 3}}, {"log": {"contains": "z"}}]}]},
]


@pytest.mark.parametrize("share", SHARES)
async def test_both_names_are_read_and_compared(make_store: MakeStore, share: float) -> None:
    oracle, moved = await worlds(make_store, share)
    for document in READS:
        wanted = await answer(oracle, document)
        assert (wanted[1], await answer(moved, document)) == ([], wanted), document
    document = f"query ($where: UserWhere) {{ users(where: $where) {{ totalCount nodes {{ {FIELDS} }} }} }}"
    for where in WHERE:
        wanted = await answer(oracle, document, where)
        assert (wanted[1], await answer(moved, document, where)) == ([], wanted), where


async def test_the_present_name_comes_first(make_store: MakeStore) -> None:
    moved = world(declared(has_former=True), await make_store(TABLE))
    await moved.put({**user("ann", "Bern", state="on"), "name": "Old", "status": "hidden"})
    document = "query ($where: UserWhere) { users(where: $where) { nodes { fullName status } } }"
    for where, found in (
        (None, [{"fullName": "ann", "status": "on"}]),
        ({"fullName": {"eq": "Old"}}, []),
        ({"status": {"eq": "on"}}, [{"fullName": "ann", "status": "on"}]),
    ):
        assert await answer(moved, document, where) == ({"users": {"nodes": found}}, [])


WRITES = [
    'updateUser(input: {userId: "ann", fullName: "Anna"}) { user { FIELDS } }',
    'updateUser(input: {userId: "ann", city: "Oslo"}) { user { FIELDS city } }',
    'updateUser(input: {userId: "ann", add: {score: 5, tags: ["c"], log: ["w"]}}) { user { FIELDS } }',
    'updateUser(input: {userId: "ann", add: {score: 100}}) { user { FIELDS } }',
    'updateUser(input: {userId: "eve", score: 101}) { user { FIELDS } }',
    'updateUser(input: {userId: "dan", remove: {tags: ["a"]}, status: null}) { user { FIELDS } }',
    'updateUser(input: {userId: "eve", status: null}) { user { FIELDS } }',
    'updateUser(input: {userId: "bob", score: 1}) { user { FIELDS } }',
    'updateUser(input: {userId: "cid", score: 1}) { user { FIELDS } }',
    'deleteUser(input: {userId: "bob"}) { deletedId }',
    'upsertUser(input: {userId: "eve", fullName: "Eve", city: "Bern", add: {score: 2}}) { user { FIELDS } created }',
    'putNote(input: {authorId: "ann", number: 9, text: "t"}) { note { authorName text } }',
    'updateNote(input: {authorId: "ann", number: 1, text: null}) { note { text } }',
    'updateFriendship(input: {userId: "ann", friendId: "bob", since: "2021"}) { friendship { since } }',
    'updateFriendship(input: {userId: "ann", friendId: "bob", since: null}) { friendship { since } }',
    'putFriendship(input: {userId: "ann", friendId: "eve", since: "2023"}) { friendship { since } }',
    'putFriendship(input: {userId: "dan", friendId: "ann", since: "2022"}) { friendship { since } }',
    'createUser(input: {userId: "fay", fullName: "Fay", city: "Bern", tags: ["t"]}) { user { FIELDS } }',
]


@pytest.mark.parametrize("share", SHARES)
async def test_one_name_is_written(make_store: MakeStore, share: float) -> None:
    """Each write answers as over items with the present names, and leaves the same values."""
    oracle, moved = await worlds(make_store, share)
    for mutation in WRITES:
        document = f"mutation {{ {mutation.replace('FIELDS', FIELDS)} }}"
        before, wanted = await items_of(moved.tracer), await answer(oracle, document)
        assert wanted[0] is not None, mutation
        assert await answer(moved, document) == wanted, mutation
        after = await items_of(moved.tracer)
        assert {key: newer(item) for key, item in after.items()} == await items_of(oracle.tracer), mutation
        for key, item in after.items():
            old = before.get(key, {})
            written = {name for name in item if item[name] != old.get(name)}
            former = FORMER[str(item["t"])]
            assert written.isdisjoint(former.values()), mutation
            assert item.keys().isdisjoint(former[name] for name in written & former.keys()), mutation


@pytest.mark.parametrize("share", SHARES)
async def test_verify_knows_both_and_a_backfill_moves_them(make_store: MakeStore, share: float) -> None:
    oracle, moved = await worlds(make_store, share)
    wanted = await items_of(oracle.tracer)
    for key in [key for key in wanted if wanted[key]["t"] == "Note"]:
        wanted[key] = {**wanted[key], "author_name": "ann"}  # a copy that these items lack
    for item in wanted.values():
        if item["t"] == "User":
            item.setdefault("points", Decimal(3))
            item.setdefault("entries", [])
    assert (await verified(moved.graph, moved.tracer)).found == {}
    repairs = Repairs(moved.graph, moved.tracer, BACKFILLED, lambda *_: None, backfill=Backfill())
    assert (await verified(moved.graph, moved.tracer, repairs=repairs)).found == {}
    assert await items_of(moved.tracer) == wanted
    assert (await verified(moved.graph, moved.tracer)).found == {}


async def test_writers_and_a_backfill_at_the_same_time_lose_nothing(make_store: MakeStore) -> None:
    _, moved = await worlds(make_store, 1.0)
    await moved.put(
        *(older(user(f"u{n}", "Bern", points=Decimal(0)), random.Random(n), 0.7) for n in range(12))
    )

    async def writes(own: int) -> None:
        for turn in range(4):
            for number in range(own, 12, 3):
                name = f'userId: "u{number}"'
                await moved.ask(
                    f"mutation {{ updateUser(input: {{{name}, add: {{score: 1}}}}) {{ user {{ score }} }} }}"
                )
                text = f'{name}, fullName: "{own} {turn}"'
                await moved.ask(f"mutation {{ updateUser(input: {{{text}}}) {{ user {{ fullName }} }} }}")

    async def backfills() -> None:
        for _ in range(2):
            repairs = Repairs(moved.graph, moved.tracer, BACKFILLED, lambda *_: None, backfill=Backfill())
            await verified(moved.graph, moved.tracer, repairs=repairs)

    await asyncio.gather(writes(0), writes(1), writes(2), backfills())
    await backfills()
    items = await items_of(moved.tracer)
    for number in range(12):
        item = items[f"USER#u{number}", f"USER#u{number}"]
        assert (item["points"], item["fullName"]) == (4, f"{number % 3} 3")
        assert item["ns"] == f"{number % 3} 3#Bern"
    assert all(item.keys().isdisjoint(FORMER[str(item["t"])].values()) for item in items.values())
