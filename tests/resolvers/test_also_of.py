"""`alsoOf`: what several nodes have in common, on the engines, with what it reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, node, read, viewer
from keygraph.dynamo.items import Item
from keygraph.limits import Limits
from keygraph.walks import common
from keygraph_resolvers import OperationRequest, Service
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers import bounds, differential
from tests.resolvers.made_operations import Maker
from tests.resolvers.worlds import SECRET, World, world
from tests.schemas import schema_of
from tests.tracing import TracingStore

by_day = Index("by-day", "GSI1PK", "GSI1SK")


@node("PERSON#{name}")
class Person:
    name: ID
    friends: Many[Friendship]
    meetings: Many[Meeting]


@edge("{person}", "FRIEND#{friend.name}", mirror=True)
class Friendship:
    person: Person
    friend: Person
    since: int | None = None


@node("PLACE#{place_id}", item=False)
class Place:
    place_id: ID


@edge("{person}", "AT#{place}", by_day("{person}", "DAY#{day}"))
class Meeting:
    """Lists of a person are in the order of the places on the table, and of the days on the index."""

    person: Person
    place: Place
    day: str


graph = Graph(
    Table("People", partition_key="PK", sort_key="SK", indexes=[by_day]),
    Person,
    Place,
    Friendship,
    Meeting,
    store_key_fields=False,
)


@node("USER#{name}", access=[read()])
class User:
    name: ID
    secrets: Many[Secret]


@node("THING#{name}", item=False, access=[read()])
class Thing:
    name: ID


@edge("{user}", "SECRET#{thing}", access=[read(where={"user": viewer("sub")})])
class Secret:
    user: User
    thing: Thing


guarded = Graph(Table("Secrets", partition_key="PK", sort_key="SK"), User, Thing, Secret)


def friendship(one: str, other: str) -> list[Item]:
    return [
        {"PK": f"PERSON#{here}", "SK": f"FRIEND#{there}", "since": Decimal(1)}
        for here, there in ((one, other), (other, one))
    ]


def person(name: str) -> Item:
    return {"PK": f"PERSON#{name}", "SK": f"PERSON#{name}"}


def id_of(name: str) -> str:
    return global_id(graph.types["Person"], (name,))


@pytest.fixture
async def people(make_store: MakeStore) -> World:
    tracer = TracingStore(await make_store(graph.table))
    return World(graph, tracer, Service(schema_of(graph), tracer, secret=SECRET))


async def befriend(world: World, name: str, friends: list[str]) -> None:
    await world.put(person(name), *(item for friend in friends for item in friendship(name, friend)))


DOCUMENT = """
query ($of: [ID!], $first: Int, $last: Int, $after: String, $before: String, $direction: SortDirection) {
  person(name: "ann") {
    friends(alsoOf: $of, first: $first, last: $last, after: $after, before: $before, direction: $direction) {
      edges { cursor since node { name } } pageInfo { hasNextPage hasPreviousPage endCursor }
    }
  }
}
"""
COUNTED = """
query ($of: [ID!]) { person(name: "ann") { friends(alsoOf: $of) { totalCount nodes { name } } } }
"""


async def page(world: World, *of: str, **arguments: Any) -> tuple[list[str], bool, bool, list[str]]:
    answer = await world.ask(DOCUMENT, of=[id_of(name) for name in of], **arguments)
    found = answer["person"]["friends"]
    names = [edge["node"]["name"] for edge in found["edges"]]
    info = found["pageInfo"]
    return names, info["hasPreviousPage"], info["hasNextPage"], [each["cursor"] for each in found["edges"]]


async def test_a_few_friends_of_a_famous_one(people: World) -> None:
    await people.put(*(friendship("bob", f"p{number:04}")[0] for number in range(700)))
    await befriend(people, "ann", ["p0100", "p0690", "stranger"])
    answer = await people.service.execute(OperationRequest(COUNTED, {"of": [id_of("bob")]}, with_cost=True))
    assert [each["name"] for each in answer["data"]["person"]["friends"]["nodes"]] == ["p0100", "p0690"]
    cost = answer["extensions"]["cost"]["byPath"]["person.friends"]
    assert cost["actual"]["items"] <= 3 + common.FIRST_OF_ALL + 3
    assert cost["actual"]["roundTrips"] == 2
    assert "person.friends" in answer["extensions"]["cost"]["open"]


async def test_what_the_viewer_does_not_see_is_not_in_common(make_store: MakeStore) -> None:
    names = ("ann", "bob")
    users = [{"PK": f"USER#{name}", "SK": f"USER#{name}", "name": name} for name in names]
    secrets = [
        {"PK": f"USER#{name}", "SK": "SECRET#THING#1", "user_name": name, "thing_name": "1"} for name in names
    ]
    store = await make_store(guarded.table, *users, *secrets)
    service = Service(schema_of(guarded), store, secret=SECRET)
    asked = '{ user(name: "ann") { secrets(alsoOf: ["%s"]) { totalCount nodes { name } } } }'
    for other, count in (("bob", 0), ("ann", 1)):
        also = global_id(guarded.types["User"], (other,))
        answer = await service.execute(OperationRequest(asked % also, viewer={"sub": "ann"}))
        assert answer["data"]["user"]["secrets"]["totalCount"] == count


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            [global_id(graph.types["Place"], ("1",))],
            "alsoOf: expected ids of Person, and this is one of Place",
        ),
        ([id_of(str(number)) for number in range(11)], "alsoOf: at most 10 ids"),
    ],
)
async def test_ids_that_cannot_be(people: World, ids: list[str], message: str) -> None:
    await people.put(person("ann"))
    assert await people.errors(DOCUMENT, of=ids) == [("BAD_USER_INPUT", message)]


async def test_the_budget_ends_a_page_where_one_can_go_on(make_store: MakeStore) -> None:
    tracer = TracingStore(await make_store(graph.table))
    service = Service(schema_of(graph), tracer, secret=SECRET, limits=Limits(read_budget=150))
    world = World(graph, tracer, service)
    for name, first in (("ann", 0), ("bob", 1)):
        friends = [*(f"p{number:04}" for number in range(first, 600, 2)), "zoe"]
        await world.put(person(name), *(friendship(name, friend)[0] for friend in friends))
    names, after, turns = [], None, 0
    while True:
        some, _, more, _ = await page(world, "bob", after=after)
        names += some
        turns += 1
        if not more:
            break
        answer = await world.ask(DOCUMENT, of=[id_of("bob")], after=after)
        after = answer["person"]["friends"]["pageInfo"]["endCursor"]
    assert names == ["zoe"]
    assert 2 <= turns < 6
    counted = await service.execute(COUNTED, {"of": [id_of("bob")]})
    assert counted["data"]["person"]["friends"]["totalCount"] is None
    assert [each["code"] for each in counted["extensions"]["warnings"]] == ["COUNT_LIMIT"]


class Common(Maker):
    """Makes operations of which most lists ask for what is in common."""

    def arguments(self, type_: Any, name: str, definition: Any, here: tuple[str, ...]) -> str:
        text = super().arguments(type_, name, definition, here)
        if "alsoOf" not in definition.args or "alsoOf" in text or self.chance(3):
            return text
        also = f"alsoOf: {self.others(type_.name)}"
        return f"({also})" if not text else f"{text[:-1]}, {also})"


@pytest.mark.parametrize("name", ["social", "library", "commerce", "talent"])
async def test_one_answer_and_a_bound(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in {"FIRST": 2, "FIRST_OF_ALL": 3, "MOST_KEYS": 2, "ITEMS_OF_A_KEY": 4}.items():
        monkeypatch.setattr(common, constant, value)
    monkeypatch.setattr(differential, "Maker", Common)
    monkeypatch.setattr(bounds, "Maker", Common)
    async with differential.served(name, 0, tmp_path) as world:
        for seed in range(12):
            await world.check(Random(seed).randrange)
        found = [each for seed in range(8) for each in await bounds.exceeded(world, Random(seed).randrange)]
    assert found == []


async def test_what_the_index_lacks_is_looked_up_with_the_total_too(
    make_store: MakeStore, engine: str
) -> None:
    schema, items = differential.model("billing")
    billing = world(schema.graph, await make_store(schema.graph.table, *items))
    bill = schema.graph.types["Bill"]
    document = """query ($other: [ID!], $to: [ID!]) { bill(billId: "4224687") {
      invoices(alsoOf: $other, to: $to) { %s edges { note node { invoiceId } } } } }"""
    for given in ({"other": [global_id(bill, ("4224702",))]}, {"to": ["92551", "92552"]}):
        page = await billing.ask(document % "", **given)
        whole = await billing.ask(document % "totalCount", **given)
        assert whole["bill"]["invoices"]["edges"] == page["bill"]["invoices"]["edges"]
        assert any(edge["note"] for edge in page["bill"]["invoices"]["edges"])
        answer = await billing.service.execute(
            OperationRequest(document % "totalCount", given, with_cost=True)
        )
        cost = answer["extensions"]["cost"]
        # moto says that a Query takes 1 unit, whatever it reads, and a key too.
        for name in ("requests", "roundTrips", "items", *(["readUnits"] if engine != "moto" else [])):
            assert cost["actual"][name] <= cost["bound"][name], name
