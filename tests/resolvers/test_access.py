"""Who may see what: what somebody may not see is as if it did not exist, and costs no request where a key decides it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
import strawberry

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    Viewer,
    edge,
    field,
    many,
    node,
    one,
    read,
    record,
    ref,
    stored,
    ttl,
    viewer,
    write,
)
from keygraph.declare.decorators import One
from keygraph.dynamo.items import Item
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.read.run import Run
from tests.conftest import MakeStore
from tests.resolvers.worlds import SECRET, World, world

by_customer = Index("by-customer", "customerKey", "orderKey")
by_state = Index("by-state", "stateKey", "placed")
TABLE = Table("Shop", partition_key="PK", sort_key="SK", indexes=[by_customer, by_state])
OWN = read(where={"user_id": viewer("sub")})
SUPPORT = read(role="support")


class State(Enum):
    OPEN = "open"
    PAID = "paid"


@node("USER#{user_id}", access=[read(where={"hidden": False}), SUPPORT])
class User:
    user_id: ID
    name: str
    hidden: bool = False
    email: str = stored("mail", access=[OWN, SUPPORT])
    level: int = stored(access=[read(where={"name": viewer("name")}), SUPPORT], default=0)

    orders: Many[Order] = many(access=[OWN, read(role="audit"), SUPPORT])
    friends: Many[Friend] = many()
    secrets: Many[Secret] = many(access=[read(where={"name": viewer("name")})])

    @field(needs=("email",))
    def greeting(self) -> str:
        return f"Dear {self.email}"

    @field(needs=("user_id",))
    async def relation(self, viewer: Viewer, polite: bool = False) -> str:
        found = "you" if viewer.get("sub") == self.user_id else "somebody"
        return f"{found}{', please' if polite else ''} {sorted(viewer.roles)}"


@edge("{user}", "FRIEND#{other.user_id}", access=[read()])
class Friend:
    user: User
    other: User
    since: int


@record("{user}", "SECRET#{number}", access=[read()])
class Secret:
    user: User
    number: int


@node(
    "ORDER#{order_id}",
    by_customer("{customer}", "{placed}"),
    by_state("STATE#{state}", "{placed}", lists="by_state"),
    access=[
        read(where={"customer": viewer("sub")}),
        read(role="audit", where={"state": State.PAID}),
        SUPPORT,
    ],
)
class Order:
    order_id: ID
    customer: User
    state: State
    placed: str
    total: Decimal = stored(access=[read(where={"customer": viewer("sub")}), SUPPORT])

    lines: Many[Line] = many()
    first: One[Line] = one()


@record("{order}", "LINE#{number}", access=[read(where={"hidden": False}), SUPPORT])
class Line:
    order: Order
    number: int
    hidden: bool = False


graph = Graph(TABLE, User, Friend, Secret, Order, Line, attribute_case="camel", type_attribute="type").check()


def user(user_id: str, **values: Any) -> Item:
    key = f"USER#{user_id}"
    return {
        "PK": key,
        "SK": key,
        "type": "User",
        "userId": user_id,
        "name": user_id,
        "mail": f"{user_id}@",
        **values,
    }


def friend(one_id: str, other: str) -> Item:
    keys = {"PK": f"USER#{one_id}", "SK": f"FRIEND#{other}", "type": "Friend"}
    return {**keys, "userId": one_id, "otherId": other, "since": Decimal(2000)}


def order(order_id: str, customer: str, state: str = "open") -> Item:
    key = f"ORDER#{order_id}"
    keys = {"PK": key, "SK": key, "customerKey": f"USER#{customer}", "orderKey": order_id}
    keys |= {"stateKey": f"STATE#{state}", "placed": order_id}
    return {
        **keys, "type": "Order", "orderId": order_id, "customerId": customer, "state": state, "total": Decimal(5),
    }  # fmt: skip


def line(order_id: str, number: int, **values: Any) -> Item:
    keys = {"PK": f"ORDER#{order_id}", "SK": f"LINE#{number}", "type": "Line"}
    return {**keys, "orderId": order_id, "number": Decimal(number), **values}


ITEMS = [
    user("a", level=Decimal(3)),
    user("b", level=Decimal(4)),
    user("h", hidden=True),
    friend("a", "b"),
    friend("a", "h"),
    friend("a", "x"),
    friend("h", "a"),
    *(order(f"a{number}", "a", "paid" if number % 3 == 0 else "open") for number in range(9)),
    order("b0", "b", "paid"),
    order("h0", "h"),
    *(line("a0", number, hidden=number % 2 == 0) for number in range(6)),
    {"PK": "USER#a", "SK": "SECRET#1", "type": "Secret", "userId": "a", "number": Decimal(1)},
]


@dataclass
class Shop:
    """A shop that several people ask."""

    world: World

    async def answer(self, document: str, claims: Any = None, **variables: Any) -> Any:
        self.world.forget()
        return await self.world.service.execute(OperationRequest(document, variables, viewer=claims))

    async def ask(self, document: str, claims: Any = None, **variables: Any) -> Any:
        found = await self.answer(document, claims, **variables)
        assert "errors" not in found, found["errors"]
        return found["data"]

    async def errors(self, document: str, claims: Any = None) -> list[Any]:
        found = await self.answer(document, claims)
        return [(error["path"], error["extensions"]["code"]) for error in found["errors"]]

    @property
    def requests(self) -> int:
        return len(self.world.tracer.requests)


@pytest.fixture
async def shop(make_store: MakeStore) -> Shop:
    made = world(graph, await make_store(graph.table, *ITEMS))
    return Shop(made)


A = {"sub": "a", "name": "a"}
B = {"sub": "b", "name": "b"}
HELP = {"sub": "s", "roles": ["support"]}
AUDIT = {"roles": "audit"}


async def test_a_hidden_node_is_as_if_it_did_not_exist(shop: Shop) -> None:
    ids = {name: (await shop.ask(f'{{ user(userId: "{name}") {{ id }} }}', HELP))["user"] for name in "ah"}
    hidden = ids["h"]["id"]
    for claims in (None, A, B):
        assert await shop.ask('{ user(userId: "h") { userId name orders { totalCount } } }', claims) == {
            "user": None
        }
        assert shop.requests == 1
        assert await shop.ask("query ($id: ID!) { node(id: $id) { id __typename } }", claims, id=hidden) == {
            "node": None
        }
    assert (await shop.ask('{ user(userId: "h") { name } }', HELP))["user"] == {"name": "h"}
    asked = "{{ user(userId: {}) {{ name friends {{ totalCount }} }} }}"
    found = [
        await shop.world.service.execute(
            OperationRequest(asked.format(f'"{name}"'), viewer=A, with_cost=True)
        )
        for name in "hx"
    ]
    assert found[0] == found[1]


async def test_the_far_node_of_an_edge_is_read_to_know_whether_it_is_seen(shop: Shop) -> None:
    document = (
        '{ user(userId: "a") { friends { totalCount edges { since node { userId } } nodes { userId } } } }'
    )
    friends = (await shop.ask(document, B))["user"]["friends"]
    assert friends == {
        "totalCount": 3,
        "edges": [{"since": 2000, "node": {"userId": "b"}}, *[{"since": 2000, "node": None}] * 2],
        "nodes": [{"userId": "b"}],
    }
    assert shop.world.operations == {"GetItem": 1, "Query": 1, "Count": 1, "BatchGetItem": 1}
    friends = (await shop.ask(document, HELP))["user"]["friends"]
    assert [each["userId"] for each in friends["nodes"]] == ["b", "h", "x"]
    assert shop.world.operations == {"GetItem": 1, "Query": 1, "Count": 1}


async def test_what_a_key_decides_is_decided_before_reading(shop: Shop) -> None:
    document = '{ user(userId: "%s") { orders { totalCount nodes { orderId total } } } }'
    found = await shop.ask(document % "a", A)
    assert found["user"]["orders"]["totalCount"] == 9
    assert [each["total"] for each in found["user"]["orders"]["nodes"]] == ["5"] * 9
    assert await shop.errors(document % "a", B) == [(["user", "orders"], "FORBIDDEN")]
    assert shop.requests == 1
    # An auditor may go there, and sees what is paid; nothing of that has a total for them.
    found = await shop.answer(document % "a", AUDIT)
    orders = found["data"]["user"]["orders"]
    assert (orders["totalCount"], orders["nodes"]) == (
        3,
        [{"orderId": f"a{n}", "total": None} for n in (0, 3, 6)],
    )
    assert {error["extensions"]["code"] for error in found["errors"]} == {"FORBIDDEN"}
    assert len(found["errors"]) == 3


async def test_a_cursor_does_not_tell_that_its_item_is_there(shop: Shop) -> None:
    document = """query ($after: String, $first: Int) { byState(state: %s, first: $first, after: $after) {
      nodes { orderId } pageInfo { hasPreviousPage hasNextPage endCursor } } }"""
    cursors = {}
    for state in ("PAID", "OPEN"):
        found = (await shop.ask(document % state, HELP, first=1))["byState"]
        cursors[state] = found["pageInfo"]["endCursor"]
    hidden = {"sub": "nobody"}
    for state, cursor in cursors.items():
        for first in (0, 1):
            found = (await shop.ask(document % state, hidden, first=first, after=cursor))["byState"]
            info = found["pageInfo"]
            assert (found["nodes"], info["hasPreviousPage"], info["hasNextPage"]) == ([], False, False)
    own = (await shop.ask(document % "PAID", A, first=0, after=cursors["PAID"]))["byState"]["pageInfo"]
    assert own["hasPreviousPage"] is True
    other = (await shop.ask(document % "PAID", B, first=0, after=cursors["PAID"]))["byState"]["pageInfo"]
    assert other["hasPreviousPage"] is False


async def test_a_cursor_of_another_viewer_gives_ones_own_list_from_there(shop: Shop) -> None:
    document = """query ($after: String) { byState(state: PAID, after: $after) {
      edges { cursor node { orderId } } } }"""
    everybody = (await shop.ask(document, HELP))["byState"]["edges"]
    for claims in (A, B):
        own = [each["node"] for each in (await shop.ask(document, claims))["byState"]["edges"]]
        for number, each in enumerate(everybody, 1):
            found = (await shop.ask(document, claims, after=each["cursor"]))["byState"]["edges"]
            behind = [other["node"] for other in everybody[number:]]
            assert [each["node"] for each in found] == [each for each in behind if each in own]


async def test_viewers_who_ask_at_the_same_time_share_nothing(shop: Shop) -> None:
    document = """{ byState(state: PAID) { totalCount nodes { orderId customer { name email } } }
      user(userId: "a") { name email orders { nodes { orderId } } } }"""
    viewers = [A, B, HELP, AUDIT, None]
    alone = [await shop.answer(document, each) for each in viewers]
    assert len({str(each) for each in alone}) == len(viewers)
    together = await asyncio.gather(
        *(shop.world.service.execute(OperationRequest(document, {}, viewer=each)) for each in viewers * 3)
    )
    assert together == alone * 3


async def test_the_limit_of_cost_does_not_tell_how_much_is_hidden(make_store: MakeStore, engine: str) -> None:
    if engine == "moto":
        pytest.skip("moto says that a read takes half a unit, however large the item is")
    made = world(graph, await make_store(graph.table), cost_limit=5)
    await made.put(user("big", hidden=True, blob="x" * 300_000))
    answer = await made.service.execute(OperationRequest('{ user(userId: "big") { name } }', viewer=B))
    [error] = answer["errors"]
    assert error["extensions"] == {"code": "COST_LIMIT", "limit": 5}
    assert "user" not in error["message"]


async def test_a_page_of_hidden_items_ends_at_the_read_budget(make_store: MakeStore) -> None:
    made = world(graph, await make_store(graph.table), read_budget=10)
    await made.put(order("a0", "a"), *(line("a0", number, hidden=0 < number < 39) for number in range(40)))
    document = """query ($after: String) { order(orderId: "a0") { lines(first: 2, after: $after) {
      nodes { number } pageInfo { hasNextPage endCursor } } } }"""
    pages: list[list[int]] = []
    after = None
    while not pages or after is not None:
        told = await made.service.execute(OperationRequest(document, {"after": after}, viewer=A))
        lines = told["data"]["order"]["lines"]
        pages.append([each["number"] for each in lines["nodes"]])
        after = lines["pageInfo"]["endCursor"] if lines["pageInfo"]["hasNextPage"] else None
    assert pages[0] == [0]
    assert [number for each in pages for number in each] == [0, 39]
    assert len(pages) > 2


async def test_lists_from_the_root(shop: Shop) -> None:
    document = "{ byState(state: PAID) { totalCount nodes { orderId customer { name } } } }"
    found = (await shop.ask(document, B))["byState"]
    assert found == {"totalCount": 1, "nodes": [{"orderId": "b0", "customer": {"name": "b"}}]}
    assert (await shop.ask(document, AUDIT))["byState"]["totalCount"] == 4
    found = await shop.ask("{ byState(state: OPEN) { totalCount nodes { orderId } } }", AUDIT)
    assert found == {"byState": {"totalCount": 0, "nodes": []}}
    assert shop.requests == 0
    assert (await shop.ask(document))["byState"] == {"totalCount": 0, "nodes": []}
    assert shop.requests == 0


async def test_fields_of_somebody_else(shop: Shop) -> None:
    document = '{ user(userId: "a") { name email greeting level } }'
    assert await shop.ask(document, A) == {
        "user": {"name": "a", "email": "a@", "greeting": "Dear a@", "level": 3}
    }
    found = await shop.answer(document, B)
    assert found["data"] == {"user": {"name": "a", "email": None, "greeting": None, "level": None}}
    assert [(error["path"][1], error["extensions"]["code"]) for error in found["errors"]] == [
        ("email", "FORBIDDEN"),
        ("greeting", "FORBIDDEN"),
        ("level", "FORBIDDEN"),
    ]
    assert found["errors"][0]["message"] == "User.email: you may not read this field"
    both = '{ a: user(userId: "a") { email } b: user(userId: "b") { mail: email } }'
    assert (await shop.answer(both, B))["data"] == {"a": {"email": None}, "b": {"mail": "b@"}}


async def test_a_list_that_the_owners_item_decides(shop: Shop) -> None:
    document = '{ user(userId: "a") { secrets { nodes { number } } } }'
    assert await shop.ask(document, A) == {"user": {"secrets": {"nodes": [{"number": 1}]}}}
    assert await shop.errors(document, B) == [(["user", "secrets"], "FORBIDDEN")]
    assert shop.requests == 1


@pytest.mark.parametrize("where", ['total: {eq: "5"}', 'not: {total: {eq: "6"}}', 'or: [{total: {gt: "1"}}]'])
async def test_a_hidden_field_cannot_be_filtered_by(shop: Shop, where: str) -> None:
    document = f"{{ byState(state: PAID, where: {{{where}}}) {{ nodes {{ orderId }} totalCount }} }}"
    assert await shop.errors(document, AUDIT) == [(["byState"], "FORBIDDEN")]
    assert (await shop.ask(document, B))["byState"] == {"nodes": [{"orderId": "b0"}], "totalCount": 1}
    assert (await shop.ask(document, HELP))["byState"]["totalCount"] == 4


async def test_the_cost_does_not_tell_what_is_there(shop: Shop) -> None:
    document = '{ user(userId: "h") { name } }'
    found = await shop.world.service.execute(OperationRequest(document, viewer=B, with_cost=True))
    cost = found["extensions"]["cost"]
    assert (cost["actual"], cost["requests"], cost["bound"]["requests"]) == (None, [], 1)
    found = await shop.world.service.execute(OperationRequest(document, viewer=HELP, with_cost=True))
    assert found["extensions"]["cost"]["actual"]["items"] == 1


async def test_the_cost_tells_what_keys_tell(make_store: MakeStore, engine: str) -> None:
    mine = {"tenant": viewer("tenant")}

    @node("T#{tenant}#FILE#{name}", access=[read(where=mine), write(where=mine)])
    class File:
        tenant: str
        name: str
        text: str | None = stored(access=[read(role="boss"), write()])

    table = Table("Files", partition_key="PK", sort_key="SK")
    made = world(Graph(table, File).check(), await make_store(table))
    for name in ("small", "large"):
        key = f"T#a#FILE#{name}"
        text = "x" * (100_000 if name == "large" else 10)
        await made.put({"PK": key, "SK": key, "tenant": "a", "name": name, "text": text})

    async def actual(document: str, **claims: Any) -> Any:
        found = await made.service.execute(OperationRequest(document, viewer=claims, with_cost=True))
        return found["extensions"]["cost"]["actual"]

    document = '{ file(tenant: "a", name: "%s") { name } }'
    # moto says that a read takes half a unit, however large the item is.
    units = 0.5 if engine == "moto" else 12.5
    assert (await actual(document % "large", tenant="a", roles=["boss"]))["readUnits"] == units
    assert await actual(document % "large", tenant="a") is None
    for name in ("large", "none"):
        assert (await actual(document % name, tenant="b", roles=["boss"]))["requests"] == 0
    change = 'mutation { updateFile(input: {tenant: "a", name: "large", text: "y"}) { clientMutationId } }'
    assert await actual(change, tenant="a") is None


async def test_the_cost_does_not_tell_of_another_type_with_that_key(make_store: MakeStore) -> None:
    @node("{name}", "WHO", type="PERSON", access=[read()])
    class Person:
        name: ID

    @node("{name}", "WHO", type="FIRM", access=[read(where={"boss": viewer("sub")})])
    class Firm:
        name: ID
        boss: str | None

    @node("{name}", "PLACE", type="PLACE", access=[read()])
    class Place:
        name: ID

    @node("{name}", "CAR", type="CAR", access=[read()])
    class Car:
        name: ID

    @node("{name}", "CAR", type={"kind": "CAR", "use": "TAXI"}, access=[read(where={"boss": viewer("sub")})])
    class Taxi:
        name: ID
        boss: str | None

    table = Table("Names", partition_key="PK", sort_key="SK")
    graph = Graph(table, Person, Firm, Place, Car, Taxi, type_attribute="kind").check()
    made = world(graph, await make_store(table))
    await made.put({"PK": "h", "SK": "WHO", "kind": "FIRM", "boss": "c", "more": "x" * 9_000})
    await made.put({"PK": "h", "SK": "CAR", "kind": "CAR", "use": "TAXI", "boss": "c"})
    for document, is_told in (
        ('{ person(name: "h") { name } }', False),
        ('{ person(name: "none") { name } }', False),
        ('{ car(name: "h") { name } }', False),
        ('{ place(name: "none") { name } }', True),
    ):
        found = await made.service.execute(OperationRequest(document, viewer=A, with_cost=True))
        cost = found["extensions"]["cost"]
        assert [*found["data"].values()] == [None]
        assert (cost["actual"] is not None, cost["bound"]["requests"]) == (is_told, 1)


async def test_hidden_items_of_one_node_in_two_shards(make_store: MakeStore) -> None:
    @node("BOX#{name}#{shard}", "BOX", shards=3, access=[read(where={"owner": viewer("sub")})])
    class Box:
        name: ID
        owner: str | None

    table = Table("Boxes", partition_key="PK", sort_key="SK")
    made = world(Graph(table, Box).check(), await make_store(table))
    for name, owners in {"hidden": "cc", "mine": "ca", "both": "aa"}.items():
        await made.put(
            *({"PK": f"BOX#{name}#{n}", "SK": "BOX", "owner": owner} for n, owner in enumerate(owners))
        )
    found = {}
    for name in ("none", "hidden", "mine", "both"):
        answer = await made.service.execute(
            OperationRequest(f'{{ box(name: "{name}") {{ owner }} }}', viewer=A)
        )
        found[name] = answer["data"]["box"], [each["message"] for each in answer.get("errors", [])]
    twice = "Box: two items, in different shards, have the key of this one"
    assert found == {
        "none": (None, []),
        "hidden": (None, []),
        "mine": ({"owner": "a"}, []),
        "both": (None, [twice]),
    }


async def test_a_list_of_several_types_that_only_their_keys_tell_apart(make_store: MakeStore) -> None:
    """The store lets an item pass by the conditions of another type with its type value."""

    @node("ORDER#{order_id}", "HEAD", type="order", access=[read()])
    class Order:
        order_id: ID
        both: Many[Line | Note]

    @record("{order}", "LINE#{number}", type="order", access=[read()])
    class Line:
        order: Order
        number: int

    @record("{order}", "NOTE#{number}", type="order", access=[read(where={"author": viewer("sub")})])
    class Note:
        order: Order
        number: int
        author: str
        until: datetime | None = ttl()

    table = Table("Notes", partition_key="PK", sort_key="SK")
    graph = Graph(table, Order, Line, Note, type_attribute="Type", explore=True).check()
    made = world(graph, await make_store(table))
    notes = [("ann", None), ("bob", None), ("bob", 1)]
    await made.put(
        {"PK": "ORDER#1", "SK": "HEAD", "Type": "order"},
        {"PK": "ORDER#1", "SK": "LINE#1", "Type": "order"},
        *(
            {"PK": "ORDER#1", "SK": f"NOTE#{n}", "Type": "order", "author": author}
            | ({} if until is None else {"until": Decimal(until)})
            for n, (author, until) in enumerate(notes)
        ),
    )
    fields = "totalCount aggregate { count note { count } } nodes { ... on Line { number } ... on Note { number author } }"
    where = 'where: { note: { author: { eq: "ann" } } }'
    for viewer_, mine in (({"sub": "bob"}, [{"number": 1, "author": "bob"}]), ({}, [])):
        for name in ("both", "neighbours"):
            answer = await made.service.execute(
                OperationRequest(f'{{ order(orderId: "1") {{ {name} {{ {fields} }} }} }}', viewer=viewer_)
            )
            count = {"count": 1 + len(mine), "note": {"count": len(mine)}}
            assert answer["data"]["order"][name] == {
                "totalCount": 1 + len(mine),
                "aggregate": count,
                "nodes": [{"number": 1}, *mine],
            }
        answer = await made.service.execute(
            OperationRequest(f'{{ order(orderId: "1") {{ both({where}) {{ {fields} }} }} }}', viewer=viewer_)
        )
        assert answer["data"]["order"]["both"]["nodes"] == [{"number": 1}]


async def test_to_reads_no_index_with_a_part_that_an_edge_lacks_or_that_is_hidden(
    make_store: MakeStore,
) -> None:
    by_length = Index("by-length", "lengthP", "lengthS")
    by_day = Index("by-day", "dayP", "dayS")
    by_fee = Index("by-fee", "feeP", "feeS")
    secret = [read(role="staff"), write()]

    @node("TOWN#{name}", access=[read()])
    class Town:
        name: ID
        roads: Many[Road] = many(at="start", index=None)
        tracks: Many[Track] = many(at="start", index=None)
        ferries: Many[Ferry] = many(at="start", index=None)

    @edge("{start}", "ROAD#{day}#{end.name}", by_length("{start}", "{end.name}#{length}"), access=[read()])
    class Road:
        start: Town
        end: Town
        day: str
        length: int | None

    @edge("{start}", "TRACK#{day}#{end.name}", by_day("{start}", "{end.name}#{day}"), access=[read()])
    class Track:
        start: Town
        end: Town
        day: str

    @edge("{start}", "FERRY#{day}#{end.name}", by_fee("{start}", "{end.name}#{fee}"), access=[read()])
    class Ferry:
        start: Town
        end: Town
        day: str
        fee: int = stored(access=secret)

    table = Table("Roads", partition_key="PK", sort_key="SK", indexes=[by_length, by_day, by_fee])
    graph = Graph(table, Town, Road, Track, Ferry).check()
    both = {name: path.keys_of_both_ends for (_, name), path in graph.node_lists.items()}
    assert {name: keys and keys.index_name for name, keys in both.items()} == {
        "roads": None,
        "tracks": "by-day",
        "ferries": None,
    }
    made = world(graph, await make_store(table))
    road = {"PK": "TOWN#a", "SK": "ROAD#1#b", "start_name": "a", "end_name": "b", "day": "1"}
    await made.put(
        {"PK": "TOWN#a", "SK": "TOWN#a"}, road, {**road, "SK": "TRACK#1#b", "dayP": "TOWN#a", "dayS": "b#1"}
    )
    found = await made.service.execute(
        OperationRequest(
            '{ town(name: "a") { roads { totalCount } tracks(to: ["b"]) { totalCount } } }', viewer=A
        )
    )
    assert found["data"]["town"] == {"roads": {"totalCount": 1}, "tracks": {"totalCount": 1}}
    for name in ("roads", "ferries"):
        document = f'{{ town(name: "a") {{ {name}(to: ["b"]) {{ totalCount }} }} }}'
        found = await made.service.execute(OperationRequest(document, viewer=A))
        assert found["errors"][0]["message"].startswith("Unknown argument 'to'")


async def test_a_plan_is_nobodys(shop: Shop) -> None:
    document = (
        '{ byState(state: PAID) { nodes { orderId } } user(userId: "a") { email orders { totalCount } } }'
    )
    for claims, count in ((A, 3), (B, 1), (HELP, 4), (None, 0), (AUDIT, 4), (A, 3)):
        found = (await shop.answer(document, claims))["data"]
        assert len(found["byState"]["nodes"]) == count
        assert (found["user"]["email"] is not None) == (claims in (A, HELP))


async def test_the_bound_holds(shop: Shop) -> None:
    document = """{ byState(state: PAID, first: 3) { totalCount nodes { orderId customer { userId friends { nodes { userId
      orders(first: 2) { nodes { lines { nodes { number } } first { number } } } } } } } } user(userId: "a") { secrets {
      totalCount } friends(to: []) { totalCount } orders(first: 2) { nodes { total } pageInfo { hasNextPage } } } }"""
    for claims in (A, B, HELP, None, AUDIT):
        bound = shop.world.service.explain(document, viewer=claims).bound.total
        shop.world.forget()
        await shop.world.service.execute(OperationRequest(document, viewer=claims))
        assert shop.requests <= bound.requests


async def test_a_method_is_given_whoever_asks(shop: Shop) -> None:
    document = '{ user(userId: "a") { relation mine: relation(polite: true) } }'
    assert await shop.ask(document, A) == {"user": {"relation": "you []", "mine": "you, please []"}}
    assert await shop.ask(document, HELP) == {
        "user": {"relation": "somebody ['support']", "mine": "somebody, please ['support']"}
    }
    assert (await shop.ask(document))["user"]["relation"] == "somebody []"
    found = await shop.ask('{ __type(name: "User") { fields { name args { name } } } }')
    assert {"name": "relation", "args": [{"name": "polite"}]} in found["__type"]["fields"]


async def test_fields_of_the_root_are_given_whoever_asks(shop: Shop) -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        def me(self, info: strawberry.Info[Run, None]) -> str:
            return f"{info.context.viewer.get('sub')} {sorted(info.context.viewer.roles)}"

    service = Service(build_schema(graph, query=Query), shop.world.tracer, secret=SECRET)
    answers = [
        await service.execute(OperationRequest("{ me }", viewer=claims)) for claims in (A, AUDIT, None)
    ]
    assert [each["data"]["me"] for each in answers] == ["a []", "None ['audit']", "None []"]


async def test_nodes_that_methods_and_finders_give(make_store: MakeStore) -> None:
    by_mail = Index("by-mail", "mailKey", "mailSort")

    @node(
        "U#{user_id}",
        by_mail("MAIL#{mail}", "{user_id}", finds="user_by_mail"),
        access=[read(where={"hidden": False}), read(role="support")],
    )
    class User:
        user_id: ID
        mail: str
        hidden: bool = False
        age: int | None
        best: str | None

        @field(needs=("best",))
        def friend(self) -> User | None:
            return ref(User, user_id=self.best) if self.best else None

        @field(needs=("best",))
        def friends(self) -> list[User]:
            return [ref(User, user_id=each) for each in (self.best or "").split(",")]

    table = Table("Users", partition_key="PK", sort_key="SK", indexes=[by_mail])
    made = world(Graph(table, User).check(), await make_store(table))
    for name, best in (("a", "h"), ("b", "none"), ("c", "h,a,none"), ("h", "a")):
        keys = {"PK": f"U#{name}", "SK": f"U#{name}", "mailKey": f"MAIL#{name}@", "mailSort": name}
        # Nobody could say how old the hidden one is.
        age: Any = "old" if name == "h" else Decimal(7)
        values = {"user_id": name, "mail": f"{name}@", "hidden": name == "h", "age": age, "best": best}
        await made.put({**keys, **values})
    shop = Shop(made)
    for name in "ab":
        found = await shop.answer(f'{{ user(userId: "{name}") {{ friend {{ userId age }} }} }}')
        assert found == {"data": {"user": {"friend": None}}}
    found = await shop.ask('{ user(userId: "c") { friends { userId } } }')
    assert found == {"user": {"friends": [None, {"userId": "a"}, None]}}
    for mail, answer in (("h@", None), ("none@", None), ("a@", {"userId": "a"})):
        assert await shop.ask(f'{{ userByMail(mail: "{mail}") {{ userId }} }}') == {"userByMail": answer}
    for name in ("h", "none"):
        assert await shop.answer(f'{{ user(userId: "{name}") {{ age }} }}') == {"data": {"user": None}}
    assert await shop.errors('{ user(userId: "h") { age } }', HELP) == [(["user", "age"], "CORRUPT_ITEM")]
