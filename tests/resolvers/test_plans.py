"""The printed plans: thirty operations and more, and what else `explain` says of an operation."""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import Any

import pytest

from keygraph.dynamo.store import Answer, Count, Query, Request, Store, UnreadStore
from keygraph.dynamo.table import Table
from keygraph.errors import BadUserInput
from keygraph.lists.describe import described_requests
from keygraph_resolvers import NO_LIMITS, Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.steps.explained import Explained, steps_json, steps_text
from tests.conftest import MakeStore
from tests.resolvers.bombs import bomb
from tests.resolvers.operations import GRAPHS, OPERATIONS, served
from tests.resolvers.plans import SECRET, file_of, operations_of, printed
from tests.resolvers.worlds import library


@pytest.mark.parametrize("model", GRAPHS)
async def test_the_plans_are_those_that_were_looked_at(model: str) -> None:
    """A change would make operations more expensive, or `keygraph explain` unreadable, without anybody seeing it."""
    before, now = file_of(model).read_text("utf-8"), await printed(model)
    difference = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "before", "now", lineterm="", n=2
    )
    assert before == now, "\n".join(["`python -m tests.resolvers.plans` writes the plans anew:", *difference])


def test_thirty_operations_are_printed() -> None:
    """The plans above would show a part of what there is."""
    assert sum(len(list(operations_of(model))) for model in GRAPHS) >= 30


def explained(graph: Any, document: str, **variables: Any) -> Any:
    """The explanation of an operation."""
    service = Service(build_schema(graph), UnreadStore(graph.table), secret=SECRET, document_limits=NO_LIMITS)

    async def explain() -> Any:
        return service.explain(document, variables)

    return asyncio.run(explain())


def all_of(steps: Any) -> list[Explained]:
    return [each for step in steps for each in (step, *all_of(step.steps))]


def test_what_is_read_together_is_one_request() -> None:
    """An order with its items would be shown as two requests, where one is sent."""
    document = '{ order(orderId: "O1") { total items(first: 3) { edges { quantity } } } }'
    order, items = all_of(explained(GRAPHS["commerce"], document).steps)
    assert (order.together, items.together) == (("order.items",), ("order",))
    [request] = order.requests
    assert request.keys == "PK = ORDER#O1 AND SK BETWEEN ORDER#O1 AND PRODUCT#\\u{10FFFF}"
    assert (request.operation, request.limit, items.requests) == ("Query", 4, ())


def test_a_list_shows_what_narrows_and_filters_it() -> None:
    """Whoever looks for the price of a filter would not see it in the request."""
    document = """{ member(memberId: "ann") {
      loans(where: {note: {eq: "x"}}, direction: DESC, first: 2) { edges { note } } } }"""
    loans = all_of(explained(library, document).steps)[1]
    [request] = loans.requests
    assert request.filter == "note = x"
    assert (request.limit, request.is_backward) == (32, True)
    assert (loans.page, loans.arguments) == ("first 2", 'where: { note: { eq: "x" } }, direction: DESC')


def test_variables_without_a_value_are_shown_by_their_names() -> None:
    """A plan could be looked at only by somebody who has values at hand."""
    document = (
        "query ($user: ID!, $n: Int!) { user(userId: $user) { orders(first: $n) { nodes { total } } } }"
    )
    found = explained(GRAPHS["commerce"], document)
    assert found.stand_ins == {"user": "$user", "n": 10}
    user, orders = all_of(found.steps)
    assert user.requests[0].keys == "PK = USER#$user AND SK = USER#$user"
    assert (orders.page, orders.requests[0].limit) == ("first $n", 10)
    given = explained(GRAPHS["commerce"], document, user="7", n=3)
    assert given.stand_ins == {}
    assert all_of(given.steps)[1].requests[0].limit == 3


def test_named_nodes() -> None:
    """A list of named nodes would be shown as a page."""
    ids = json.dumps([global_id(library.types["Book"], (f"b{n}",)) for n in range(3)])
    document = '{ member(memberId: "ann") { loans(to: IDS) { edges { day } } } }'.replace("IDS", ids)
    loans = all_of(explained(library, document).steps)[1]
    assert [request.operation for request in loans.requests] == ["BatchGetItem"]
    assert loans.requests[0].keys.endswith(", 3 keys")
    one = global_id(library.types["Book"], ("b0",))
    alone = '{ member(memberId: "ann") { loans(to: ["ID"]) { edges { day } } } }'.replace("ID", one)
    assert all_of(explained(library, alone).steps)[1].requests[0].keys.endswith(", 1 key")


def test_an_argument_that_cannot_be_used_is_said_where_it_stands() -> None:
    """A plan with one bad argument would show nothing, or a list that is never read."""
    document = '{ user(userId: "1") { name orders(first: 1000) { nodes { total } } } }'
    _, orders = all_of(explained(GRAPHS["commerce"], document).steps)
    assert (orders.problem, orders.requests) == ("first must be between 0 and 100", ())
    assert "[cannot be read: first must be between 0 and 100]" in " ".join(steps_text([orders]).split())


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{ nonsense }", "line 1, column 3: Cannot query field 'nonsense' on type 'Query'.*"),
        ("{", "line 1, column 2: Syntax Error: Expected Name, found <EOF>."),
        (
            "query A { __typename } query B { __typename }",
            "the document has several operations: give the name of one",
        ),
    ],
)
def test_what_cannot_be_explained(document: str, reason: str) -> None:
    """Somebody would read an empty plan where their document is wrong."""
    with pytest.raises(BadUserInput, match="^" + reason.replace("(", r"\(") + "$"):
        explained(library, document)


def test_a_fragment_bomb_ends() -> None:
    """A few lines of fragments would print for longer than anybody waits."""
    steps = explained(library, bomb(30)).steps
    assert len(all_of(steps)) <= 500
    assert all("\n" not in line for line in steps_text(steps).splitlines())
    assert len(json.dumps(steps_json(steps))) > 1000


class Recording:
    """A store that remembers what it was asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sent: list[Request[Any]] = []

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        self.sent.append(request)
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()


@pytest.mark.parametrize("model", GRAPHS)
async def test_what_is_shown_is_what_is_sent(model: str, make_store: MakeStore) -> None:
    """Somebody would look for a request in their traces that is another one there."""
    graph = GRAPHS[model]
    store = Recording(await make_store(graph.table))
    service = await served(model, store)
    compared = 0
    for operation in OPERATIONS[model]:
        variables = operation.variables[0]
        store.sent.clear()
        explanation = service.explain(operation.document, variables)
        await service.execute(operation.document, variables)
        queries = [request for request in store.sent if isinstance(request, Query | Count)]
        sent = [described_requests(graph, [request]) for request in queries]
        shown = [request for step in all_of(explanation.steps) for request in step.requests]
        for each in shown:
            is_known = "{" not in each.keys.replace("\\u{", "") and ", then " not in each.keys
            if each.operation == "Query" and is_known:
                assert each in sent, operation.name
                compared += 1
    assert compared >= 1
