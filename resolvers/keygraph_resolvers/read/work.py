"""What a run has begun and not ended: tasks, and answers that it goes on with when they come.

Like an `asyncio.TaskGroup`, for a run that mostly waits for answers and needs no task to do so: the first failure ends
the run, and nothing is left running behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Work:
    """The work of one run, made inside its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = 0
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something beside the rest."""
        self._left += 1
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def when_done(self, future: asyncio.Future[Any], go_on: Callable[[], None]) -> None:
        """Goes on when a future is done, whatever it gives."""
        self._left += 1

        def done(_: object) -> None:
            if not self._ended.done():
                try:
                    go_on()
                except Exception as error:
                    self._ended.set_exception(error)
            self._end()

        future.add_done_callback(done)

    async def __aenter__(self) -> Work:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Waits until all that was begun has ended. Raises the first failure, after what was running has ended."""
        try:
            if self._left and error is None:
                await self._ended
        finally:
            running = [task for task in self._tasks if not task.done()]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._ended.done():
            self._ended.set_exception(error)
        self._end()

    def _end(self) -> None:
        self._left -= 1
        if not self._left and not self._ended.done():
            self._ended.set_result(None)
