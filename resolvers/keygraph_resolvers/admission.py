"""Admission: limits the operations that run at the same time and those that wait, and refuses all others at once."""

from __future__ import annotations

import asyncio
import logging

from keygraph.errors import StoreError
from keygraph.incidents import Incident

_log = logging.getLogger(__name__)


class Overloaded(StoreError):
    """The server already has as many operations as it accepts. This one was not started."""


class Admission:
    """An asynchronous context manager: operations inside it run. Raises Overloaded if too many wait already.

    `running` and `waiting` are how many do so at the moment, and `refusals.count` is how many were refused.
    """

    def __init__(self, most_running: int, most_waiting: int) -> None:
        self.running = 0
        self.waiting = 0
        self.refusals = Incident(_log)
        self._most_waiting = most_waiting
        self._places = asyncio.Semaphore(most_running)

    async def __aenter__(self) -> None:
        if self._places.locked() and self.waiting >= self._most_waiting:
            self.refusals.happened(
                f"Operations are refused, because {self.running} run and {self.waiting} wait already"
            )
            raise Overloaded("the server has too much to do: try again in a second")
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.running += 1

    async def __aexit__(self, *_: object) -> None:
        self.running -= 1
        self._places.release()
