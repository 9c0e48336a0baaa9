"""What a process keeps of what clients send: nothing of their texts, whatever they are variables of."""

from __future__ import annotations

import gc
from typing import cast

import pytest

from keygraph.dynamo.store import (
    Answer,
    Batch,
    BatchGet,
    Cost,
    Count,
    Counted,
    Page,
    Query,
    Request,
    Transaction,
    UnreadStore,
    Written,
)
from keygraph_examples import cargo, commerce, social
from keygraph_resolvers import Service, build_schema
from tests.resolvers.operations import GRAPHS, OPERATIONS
from tests.resolvers.test_hostile_documents import SECRET

pytestmark = pytest.mark.long

MARK = "mark of a client"
COMMERCE = build_schema(commerce.graph)

ASKED = [
    (commerce, 'query ($t: ID!) { user(userId: $t) { name orders { nodes { total } } } }'),
    (commerce, "query ($t: ID!) { user(userId: $t) { reviews(first: 3) { totalCount nodes { rating } } } }"),
    (commerce, "query ($t: String!) { users(where: { name: { eq: $t } }) { nodes { name } } }"),
    (commerce, "query ($t: String!) { users(where: { name: { in: [$t] } }) { totalCount } }"),
    (commerce, "query ($t: String!) { users(after: $t) { nodes { name } } }"),
    (commerce, "query ($t: ID!) { nodes(ids: [$t]) { id } }"),
    (commerce, "query ($t: String!) { users(createdAt: { from: $t }) { nodes { name } } }"),
    (commerce, 'mutation ($t: String!) { createUser(input: { userId: "u", name: $t, email: "e", userType: CUSTOMER, '
     'createdAt: "2024-01-01T00:00:00Z" }) { user { name } } }'),
    (social, "query ($t: ID!) { user(userId: $t) { name friends { nodes { name } } } }"),
    (cargo, "query ($t: ID!) { container(containerId: $t) { pallets { nodes { palletId } } } }"),
]  # fmt: skip


class Empty(UnreadStore):
    """A table without items."""

    async def send(self, request: Request[Answer], /) -> Answer:
        answer: object = None
        match request:
            case Query():
                answer = Page([], 0, None, Cost(1, 0.5))
            case Count():
                answer = Counted(0, 0, None, Cost(1, 0.5))
            case BatchGet(keys):
                answer = Batch([None for _ in keys], Cost(1, 0.5))
            case Transaction():
                answer = Written(Cost(1))
        return cast(Answer, answer)


@pytest.fixture
def services() -> list[Service]:
    """Those that a test has asked, so that what they keep is there when it looks."""
    return []


def kept_texts() -> list[str]:
    """The texts with the mark that anything holds, those of caches too."""
    gc.collect()
    found = []
    for each in gc.get_objects():
        if type(each).__name__ in {"frame", "module"}:
            continue
        for held in gc.get_referents(each):
            # The collector does not look at a container that has nothing but texts and numbers.
            is_plain = isinstance(held, dict | tuple) and not gc.is_tracked(held)
            for text in gc.get_referents(held) if is_plain else [held]:
                if isinstance(text, str) and len(text) > 200 and MARK in text:
                    found.append(f"{type(each).__name__}: {text[:30]}")
    return found


async def test_no_long_text_is_kept(services: list[Service]) -> None:
    for index, (model, document) in enumerate(ASKED):
        service = Service(build_schema(model.graph), Empty(model.graph.table), secret=SECRET)
        services.append(service)
        for number in range(3):
            await service.execute(document, {"t": f"{MARK} {index}.{number} {'x' * 900}"})
    assert kept_texts() == []


async def test_no_long_text_of_an_ordinary_operation_is_kept(services: list[Service]) -> None:
    for model, graph in GRAPHS.items():
        service = Service(build_schema(graph), Empty(graph.table), secret=SECRET)
        services.append(service)
        # A template remembers the last key that it has read, until it reads another.
        for said in (f"{MARK} {model} {'x' * 900}", "1"):
            for operation in OPERATIONS[model]:
                given = operation.variables[0].items()
                variables = {name: said if isinstance(value, str) else value for name, value in given}
                await service.execute(operation.document, variables)
                del variables
        del said
    assert kept_texts() == []


async def test_moments_have_few_digits() -> None:
    service = Service(COMMERCE, Empty(commerce.graph.table), secret=SECRET)
    document = (
        'query ($t: DateTime!) { user(userId: "u") { orders(orderDate: { from: $t }) { totalCount } } }'
    )
    answer = await service.execute(document, {"t": f"2024-01-01T00:00:00.{'0' * 1000}Z"})
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_USER_INPUT"]
