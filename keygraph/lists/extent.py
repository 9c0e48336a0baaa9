"""The part of a list that is wanted, and where its items are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Position
from keygraph.model.records import RecordType


class Place(NamedTuple):
    """The place of an item in a list: the shard (0 if there is one), and its position there."""

    shard: int
    position: Position


class Located(NamedTuple):
    """An item of a list, and the texts that identify it."""

    item: Item
    identity: tuple[str, ...]
    record: RecordType


@dataclass(frozen=True, slots=True)
class Extent:
    """The wanted part of a list.

    `forward` is along the sort key. Reading begins after `after` and ends before `until`, both in the direction of
    reading; it stops at `count` items, and `look_ahead` asks whether there is one more. `budget` is how many items the
    store may examine. If `after` is at or after `until`, nothing is between them.
    """

    count: int
    forward: bool = True
    after: Place | None = None
    until: Place | None = None
    look_ahead: bool = False
    budget: int = 10_000
    attributes: frozenset[str] | None = None
    """The attributes that are wanted from the items in addition to those that the list itself needs; None for all."""

    def has_attributes(self, wanted: Extent) -> bool:
        """Returns whether its items have the attributes that another part wants."""
        if self.attributes is None or self.attributes is wanted.attributes:
            return True
        return wanted.attributes is not None and wanted.attributes <= self.attributes


NO_PAGE = Extent(0, attributes=frozenset())
"""No page: the list is only counted, or found in another one."""
