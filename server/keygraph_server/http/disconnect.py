"""Clients that disconnect before their answer is ready: their operation is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from starlette.types import Receive

from keygraph_server.errors import RequestRefusedError

_T = TypeVar("_T")

_UNWATCHED_SECONDS = 0.02
"""Shorter operations are not watched, since watching costs as much as a small operation."""


async def unless_gone(receive: Receive, answering: Awaitable[_T]) -> _T | None:
    """The answer; None if the client disconnects first, and then the work is cancelled."""
    task: asyncio.Task[Any] | None = asyncio.current_task()
    if task is None:
        return await answering
    departure = _Departure(receive, task)
    try:
        return await answering
    except asyncio.CancelledError:
        # A server that stops also cancels, and then the task must end.
        if departure.has_happened and task.uncancel() == 0:
            return None
        raise
    finally:
        departure.forget()


class _Departure:
    """Cancels a task when its client disconnects."""

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.has_happened = False
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None
        self._begins = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, self._begin)

    def _begin(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except RequestRefusedError:
            return  # a GET with a body that is too large: nobody wants it
        self.has_happened = True
        self._task.cancel()

    def forget(self) -> None:
        """Stop watching: the task is done."""
        self._begins.cancel()
        if self._watching is not None:
            self._watching.cancel()
