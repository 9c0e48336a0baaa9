"""A store in which somebody else writes between what a mutation reads and what it writes."""

from __future__ import annotations

from dataclasses import dataclass

from keygraph.dynamo.store import Answer, BatchWrite, Request, Store, Transaction
from keygraph.dynamo.table import Table


@dataclass
class Interrupted:
    """A store in which something is written before the first transaction."""

    store: Store
    happens: BatchWrite | None

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Transaction) and self.happens is not None:
            happens, self.happens = self.happens, None
            await self.store.send(happens)
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()
