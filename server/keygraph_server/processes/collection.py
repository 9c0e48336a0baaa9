"""Garbage collection in Keygraph's own processes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

COLLECTED_AFTER = (20_000, 0, 150)
"""The thresholds of garbage collection, measured in `docs/performance.md`, "The server process". A collection of the
first two generations looks at 40,000 objects that are still used, or a few more, which takes up to 50 ms."""
_BESIDE_LARGE = (5_000, 0, 600)
"""The same beside what keeps much of what it makes: a collection takes up to 10 ms. With these, small operations would take
a twelfth more time."""


@contextmanager
def keeping_all() -> Iterator[None]:
    """Keeps what the block imports and makes: searching it for garbage again and again takes a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(*COLLECTED_AFTER)


def tune_collection(makes_much: Callable[[], bool]) -> None:
    """Excludes all current objects from garbage collection, and collects less often, if not so much is made and kept.

    An operation creates thousands of objects and drops them at its end. With Python's default thresholds the collector
    scans them several times per operation, and scans the model, the schema and the AWS SDK again and again.
    """
    gc.collect()
    gc.freeze()

    def choose(*_: object) -> None:
        """Each collection chooses when the next one comes."""
        gc.set_threshold(*(_BESIDE_LARGE if makes_much() else COLLECTED_AFTER))

    choose()
    gc.callbacks.append(choose)
