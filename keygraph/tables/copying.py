"""Copies a table into another one, of any engine: every item as it is, also those that no model knows.

Each segment of the table is read page by page, and a page is written before the next one is read, so memory holds one
page for each segment. The copy can be interrupted after any page, and resumed: a page that is written again changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_WRITE_ITEMS
from keygraph.dynamo.store import BatchGet, BatchWrite, Scan, Store, pages
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.tables.bulk import BATCH_ITEMS, SegmentPositions, WriteRate, gathered
from keygraph.tables.findings import key_from_json, key_to_json


class RefusedItem(BadUserInput):
    """An item that the other table cannot hold."""

    def __init__(self, key: Key, reason: BadUserInput) -> None:
        self.key = key
        super().__init__(str(reason))


class TableCopy:
    """A copy of a table into one with the same keys."""

    def __init__(self, source: Store, target: Store, rate: WriteRate, *, segments: int = 4) -> None:
        self.items = 0
        """How many items were copied."""
        self._source = source
        self._target = target
        self._rate = rate
        self._batch = BATCH_WRITE_ITEMS if rate.is_limited else BATCH_ITEMS
        self._reached = SegmentPositions(segments)
        self._last: Key | None = None

    async def run(self, advance: Callable[[int], None]) -> None:
        """Copies what was not copied yet. `advance` is called after each page with the number of items so far.

        Raises StoreError, and RefusedItem.
        """
        await gathered(
            (self._copy(segment, advance) for segment in self._reached.left), self._reached.segments
        )

    async def _copy(self, segment: int, advance: Callable[[int], None]) -> None:
        scan = Scan(segment, self._reached.segments, start=self._reached.at[segment], consistent=True)
        async for page in pages(self._source, scan):
            for start in range(0, len(page.items), self._batch):
                await self._write(page.items[start : start + self._batch])
            # No await between these: an interruption leaves the number and the position in step.
            self.items += len(page.items)
            self._last = self._source.table.key_of(page.items[-1]) if page.items else self._last
            self._reached.advance(segment, page.last)
            advance(self.items)

    async def _write(self, items: Sequence[Item]) -> None:
        try:
            await self._rate.send(self._target, BatchWrite(tuple(items)))
        except BadUserInput as error:
            if len(items) == 1:
                raise RefusedItem(self._source.table.key_of(items[0]), error) from None
            for item in items:
                await self._write([item])

    # --- Saved between two runs -----------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Returns the progress as JSON, except that keys may hold bytes, which are to be written in base64."""
        return {
            "items": self.items,
            "last": self._last and key_to_json(self._last),
            **self._reached.to_json(),
        }

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continues another copy that was interrupted, with the same number of segments.

        Raises KeyError, TypeError or ValueError, and changes nothing, if `kept` is malformed.
        """
        items, last = int(kept["items"]), kept["last"] and key_from_json(kept["last"])
        self._reached.resume(kept)
        self.items, self._last = items, last

    async def is_there(self) -> bool:
        """Returns whether the other table has the last item that was copied: it may be another one since. Raises
        StoreError."""
        if self._last is None:
            return True
        return (await self._target.send(BatchGet((self._last,), consistent=True))).items != [None]
