"""Runs work that would block the event loop for long in a thread, so that other operations continue meanwhile.

There is one such thread. Python lets the event loop continue after five milliseconds (half of one in a server of
Keygraph's), and after the same time for each further thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

ResultT = TypeVar("ResultT")


class WorkerThread:
    """The thread, which is started on first use."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keygraph-worker")

    async def run(self, work: Callable[..., ResultT], /, *arguments: object) -> ResultT:
        """Returns the result of the work. Work that has not begun when nobody waits for it anymore is not done."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._thread, context.run, work, *arguments)
