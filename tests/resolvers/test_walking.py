"""How walks are driven: what is wanted at once is sent at once, nothing twice, and an error ends the walk."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from graphql.execution.values import VariableValues

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, PassingStore, Query, Request
from keygraph.errors import StoreError
from keygraph.limits import Limits
from keygraph.lists.projection import Attributes
from keygraph.walks.reach import Reach, from_node, reach
from keygraph.walks.walk import Budget, Vertex
from keygraph_examples.commerce import graph as commerce
from keygraph_resolvers.engine.engine import Engine, Task
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.step import Step
from keygraph_resolvers.steps.walks.walk import WalkedLists, Walking
from tests.conftest import MakeStore
from tests.resolvers.worlds import SECRET
from tests.tracing import TracingStore

CATEGORY = commerce.types["Category"]
CHILDREN = commerce.node_lists[CATEGORY.name, "children"]


def below(parent: str, child: str) -> Item:
    parent, key = f"CATEGORY#{parent}", f"CATEGORY#{child}"
    return {"PK": parent, "SK": f"CHILD#{child}", "Type": "CategoryChild", "GSI1PK": key, "GSI1SK": "x"}


@pytest.fixture
async def tree(make_store: MakeStore) -> TracingStore:
    """Twelve categories on three levels, and one that is its own child."""
    items = [below("top", f"a{one}") for one in range(3)]
    items += [below(f"a{one}", f"b{one}{two}") for one in range(3) for two in range(3)]
    store = await make_store(commerce.table, *[*items, below("a1", "a1"), below("b00", "b01")])
    return TracingStore(store)


async def walked(store: Any, budget: int = 100) -> tuple[Reach | Exception, int, Run]:
    """What is below the top, the round trip that is next, and the run."""
    attributes = Attributes.of(commerce, {commerce.types["CategoryChild"]: frozenset()})
    run = Run(commerce, store, Cursors(SECRET), Limits(), VariableValues({}, {}), attributes, frozenset())
    lists, began = WalkedLists.shared(run, [CHILDREN], is_alone=False), Vertex(CATEGORY, ("top",))
    left = Budget(budget)
    walking = Walking(lists, reach(from_node(began), lists.of, 10, left), left)
    engine, came = Engine(run), list[tuple[Reach | Exception, int]]()
    step = MagicMock(spec=Step)
    task = Task(engine, step, walking.run(began), 1, "place", lambda *done: came.append(done))
    await engine.run(task.send)
    [(result, round_trip)] = came
    return result, round_trip, run


async def test_a_level_is_one_round_trip(tree: TracingStore) -> None:
    result, round_trip, run = await walked(tree)
    assert isinstance(result, Reach)
    assert [each.node.identity[0] for each in result.nodes] == [
        *["a0", "a1", "a2"],
        *["b00", "b01", "b02", "b10", "b11", "b12", "b20", "b21", "b22"],
    ]
    assert [sent.round_trip for sent in run.meter.sent] == [1, *[2] * 3, *[3] * 9]
    assert round_trip == 4
    assert result.is_complete


async def test_the_budget_holds(tree: TracingStore) -> None:
    for budget in range(1, 30):
        result, _, run = await walked(tree, budget)
        assert isinstance(result, Reach)
        assert result.is_complete == (budget >= 23)
        assert sum(max(1, sent.items) for sent in run.meter.sent) <= budget


class Broken(PassingStore):
    """A store that cannot read one category."""

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Query) and request.partition == "CATEGORY#a1":
            raise StoreError("it cannot be read")
        return await self.store.send(request)


async def test_an_error_ends_the_walk(tree: TracingStore) -> None:
    result, _, run = await walked(Broken(tree))
    assert isinstance(result, StoreError)
    assert max(sent.round_trip for sent in run.meter.sent) == 2
