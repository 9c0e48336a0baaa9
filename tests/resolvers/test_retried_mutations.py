"""Mutations that are sent again under an idempotency key: carried out once, and answered alike."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, new_id, node, record
from keygraph.dynamo.store import Scan, Store
from keygraph.writing.sending.idempotency import is_note
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore


@node("ORDER#{order_id}")
class Order:
    order_id: ID = new_id()
    total: int = 0

    lines: Many[Line]


@record("{order}", "LINE#{number}")
class Line:
    order: Order
    number: int


graph = Graph(Table("Orders", partition_key="pk", sort_key="sk"), Order, Line).check()
schema = build_schema(graph)
CREATE = """mutation { createOrder(input: {total: 1, lines: [{number: 1}]}) {
  order { orderId total lines { nodes { number } } } } }"""


def service(store: Store) -> Service:
    """A service as another process has one."""
    return Service(schema, store, secret=b"secret" * 8)


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    return await make_store(graph.table)


async def count(store: Store) -> int:
    return sum(not is_note(item) for item in (await store.send(Scan(consistent=True))).items)


async def refusal(store: Store, document: str, key: str | None = None) -> Any:
    answer = await service(store).execute(document, idempotency_key=key)
    [error] = answer["errors"]
    return error["extensions"]["code"], error["message"], error["extensions"].get("path")


async def test_a_new_id_is_made_for_each_run(store: Store) -> None:
    """The second order would be refused, because its document was seen before."""
    one = service(store)
    answers = [await one.execute(CREATE) for _ in range(2)]
    first, second = (answer["data"]["createOrder"]["order"] for answer in answers)
    assert first["orderId"] != second["orderId"]
    assert await count(store) == 4


async def test_the_header_names_the_whole_request(store: Store) -> None:
    """A client whose connection broke would order twice, or not learn the number of its order."""
    twice = "mutation { a: createOrder(input: {total: 1}) { order { orderId } } b: createOrder(input: {total: 1}) { order { orderId } } }"
    first = await service(store).execute(twice, idempotency_key="k")
    assert await count(store) == 2
    assert await service(store).execute(twice, idempotency_key="k") == first
    assert await count(store) == 2
    assert first["data"]["a"] != first["data"]["b"]
    assert await service(store).execute(CREATE, idempotency_key="other") != first


async def test_the_key_in_an_input_is_that_of_one_mutation(store: Store) -> None:
    """A client that cannot set headers could not retry."""
    document = """mutation ($total: Int, $mine: String) { createOrder(input:
      {total: $total, idempotencyKey: "k", clientMutationId: $mine}) { clientMutationId order { orderId total } } }"""
    first = await service(store).execute(document, {"total": 1, "mine": "a"})
    second = await service(store).execute(document, {"total": 1, "mine": "b"})
    assert second["data"]["createOrder"]["order"] == first["data"]["createOrder"]["order"]
    assert second["data"]["createOrder"]["clientMutationId"] == "b"
    answer = await service(store).execute(document, {"total": 2})
    assert answer["errors"][0]["extensions"] == {"code": "CONFLICT", "path": ["input", "idempotencyKey"]}
    assert await count(store) == 1


async def test_the_answer_is_read_again(store: Store) -> None:
    """The second answer would be of what is no more."""
    first = await service(store).execute(CREATE, idempotency_key="k")
    order = first["data"]["createOrder"]["order"]
    assert (order["total"], order["lines"]) == (1, {"nodes": [{"number": 1}]})
    update = f'mutation {{ updateOrder(input: {{orderId: "{order["orderId"]}", add: {{total: 4}}}}) {{ order {{ total }} }} }}'
    for _ in range(2):
        answer = await service(store).execute(update, idempotency_key="u")
        assert answer["data"]["updateOrder"]["order"] == {"total": 5}
    again = await service(store).execute(CREATE, idempotency_key="k")
    assert again["data"]["createOrder"]["order"] == {**order, "total": 5}
    delete = f'mutation {{ deleteLine(input: {{orderId: "{order["orderId"]}", number: 1}}) {{ order {{ total }} }} }}'
    for _ in range(2):
        assert await service(store).execute(delete, idempotency_key="d") == {
            "data": {"deleteLine": {"order": {"total": 5}}}
        }


async def test_a_key_belongs_to_one_viewer_without_access_rules_too(store: Store) -> None:
    """Somebody who guesses a key, or counts up as others do, would get another one's order and make none."""
    answers = [
        await service(store).execute(CREATE, idempotency_key="k", viewer=viewer)
        for viewer in ({"sub": "a", "exp": 1}, {"sub": "a", "exp": 2}, {"sub": "b", "exp": 1}, None)
    ]
    ids = [answer["data"]["createOrder"]["order"]["orderId"] for answer in answers]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("key", ["", "k" * 256])
async def test_what_no_key_can_be(store: Store, key: str) -> None:
    """An empty key would be one that all requests share."""
    told = "An idempotency key has 1 to 255 characters."
    assert await refusal(store, CREATE, key) == ("BAD_USER_INPUT", told, None)
    document = f'mutation {{ createOrder(input: {{idempotencyKey: "{key}"}}) {{ order {{ total }} }} }}'
    assert await refusal(store, document) == ("BAD_USER_INPUT", told, ["input", "idempotencyKey"])
    assert await count(store) == 0


async def test_another_mutation_at_the_same_place_is_a_conflict(store: Store) -> None:
    """A client that uses one key for everything would think that all of it was done."""
    await service(store).execute(CREATE, idempotency_key="k")
    other = 'mutation { upsertOrder(input: {orderId: "1"}) { order { total } } }'
    code, _, path = await refusal(store, other, "k")
    assert (code, path) == ("CONFLICT", None)


async def test_the_bound_covers_what_a_second_time_takes(store: Store) -> None:
    """A retry would be refused for what it costs, or its report exceed its bound."""
    for _ in range(2):
        answer = await service(store).execute(CREATE, with_cost=True, idempotency_key="k")
        cost = answer["extensions"]["cost"]
        for name in ("requests", "roundTrips", "items", "readUnits"):
            assert cost["actual"][name] <= cost["bound"][name], name


async def test_a_delete_with_edges_is_answered_alike(store: Store) -> None:
    """A client that tries again would be told that there is no such order, or that it had no lines."""
    first = await service(store).execute(CREATE)
    order = first["data"]["createOrder"]["order"]["orderId"]
    document = (
        f'mutation {{ deleteOrder(input: {{orderId: "{order}", onEdges: DETACH}}) {{ deletedId detached }} }}'
    )
    deleted = await service(store).execute(document, idempotency_key="k")
    assert deleted["data"]["deleteOrder"]["detached"] == 1
    assert await service(store).execute(document, idempotency_key="k") == deleted
