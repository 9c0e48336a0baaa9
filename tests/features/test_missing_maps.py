"""Fields inside maps that an item lacks: every mutation that changes fields can set them.

The nearest missing map is written whole, on condition that it is still missing.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph import ID, Graph, Table, node, rule, stored
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Transaction, Write
from tests.conftest import MakeStore, in_one_world
from tests.resolvers.races import Raced
from tests.resolvers.worlds import World, filled, world


@node("USER#{user_id}", check=[rule({"visits": {"lte": 9}}, "At most nine visits.")])
class User:
    user_id: ID
    name: str | None
    theme: str | None = stored("settings", "ui", "theme")
    size: int | None = stored("settings", "ui", "size")
    language: str | None = stored("settings", "language")
    visits: int = stored("stats", "visits", default=0)
    seen: list[str] | None = stored("stats", "seen")
    tags: set[str] | None = stored("settings", "tags")
    friend: User | None = stored("info", "friend")


graph = Graph(Table("Users", partition_key="PK"), User, writes=True).check()

NONE: Item = {"settings": None}

UI: Item = {"settings": {"language": "de"}}

BLUE: Item = {"settings": {"ui": {"theme": "blue"}}}

users = filled(graph)


async def changed(users: World, before: Item, mutation: str) -> Item:
    """What a user is stored as after a mutation, without the key."""
    await users.put({"PK": "USER#1", "user_id": "1", **before}, {"PK": "USER#2", "user_id": "2"})
    await users.ask(f"mutation {{ {mutation} {{ __typename }} }}")
    [item] = (await users.tracer.store.send(BatchGet((("USER#1",),), consistent=True))).items
    return {name: value for name, value in (item or {}).items() if name not in ("PK", "user_id")}


MUTATIONS = [
    'updateUser(input: {userId: "1", %s})',
    'upsertUser(input: {userId: "1", %s})',
    'updateUsers(input: {inputs: [{userId: "1", %s}, {userId: "2", name: "B"}]})',
    'updateUsers(input: {inputs: [{userId: "1", %s}], atomic: false})',
    'write(input: {actions: [{updateUser: {userId: "1", %s}}]})',
]


@pytest.mark.parametrize("mutation", MUTATIONS)
@in_one_world(
    ("before", "given", "after"),
    [
        ({}, 'theme: "blue"', BLUE),
        (NONE, 'theme: "blue"', BLUE),
        (UI, 'theme: "blue"', {"settings": {"language": "de", "ui": {"theme": "blue"}}}),
        (BLUE, "size: 3", {"settings": {"ui": {"theme": "blue", "size": Decimal(3)}}}),
        (
            {},
            'theme: "blue", size: 3, language: "en", name: "A"',
            {"name": "A", "settings": {"language": "en", "ui": {"theme": "blue", "size": Decimal(3)}}},
        ),
        ({}, "theme: null", {}),
        (NONE, "theme: null", NONE),
        (UI, 'theme: null, language: "en"', {"settings": {"language": "en"}}),
        ({}, 'theme: null, name: "A"', {"name": "A"}),
        ({}, 'friendId: "2"', {"info": {"friend": "2"}}),
        ({"info": {"friend": "2"}}, "friendId: null", {"info": {}}),
        ({}, "friendId: null", {}),
    ],
)
async def test_a_change_makes_the_maps_that_it_needs(
    users: World, mutation: str, before: Item, given: str, after: Item
) -> None:
    assert await changed(users, before, mutation % given) == after


async def test_add_makes_the_maps_that_it_needs(users: World) -> None:
    given = 'updateUser(input: {userId: "1", add: {visits: 2, seen: ["a"]}})'
    stats = {"stats": {"visits": Decimal(2), "seen": ["a"]}}
    assert await changed(users, {}, given) == stats
    assert await changed(users, stats, given) == {"stats": {"visits": Decimal(4), "seen": ["a", "a"]}}


async def test_members_of_a_set_in_a_map_are_added_and_removed(users: World) -> None:
    """DynamoDB changes members of attributes alone, so the set is replaced as a whole."""
    add, remove = (
        f'updateUser(input: {{userId: "1", {word}: {{tags: ["a"]}}}})' for word in ("add", "remove")
    )
    one, two = ({"settings": {"tags": frozenset(tags)}} for tags in ("a", "ab"))
    assert await changed(users, {}, add) == one
    assert await changed(users, {"settings": {"tags": frozenset("b")}}, add) == two
    assert await changed(users, one, remove) == {"settings": {}}
    assert await changed(users, {}, remove) == {}


@pytest.mark.parametrize("mutation", MUTATIONS[:2])
@in_one_world(
    ("before", "given", "places"),
    [
        ({"settings": "x"}, 'theme: "a", name: "b"', ["theme"]),
        ({"settings": {"ui": "x"}}, 'theme: "a", size: 3, language: "c"', ["theme", "size"]),
        ({"info": ["x"]}, 'friendId: "2"', ["friendId"]),
        ({"stats": "x"}, 'visits: 3, add: {seen: ["1"]}', ["visits", "add.seen"]),
        ({"settings": {"tags": "x"}}, 'theme: "a", add: {tags: ["a"]}', ["add.tags"]),
        ({"settings": {"tags": frozenset([Decimal(1)])}}, 'remove: {tags: ["a"]}', ["remove.tags"]),
        ({"stats": {"seen": "x"}}, 'add: {seen: ["a"]}', ["add.seen"]),
        ({"settings": {"ui": "x"}}, "theme: null", []),
        ({"settings": "x"}, 'theme: null, name: "b"', []),
    ],
)
async def test_what_a_stored_value_does_not_take_is_refused_at_its_field(
    users: World, mutation: str, before: Item, given: str, places: list[str]
) -> None:
    await users.put({"PK": "USER#1", "user_id": "1", **before}, {"PK": "USER#2", "user_id": "2"})
    answer = await users.service.execute(f"mutation {{ {mutation % given} {{ __typename }} }}")
    errors = [each["extensions"] for each in answer.get("errors", [])]
    assert errors == [{"code": "BAD_USER_INPUT", "path": ["input", *each.split(".")]} for each in places]


async def test_a_rule_holds_of_what_a_missing_map_gets(users: World) -> None:
    await users.put({"PK": "USER#1", "user_id": "1"})
    asked = 'mutation { updateUser(input: {userId: "1", add: {visits: 10}}) { __typename } }'
    assert await users.errors(asked) == [("CONFLICT", "At most nine visits.")]


async def test_a_map_that_is_there_costs_no_read(users: World) -> None:
    users.forget()
    await users.put({"PK": "USER#1", "user_id": "1", **BLUE})
    await users.ask('mutation { updateUser(input: {userId: "1", theme: "red"}) { clientMutationId } }')
    assert users.operations == {"TransactWriteItems": 1}


async def test_two_writes_that_make_one_map_lose_nothing(make_store: MakeStore) -> None:
    other = Write(UpdateItem(("USER#1",), (SetTo(("settings",), {"language": "de"}),)))
    users = world(graph, Raced(await make_store(graph.table), happens=other))
    after = await changed(users, {}, 'updateUser(input: {userId: "1", theme: "blue"})')
    assert after == {"settings": {"language": "de", "ui": {"theme": "blue"}}}
    assert sum(isinstance(each, Transaction) for each in users.tracer.requests) == 3
