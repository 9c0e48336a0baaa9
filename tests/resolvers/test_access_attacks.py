"""What somebody tries who wants to know what is hidden: each answer is the same where it is not there, or has another value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    One,
    Table,
    edge,
    field,
    many,
    node,
    one,
    read,
    record,
    stored,
    version,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Scan
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import SECRET, world

by_other = Index("by-other", "otherKey", "otherSort")
STAFF = read(role="staff")


@node("USER#{user_id}", access=[read(where={"hidden": False}), STAFF, write()])
class User:
    user_id: ID
    name: str
    hidden: bool = False
    salary: int = stored(default=0, access=[read(where={"user_id": viewer("sub")}), STAFF])
    revision: int = version()

    follows: Many[Follows] = many()
    secrets: Many[Follows] = many(access=[STAFF])
    favorite: One[Follows] = one()


@edge(
    "{user}",
    "FOLLOWS#{other.user_id}",
    by_other("{other}", "FOLLOWER#{user.user_id}"),
    access=[read(where={"private": False}), STAFF, write()],
)
class Follows:
    user: User
    other: User
    private: bool = False
    weight: int = stored(default=0, access=[STAFF])
    mood: str = "open"
    note: int = stored(default=0, access=[read(where={"mood": {"ne": "closed"}})])


graph = Graph(
    Table("Attacked", partition_key="PK", sort_key="SK", indexes=[by_other]),
    User,
    Follows,
    paths=True,
    writes=True,
).check()
USER = graph.types["User"]
A, B, HIDDEN = (global_id(USER, (name,)) for name in ("a", "b", "h"))
LINK = global_id(graph.types["Follows"], ("b", "a"))


def user(name: str, salary: int = 10, *, hidden: bool = False) -> Item:
    key = f"USER#{name}"
    values = {"user_id": name, "name": "HIDDEN" if hidden else name, "hidden": hidden}
    return {"PK": key, "SK": key, **values, "salary": Decimal(salary), "revision": Decimal(1)}


def follows(one: str, other: str, weight: int = 1, *, private: bool = False) -> Item:
    keys = {"PK": f"USER#{one}", "SK": f"FOLLOWS#{other}", "otherKey": f"USER#{other}"}
    ends = {"otherSort": f"FOLLOWER#{one}", "user_id": one, "other_id": other}
    return {**keys, **ends, "private": private, "weight": Decimal(weight)}


def items(*, with_hidden: bool, number: int) -> list[Item]:
    """A way from a to b that only a hidden user and a private edge make; with these numbers in fields that are not shown."""
    visible = [user("a"), user("b", number), user("c", number)]
    visible += [follows(*ends, number) for ends in ("ac", "ah", "hb", "ch")]
    return [
        *visible,
        *([user("h", number, hidden=True), follows("b", "a", number, private=True)] * with_hidden),
    ]


ATTACKS = {
    "guessing ids": f'{{ node(id: "{HIDDEN}") {{ id }} nodes(ids: ["{HIDDEN}", "{LINK}"]) {{ id }} user(userId: "h") {{ name }} }}',
    "guessing what is below": '{ user(userId: "h") { userId name follows { totalCount nodes { name } } } }',
    "to": '{ user(userId: "b") { follows(to: ["a"]) { totalCount edges { private } } } }',
    "to a hidden node": '{ user(userId: "a") { follows(to: ["h"]) { totalCount edges { private node { userId name } } } } }',
    "an only one": '{ user(userId: "b") { favorite { private node { name } } } }',
    "also of a hidden node": '{ user(userId: "c") { follows(alsoOf: ["h"]) { totalCount nodes { userId } } } }',
    "counts": '{ user(userId: "b") { follows { totalCount pageInfo { hasNextPage } aggregate { count } } } }',
    "ends": '{ user(userId: "a") { follows { edges { cursor node { userId name } } nodes { userId } } } }',
    "where on a hidden field": '{ user(userId: "a") { follows(where: {weight: {gt: 1}}) { totalCount } } }',
    "where not on a hidden field": '{ user(userId: "a") { follows(where: {or: [{not: {weight: {eq: 1}}}]}) { totalCount } } }',
    "aggregates of a hidden field": '{ user(userId: "a") { follows { aggregate { count max(field: WEIGHT) groupBy(field: WEIGHT) { count } } } } }',
    "hidden fields": '{ user(userId: "b") { x: salary y: salary } }',
    "aliases of hidden lists": '{ user(userId: "b") { x: secrets { totalCount } y: secrets(first: 0) { nodes { name } } } }',
    "ways": f'{{ path(from: "{A}", to: "{B}", via: [USER_FOLLOWS]) {{ length }} paths(from: "{A}", to: "{B}", via: [USER_FOLLOWS], first: 3) {{ length }} }}',
    "ways to a hidden node": f'{{ path(from: "{A}", to: "{HIDDEN}", via: [USER_FOLLOWS]) {{ length }} }}',
    "entities": '{ _entities(representations: [{__typename: "User", userId: "h"}]) { ... on User { name } } }',
    "versions": 'mutation { updateUser(input: {userId: "h", name: "x", expectedVersion: 9}) { user { revision } } }',
    "writes to what is hidden": 'mutation { updateUser(input: {userId: "h", salary: 1}) { user { salary } } }',
    "writes that name what is hidden": 'mutation { putFollows(input: {userId: "a", otherId: "h"}) { follows { private } } }',
    "several writes": 'mutation { updateUsers(input: {inputs: [{userId: "a", name: "x"}, {userId: "h", name: "x"}]}) { results { user { name } } } }',
    "deletes of what is hidden": 'mutation { deleteFollows(input: {userId: "b", otherId: "a"}) { clientMutationId } }',
    "moves of what is hidden": 'mutation { moveUser(input: {userId: "h", to: {userId: "new"}}) { user { name } } }',
    "moves onto the same": 'mutation { moveUser(input: {userId: "h", to: {userId: "h"}}) { user { name } } }',
    "a create over what is hidden that fails anyway": """mutation { createUser(input: {userId: "h", name: "x",
      follows: [{otherId: "none"}]}) { user { name } } }""",
}


async def answer(make_store: MakeStore, found: Sequence[Item], document: str) -> Any:
    """What the first of these users is told and can measure (how many requests are sent in a row, what they read), and what
    stands in the table afterwards."""
    made = world(graph, await make_store(graph.table, *found))
    service = Service(build_schema(graph, federation=True), made.tracer, secret=SECRET, limits=NO_LIMITS)
    made.forget()
    told = await service.execute(OperationRequest(document, viewer={"sub": "a"}, with_cost=True))
    actual = told.get("extensions", {}).get("cost", {}).get("actual") or {}
    measured = made.operations, actual.get("roundTrips"), actual.get("items")
    left = await made.tracer.store.send(Scan())
    written = [item for item in left.items if item not in found]
    return {**told, "extensions": measured}, written


@pytest.mark.parametrize("attack", ATTACKS)
async def test_what_is_hidden_tells_nothing(make_store: MakeStore, attack: str) -> None:
    told = await answer(make_store, items(with_hidden=True, number=7), ATTACKS[attack])
    assert told == await answer(make_store, items(with_hidden=False, number=7), ATTACKS[attack])
    assert told == await answer(make_store, items(with_hidden=True, number=8), ATTACKS[attack])
    codes = {error["extensions"]["code"] for error in told[0].get("errors", ())}
    assert codes <= {"FORBIDDEN", "NOT_FOUND", "BAD_USER_INPUT"}
    assert "HIDDEN" not in json.dumps(told[0])
    assert told[1] == []


async def test_what_was_moved_is_hidden_still(make_store: MakeStore) -> None:
    made = world(graph, await make_store(graph.table))
    await made.put(*items(with_hidden=True, number=7), follows("a", "b", 7))
    document = """mutation { moveFollows(input: {userId: "a", otherId: "c", to: {otherId: "a"}}) {
      follows { private weight } } }"""
    told = await made.service.execute(OperationRequest(document, viewer={"sub": "a"}))
    [error] = told["errors"]
    assert (error["path"][-1], error["extensions"]["code"]) == ("weight", "FORBIDDEN")
    assert told["data"] == {"moveFollows": {"follows": {"private": False, "weight": None}}}


@pytest.mark.parametrize(("mood", "found"), [("open", 5), ("closed", None)])
async def test_an_aggregate_reads_what_decides_about_its_field(
    make_store: MakeStore, mood: str, found: int | None
) -> None:
    made = world(graph, await make_store(graph.table))
    await made.put(user("a"), {**follows("a", "c"), "mood": mood, "note": Decimal(5)})
    document = '{ user(userId: "a") { follows { aggregate { max(field: NOTE) } } } }'
    told = await made.service.execute(OperationRequest(document, viewer={"sub": "a"}))
    assert told["data"]["user"]["follows"]["aggregate"] == {"max": found}
    codes = [error["extensions"]["code"] for error in told.get("errors", ())]
    assert codes == ([] if found else ["FORBIDDEN"])


async def test_a_key_with_a_part_of_a_field_does_not_open_the_whole_field(make_store: MakeStore) -> None:
    @node("LOG#{log_id}", "{at:%Y-%m}", access=[read(), write()])
    class Log:
        log_id: ID
        at: datetime = stored(access=[STAFF])

    @node("BOX#{box_id}", access=[read()])
    class Box:
        box_id: ID
        things: Many[Thing]

    @record("{box}", "{at:%Y-%m}#{number}", access=[read(), write()])
    class Thing:
        box: Box
        at: datetime = stored(access=[STAFF])
        number: int

    table = Table("Logs", partition_key="PK", sort_key="SK")
    served = world(Graph(table, Log, Box, Thing, writes=True), await make_store(table))
    stored_at = {"box_id": "1", "at": "2024-05-17T08:00:00Z", "number": Decimal(3)}
    await served.put(
        {"PK": "BOX#1", "SK": "BOX#1", "box_id": "1"}, {"PK": "BOX#1", "SK": "2024-05#3", **stored_at}
    )
    await served.put({"PK": "LOG#1", "SK": "2024-05", "log_id": "1", "at": "2024-05-17T08:00:00Z"})
    asked = '{ log(logId: "1", at: "2024-05-01T00:00:00Z") { logId at } }'
    assert await served.service.execute(OperationRequest(asked, viewer={"roles": ["staff"]})) == {
        "data": {"log": {"logId": "1", "at": "2024-05-17T08:00:00Z"}}
    }
    answer = await served.service.execute(OperationRequest(asked))
    assert answer["data"] == {"log": {"logId": "1", "at": None}}
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["FORBIDDEN"]
    # Everybody knows the month, by which the list is sorted, and nobody else the day.
    asked = '{ box(boxId: "1") { things { nodes { number } } } }'
    wanted = {"box": {"things": {"nodes": [{"number": 3}]}}}
    assert await served.ask(asked) == wanted
    for argument in ('at: {from: "2024-05-01T00:00:00Z"}', 'where: {at: {gt: "2024-05-01T00:00:00Z"}}'):
        assert await served.codes(asked.replace("things", f"things({argument})")) == ["FORBIDDEN"]


@pytest.mark.parametrize(
    ("values", "problem", "path"),
    [
        ({"byKey": "BOX#1", "bySort": "unknown~2026-01-01"}, "BAD_USER_INPUT", ["input", "day"]),
        ({"byKey": "BOX#1", "bySort": "000007~2026-01-01", "price": "dear"}, "CORRUPT_ITEM", ["input"]),
    ],
)
async def test_an_odd_value_of_a_hidden_field_is_not_named(
    make_store: MakeStore, values: Item, problem: str, path: list[str]
) -> None:
    by_price = Index("by-price", "byKey", "bySort")

    @node("BOX#{box_id}", access=[read()])
    class Box:
        box_id: ID
        things: Many[Thing]

    rules = [read(), read(fields=["label"]), write()]

    @record("{box}", "{number}", by_price("{box}", "{price:06d}~{day}"), access=rules)
    class Thing:
        box: Box
        number: int
        day: date | None = None
        price: int | None = stored(access=[STAFF, write(role="staff")])

        @field(needs=("price",))
        def label(self) -> str:
            return ""

    table = Table("Things", partition_key="PK", sort_key="SK", indexes=[by_price])
    served = world(Graph(table, Box, Thing, writes=True), await make_store(table))
    await served.put(
        {"PK": "BOX#1", "SK": "BOX#1"},
        {"PK": "BOX#1", "SK": "3", "box_box_id": "1", "day": "2026-01-01", **values},
    )
    asked = 'mutation { updateThing(input: {boxId: "1", number: 3, day: "2026-01-02"}) { thing { number } } }'
    [error] = (await served.service.execute(asked))["errors"]
    assert (error["extensions"]["code"], error["extensions"]["path"]) == (problem, path)
    assert error["message"].endswith("other values of the item do not fit its keys.")
    read_again = await served.service.execute('{ box(boxId: "1") { things { nodes { label } } } }')
    assert ("errors" in read_again) is ("price" in values)
    assert "price" not in f"{error}{read_again}"
