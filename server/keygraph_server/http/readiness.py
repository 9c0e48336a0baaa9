"""Readiness: decides whether the server can serve clients, from known facts and a check of the table every few
seconds."""

from __future__ import annotations

import asyncio
import logging

from keygraph import StoreError
from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.store import DescribeTable, Store
from keygraph.dynamo.traffic import outage_of

_log = logging.getLogger(__name__)

_LOOKED_SECONDS = 5.0
"""How long a check of the table is valid."""
_WAITED_SECONDS = 0.5
"""How long an answer waits for a check in progress."""
_HUNG_SECONDS = 2.0
"""How long a check may take until the store counts as unresponsive."""


class Readiness:
    """Knows whether a store can be served. One check of its table serves all who ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looking: asyncio.Task[str | None] | None = None
        self._looked_at = 0.0
        """When the last check began, by the loop's time."""
        self._reason: str | None = "the store has not answered yet"
        """The result of the last check."""
        self._is_ready = True
        """The state that was last logged."""

    async def problem(self) -> str | None:
        """Why the store cannot be served; None if it can."""
        reason = await self._find_problem()
        if self._is_ready != (reason is None):
            self._is_ready = reason is None
            _log.warning(
                "The server is ready again" if reason is None else f"The server is not ready: {reason}"
            )
        return reason

    async def _find_problem(self) -> str | None:
        outage = outage_of(self._store)
        if outage is not None:
            return outage
        now = asyncio.get_running_loop().time()
        if self._looking is None and (not self._looked_at or now - self._looked_at >= _LOOKED_SECONDS):
            self._looked_at = now
            self._looking = asyncio.create_task(_look(self._store))
        if self._looking is not None:
            done, _ = await asyncio.wait([self._looking], timeout=_WAITED_SECONDS)
            for each in done:
                self._looking = None
                self._reason = each.result()
        if self._looking is not None and now - self._looked_at >= _HUNG_SECONDS:
            return f"the store has not answered for {now - self._looked_at:.0f} seconds"
        return self._reason

    async def close(self) -> None:
        """Cancels a check in progress."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])


async def _look(store: Store) -> str | None:
    """Why the store cannot be served; None if it can."""
    try:
        found = await store.send(DescribeTable())
    except StoreError as error:
        return str(error)
    if found is None:
        return f"the store has no table {store.table.name}"
    differing = table_differences(store.table, found)
    return f"the table {store.table.name}: {'; '.join(differing)}" if differing else None
