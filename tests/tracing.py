"""Stores that pass requests on to another one, and record, hold or refuse them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from keygraph.dynamo.store import Answer, PassingStore, Request, Transaction, Write
from keygraph.errors import Unavailable


@dataclass(eq=False)
class TracingStore(PassingStore):
    """A store that records the requests."""

    requests: list[Request[object]] = field(default_factory=list)

    async def send(self, request: Request[Answer], /) -> Answer:
        self.requests.append(request)
        return await self.store.send(request)


Before = Callable[[Request[Any]], Awaitable[None]]


@dataclass(eq=False)
class HeldStore(PassingStore):
    """A store that calls a function before each request, which may wait or raise."""

    before: Before

    async def send(self, request: Request[Answer], /) -> Answer:
        await self.before(request)
        return await self.store.send(request)


@dataclass(eq=False)
class CutStore(PassingStore):
    """A store that fails at the n-th write, before it is done or after."""

    left: int
    is_done: bool

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Transaction | Write):
            self.left -= 1
            if self.left <= 0:
                if self.is_done and self.left == 0:
                    await self.store.send(request)
                raise Unavailable("the process is gone")
        return await self.store.send(request)
