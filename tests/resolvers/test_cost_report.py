"""`extensions.cost`: what an operation has cost, when somebody asks."""

from __future__ import annotations

from typing import Any

import pytest
import strawberry

from keygraph.errors import BadUserInput
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.plan.cost import Spent
from tests.conftest import on_exact_engines
from tests.resolvers.worlds import SECRET, World

DOCUMENT = """{
  user(userId: "12345") {
    name
    orders(first: 2) { totalCount nodes { total items { edges { quantity node { name seller { name } } } } } }
  }
}"""


@on_exact_engines
async def test_nothing_is_told_unasked(shop: World) -> None:
    answer = await shop.service.execute(DOCUMENT)
    assert list(answer) == ["data"]
    assert answer["data"] == (await shop.service.execute(OperationRequest(DOCUMENT, with_cost=True)))["data"]


@on_exact_engines
async def test_what_is_told(shop: World) -> None:
    told = (await shop.service.execute(OperationRequest(DOCUMENT, with_cost=True)))["extensions"]["cost"]
    actual = told["actual"]
    assert (actual["requests"], actual["roundTrips"]) == (7, 4)
    assert actual["waitedMs"] > 0
    requests = told["requests"]
    shown = sorted(
        (each["roundTrip"], each["operation"], each["counts"], *each["paths"]) for each in requests
    )
    assert shown == [
        (1, "GetItem", False, "user"),
        (1, "Query", False, "user.orders"),
        (1, "Query", True, "user.orders"),
        (2, "Query", False, "user.orders.items"),
        (2, "Query", False, "user.orders.items"),
        (3, "BatchGetItem", False, "user.orders.items"),
        (4, "BatchGetItem", False, "user.orders.items.seller"),
    ]
    assert {each["index"] for each in requests if each["paths"] == ["user.orders"]} == {"GSI1"}
    assert {each["keys"] for each in requests if each["operation"] != "BatchGetItem"} == {
        "PK = USER#12345 AND SK = USER#12345",
        "GSI1PK = USER#12345 AND begins_with(GSI1SK, ORDER#)",
        "PK = ORDER#ORD001 AND begins_with(SK, PRODUCT#)",
        "PK = ORDER#ORD003 AND begins_with(SK, PRODUCT#)",
    }
    assert [each["keys"] for each in requests if each["roundTrip"] == 4] == [
        "PK = USER#67890 AND SK = USER#67890, PK = USER#98765 AND SK = USER#98765"
    ]
    assert all(0 <= each["beganMs"] <= each["endedMs"] for each in requests)
    assert sum(shop.operations.values()) == 7
    assert set(told["byPath"]) == {
        "user",
        "user.orders",
        "user.orders.items",
        "user.orders.items.seller",
    }
    for name in ("items", "readUnits"):
        # Nothing is counted twice, and nothing is left out.
        assert sum(each["actual"][name] for each in told["byPath"].values()) == pytest.approx(actual[name])
    for each in told["byPath"].values():
        assert each["actual"]["requests"] <= each["bound"]["requests"]


@on_exact_engines
async def test_a_request_of_several_places_is_shared_out_by_keys(shop: World) -> None:
    ids = [global_id(shop.graph.types["User"], (user,)) for user in ("67890", "98765")]
    document = """query ($ids: [ID!]!) { one: user(userId: "12345") { name }
      two: nodes(ids: $ids) { ... on User { name } } }"""
    answer = await shop.service.execute(OperationRequest(document, {"ids": ids}, with_cost=True))
    assert "errors" not in answer
    told = answer["extensions"]["cost"]
    assert told["actual"]["requests"] == 1
    spent = {path: each["actual"] for path, each in told["byPath"].items()}
    assert {path: (each["requests"], each["readUnits"]) for path, each in spent.items()} == {
        "one": (1, 0.5),
        "two": (1, 1.0),
    }


@on_exact_engines
async def test_a_place_where_nothing_was_read_says_so(shop: World) -> None:
    document = '{ user(userId: "nobody") { name orders { nodes { items { nodes { productId } } } } } }'
    told = (await shop.service.execute(OperationRequest(document, with_cost=True)))["extensions"]["cost"]
    assert told["byPath"]["user.orders.items"]["actual"] is None
    assert told["byPath"]["user.orders.items"]["bound"]["requests"] == 20


def test_waiting_is_counted_once_for_requests_at_one_time() -> None:
    spent = Spent(times=[(0.0, 0.010), (0.005, 0.015), (0.002, 0.003), (0.100, 0.120)])
    assert spent.waited == pytest.approx(35)


@on_exact_engines
async def test_what_graphql_core_answers_is_said(shop: World) -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        async def now(self) -> str:
            return "noon"

    @strawberry.type
    class Mutation:
        @strawberry.mutation
        def write(self, number: int) -> int | None:
            if number < 0:
                raise BadUserInput("negative")
            return number

    schema = build_schema(shop.graph, query=Query, mutation=Mutation)
    service = Service(schema, shop.tracer, secret=SECRET)

    async def told(document: str) -> Any:
        return (await service.execute(OperationRequest(document, with_cost=True)))["extensions"]["cost"]

    cost = await told(
        '{ b: now user(userId: "12345") { name } __type(name: "User") { name } ...F } fragment F on Query { a: now }'
    )
    assert (cost["elsewhere"], list(cost["byPath"])) == (["b", "__type", "a"], ["user"])
    assert (await told('{ user(userId: "12345") { __typename name } __typename }'))["elsewhere"] == []
    cost = await told("mutation { x: write(number: 1) y: write(number: -1) }")
    assert (cost["elsewhere"], cost["bound"], cost["byPath"]) == (["x", "y"], None, {})
    assert (cost["actual"]["requests"], cost["requests"]) == (0, [])
    with pytest.raises(
        BadUserInput, match="this mutation has no plan, because graphql-core's own execution answers it"
    ):
        service.explain("mutation { write(number: 1) }")


@on_exact_engines
async def test_what_an_added_field_reads_beside_the_plan_counts_too(shop: World) -> None:
    @strawberry.type
    class Query:
        @strawberry.field
        async def raw(self, info: strawberry.Info) -> bool:
            nodes = info.context.nodes
            [found] = nodes.load_batch([("USER#12345", "PROFILE")])
            return await found is not None

    schema = build_schema(shop.graph, query=Query)
    service = Service(schema, shop.tracer, secret=SECRET)
    answer = await service.execute(OperationRequest('{ raw user(userId: "12345") { name } }', with_cost=True))
    assert answer["data"]["user"]["name"], answer
    assert answer["extensions"]["cost"]["actual"]["requests"] == len(shop.tracer.requests) == 2


@on_exact_engines
async def test_the_bound_of_each_place_holds_for_later_mutations(shop: World) -> None:
    change = 'updateOrder(input: {orderId: "ORD001", status: SHIPPED}) { order { items { nodes { name } } } }'
    told = await shop.service.execute(
        OperationRequest(f"mutation {{ a: {change} b: {change} }}", with_cost=True)
    )
    places = told["extensions"]["cost"]["byPath"]
    assert {place: each["bound"]["roundTrips"] for place, each in places.items()} == {
        "a": 1,
        "a.order.items": 3,
        "b": 4,
        "b.order.items": 6,
    }
    for each in places.values():
        assert each["actual"]["roundTrips"] == each["bound"]["roundTrips"]


@on_exact_engines
async def test_the_bound_of_a_place_counts_each_batch_that_its_keys_may_be_in(shop: World) -> None:
    ids = [global_id(shop.graph.types["Product"], (f"P{number}",)) for number in range(120)]
    document = "query ($x: [ID!]!, $y: [ID!]!) { x: nodes(ids: $x) { id } y: nodes(ids: $y) { id } }"
    told = await shop.service.execute(
        OperationRequest(document, {"x": ids[:60], "y": ids[60:]}, with_cost=True)
    )
    cost = told["extensions"]["cost"]
    assert cost["bound"]["requests"] == cost["actual"]["requests"] == 2
    found = {
        place: (each["actual"]["requests"], each["bound"]["requests"])
        for place, each in cost["byPath"].items()
    }
    assert found == {"x": (1, 2), "y": (2, 2)}
