"""Walks that do not come to their end: what they cost, how long they take and who gives them up is held in the middle of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Ranked, Reach, Table, edge, node, ranked, reach
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, BatchWrite, CreateTable, Page, PassingStore, Query, Request
from keygraph.engines.open import open_store
from keygraph_resolvers import OperationRequest, Service
from tests.resolvers.worlds import SECRET, limits_of
from tests.schemas import schema_of


@node("PERSON#{name}")
class Person:
    name: ID
    friends: Many[Friend]
    network: Reach[Person] = reach("friends", depth=6)
    may_know: Ranked[Person] = ranked("friends", "friends", "friends")


@edge("{one}", "FRIEND#{other.name}", mirror=True)
class Friend:
    one: Person
    other: Person


graph = Graph(Table("Ends", partition_key="PK", sort_key="SK"), Person, Friend, paths=True)
WIDTH, LENGTH = 12, 6

WALKS = {
    "reach": '{ person(name: "a") { network { totalCount } } }',
    "ranked": '{ person(name: "a") { mayKnow { nodes { name } } } }',
    "path": '{ path(from: "a", to: "z", via: [PERSON_FRIENDS], maxLength: 12) { length } }',
    "alsoOf": '{ person(name: "a") { friends(alsoOf: ["b"]) { nodes { name } } } }',
}
"""Each takes two rounds of requests and more."""


def items() -> list[Item]:
    """Lines of people who know each other, from one to another; two of them have many friends besides."""
    lines = [[f"{line}-{place}" for place in range(LENGTH)] for line in range(WIDTH)]
    edges = [pair for line in lines for pair in zip(["a", *line], [*line, "z"], strict=True)]
    edges += [(one, f"{one}{number:04}") for one in "ab" for number in range(140)]
    return [
        {"PK": f"PERSON#{one}", "SK": f"FRIEND#{other}"}
        for pair in edges
        for one, other in (pair, pair[::-1])
    ]


@dataclass(eq=False)
class Halting(PassingStore):
    """A store that answers some requests, each at a price, and no others."""

    price: float = 1.0
    most: int = 10_000
    sent: int = 0
    halted: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, most: int = 10_000, price: float = 1.0) -> None:
        self.most, self.price, self.sent = most, price, 0
        self.reached.clear()

    async def send(self, request: Request[Answer], /) -> Answer:
        self.sent += 1
        if self.sent > self.most:
            self.reached.set()
            self.halted += 1
            try:
                await asyncio.sleep(3600)
            finally:
                self.halted -= 1
        answer: Any = await self.store.send(request)
        if isinstance(request, Query) and isinstance(answer, Page):
            answer = replace(
                answer, cost=replace(answer.cost, read_units=answer.cost.read_units * self.price)
            )
        return answer  # type: ignore[no-any-return]  # the same, at another price


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Halting]:
    async with open_store(f"sqlite:{tmp_path}/ends.db", graph.table) as opened:
        await opened.send(CreateTable())
        await opened.send(BatchWrite(puts=items()))
        yield Halting(opened)


def service(store: Halting, **limits: Any) -> Service:
    return Service(schema_of(graph), store, secret=SECRET, limits=limits_of(read_budget=2_000, **limits))


async def asked_for(store: Halting, document: str) -> tuple[int, float]:
    store.begin()
    answer = await service(store).execute(OperationRequest(document, with_cost=True))
    assert "errors" not in answer
    assert answer["extensions"]["cost"]["actual"]["roundTrips"] > 1
    return store.sent, answer["extensions"]["cost"]["bound"]["readUnits"]


def codes(answer: Any) -> list[str]:
    return [error["extensions"]["code"] for error in answer["errors"]]


@pytest.fixture(params=WALKS)
def document(request: pytest.FixtureRequest) -> str:
    return WALKS[request.param]


async def test_items_that_are_dearer_than_declared_stop_a_walk(store: Halting, document: str) -> None:
    requests, bound = await asked_for(store, document)
    store.begin(price=8 * bound / requests)
    answer = await service(store, cost_limit=bound).execute(document)
    assert answer["data"] is None
    assert codes(answer) == ["COST_LIMIT"]
    assert 0 < store.sent < requests


async def test_time_runs_out_in_the_middle(
    store: Halting, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, _ = await asked_for(store, document)
    store.begin(requests // 2)
    asking = asyncio.create_task(service(store, operation_timeout=60).execute(document))
    await store.reached.wait()
    loop = asyncio.get_running_loop()
    later = loop.time() + 60
    monkeypatch.setattr(loop, "time", lambda: later)
    assert codes(await asking) == ["TIMEOUT"]
    await nothing_goes_on(store, requests)


async def test_a_walk_that_is_given_up_ends(store: Halting, document: str) -> None:
    requests, _ = await asked_for(store, document)
    store.begin(requests // 2)
    asking = asyncio.create_task(service(store).execute(document))
    await store.reached.wait()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    await nothing_goes_on(store, requests)


async def nothing_goes_on(store: Halting, requests: int) -> None:
    """Whether a walk has ended, of which nothing is left."""
    sent = store.sent
    for _ in range(5):
        await asyncio.sleep(0)
    assert (store.sent, store.halted) == (sent, 0)
    assert sent <= requests
    assert asyncio.all_tasks() == {asyncio.current_task()}
