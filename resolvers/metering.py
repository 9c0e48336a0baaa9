"""What an operation asked of the store: each request with where in the query it came from, when, and what it cost."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from keygraph.store import Answer, Batch, BatchGet, Cost, Count, Counted, Page, Query, Request, Store
from keygraph.table import Table


@dataclass(slots=True)
class Origin:
    """Where a read comes from: the places in the query, and the round trip that its next request is part of."""

    places: tuple[str, ...]
    round_trip: int


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, with what came of it. Times are seconds since the operation began."""

    request: Request[object]
    places: tuple[str, ...]
    round_trip: int
    began: float
    ended: float
    cost: Cost
    items: int
    """How many items the store looked at."""


ORIGIN: ContextVar[Origin | None] = ContextVar("keygraph-origin", default=None)


def pass_round_trip() -> None:
    """What the running read asks for next is one round trip later."""
    origin = ORIGIN.get()
    if origin is not None:
        origin.round_trip += 1


@dataclass(slots=True)
class MeteredStore:
    """A store that remembers what one operation asked of another."""

    store: Store
    sent: list[Sent] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        origin = ORIGIN.get()
        round_trip = origin.round_trip if origin else 1
        began = time.perf_counter()
        answer = await self.store.send(request)
        ended = time.perf_counter()
        if origin is not None:
            # What is asked for when this has come is one round trip later.
            origin.round_trip = max(origin.round_trip, round_trip + 1)
        if isinstance(request, Query | Count | BatchGet):
            self.sent.append(
                Sent(
                    request,
                    origin.places if origin else (),
                    round_trip,
                    began - self.began,
                    ended - self.began,
                    *_seen(answer),
                )
            )
        return answer

    async def close(self) -> None:
        await self.store.close()


def _seen(answer: object) -> tuple[Cost, int]:
    match answer:
        case Page(scanned=scanned, cost=cost) | Counted(scanned=scanned, cost=cost):
            return cost, scanned
        case Batch(items=items, cost=cost):
            return cost, sum(item is not None for item in items)
    return Cost(), 0
