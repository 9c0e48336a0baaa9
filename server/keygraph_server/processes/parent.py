"""The process that has started this one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from threading import Thread


def when_parent_ends(end: Callable[[], object]) -> None:
    """Calls `end` in a thread as soon as the parent of this process is gone, also if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        end()

    Thread(target=wait, daemon=True).start()
