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
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self, cast

from keygraph.admission import Admission, Place
from keygraph.codes import Code
from keygraph.dynamo.items import MANY_NESTED, Item, greatest_size, item_size, nested_values
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
    PassingStore,
    Query,
    Request,
    Written,
    read_units,
)
from keygraph.errors import ConditionFailed, KeygraphError, StoreError, TransactionCanceled, again
from keygraph.incidents import Incident
from keygraph.turns import BUDGET, TooMuchWork, WorkBudget, in_turns
from keygraph_resolvers.codes import OperationCode

_log = logging.getLogger(__name__)


class CostExceeded(StoreError):
    """The operation has reached its cost limit."""

    code = Code.COST_LIMIT


_UNCLOCKED = 16
"""So many requests do not begin the clock of a round: that takes longer than the question whether it is over."""
_NO_KEYS: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Read:
    """A read under way: the places in the query that it is for, and the round trip of its next request."""

    places: tuple[str, ...]
    round_trip: int
    key_trips: frozenset[int] = frozenset()
    """The round trips in which keys are requested after it has come: 0 is the one after it."""
    goes_on: bool = False
    """Whether it may take several requests, one after the other."""
    keys: Mapping[str, int] | None = None
    """How many keys are read for each place, if items are read by key."""
    begins: Callable[[Read, int], None] | None = None
    """Called with the round trip before a request is sent."""
    feeds_in: int = 0
    """The round trip in which the engine counts it."""
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
    code: str
    message: str


READ: ContextVar[Read | None] = ContextVar("keygraph-read", default=None)
"""The read that the running task sends requests for."""


@dataclass(slots=True)
class MeteredStore(PassingStore):
    """A store that records the requests of one operation to another."""

    budget: float | None = None
    """The read units after which nothing more is sent."""
    sent: list[Sent] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    read_units: float = 0.0
    has_sent: bool = False
    """Whether any request, or an application's own mutation, has begun."""
    is_exceeded: bool = False
    """Whether the read units exceed the budget."""
    nested: int = 0
    """How many values were read that are in lists, maps and sets of items."""
    reserved: float = 0.0
    """The most that the requests under way can cost."""
    _waiting: deque[tuple[float, asyncio.Future[None]]] = field(default_factory=deque)
    """The most that the requests waiting for a part of the budget can cost, in order."""
    began: float = field(default_factory=time.perf_counter)
    holding: Holding | None = None
    """The memory that is counted for the items read."""

    @property
    def last_round_trip(self) -> int:
        """The round trip of the latest request; 0 before the first."""
        return max((sent.round_trip for sent in self.sent), default=0)

    async def send(self, request: Request[Answer], /) -> Answer:
        limit, most, start = self.budget, 0.0, self.began
        if limit is not None:
            most = most_units(request)
            # One request alone can always be sent.
            if self.reserved and (self._waiting or self.read_units + self.reserved + most > limit):
                await self._wait(most)
            else:
                self.reserved += most
        try:
            if self.is_exceeded:
                raise CostExceeded("the operation has used up what it may cost")
            holding, budget, read = self.holding, BUDGET.get(), READ.get()
            if holding is not None and holding.refusal is not None:
                raise again(holding.refusal)
            began = time.perf_counter()
            if budget is not None and is_round_over(budget, began) and not budget.was_let_through():
                await budget.wait_for_request()
                began = time.perf_counter()
            round_trip, places = (1, ()) if read is None else (read.round_trip, read.places)
            if read is not None and read.begins is not None:
                read.begins(read, round_trip)
            self.has_sent = True
            try:
                answer: Any = await self.store.send(request)
            except StoreError as error:
                ended = time.perf_counter() - start
                self.failed.append(Failed(request, places, began - start, ended, error.code, str(error)))
                raise
            except (ConditionFailed, TransactionCanceled):
                # The store has refused the write. Its answer does not say what that cost.
                _answered(read, round_trip)
                ended, cost = time.perf_counter() - start, Cost(requests=1)
                self.sent.append(Sent(request, places, _NO_KEYS, round_trip, began - start, ended, cost, 0))
                raise
            ended = time.perf_counter()
            _answered(read, round_trip)
            kind = type(answer)
            if kind in _METERED:
                cost = answer.cost
                items = answer.scanned if kind in _SCANNED else 0
                if kind is Batch:
                    items = len(answer.items) - answer.items.count(None)
                self.read_units += cost.read_units
                self.is_exceeded = limit is not None and self.read_units > limit
                keys = _NO_KEYS if read is None or read.keys is None else read.keys
                self.sent.append(
                    Sent(request, places, keys, round_trip, began - start, ended - start, cost, items)
                )
                if kind in _WITH_ITEMS:
                    self.nested += answer.nested
                    if holding is not None:
                        held = await holding.take(answer.items, answer.nested, cost.read_units, items)
                        if read is not None:
                            read.held += held
            if budget is not None and is_round_over(budget, ended) and not budget.was_let_through():
                await budget.wait_for_request()
            return cast("Answer", answer)
        finally:
            if limit is not None:
                self.reserved -= most
                if self._waiting:
                    self._let_go_on(limit)

    def take_lookups(self, keys: int) -> None:
        """Holds so many keys of other items that decide who sees something. If the operation has to be given up, its next
        request raises the refusal."""
        if self.holding is not None:
            with suppress(KeygraphError):
                self.holding.hold(_LOOKUP_BYTES * keys)

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

    def _let_go_on(self, limit: float) -> None:
        """Reserves free units for the requests that wait for them."""
        waiting = self._waiting
        while waiting:
            wanted, turn = waiting[0]
            if turn.cancelled():
                waiting.popleft()
                continue
            room = limit - self.read_units - self.reserved
            if self.reserved and wanted > room and not self.is_exceeded:
                break
            waiting.popleft()
            self.reserved += wanted
            turn.set_result(None)


def is_round_over(budget: WorkBudget, now: float) -> bool:
    """Returns whether the time of this round of the event loop is used up, by whatever runs in it."""
    rounds = budget.rounds
    if rounds is None:
        return False
    if not rounds.ends:
        rounds.unclocked += 1
        if rounds.unclocked > _UNCLOCKED:
            rounds.unclocked = 0
            rounds.count(0.0)
    return 0.0 < rounds.ends < now


def _answered(read: Read | None, round_trip: int) -> None:
    """Makes the requests after the answer of this round trip one round trip later."""
    if read is not None and read.round_trip <= round_trip:
        read.round_trip = round_trip + 1


_OF_PAGES = (Query, Count)
_WITH_ITEMS = (Page, Batch)
_SCANNED = (Page, Counted)
_METERED = (Page, Batch, Counted, Written, Changed)
"""The answers that say what they cost; those about tables do not."""
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


# --- Consistent reads, and those that operations share ------------------------------------------------

_READS = frozenset[type[Request[Any]]]({Query, Count, BatchGet})
_JOINED_SECONDS = 0.01
"""How long after a read was sent others may join it. What another process wrote since it began, it need not show."""


@dataclass(slots=True)
class ConsistentStore(PassingStore):
    """A store whose table and local indexes are read consistently. A global index cannot be."""

    async def send(self, request: Request[Answer], /) -> Answer:
        is_read = isinstance(request, BatchGet)
        if isinstance(request, Query | Count):
            index = request.index
            is_read = index is None or any(each.local for each in self.table.indexes if each.name == index)
        if is_read:
            request = cast("Request[Answer]", replace(cast(Any, request), consistent=True))
        return await self.store.send(request)


@dataclass(slots=True)
class SharedReads(PassingStore):
    """A store that answers equal reads under way by one request, whichever operations send them.

    Nothing is kept after the answer has come. Consistent reads are not shared. A read that begins after a write was
    answered joins none that was sent before it.
    """

    _in_flight: dict[int, _InFlight] = field(default_factory=dict)
    """The reads under way, by their hash, which takes long to compute."""

    async def send(self, request: Request[Answer], /) -> Answer:
        in_flight = self._in_flight
        if type(request) not in _READS:
            try:
                return await self.store.send(request)
            finally:
                in_flight.clear()
        if cast(Query, request).consistent:
            return await self.store.send(request)
        place, now = hash(request), time.monotonic()
        while (
            (joined := in_flight.get(place)) is not None
            and now - _JOINED_SECONDS < joined.sent_at
            and joined.request == request
        ):
            joined.waiting.append(future := asyncio.get_running_loop().create_future())
            answer: Answer | Exception | None = await future
            if isinstance(answer, Exception):
                raise again(answer)
            if answer is not None:
                return answer
        own = in_flight[place] = _InFlight(request, now, [])
        shared: Answer | Exception | None = None
        try:
            shared = answer = await self.store.send(request)
            return answer
        except TooMuchWork:
            raise  # the budget of this operation alone
        except Exception as error:
            shared = again(error)
            raise
        finally:
            if in_flight.get(place) is own:
                del in_flight[place]
            for future in own.waiting:
                if not future.done():
                    future.set_result(shared)


class _InFlight(NamedTuple):
    """A read under way, when it was sent, and those who wait for its answer or its error: they get None if it was given
    up."""

    request: Request[Any]
    sent_at: float
    waiting: list[asyncio.Future[Any]]


# --- Memory -------------------------------------------------------------------------------------------

_ALWAYS_HELD = 256 * 1024
"""An operation that holds no more than this goes on beside large ones: a page of 60 items of 400 bytes in 30 values does."""
_MEASURED_BYTES = 256 * 1024
"""Items of a request that may have more bytes than this are measured, unless they have `MANY_NESTED` values."""
_NESTED_BYTES = 100
"""The memory of such a value, with its place there: up to 33 times as much as in the table."""
_UNIT_BYTES = 8 * 1024
"""The bytes that one read unit reads if the read is eventually consistent; others read half of it."""
_PAGE_BYTES, _EDGE_BYTES = 2_500, 250
"""The bytes of the objects of a page and of an edge, with what is written of them, as measured by tracemalloc."""
_HOP_BYTES, _NODE_BYTES = 700, 200
"""The same of an edge that a walk follows, and of a node that it remembers."""
_ERROR_BYTES = 700
"""The same of an error in place of a field, with its path."""
_LOOKUP_BYTES = 440
"""The memory of a key that is looked up because of a rule, whether or not an item has it."""

_LARGE_AT_ONCE = 1
"""How many large answers are completed and sent at the same time. A connection that is closed because it holds too much
keeps its bytes until the event loop's next round: all large answers of a round would be in memory together."""
_BODIES, _WAITING_BODIES = 8_000, 32_000
"""The KB of bodies that are read at the same time, large ones at most half of them, and of those that wait for that. What is
read of a body takes up to ten times its bytes."""


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
        # Those that wait have a place among the operations, which are limited.
        self.large_answers = Admission(_LARGE_AT_ONCE, sys.maxsize)
        self.large_bodies = Admission(_BODIES, _WAITING_BODIES, waits_by_size=True)

    def holding(self, address: str = "") -> Holding:
        """Returns the memory of one operation, which a client with this address has sent."""
        return Holding(self, address)


def held_bytes(items: Sequence[Item | None]) -> tuple[int, bool]:
    """Returns about how many bytes of memory some items take, and whether that is because of their many values."""
    there = [each for each in items if each is not None]
    nested = nested_values(there)
    return sum(map(greatest_size, there)) + _NESTED_BYTES * nested, nested > MANY_NESTED


def _sizes(items: Sequence[Item | None]) -> list[int]:
    return [item_size(each) for each in items if each is not None]


class Holding:
    """The memory that one operation holds, until it leaves this context manager."""

    __slots__ = ("_memory", "address", "body", "held", "refusal", "turn")

    def __init__(self, memory: Memory, address: str) -> None:
        self._memory = memory
        self.address = address
        self.held = 0
        self.refusal: KeygraphError | None = None
        """Why the operation is given up."""
        self.turn: Place | None = None
        """Its turn to write a large answer."""
        self.body: Place | None = None
        """The place of its large body."""

    @property
    def clients(self) -> tuple[str, ...]:
        """Whoever has sent the operation, as `Admission` takes it."""
        return (self.address,) if self.address else ()

    async def wait_to_read_body(self, size: int) -> None:
        """Waits for the turn to read a large body of so many bytes. It lasts until the body is no longer needed. Raises
        Overloaded if too much waits already."""
        self.body = await self._memory.large_bodies.enter(size, self.clients)

    def forget_body(self) -> None:
        """What was read of the body is no longer needed."""
        if self.body is not None:
            self._memory.large_bodies.leave(self.body)
            self.body = None

    async def wait_to_answer(self) -> None:
        """Waits for the turn to complete and write a large answer, which goes to the clients in turn. It lasts until the
        answer is sent, or this is left."""
        if self.turn is None:
            self.turn = await self._memory.large_answers.enter(clients=self.clients)

    def answers(self) -> None:
        """Called before the answer is sent. The next one gets the turn soon, even with slow sending."""
        turn, self.turn = self.turn, None
        if turn is not None:
            asyncio.get_running_loop().call_soon(self._memory.large_answers.leave, turn)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Holds nothing anymore."""
        self.give_back(self.held)
        self.forget_body()
        turn, self.turn = self.turn, None
        if turn is not None:
            self._memory.large_answers.leave(turn)

    async def take(self, items: Sequence[Item | None], nested: int, read_units: float, looked_at: int) -> int:
        """Holds items, for which so much was read; returns how many bytes. `nested` are the values in their lists, maps
        and sets. Many items are measured in turns with other work. Raises the refusal if the operation has to be given
        up."""
        size = int(read_units * _UNIT_BYTES * len(items) / (looked_at or 1))
        if size > _MEASURED_BYTES and nested < MANY_NESTED:
            self.give_back(-size)  # until it is measured, the page counts with what was read
            measured = await in_turns(_sizes, items)
            self.give_back(size)
            size = sum(measured)
        size += _NESTED_BYTES * nested
        self.hold(size)
        return size

    def take_item(self, item: Item) -> bool:
        """Holds an item that was returned with others; returns whether it has many values. Raises the refusal if the
        operation has to be given up."""
        nested = nested_values([item])
        self.hold(greatest_size(item) + _NESTED_BYTES * nested)
        return nested > MANY_NESTED

    def take_walked(self, edges: int, nodes: int) -> int:
        """Holds edges that a walk follows, and nodes that it remembers; returns how many bytes. Raises the refusal if
        the operation has to be given up."""
        size = _HOP_BYTES * edges + _NODE_BYTES * nodes
        self.hold(size)
        return size

    def give_back(self, size: int) -> None:
        """Releases `size` bytes: what was read is forgotten."""
        self.held -= size
        self._memory.held -= size

    def take_page(self, edges: int) -> None:
        """Holds a page of a list with so many edges, and what they become. An item that was read once may be in
        thousands of pages. Raises the refusal if the operation has to be given up."""
        self.hold(_PAGE_BYTES + _EDGE_BYTES * edges)

    def take_error(self) -> None:
        """Holds the error of a field. If the operation has to be given up, whatever it reads next is refused."""
        with suppress(KeygraphError):
            self.hold(_ERROR_BYTES)

    def hold(self, size: int) -> None:
        """Holds so many bytes more. Raises the refusal if the operation has to be given up."""
        memory = self._memory
        self.held += size
        memory.held += size
        if memory.held > memory.limit and self.held > min(memory.limit, _ALWAYS_HELD):
            self.refusal = self._refused()
        if self.refusal is not None:
            raise again(self.refusal)

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
