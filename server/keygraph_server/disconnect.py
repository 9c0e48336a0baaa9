"""Clients that go before their answer is there, so that what they asked for need not be read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from starlette.types import Receive

_T = TypeVar("_T")

_UNWATCHED_SECONDS = 0.02
"""Operations that take no longer are not watched: to watch costs as much as a small operation does."""


async def unless_gone(receive: Receive, answering: Awaitable[_T]) -> _T | None:
    """The answer; None, and the work is cancelled, where the client goes before there is one."""
    task: asyncio.Task[Any] | None = asyncio.current_task()
    if task is None:
        return await answering
    departure = _Departure(receive, task)
    try:
        return await answering
    except asyncio.CancelledError:
        # A server that stops cancels as well, and then the task has to end.
        if departure.has_happened and task.uncancel() == 0:
            return None
        raise
    finally:
        departure.forget()


class _Departure:
    """Cancels a task when its client goes."""

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.has_happened = False
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None
        self._begins = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, self._begin)

    def _begin(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_happened = True
        self._task.cancel()

    def forget(self) -> None:
        """The task has what it was for."""
        self._begins.cancel()
        if self._watching is not None:
            self._watching.cancel()
