"""A draft whose sample grows until no new types appear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keygraph.draft.draft import draft, imported_graph, why_not_read
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Table
from keygraph.graph import Graph

_QUIET_PARTS = 3
"""After this many parts of the table without a new type, the sample is large enough."""


class GrowingDraft:
    """A draft that is tried on one part of the table after another, and redone with the parts that it cannot read."""

    def __init__(self, table: Table, check: Callable[[Graph], object]) -> None:
        """`check` is passed to `draft`."""
        self._table = table
        self._check = check
        self._items: list[Item] = []
        self._types = 0
        self._quiet = 0
        self._text: str | None = None
        self.read = 0
        """The number of items it has been tried on."""

    @property
    def is_settled(self) -> bool:
        """Whether the last few parts had no new type."""
        return self._quiet >= _QUIET_PARTS

    def add(self, items: Sequence[Item], *, is_whole: bool) -> None:
        """Tries the draft on a part of the table. An incomplete part may hide types behind those that it shows."""
        self.read += len(items)
        if self._text is None or not self._reads(items):
            self._items += items
            self._text = draft(self._table, self._items, self._check)
            with imported_graph(self._text) as graph:
                types = len(graph.types)
            if types != self._types:
                self._types, self._quiet = types, 0
                return
        self._quiet += is_whole

    def text(self, doubts: Sequence[str] = ()) -> str:
        """Returns the model file, with these doubts added to its own."""
        if self._text is None or doubts:
            self._text = draft(self._table, self._items, self._check, doubts)
        return self._text

    def _reads(self, items: Sequence[Item]) -> bool:
        with imported_graph(self._text or "") as graph:
            return all(why_not_read(graph, item) is None for item in items)
