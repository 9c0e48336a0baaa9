"""A store that records the requests to another one, so that a test can compare them."""

from __future__ import annotations

from dataclasses import dataclass, field

from keygraph.dynamo.store import Answer, Request, Store
from keygraph.dynamo.table import Table


@dataclass(slots=True)
class TracingStore:
    """A store that passes requests on to another one and records them."""

    store: Store
    requests: list[Request[object]] = field(default_factory=list)

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        self.requests.append(request)
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()
