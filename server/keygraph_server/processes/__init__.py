"""The server processes: one that stops without losing a request, and several that share a socket.

`process` sets one up, with its `collection` of garbage and its standard `streams`. `server` serves connections in it, and
`workers` runs several: these two extend uvicorn's classes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from threading import Thread

MOST_WORKERS = 256


def when_parent_ends(end: Callable[[], object]) -> None:
    """Calls `end` in a thread as soon as the parent of this process is gone, also if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        end()

    Thread(target=wait, daemon=True).start()
