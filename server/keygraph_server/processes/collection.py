"""Garbage collection in a process of Keygraph's own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTED_AFTER = (50_000, 10, 10)
"""The thresholds of garbage collection, measured in `docs/performance.md`, "The server process"."""


@contextmanager
def keeping_all() -> Iterator[None]:
    """Import something: what is there at the end stays. To look for garbage among it again and again takes a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(*COLLECTED_AFTER)


def tune_collection() -> None:
    """Exclude all current objects from garbage collection, and collect less often.

    An operation creates thousands of objects and drops them at its end. With Python's default thresholds the collector
    scans them several times per operation, and scans the model, the schema and the AWS SDK again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
