"""When nodes are got: the rule by which a BatchGet leaves.

**A batch leaves when it has a hundred keys, or when nothing that is on its way can add to it.** What can add to it
is known from the plan: each read says, before it is sent, in which later round trips the items that it finds will
ask for nodes. So a round trip's nodes are in one batch however slowly its lists come in, nothing waits for a read
that leads to no node, and nobody sleeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.table import Key


class Gathering:
    """Keys that wait for their batch, by the round trip in which they are got.

    A forecast is a set of round trips as bits: bit 3 says that in the third one more keys may come.
    """

    def __init__(self, leave: Callable[[int, list[Key]], None]) -> None:
        """`leave` is called with a round trip and at most a hundred keys."""
        self._leave = leave
        self._waiting: dict[int, dict[Key, None]] = {}
        self._round_trips: dict[Key, int] = {}
        self._forecasts: Counter[int] = Counter()

    def expect(self, forecast: int) -> None:
        """More keys may come as forecast, until `arrived` takes that back."""
        if forecast:
            self._forecasts[forecast] += 1

    def arrived(self, forecast: int) -> None:
        """What was forecast has come, or will not."""
        if forecast:
            self._forecasts[forecast] -= 1
            if not self._forecasts[forecast]:
                del self._forecasts[forecast]

    def add(self, round_trip: int, key: Key) -> None:
        """A key to be got in that round trip, or sooner where somebody else has asked for it."""
        before = self._round_trips.get(key)
        if before is not None:
            if before <= round_trip:
                return
            del self._waiting[before][key]
        self._round_trips[key] = round_trip
        self._waiting.setdefault(round_trip, {})[key] = None

    def depart(self) -> None:
        """Sends what has nothing to wait for. Called when what has just happened has been seen to."""
        if not self._waiting:
            return
        # An earlier batch that leaves makes forecasts of its own: they were expected when its keys were added.
        for round_trip in sorted(self._waiting):
            keys = self._waiting[round_trip]
            is_complete = not any(forecast >> round_trip & 1 for forecast in self._forecasts)
            while len(keys) >= BATCH_GET_KEYS or (keys and is_complete):
                batch = list(keys)[:BATCH_GET_KEYS]
                for key in batch:
                    del keys[key], self._round_trips[key]
                self._leave(round_trip, batch)
            if not keys:
                del self._waiting[round_trip]
