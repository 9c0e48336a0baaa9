"""How operations share a process: places to run, turns of the event loop, budgets of processor time, and deadlines.

Admission limits the operations that run at the same time and those that wait, and refuses all others at once. An operation
takes as many places as its bound is large. One client has at most half of all places, and so have all large operations
together: others, and small ones, always find some. Free places go to the clients in turn.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter, thread_time
from types import TracebackType
from typing import NamedTuple, Protocol, Self, TypeVar

from keygraph.codes import Code
from keygraph.errors import StoreError
from keygraph.incidents import Incident

_log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

AT_ONCE = 100
"""How many items are processed without a look at the time: one to three milliseconds."""
TURN_SECONDS = 0.004
"""The processor time after which long work lets others have their turn; half of it while operations wait."""
_REQUESTS_OF_A_TURN = 10
"""A turn of work counts as much as this many requests."""


class TooMuchWork(StoreError):
    """The operation needs more processor time than the server allows."""

    code = Code.COST_LIMIT


class Rounds(Protocol):
    """The rounds of the event loop: the work of all operations in one, and the operations that wait for another."""

    ends: float
    """When nothing else may begin in this round, by `time.perf_counter`; 0 before anything has begun in it."""
    turn: float
    """The processor time after which long work lets others have their turn, in this round."""
    thread_began: float
    """The processor time of the thread when it began."""
    unclocked: int  # how many requests have been sent in rounds in which nothing had begun

    def count(self, seconds: float) -> None: ...
    async def wait(self, waited: int, client: str, *, is_turn: bool) -> None: ...


class WorkBudget:
    """The processor time that an operation may spend on pages of many items, in seconds, and what it has spent.

    It references nothing else of the operation: timers keep the context of a task for some time after its end.
    """

    seconds = 5.0
    spent = 0.0
    client = ""
    """Whoever has sent the operation."""
    waited = 0
    """How long it has waited for its turns, and for its requests."""
    rounds: Rounds | None = None
    """The rounds of the event loop, if operations share them."""

    def spend(self, seconds: float) -> None:
        """Counts processor time. Raises TooMuchWork if none was left."""
        if self.spent > self.seconds:
            raise TooMuchWork(
                f"More than {self.seconds:g} seconds of work: ask for a smaller range, or for values in a key"
            )
        self.spent += seconds
        if self.rounds is not None:
            self.rounds.count(seconds)

    async def wait(self) -> None:
        """Lets others have their turn."""
        self.waited += _REQUESTS_OF_A_TURN
        await (
            asyncio.sleep(0)
            if self.rounds is None
            else self.rounds.wait(self.waited, self.client, is_turn=True)
        )

    async def wait_for_request(self) -> None:
        """Waits for a round with time for a request, or for its answer."""
        self.waited += 1
        if self.rounds is not None:
            await self.rounds.wait(self.waited, self.client, is_turn=False)


BUDGET: ContextVar[WorkBudget | None] = ContextVar("keygraph-work", default=None)
"""The budget of the running operation."""


def operation_budget() -> WorkBudget:
    """Returns the budget of the running operation; one without a limit outside of operations, such as in a command."""
    found = BUDGET.get()
    if found is None:
        found = WorkBudget()
        found.seconds = math.inf
    return found


async def step_by_step(steps: Iterable[object]) -> None:
    """Does all steps, in turns with other work. Raises TooMuchWork."""
    budget, began = operation_budget(), perf_counter()
    rounds = budget.rounds
    # Something else may have had the processor. The thread's clock is 20 times slower than the other: once a round.
    thread_began = thread_time() if rounds is None else rounds.thread_began
    for _ in steps:
        most = min(TURN_SECONDS if rounds is None else rounds.turn, budget.seconds - budget.spent)
        elapsed = perf_counter() - began
        if elapsed > most and (worked := min(elapsed, thread_time() - thread_began)) > most:
            budget.spend(worked)
            await budget.wait()
            began = perf_counter()
            thread_began = thread_time() if rounds is None else rounds.thread_began
    worked = perf_counter() - began
    budget.spend(worked if worked < TURN_SECONDS else min(worked, thread_time() - thread_began))


async def in_turns(
    work: Callable[[Sequence[ItemT]], Sequence[ResultT]], items: Sequence[ItemT]
) -> list[ResultT]:
    """Returns the results of the work on the items, in turns with other work. Raises TooMuchWork."""
    found: list[Sequence[ResultT]] = []
    parts = (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))
    await step_by_step(map(found.append, map(work, parts)))
    return [*chain.from_iterable(found)]


# --- Deadlines ------------------------------------------------------------------------------------------


class Deadlines:
    """The deadlines of one kind in an event loop. One timer serves them: a request has several, and a timer for each takes
    as long as sending it."""

    def __init__(self) -> None:
        # Python 3.11 makes a system call each time that somebody asks for the loop.
        self.loop = asyncio.get_running_loop()
        self.waits: dict[Wait, None] = {}
        """Those under way."""
        self.timer: asyncio.TimerHandle | None = None
        self._looks_at = 0.0

    def add(self, wait: Wait) -> None:
        self.waits[wait] = None
        if self.timer is None or wait.until < self._looks_at:
            self._look_at(wait.until)

    def _look_at(self, until: float) -> None:
        if self.timer is not None:
            self.timer.cancel()
        # With its context, a timer would keep the operation that happened to start it.
        self.timer = self.loop.call_at(until, self._look, context=Context())
        self._looks_at = until

    def _look(self) -> None:
        """Ends the waits that are due."""
        self.timer, now = None, self.loop.time()
        for wait in [wait for wait in self.waits if wait.until <= now]:
            del self.waits[wait]
            wait.end()
        if self.waits:
            self._look_at(min([wait.until for wait in self.waits]))


@dataclass(eq=False)
class Wait:
    """What a task does until a deadline. A context manager: when the deadline passes, the task inside is cancelled, and
    TimeoutError is raised."""

    deadlines: Deadlines
    until: float
    """By the loop's time."""
    is_late: bool = field(default=False, init=False)

    def end(self) -> None:
        """Called when the deadline has passed."""
        self.is_late = True
        self._task.cancel()

    def error(self) -> Exception:
        """Returns what is raised then."""
        return TimeoutError()

    def __enter__(self) -> Self:
        self._task: asyncio.Task[object] = asyncio.current_task(self.deadlines.loop)  # type: ignore[assignment]  # only tasks wait
        self._cancelled_before = self._task.cancelling()
        self.deadlines.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        task = self._task
        del self._task  # it references the frames of its error
        if not self.is_late:
            del self.deadlines.waits[self]
        elif task.uncancel() <= self._cancelled_before and kind is asyncio.CancelledError:
            raise self.error() from None
        return None


# --- Admission ------------------------------------------------------------------------------------------

_ITEMS_OF_A_PLACE = 1_000
"""An operation whose bound has more items or requests than this takes several places: it is large. So is a body of more
bytes."""
LARGE = "large "
"""The group of all large operations; before the name of a client, those of the client."""


class Overloaded(StoreError):
    """The server already has as many operations as it accepts. This one was not started."""


class Place(NamedTuple):
    """The places of one operation."""

    size: int
    clients: tuple[str, ...]
    limits: Mapping[str, int]
    """The most places of each group of operations that it belongs to."""


class Admission:
    """The places of all operations. `running` and `waiting` are how many operations do so at the moment, and
    `refusals.count` is how many were refused.
    """

    def __init__(self, most_running: int, most_waiting: int, *, waits_by_size: bool = False) -> None:
        """`most_waiting` counts operations; with `waits_by_size`, the places that they want."""
        self.running = 0
        self.waiting = 0
        self.refusals = Incident(_log)
        self._queues: dict[tuple[str, ...], deque[tuple[Place, asyncio.Future[None]]]] = {}
        """The operations that wait, by their clients, each in order."""
        self._most_waiting = most_waiting
        self._waits_by_size = waits_by_size
        self._all = {"": most_running}
        self._half, self._quarter = max(1, most_running // 2), max(1, most_running // 4)
        self.taken = dict[str, int]()
        """The places that each group of operations has."""
        self._waiting_of = Counter[str]()
        """How many operations of each client wait, or the places that they want."""

    async def enter(self, bound: int = 0, clients: Iterable[str] = ()) -> Place:
        """Returns the place of an operation whose bound is so many items or requests, which it has until it leaves.

        `clients` are names of whoever has sent it, such as an address and a viewer: each of them has a share. Raises
        Overloaded if too many wait already.
        """
        names, limits = tuple(clients), self._all
        if names:
            limits = limits | dict.fromkeys(names, self._half)
        count = min(1 + bound // _ITEMS_OF_A_PLACE, self._quarter)
        if count > 1:
            limits = limits | {LARGE: self._half} | {LARGE + name: self._quarter for name in names}
            names = (LARGE, *names)
        place = Place(count, names, limits)
        if names in self._queues or not self._start(place):
            await self._wait(place)
        return place

    def leave(self, place: Place) -> None:
        """Gives a place to those that wait."""
        self.running -= 1
        _subtract(self.taken, place.limits, place.size)
        if self._queues:
            self._start_waiting()

    @asynccontextmanager
    async def place(self, bound: int = 0, clients: Iterable[str] = ()) -> AsyncIterator[None]:
        """Keeps the place of an operation in a block."""
        place = await self.enter(bound, clients)
        try:
            yield
        finally:
            self.leave(place)

    def _start(self, place: Place) -> bool:
        """Takes a place if it is free. Returns whether it is."""
        taken, count = self.taken, place.size
        for group, most in place.limits.items():
            if taken.get(group, 0) + count > most:
                return False
        for group in place.limits:
            taken[group] = taken.get(group, 0) + count
        self.running += 1
        return True

    async def _wait(self, place: Place) -> None:
        """Waits for a place. Raises Overloaded if too many wait already."""
        share, count = (self._most_waiting + 1) // 2, place.size if self._waits_by_size else 1
        if self._waiting_of[""] >= self._most_waiting or any(
            self._waiting_of[each] >= share for each in place.clients
        ):
            self.refusals.happened(
                f"Operations are refused, because {self.running} run and {self.waiting} wait already"
            )
            raise Overloaded("the server has too much to do: try again in a second")
        queued = place, asyncio.get_running_loop().create_future()
        self._queues.setdefault(place.clients, deque()).append(queued)
        self.waiting += 1
        for each in ("", *place.clients):
            self._waiting_of[each] += count
        try:
            await queued[1]
        except asyncio.CancelledError:
            if not queued[1].cancelled():
                self.leave(place)
            elif self._queues[place.clients] == deque([queued]):
                del self._queues[place.clients]
            else:
                self._queues[place.clients].remove(queued)
                self._start_waiting()
            raise
        finally:
            self.waiting -= 1
            _subtract(self._waiting_of, ("", *place.clients), count)

    def _start_waiting(self) -> None:
        """Starts what waits and finds a place: the clients in turn, each with its oldest operation."""
        is_started = True
        while is_started:
            is_started = False
            for clients, queue in [*self._queues.items()]:
                place, turn = queue[0]
                if turn.cancelled() or not self._start(place):
                    continue
                turn.set_result(None)
                is_started = True
                del queue[0], self._queues[clients]
                if queue:
                    self._queues[clients] = queue  # after all others


def _subtract(counted: dict[str, int], names: Iterable[str], count: int) -> None:
    """Counts less of these names, and forgets those that have nothing left: clients choose some of them."""
    for name in names:
        counted[name] -= count
        if not counted[name]:
            del counted[name]
