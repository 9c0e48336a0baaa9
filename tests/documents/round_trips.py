"""A store that sends what it is asked for in rounds, so that a test sees what waits for what."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from keygraph.dynamo.store import Request, Store
from keygraph.dynamo.table import Table

Answer = TypeVar("Answer")

_QUIET = 25
"""A round leaves when for so many turns of the event loop nothing was added to it: more turns after a round with more
requests, whose answers take several turns to go on with."""


class RoundTrips:
    """A store whose answers come round by round: all of one round before anything of the next is sent.

    However fast a single answer is, `rounds` has the requests in the order in which they depend on each other.
    """

    def __init__(self, store: Store) -> None:
        self.rounds: list[list[Request[Any]]] = []
        self._store = store
        self._waiting: list[tuple[Request[Any], asyncio.Future[Any]]] = []
        self._departure: asyncio.Task[None] | None = None

    @property
    def table(self) -> Table:
        return self._store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if len(self._waiting) == 1:
            self._departure = asyncio.create_task(self._leave())
        return await answer

    async def close(self) -> None:
        await self._store.close()

    async def _leave(self) -> None:
        quiet, turns = 0, max(_QUIET, len(self.rounds[-1]) if self.rounds else 0)
        while quiet < turns:
            size = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == size else 0
        leaving, self._waiting = self._waiting, []
        self.rounds.append([request for request, _ in leaving])
        sent = (self._store.send(request) for request, _ in leaving)
        answers = await asyncio.gather(*sent, return_exceptions=True)
        for (_, waiter), answer in zip(leaving, answers, strict=True):
            if waiter.done():
                continue
            if isinstance(answer, BaseException):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)
