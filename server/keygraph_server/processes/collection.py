"""Garbage collection in Keygraph's own processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTED_AFTER = (50_000, 10, 10)
"""The thresholds of garbage collection, measured in `docs/performance.md`, "The server process"."""


@contextmanager
def keeping_all() -> Iterator[None]:
    """Keeps what the block imports: searching it for garbage again and again takes a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(*COLLECTED_AFTER)


def tune_collection() -> None:
    """Excludes all current objects from garbage collection, and collects less often.

    An operation creates thousands of objects and drops them at its end. With Python's default thresholds the collector
    scans them several times per operation, and scans the model, the schema and the AWS SDK again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
