"""Consistent reads, which see the latest writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from keygraph.dynamo.store import Answer, BatchGet, Count, Query, Request, Store
from keygraph.dynamo.table import Table


@dataclass(frozen=True, slots=True)
class ConsistentStore:
    """A store whose table and local indexes are read consistently. A global index cannot be."""

    store: Store

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        is_read = isinstance(request, BatchGet)
        if isinstance(request, Query | Count):
            index = request.index
            is_read = index is None or any(each.local for each in self.table.indexes if each.name == index)
        if is_read:
            request = cast("Request[Answer]", replace(cast(Any, request), consistent=True))
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()
