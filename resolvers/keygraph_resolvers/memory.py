"""Memory: how many bytes all operations of a process hold of what they have read, until their answers are sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from keygraph.dynamo.items import Item, item_size
from keygraph.errors import KeygraphError, StoreError
from keygraph.incidents import Incident
from keygraph_resolvers.codes import OperationCode

_log = logging.getLogger(__name__)

_ALWAYS_HELD = 64 * 1024
"""An operation that holds no more than this is never refused: small ones go on beside large ones."""
_MEASURED_BYTES = 256 * 1024
"""Items of a request that may have more bytes than this are measured."""
_UNIT_BYTES = 8 * 1024
"""One read unit reads so many bytes, if the read is eventually consistent; others hold half of it."""
_PAGE_BYTES, _EDGE_BYTES = 2_500, 250
"""What the objects of a page and of an edge take, with what is written of them, as measured by tracemalloc."""

_LARGE_AT_ONCE = 1
"""So many large answers are read on, written and sent at the same time. A connection that is closed because it holds too much keeps its
bytes until the event loop goes round: without turns, all large answers of a round would be in memory together."""


class TooMuchMemory(StoreError):
    """The operations of the process hold more than they may. This one was given up."""


class MoreThanAnyMay(KeygraphError):
    """The operation alone holds more than all operations of the process may."""

    code = OperationCode.ANSWER_LIMIT


class Memory:
    """What the operations of a process hold together. `held` is in bytes, and `refusals.count` is how many were given up."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.refusals = Incident(_log)
        self.large_answers = asyncio.Semaphore(_LARGE_AT_ONCE)

    def holding(self) -> Holding:
        """What one operation holds."""
        return Holding(self)


class Holding:
    """What one operation holds, until it leaves this context manager."""

    __slots__ = ("_memory", "has_turn", "held", "refusal")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.held = 0
        self.refusal: KeygraphError | None = None
        """Why the operation is given up."""
        self.has_turn = False
        """Whether it has the turn to write a large answer."""

    async def wait_to_answer(self) -> None:
        """Waits for the turn to read on for a large answer and to write it, which lasts until it is sent, or until this is left."""
        if not self.has_turn:
            await self._memory.large_answers.acquire()
            self.has_turn = True

    def answers(self) -> None:
        """Who has the turn is about to send the answer. The next has it in a moment, also where sending takes long."""
        self.has_turn = False
        asyncio.get_running_loop().call_soon(self._memory.large_answers.release)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.held -= self.held
        if self.has_turn:
            self._memory.large_answers.release()

    def take(self, items: Sequence[Item | None], read_units: float, looked_at: int) -> int:
        """Holds items, for which so much was read; the answer is how many bytes. Raises the refusal where the operation has to be
        given up."""
        size = int(read_units * _UNIT_BYTES * len(items) / (looked_at or 1))
        if size > _MEASURED_BYTES:
            size = _size(items)
        self._hold(size)
        return size

    def take_items(self, items: Sequence[Item | None]) -> None:
        """Holds items that were given back with others. Raises the refusal where the operation has to be given up."""
        self._hold(_size(items))

    def give_back(self, size: int) -> None:
        """Holds so many bytes no more: what was read is forgotten."""
        self.held -= size
        self._memory.held -= size

    def take_page(self, edges: int) -> None:
        """Holds a page of a list with so many edges, and what they become. An item that was read once may be in thousands of
        pages. Raises the refusal where the operation has to be given up."""
        self._hold(_PAGE_BYTES + _EDGE_BYTES * edges)

    def _hold(self, size: int) -> None:
        memory = self._memory
        self.held += size
        memory.held += size
        if memory.held > memory.limit and self.held > _ALWAYS_HELD:
            self.refusal = self._refused()
        if self.refusal is not None:
            raise self.refusal

    def _refused(self) -> KeygraphError:
        memory = self._memory
        if self.held > memory.limit:
            return MoreThanAnyMay(
                f"The operation reads more than {memory.limit:,} bytes: ask for smaller pages, or in several operations."
            )
        memory.refusals.happened(
            f"Operations are given up, because all hold more than {memory.limit:,} bytes"
        )
        return TooMuchMemory("the server has too much to do: try again in a second")


def _size(items: Sequence[Item | None]) -> int:
    return sum(item_size(item) for item in items if item is not None)
