"""The weight of a path in a ranking: its last edge's weight, lower the older that edge is."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

from keygraph.declare.declaration import WalkOptions
from keygraph.dynamo.items import Item
from keygraph.model.records import RecordType


class Weights:
    """The weights of items, as a ranking declares them."""

    def __init__(self, options: WalkOptions) -> None:
        self._weight = options.weight
        self._decay = options.decay

    @property
    def names(self) -> frozenset[str]:
        """The fields of an item that determine its weight."""
        decay = () if self._decay is None else self._decay[:1]
        return frozenset(name for name in (self._weight, *decay) if name is not None)

    def of(self, record: RecordType, item: Item, now: float) -> Any:
        """Returns the weight of an item at a time, in seconds since 1970: 1 if none is declared, 0 if it has no value.

        Raises CorruptItem if a value does not fit.
        """
        weight: Any = 1 if self._weight is None else record.reader(record.fields[self._weight])(item) or 0
        if self._decay is None:
            return weight
        name, half = self._decay
        began = record.reader(record.fields[name])(item)
        if began is None:
            return 0
        age = max(0.0, now - _seconds(began))
        return float(weight) * 0.5 ** (age / half.total_seconds())


def _seconds(moment: datetime | date) -> float:
    """Returns a time in seconds since 1970; without a zone it is UTC."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time.min)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
