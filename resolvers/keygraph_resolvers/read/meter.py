"""An operation's requests to the store, and the memory that its results take.

Each request is recorded with its place in the query, its time, and its cost.

An operation may have a budget. The cost of a request is known only when its answer arrives. So before a request is
sent, the most that it can cost is reserved; the answer releases it. If less than that is left of the budget, the
request waits until no other is in progress. So an operation exceeds its budget by at most one request, and then sends
no more.

All operations of a process together may hold a limited number of bytes of the data that they have read, until their
answers are sent. An operation that would exceed the limit is stopped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from keygraph.codes import Code
from keygraph.dynamo.items import Item, item_size
from keygraph.dynamo.limits import ITEM_BYTES, PAGE_BYTES
from keygraph.dynamo.store import (
    Answer,
    Batch,
    BatchGet,
    Changed,
    Cost,
    Count,
    Counted,
    Page,
    Query,
    Request,
    Store,
    Written,
    read_units,
)
from keygraph.dynamo.table import Table
from keygraph.errors import ConditionFailed, KeygraphError, StoreError, TransactionCanceled
from keygraph.incidents import Incident
from keygraph_resolvers.codes import OperationCode

_log = logging.getLogger(__name__)


class CostExceeded(StoreError):
    """The operation has reached its cost limit."""

    code = Code.COST_LIMIT


_NO_KEYS: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Read:
    """A read under way: the places in the query that it is for, and the round trip of its next request."""

    places: tuple[str, ...]
    round_trip: int
    later: frozenset[int] = frozenset()
    """The round trips in which keys are requested after it has come: 0 is the one after it."""
    goes_on: bool = False
    """Whether it may take several requests, one after the other."""
    keys: Mapping[str, int] = field(default_factory=lambda: _NO_KEYS)
    """How many keys are read for each place, if items are read by key."""
    begins: Callable[[Read, int], None] | None = None
    """Called with the round trip before a request is sent."""
    feeds_in: int = 0
    """The round trip in which the scheduler counts it."""
    held: int = 0
    """The bytes of memory that are counted for its answer."""


class Sent(NamedTuple):
    """One request, with its outcome. Times are seconds since the operation began."""

    request: Request[object]
    places: tuple[str, ...]
    keys: Mapping[str, int]
    round_trip: int
    began: float
    ended: float
    cost: Cost
    items: int
    """How many items the store examined."""


class Failed(NamedTuple):
    """One request without an answer. Times are as in `Sent`."""

    request: Request[object]
    places: tuple[str, ...]
    began: float
    ended: float
    error: StoreError


READ: ContextVar[Read | None] = ContextVar("keygraph-read", default=None)
"""The read that the running task sends requests for."""


@dataclass(slots=True)
class MeteredStore:
    """A store that records the requests of one operation to another."""

    store: Store
    budget: float | None = None
    """The read units after which nothing more is sent."""
    sent: list[Sent] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    read_units: float = 0.0
    is_exceeded: bool = False
    """Whether the read units exceed the budget."""
    reserved: float = 0.0
    """The most that the requests under way can cost."""
    _waiting: deque[tuple[float, asyncio.Future[None]]] = field(default_factory=deque)
    """The most that the requests waiting for a part of the budget can cost, in order."""
    began: float = field(default_factory=time.perf_counter)
    holding: Holding | None = None
    """The memory that is counted for the items read."""

    @property
    def table(self) -> Table:
        return self.store.table

    @property
    def last_round_trip(self) -> int:
        """The round trip of the latest request; 0 before the first."""
        return max((sent.round_trip for sent in self.sent), default=0)

    async def send(self, request: Request[Answer], /) -> Answer:
        budget = self.budget
        if budget is None:
            return await self._send(request)
        most = most_units(request)
        # One request alone can always be sent.
        if self.reserved and (self._waiting or self.read_units + self.reserved + most > budget):
            await self._wait(most)
        else:
            self.reserved += most
        try:
            return await self._send(request)
        finally:
            self.reserved -= most
            if self._waiting:
                self._let_go_on(budget)

    async def _wait(self, most: float) -> None:
        """Waits until `most` is reserved."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((most, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.reserved -= most
                self._let_go_on(self.budget or 0.0)
            raise

    def _let_go_on(self, budget: float) -> None:
        """Reserves free units for the requests that wait for them."""
        waiting = self._waiting
        while waiting:
            wanted, turn = waiting[0]
            if turn.cancelled():
                waiting.popleft()
                continue
            room = budget - self.read_units - self.reserved
            if self.reserved and wanted > room and not self.is_exceeded:
                break
            waiting.popleft()
            self.reserved += wanted
            turn.set_result(None)

    async def _send(self, request: Request[Answer]) -> Answer:
        if self.is_exceeded:
            raise CostExceeded("the operation has used up what it may cost")
        holding = self.holding
        if holding is not None and holding.refusal is not None:
            raise holding.refusal
        read = READ.get()
        round_trip = read.round_trip if read else 1
        if read is not None and read.begins is not None:
            read.begins(read, round_trip)
        began = time.perf_counter()
        try:
            answer = await self.store.send(request)
        except StoreError as error:
            ended = time.perf_counter() - self.began
            self.failed.append(Failed(request, read.places if read else (), began - self.began, ended, error))
            raise
        except (ConditionFailed, TransactionCanceled):
            # The store has refused the write. Its answer does not say what that cost.
            _answered(read, round_trip)
            places, ended = read.places if read else (), time.perf_counter() - self.began
            cost = Cost(requests=1)
            self.sent.append(Sent(request, places, {}, round_trip, began - self.began, ended, cost, 0))
            raise
        ended = time.perf_counter()
        _answered(read, round_trip)
        seen = _seen(answer)
        if seen is not None:
            cost, items = seen
            self.read_units += cost.read_units
            self.is_exceeded = self.budget is not None and self.read_units > self.budget
            places, keys = (read.places, read.keys) if read else ((), {})
            began, ended = began - self.began, ended - self.began
            self.sent.append(Sent(request, places, keys, round_trip, began, ended, cost, items))
            if holding is not None and isinstance(answer, _WITH_ITEMS):
                held = holding.take(answer.items, cost.read_units, items)
                if read is not None:
                    read.held += held
        return answer

    async def close(self) -> None:
        await self.store.close()


def _answered(read: Read | None, round_trip: int) -> None:
    """Makes the requests after the answer of this round trip one round trip later."""
    if read is not None and read.round_trip <= round_trip:
        read.round_trip = round_trip + 1


_OF_PAGES = (Query, Count)
_WITH_ITEMS = (Page, Batch)
_SCANNED = (Page, Counted)
_WRITTEN = (Written, Changed)
_UNITS_OF_AN_ITEM = read_units(ITEM_BYTES, consistent=False)
_UNITS_OF_A_PAGE = read_units(PAGE_BYTES + ITEM_BYTES, consistent=False)
"""A page ends with the item that reaches 1 MB: at the latest the fourth one."""


def most_units(request: Request[object]) -> float:
    """Returns the most read units that a request can cost, regardless of the items; none for writes."""
    if isinstance(request, _OF_PAGES):
        limit = request.limit
        units = _UNITS_OF_A_PAGE if limit is None or limit > 3 else limit * _UNITS_OF_AN_ITEM
    elif isinstance(request, BatchGet):
        units = len(request.keys) * _UNITS_OF_AN_ITEM
    else:
        return 0.0
    return units * 2 if request.consistent else units


def _seen(answer: object) -> tuple[Cost, int] | None:
    """Returns the cost of an answer, and how many items were read for it; None for answers about tables."""
    if isinstance(answer, _SCANNED):
        return answer.cost, answer.scanned
    if isinstance(answer, Batch):
        return answer.cost, len(answer.items) - answer.items.count(None)
    if isinstance(answer, _WRITTEN):
        return answer.cost, 0
    return None


# --- Memory -------------------------------------------------------------------------------------------

_ALWAYS_HELD = 64 * 1024
"""An operation that holds no more than this is never refused: small ones continue beside large ones."""
_MEASURED_BYTES = 256 * 1024
"""Items of a request that may have more bytes than this are measured."""
_UNIT_BYTES = 8 * 1024
"""The bytes that one read unit reads if the read is eventually consistent; others read half of it."""
_PAGE_BYTES, _EDGE_BYTES = 2_500, 250
"""The bytes of the objects of a page and of an edge, with what is written of them, as measured by tracemalloc."""

_LARGE_AT_ONCE = 1
"""How many large answers are completed and sent at the same time. A connection that is closed because it holds too much
keeps its bytes until the event loop's next round: all large answers of a round would be in memory together."""


class TooMuchMemory(StoreError):
    """The operations of this process hold more memory than they may. This one was stopped."""


class MoreThanAnyMay(KeygraphError):
    """The operation alone needs more memory than all operations of the process together may hold."""

    code = OperationCode.ANSWER_LIMIT


class Memory:
    """The memory that the operations of a process hold together: `held` in bytes; `refusals.count` were given up."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.refusals = Incident(_log)
        self.large_answers = asyncio.Semaphore(_LARGE_AT_ONCE)

    def holding(self) -> Holding:
        """Returns the memory of one operation."""
        return Holding(self)


class Holding:
    """The memory that one operation holds, until it leaves this context manager."""

    __slots__ = ("_memory", "has_turn", "held", "refusal")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.held = 0
        self.refusal: KeygraphError | None = None
        """Why the operation is given up."""
        self.has_turn = False
        """Whether it has the turn to write a large answer."""

    async def wait_to_answer(self) -> None:
        """Waits for the turn to complete and write a large answer. It lasts until that is sent, or this is left."""
        if not self.has_turn:
            await self._memory.large_answers.acquire()
            self.has_turn = True

    def answers(self) -> None:
        """Called before the answer of the turn's holder is sent. The next gets the turn soon, even with slow
        sending."""
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
        """Holds items, for which so much was read; returns how many bytes. Raises the refusal if the operation has to
        be given up."""
        size = int(read_units * _UNIT_BYTES * len(items) / (looked_at or 1))
        if size > _MEASURED_BYTES:
            size = _size(items)
        self._hold(size)
        return size

    def take_items(self, items: Sequence[Item | None]) -> None:
        """Holds items that were returned with others. Raises the refusal if the operation has to be given up."""
        self._hold(_size(items))

    def give_back(self, size: int) -> None:
        """Releases `size` bytes: what was read is forgotten."""
        self.held -= size
        self._memory.held -= size

    def take_page(self, edges: int) -> None:
        """Holds a page of a list with so many edges, and what they become. An item that was read once may be in
        thousands of pages. Raises the refusal if the operation has to be given up."""
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
