"""Aggregates of lists: of all that the conditions let through, whatever page is asked for, or nothing at all."""

from __future__ import annotations

from typing import Any

from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.walk_worlds import below, friends, person, topic, walks
from tests.resolvers.worlds import World, within_bound, world


async def of_orders(shop: World, asked: str, arguments: str = "") -> Any:
    answer = await shop.ask(
        f'{{ user(userId: "12345") {{ orders{arguments} {{ aggregate {{ {asked} }} }} }} }}'
    )
    return answer["user"]["orders"]["aggregate"]


async def test_numbers(shop: World) -> None:
    asked = "count sum(field: TOTAL) avg(field: TOTAL) min(field: TOTAL) max(field: TOTAL) first: min(field: ORDER_DATE)"
    answer = await shop.ask('{ user(userId: "12345") { orders { nodes { total orderDate } } } }')
    totals = [each["total"] for each in answer["user"]["orders"]["nodes"]]
    assert sorted(totals) == ["149.94", "199.99", "204.97"]
    assert await of_orders(shop, asked) == {
        "count": 3,
        "sum": "554.9",
        "avg": "184.96666666666666666666666666666666667",
        "min": "149.94",
        "max": "204.97",
        "first": "2024-01-20T12:00:00Z",
    }
    assert await of_orders(shop, "count sum(field: TOTAL)", "(first: 1)") == {"count": 3, "sum": "554.9"}
    narrow = '(where: { status: { eq: DELIVERED } }, orderDate: { from: "2024-02-01T00:00:00Z" })'
    assert await of_orders(shop, "count max(field: TOTAL)", narrow) == {"count": 2, "max": "204.97"}


async def test_groups(shop: World) -> None:
    asked = "groupBy(field: STATUS) { key count sum(field: TOTAL) }"
    assert await of_orders(shop, asked) == {
        "groupBy": [
            {"key": "DELIVERED", "count": 2, "sum": "354.91"},
            {"key": "SHIPPED", "count": 1, "sum": "199.99"},
        ]
    }
    assert await of_orders(shop, "groupBy(field: STATUS, first: 1) { key }") == {
        "groupBy": [{"key": "DELIVERED"}]
    }


async def test_a_variable_says_the_field(shop: World) -> None:
    document = """query ($number: OrderAggregateNumber!) {
      user(userId: "12345") { orders { aggregate { sum(field: $number) } } }
    }"""
    answer = await shop.ask(document, number="TOTAL")
    assert answer["user"]["orders"]["aggregate"] == {"sum": "554.9"}


async def test_too_much_to_read(shop: World) -> None:
    small = shop.served(read_budget=2)
    document = '{ user(userId: "12345") { orders { aggregate { sum(field: TOTAL) } } } }'
    answer = await small.service.execute(document)
    assert answer["data"] == {"user": {"orders": {"aggregate": None}}}
    [warning] = answer["extensions"]["warnings"]
    assert warning["message"] == (
        "aggregate is null: there are more than 2 items to look at. Aggregate fewer of them."
    )
    # What needs no sum is there.
    document = """{ user(userId: "12345") { orders(last: 1) {
      totalCount counted: aggregate { count } aggregate { sum(field: TOTAL) } nodes { total }
    } } }"""
    answer = await small.service.execute(OperationRequest(document, with_cost=True))
    assert answer["data"]["user"]["orders"] == {
        "totalCount": 3,
        "counted": {"count": 3},
        "aggregate": None,
        "nodes": [{"total": "149.94"}],
    }
    cost = answer["extensions"]["cost"]
    assert [name for name, most in cost["bound"].items() if cost["actual"].get(name, 0) > most] == []


async def test_the_bound_holds(shop: World) -> None:
    for asked in ("count", "sum(field: TOTAL)", "groupBy(field: STATUS) { count }"):
        for arguments in ("", "(first: 1)", '(where: { total: { gt: "1" } })'):
            document = f'{{ user(userId: "12345") {{ orders{arguments} {{ nodes {{ orderId }} aggregate {{ {asked} }} }} }} }}'
            answer = await shop.service.execute(OperationRequest(document, {}, with_cost=True))
            within_bound(answer)


async def test_an_item_that_is_looked_up_is_foreseen(shop: World) -> None:
    document = """{ user(userId: "12345") {
      customerOrders(orderId: { eq: "ORD001" }) { aggregate { max(field: ORDER_DATE) count } } } }"""
    cost = (await shop.service.execute(OperationRequest(document, {}, with_cost=True)))["extensions"]["cost"]
    place = cost["byPath"]["user.customerOrders"]
    assert 1 == place["actual"]["requests"] <= place["bound"]["requests"]
    assert cost["actual"]["items"] <= cost["bound"]["items"]


async def test_of_common_neighbors(make_store: MakeStore) -> None:
    people = world(walks, await make_store(walks.table))
    pairs = {"ab": 1, "ac": 2, "ad": 4, "eb": 8, "ed": 16, "ef": 32}
    await people.put(*(each for pair, trust in pairs.items() for each in friends(*pair, trust)), person("a"))
    document = """query ($ids: [ID!]) { person(personId: "a") { friends(alsoOf: $ids, first: 1) {
      nodes { personId } aggregate { count sum(field: TRUST) groupBy(field: TRUST) { key count } } } } }"""
    for ids, trusted in ((["e"], [1, 4]), (["e", "f"], []), (["a"], [1, 2, 4]), (None, [1, 2, 4])):
        answer = await people.service.execute(OperationRequest(document, {"ids": ids}, with_cost=True))
        found = answer["data"]["person"]["friends"]["aggregate"]
        groups = [{"key": str(trust), "count": 1} for trust in trusted]
        assert found == {"count": len(trusted), "sum": str(sum(trusted)), "groupBy": groups}
        within_bound(answer)
    small = people.served(read_budget=1)
    many = [each for number in range(300) for each in friends("x", f"p{number:03}")[:1]]
    many += [each for number in range(0, 300, 2) for each in friends("y", f"p{number:03}")[:1]]
    await people.put(*many, person("x"))
    answer = await small.service.execute(document.replace('"a"', '"x"'), {"ids": ["y"]})
    assert answer["data"]["person"]["friends"]["aggregate"] is None
    assert [each["code"] for each in answer["extensions"]["warnings"]] == ["COUNT_LIMIT"]


async def test_of_what_is_ranked(make_store: MakeStore) -> None:
    topics = world(walks, await make_store(walks.table))
    await topics.put(*(each for pair in ("ab", "bc", "bd", "ae", "ed") for each in friends(*pair)))
    await topics.put(*map(person, "abcde"))
    document = """{ person(personId: "a") {
      mayKnow(first: 1) { nodes { personId } aggregate { count min(field: NAME) max(field: NAME) } }
      few { aggregate { count } }
    } }"""
    answer = await topics.service.execute(OperationRequest(document, {}, with_cost=True))
    assert answer["data"]["person"] == {
        "mayKnow": {
            "nodes": [{"personId": "d"}],
            "aggregate": {"count": 2, "min": "the c", "max": "the d"},
        },
        "few": {"aggregate": None},
    }
    [warning] = answer["extensions"]["warnings"]
    assert warning["path"] == ["person", "few", "aggregate"]
    within_bound(answer)


async def test_everything_below_a_node(make_store: MakeStore) -> None:
    topics = world(walks, await make_store(walks.table))
    await topics.put(*(topic(name, size) for name, size in zip("abcd", (100, 1, 2, 4), strict=True)))
    await topics.put(below("a", "b"), below("a", "c"), below("c", "d"), below("d", "a"), below("d", "gone"))
    document = """{ topic(topicId: "a") {
      descendants(first: 1) {
        nodes { topicId } totalCount
        aggregate { count sum(field: SIZE) max(field: NAME) groupBy(field: SIZE, first: 1) { key count } }
      }
      few { aggregate { sum(field: SIZE) } }
      ancestors { aggregate { count } }
    } }"""
    topics.forget()
    found = await topics.service.execute(document)
    assert "errors" not in found
    data = found["data"]["topic"]
    assert data["descendants"]["aggregate"] == {
        # One of them is not there: it is counted, and has no size.
        "count": 4,
        "sum": "7",
        "max": "the d",
        "groupBy": [{"key": 1, "count": 1}],
    }
    assert data["descendants"]["totalCount"] == 4
    assert data["few"]["aggregate"] is None
    assert data["ancestors"]["aggregate"] == {"count": 2}
    answer = await topics.service.execute(OperationRequest(document, {}, with_cost=True))
    within_bound(answer)
