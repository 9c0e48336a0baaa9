"""Mutations that are sent again under an idempotency key: carried out once, and answered alike."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, JSON, Graph, Many, Table, new_id, node, record
from keygraph.dynamo.items import ExactFloat
from keygraph.dynamo.store import Scan, Store
from keygraph.writing.sending.idempotency import is_note
from keygraph_resolvers import OperationRequest, Service, build_schema
from tests.conftest import MakeStore
from tests.resolvers.worlds import within_bound


@node("ORDER#{order_id}")
class Order:
    order_id: ID = new_id()
    total: int = 0

    lines: Many[Line]


@record("{order}", "LINE#{number}")
class Line:
    order: Order
    number: int


graph = Graph(Table("Orders", partition_key="pk", sort_key="sk"), Order, Line, writes=True).check()
schema = build_schema(graph)
CREATE = """mutation { createOrder(input: {total: 1, lines: [{number: 1}]}) {
  order { orderId total lines { nodes { number } } } } }"""


def service(store: Store) -> Service:
    return Service(schema, store, secret=b"secret" * 8)


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    return await make_store(graph.table)


async def count(store: Store) -> int:
    return sum(not is_note(item) for item in (await store.send(Scan(consistent=True))).items)


async def refusal(store: Store, document: str, key: str | None = None) -> Any:
    answer = await service(store).execute(OperationRequest(document, idempotency_key=key))
    [error] = answer["errors"]
    return error["extensions"]["code"], error["message"], error["extensions"].get("path")


async def test_a_new_id_is_made_for_each_run(store: Store) -> None:
    one = service(store)
    answers = [await one.execute(CREATE) for _ in range(2)]
    first, second = (answer["data"]["createOrder"]["order"] for answer in answers)
    assert first["orderId"] != second["orderId"]
    assert await count(store) == 4


async def test_the_header_names_the_whole_request(store: Store) -> None:
    twice = "mutation { a: createOrder(input: {total: 1}) { order { orderId } } b: createOrder(input: {total: 1}) { order { orderId } } }"
    first = await service(store).execute(OperationRequest(twice, idempotency_key="k"))
    assert await count(store) == 2
    assert await service(store).execute(OperationRequest(twice, idempotency_key="k")) == first
    assert await count(store) == 2
    assert first["data"]["a"] != first["data"]["b"]
    assert await service(store).execute(OperationRequest(CREATE, idempotency_key="other")) != first


async def test_the_key_in_an_input_is_that_of_one_mutation(store: Store) -> None:
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
    first = await service(store).execute(OperationRequest(CREATE, idempotency_key="k"))
    order = first["data"]["createOrder"]["order"]
    assert (order["total"], order["lines"]) == (1, {"nodes": [{"number": 1}]})
    update = f'mutation {{ updateOrder(input: {{orderId: "{order["orderId"]}", add: {{total: 4}}}}) {{ order {{ total }} }} }}'
    for _ in range(2):
        answer = await service(store).execute(OperationRequest(update, idempotency_key="u"))
        assert answer["data"]["updateOrder"]["order"] == {"total": 5}
    again = await service(store).execute(OperationRequest(CREATE, idempotency_key="k"))
    assert again["data"]["createOrder"]["order"] == {**order, "total": 5}
    delete = f'mutation {{ deleteLine(input: {{orderId: "{order["orderId"]}", number: 1}}) {{ order {{ total }} }} }}'
    for _ in range(2):
        assert await service(store).execute(OperationRequest(delete, idempotency_key="d")) == {
            "data": {"deleteLine": {"order": {"total": 5}}}
        }


async def test_a_key_belongs_to_one_viewer_without_access_rules_too(store: Store) -> None:
    answers = [
        await service(store).execute(OperationRequest(CREATE, idempotency_key="k", viewer=viewer))
        for viewer in ({"sub": "a", "exp": 1}, {"sub": "a", "exp": 2}, {"sub": "b", "exp": 1}, None)
    ]
    ids = [answer["data"]["createOrder"]["order"]["orderId"] for answer in answers]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("key", ["", "k" * 256])
async def test_what_no_key_can_be(store: Store, key: str) -> None:
    told = "An idempotency key has 1 to 255 characters."
    assert await refusal(store, CREATE, key) == ("BAD_USER_INPUT", told, None)
    document = f'mutation {{ createOrder(input: {{idempotencyKey: "{key}"}}) {{ order {{ total }} }} }}'
    assert await refusal(store, document) == ("BAD_USER_INPUT", told, ["input", "idempotencyKey"])
    assert await count(store) == 0


async def test_another_mutation_at_the_same_place_is_a_conflict(store: Store) -> None:
    await service(store).execute(OperationRequest(CREATE, idempotency_key="k"))
    other = 'mutation { upsertOrder(input: {orderId: "1"}) { order { total } } }'
    code, _, path = await refusal(store, other, "k")
    assert (code, path) == ("CONFLICT", None)


async def test_the_bound_covers_what_a_second_time_takes(store: Store) -> None:
    for _ in range(2):
        answer = await service(store).execute(OperationRequest(CREATE, with_cost=True, idempotency_key="k"))
        within_bound(answer)


async def test_a_delete_with_edges_is_answered_alike(store: Store) -> None:
    first = await service(store).execute(CREATE)
    order = first["data"]["createOrder"]["order"]["orderId"]
    document = (
        f'mutation {{ deleteOrder(input: {{orderId: "{order}", onEdges: DETACH}}) {{ deletedId detached }} }}'
    )
    deleted = await service(store).execute(OperationRequest(document, idempotency_key="k"))
    assert deleted["data"]["deleteOrder"]["detached"] == 1
    assert await service(store).execute(OperationRequest(document, idempotency_key="k")) == deleted


@node("DOC#{doc_id}")
class Doc:
    doc_id: ID
    content: JSON | None
    size: Decimal | None
    grade: float | None


@record("{doc}", "PAGE#{number}")
class Page:
    doc: Doc
    number: int


docs = Graph(Table("Docs", partition_key="pk", sort_key="sk"), Doc, Page, writes=True).check()
CREATE_DOC = """mutation ($content: JSON, $size: Decimal, $id: ID = 1) {
  createDoc(input: {docId: $id, content: $content, size: $size}) { doc { docId } } }"""
LONG = "0.1000000000000000000000000000000000001"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": {"a": ExactFloat(LONG)}}, {"content": {"a": ExactFloat("0.1")}}),
        ({"size": ExactFloat(LONG)}, {"size": ExactFloat("0.1")}),
        ({"content": 1}, {"content": True}),
        ({"content": {"a": [1, 2]}}, {"content": {"a": [2, 1]}}),
    ],
)
async def test_another_value_is_another_write(
    make_store: MakeStore, one: dict[str, Any], other: dict[str, Any]
) -> None:
    made = Service(build_schema(docs), await make_store(docs.table), secret=b"secret" * 8)
    for variables, codes in ((one, []), (dict(reversed(one.items())), []), (other, ["CONFLICT"])):
        answer = await made.execute(OperationRequest(CREATE_DOC, variables, idempotency_key="k"))
        assert [error["extensions"]["code"] for error in answer.get("errors", ())] == codes


async def test_half_of_a_character_in_a_variable_is_refused(make_store: MakeStore) -> None:
    made = Service(build_schema(docs), await make_store(docs.table), secret=b"secret" * 8)
    for content in ({"a": ["\ud800"]}, {"\ud800": 1}, "\ud800"):
        for key in (None, "k"):
            answer = await made.execute(
                OperationRequest(CREATE_DOC, {"content": content}, idempotency_key=key)
            )
            assert [error["extensions"] for error in answer["errors"]] == [
                {"code": "BAD_USER_INPUT", "path": ["input"]}
            ]


@pytest.mark.parametrize("is_there", [False, True])
async def test_created_is_what_it_was_at_first(make_store: MakeStore, *, is_there: bool) -> None:
    made = Service(build_schema(docs), await make_store(docs.table), secret=b"secret" * 8)
    await made.execute(CREATE_DOC)
    put = "mutation { putPage(input: {docId: 1, number: 2, idempotencyKey: %s}) { %s } }"
    for key, selected in [("null", "page { number }")] * is_there + [
        ('"k"', "page { number }"),
        ('"c"', "created"),
    ]:
        assert "errors" not in await made.execute(put % (key, selected))
    answer = await made.execute(put % ('"k"', "created"))
    assert [(error["extensions"], error["message"]) for error in answer["errors"]] == [
        (
            {"code": "CONFLICT", "path": ["input", "idempotencyKey"]},
            "The first answer under this idempotency key did not select `created`, which is no longer known.",
        )
    ]
    assert (await made.execute(put % ('"c"', "created")))["data"] == {"putPage": {"created": False}}
    assert "errors" not in await made.execute(put % ('"c"', "page { number }"))
    other = put.replace("number: 2", "number: 3")
    for selected in ("created", "created", "page { number }"):
        answer = await made.execute(other % ('"o"', selected))
        assert answer["data"]["putPage"] in ({"created": True}, {"page": {"number": 3}})
