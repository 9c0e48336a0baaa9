"""The printed plans: thirty operations and more, and what else `explain` says of an operation."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest

from keygraph.dynamo.store import Count, Query, UnreadStore
from keygraph.lists.describe import described_requests
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.plan.explain import Explanation
from keygraph_resolvers.plan.explained import Explained, sent_requests, steps_json, steps_text
from tests.conftest import MakeStore
from tests.resolvers.bombs import bomb
from tests.resolvers.operations import GRAPHS, OPERATIONS, served
from tests.resolvers.plans import SECRET, file_of, printed
from tests.resolvers.worlds import library
from tests.tracing import TracingStore


@pytest.mark.parametrize("model", GRAPHS)
async def test_the_plans_are_those_that_were_looked_at(model: str) -> None:
    before, now = file_of(model).read_text("utf-8"), await printed(model)
    difference = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "before", "now", lineterm="", n=2
    )
    assert before == now, "\n".join(["`python -m tests.resolvers.plans` writes the plans anew:", *difference])


def explained(graph: Any, document: str, **variables: Any) -> Any:
    service = Service(build_schema(graph), UnreadStore(graph.table), secret=SECRET, limits=NO_LIMITS)
    return service.explain(document, variables)


def all_of(steps: Any) -> list[Explained]:
    return [each for step in steps for each in (step, *all_of(step.steps))]


def test_a_list_shows_what_narrows_and_filters_it() -> None:
    document = """{ member(memberId: "ann") {
      loans(where: {note: {eq: "x"}}, direction: DESC, first: 2) { edges { note } } } }"""
    loans = all_of(explained(library, document).steps)[1]
    [request] = loans.requests
    assert request.filter == "note = x"
    assert (request.limit, request.is_backward) == (32, True)
    assert (loans.page, loans.arguments) == ("first 2", 'where: { note: { eq: "x" } }, direction: DESC')


def test_variables_without_a_value_are_shown_by_their_names() -> None:
    document = (
        "query ($user: ID!, $n: Int!) { user(userId: $user) { orders(first: $n) { nodes { total } } } }"
    )
    found = explained(GRAPHS["commerce"], document)
    assert found.stand_ins == {"user": "$user", "n": 10}
    user, orders = all_of(found.steps)
    assert user.requests[0].keys == "PK = USER#$user AND SK = USER#$user"
    assert (orders.page, orders.requests[0].limit) == ("first $n", 10)
    given = explained(GRAPHS["commerce"], document, user="7", n=3)
    assert (given.stand_ins, all_of(given.steps)[1].requests[0].limit) == ({}, 3)


def test_named_nodes() -> None:
    ids = json.dumps([global_id(library.types["Book"], (f"b{n}",)) for n in range(3)])
    document = '{ member(memberId: "ann") { loans(to: IDS) { edges { day } } } }'.replace("IDS", ids)
    [got] = all_of(explained(library, document).steps)[1].requests
    assert (got.operation, got.keys[-8:]) == ("BatchGetItem", ", 3 keys")
    one = global_id(library.types["Book"], ("b0",))
    alone = '{ member(memberId: "ann") { loans(to: ["ID"]) { edges { day } } } }'.replace("ID", one)
    [got] = all_of(explained(library, alone).steps)[1].requests
    assert (got.operation, got.keys.endswith("key")) == ("GetItem", False)


def test_an_argument_that_cannot_be_used_is_said_where_it_stands() -> None:
    document = '{ user(userId: "1") { name orders(first: 1000) { nodes { total } } } }'
    _, orders = all_of(explained(GRAPHS["commerce"], document).steps)
    assert orders.requests == ()
    assert "[cannot be read: first must be between 0 and 100]" in " ".join(steps_text([orders]).split())


def test_a_fragment_bomb_ends() -> None:
    steps = explained(library, bomb(30)).steps
    assert len(all_of(steps)) <= 500
    assert all("\n" not in line for line in steps_text(steps).splitlines())
    assert len(json.dumps(steps_json(steps))) > 1000


@pytest.mark.parametrize("model", GRAPHS)
async def test_what_is_described_is_what_is_sent(model: str, make_store: MakeStore) -> None:
    graph = GRAPHS[model]
    store = TracingStore(await make_store(graph.table))
    service = await served(model, store)
    compared = 0
    for operation in OPERATIONS[model]:
        variables = operation.variables[0]
        store.requests.clear()
        explanation = service.explain(operation.document, variables)
        answer = await service.execute(OperationRequest(operation.document, variables, with_cost=True))
        assert _described(explanation) == {
            (each["roundTrip"], each["operation"].removeprefix("Batch"), place)
            for each in answer["extensions"]["cost"]["requests"]
            for place in each["paths"]
        }, operation.name
        last, bound = max(each.last_round_trip for each in explanation.steps), explanation.bound
        assert bound.open_places or last == bound.total.round_trips, operation.name
        queries = [request for request in store.requests if isinstance(request, Query | Count)]
        sent = [described_requests(graph, [request]) for request in queries]
        for each in (request for step in all_of(explanation.steps) for request in step.requests):
            is_known = "{" not in each.keys.replace("\\u{", "") and ", then " not in each.keys
            if each.operation == "Query" and is_known:
                assert each in sent, operation.name
                compared += 1
    assert compared >= 1


def _described(explanation: Explanation) -> set[tuple[int, str, str]]:
    """Each request by round trip, operation and place. A batch may have one key."""
    return {
        (each.round_trip, each.target.partition(" ")[0].removeprefix("Batch"), place)
        for each in sent_requests(explanation.steps)
        for place in each.places
    }
