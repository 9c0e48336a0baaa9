"""A store in which somebody else writes between what a mutation reads and what it writes."""

from __future__ import annotations

from dataclasses import dataclass

from keygraph.dynamo.store import Answer, BatchGet, PassingStore, Request, Transaction
from tests.tracing import TracingStore


@dataclass
class Interrupted(PassingStore):
    """A store in which something is written before the first transaction."""

    happens: Request[object] | None

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Transaction) and self.happens is not None:
            happens, self.happens = self.happens, None
            await self.store.send(happens)
        return await self.store.send(request)


@dataclass(eq=False)
class Raced(TracingStore):
    """A store in which something is written after the first items that were got by their keys."""

    happens: Request[object] | None = None

    async def send(self, request: Request[Answer], /) -> Answer:
        answer = await super().send(request)
        if isinstance(request, BatchGet) and self.happens is not None:
            happens, self.happens = self.happens, None
            await self.store.send(happens)
        return answer
