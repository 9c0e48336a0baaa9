"""What an operation asked of the store: each request with where in the query it came from, when, and what it cost.

An operation may have a budget. What it costs is known when an answer has come, so that requests which are under way
when the budget is used up still count; nothing is sent after them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from keygraph.dynamo.store import Answer, Batch, Cost, Counted, Page, Request, Store
from keygraph.dynamo.table import Table
from keygraph.errors import StoreError
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType


class CostExceeded(StoreError):
    """The operation has used up what it may cost."""

    code = "COST_LIMIT"


@dataclass(frozen=True, slots=True)
class ListKind:
    """Lists that are alike: by one access path, and by what else decides how much of its range is in them."""

    path: AccessPath
    is_ranged: bool
    """Whether the sort key is narrowed by arguments."""
    is_filtered: bool
    """Whether the client says a condition."""


@dataclass(slots=True, eq=False)
class Origin:
    """Where a read comes from: the places in the query, and the round trip that its next request is part of."""

    places: tuple[str, ...]
    round_trip: int
    kind: ListKind | None = None
    """The list that is read, if it is one."""
    keys: Mapping[tuple[str, RecordType], int] = field(default_factory=dict)
    """How many keys are got, for which place and of which type, if nodes are."""
    lists: Mapping[ListKind, tuple[int, bool]] = field(default_factory=dict)
    """How many items were found of lists that are read together, and whether these are all."""


class Sent(NamedTuple):
    """One request, with what came of it. Times are seconds since the operation began."""

    request: Request[object]
    origin: Origin | None
    places: tuple[str, ...]
    round_trip: int
    began: float
    ended: float
    cost: Cost
    items: int
    """How many items the store looked at."""
    passed: int
    """How many of these a filter left."""
    is_last: bool
    """Whether the range ends here."""


ORIGIN: ContextVar[Origin | None] = ContextVar("keygraph-origin", default=None)


def round_trip_now() -> int:
    """The round trip that the running read's next request is part of."""
    origin = ORIGIN.get()
    return origin.round_trip if origin else 0


def pass_round_trip() -> None:
    """What the running read asks for next is one round trip later."""
    origin = ORIGIN.get()
    if origin is not None:
        origin.round_trip += 1


@dataclass(slots=True)
class MeteredStore:
    """A store that remembers what one operation asked of another."""

    store: Store
    budget: float | None = None
    """The read units after which nothing more is sent."""
    sent: list[Sent] = field(default_factory=list)
    wanted: Counter[RecordType] = field(default_factory=Counter)
    """How many nodes of each type were looked for, wherever; of these each is got once."""
    read_units: float = 0.0
    began: float = field(default_factory=time.perf_counter)

    @property
    def table(self) -> Table:
        return self.store.table

    @property
    def is_exceeded(self) -> bool:
        return self.budget is not None and self.read_units > self.budget

    async def send(self, request: Request[Answer], /) -> Answer:
        if self.is_exceeded:
            raise CostExceeded("the operation has used up what it may cost")
        origin = ORIGIN.get()
        round_trip = origin.round_trip if origin else 1
        began = time.perf_counter()
        answer = await self.store.send(request)
        ended = time.perf_counter()
        if origin is not None and origin.round_trip <= round_trip:
            # What is asked for when this has come is one round trip later.
            origin.round_trip = round_trip + 1
        seen = _seen(answer)
        if seen is not None:
            cost, items, passed, is_last = seen
            self.read_units += cost.read_units
            places = origin.places if origin else ()
            began, ended = began - self.began, ended - self.began
            self.sent.append(
                Sent(request, origin, places, round_trip, began, ended, cost, items, passed, is_last)
            )
        return answer

    async def close(self) -> None:
        await self.store.close()


def _seen(answer: object) -> tuple[Cost, int, int, bool] | None:
    """What an answer to a read says of itself; None for other answers."""
    if isinstance(answer, Page):
        return answer.cost, answer.scanned, len(answer.items), answer.last is None
    if isinstance(answer, Counted):
        return answer.cost, answer.scanned, answer.count, answer.last is None
    if isinstance(answer, Batch):
        there = len(answer.items) - answer.items.count(None)
        return answer.cost, there, there, True
    return None
