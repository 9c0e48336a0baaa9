"""Work that would keep the event loop for long: it is done in a thread, so that operations of others go on meanwhile.

There is one such thread. Python lets the event loop go on after five milliseconds (in a server of Keygraph's after half of one),
and after as much for each more thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

ResultT = TypeVar("ResultT")


class Aside:
    """The thread, which is started when it is first needed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keygraph-aside")

    async def do(self, work: Callable[..., ResultT], /, *arguments: object) -> ResultT:
        """What the work gives. Work that has not begun when nobody waits for it any more is not done."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._thread, context.run, work, *arguments)
