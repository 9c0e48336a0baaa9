"""Changes of records: what an operation wants to hear of, and what a change of an item is to the model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from keygraph.dynamo.items import Item, item_size
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.writing.sending.idempotency import is_own

_log = logging.getLogger(__name__)


class WantedChanges(NamedTuple):
    """The changes of the records of a type that have these texts in their keys, before or after."""

    record: RecordType
    names: tuple[str, ...] = ()
    """The names of the slots."""
    texts: tuple[str, ...] = ()

    def fits(self, texts: Mapping[str, str | None]) -> bool:
        return all(texts.get(name) == text for name, text in zip(self.names, self.texts, strict=True))


@dataclass(eq=False)
class RecordChange:
    """A change of one record. If an item becomes one of another type, that is a change of two records."""

    record: RecordType
    identity: tuple[str, ...]
    old: Item | None
    """None if there was no record of the type."""
    new: Item | None
    at: float
    """When it was made, in seconds since 1970."""
    waits: int = 0
    """For how many operations it is kept."""

    @cached_property
    def size(self) -> int:
        """Its size in bytes."""
        return sum(item_size(item) for item in (self.old, self.new) if item is not None)

    @cached_property
    def texts(self) -> list[Mapping[str, str | None]]:
        """The texts in its keys, by slot, before and after."""
        return [self._texts(item) for item in (self.old, self.new) if item is not None]

    def _texts(self, item: Item) -> Mapping[str, str | None]:
        found: dict[str, str | None] = {}
        for keys in self.record.keys.values():
            found |= keys.parse(item) or {}
        return found | self.record.texts(self.identity)


def record_changes(graph: Graph, old: Item | None, new: Item | None, at: float) -> Iterator[RecordChange]:
    """Yields what a change of an item is to the model: nothing for an item of no type, or on which the model fails."""
    try:
        before, after = (
            None if item is None or is_own(item) else graph.identified(item) for item in (old, new)
        )
    except Exception as error:
        _log.warning("A change is skipped: the model fails with %s", type(error).__name__)
        return
    if before == after and before is not None:
        yield RecordChange(*before, old, new, at)
        return
    if before is not None:
        yield RecordChange(*before, old, None, at)
    if after is not None:
        yield RecordChange(*after, None, new, at)
