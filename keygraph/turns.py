"""How operations share an event loop: turns of long work, and budgets of processor time. How clients share what there is
little of."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import chain
from threading import Lock
from time import perf_counter, thread_time
from typing import Generic, Protocol, TypeVar

from keygraph.codes import Code
from keygraph.errors import StoreError

_log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
ClientT = TypeVar("ClientT")
ResultT = TypeVar("ResultT")

AT_ONCE = 100
"""How many items are processed without a look at the time: one to three milliseconds."""
TURN_SECONDS = 0.004
"""The processor time after which long work lets others have their turn; half of it while operations wait."""
_REQUESTS_OF_A_TURN = 10
"""A turn of work counts as much as this many requests."""
_CLIENTS = 1_000
"""Of more than so many clients, what those have had that do not wait is forgotten."""
_WAITS_OF_A_SMALL_OPERATION = 16
"""An operation that has waited for more requests leaves its place: hundreds of them would have all places."""
_ROUNDS_OF_A_START = 2
"""An operation that was let through begins a request so many rounds later at the latest: in a task of its own."""


class TooMuchWork(StoreError):
    """The operation needs more processor time than the server allows."""

    code = Code.COST_LIMIT


class Rounds(Protocol):
    """The rounds of the event loop: the work of all operations in one, and the operations that wait for another."""

    number: int
    ends: float
    """When nothing else may begin in this round, by `time.perf_counter`; 0 before anything has begun in it."""
    turn: float
    """The processor time after which long work lets others have their turn, in this round."""
    unclocked: int  # how many requests have been sent in rounds in which nothing had begun

    def count(self, seconds: float, client: str = "") -> None: ...
    def thread_clock(self) -> float: ...
    def queue(self, waited: int, client: str, *, is_turn: bool) -> asyncio.Future[bool]: ...


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
    let_through = -math.inf
    """The number of the round in which it was let through last, unless something has gone through since."""
    leave_place: Callable[[], None] | None = None
    """Gives the place of the operation to others, while it runs."""

    def spend(self, seconds: float) -> None:
        """Counts processor time. Raises TooMuchWork if none was left."""
        if self.spent > self.seconds:
            raise TooMuchWork(
                f"More than {self.seconds:g} seconds of work: ask for a smaller range, or for values in a key"
            )
        self.spent += seconds
        if self.rounds is not None:
            self.rounds.count(seconds, self.client)

    async def wait(self) -> None:
        """Lets others have their turn."""
        self.waited += _REQUESTS_OF_A_TURN
        await (
            asyncio.sleep(0)
            if self.rounds is None
            else self.rounds.queue(self.waited, self.client, is_turn=True)
        )

    async def wait_if_over(self) -> None:
        """Lets others have their turn, if the time of this round is used up."""
        if self.rounds is not None:
            self.rounds.count(0.0)
            if self.is_round_over:
                await self.wait()

    @property
    def is_round_over(self) -> bool:
        """Whether the time of this round of the event loop is used up."""
        return self.rounds is not None and 0.0 < self.rounds.ends < perf_counter()

    def was_let_through(self) -> bool:
        """Returns whether a request, or an answer, needs no time of this round of the event loop: the operation was let
        through for it. That is so once."""
        let_through, self.let_through = self.let_through, -math.inf
        return self.rounds is not None and self.rounds.number <= let_through + _ROUNDS_OF_A_START

    async def wait_for_request(self) -> None:
        """Waits for a round with time for a request, or for its answer."""
        waited, self.waited = self.waited, self.waited + 1
        if waited > _WAITS_OF_A_SMALL_OPERATION and self.leave_place is not None:
            self.leave_place()
        if self.rounds is not None:
            await self.rounds.queue(waited, self.client, is_turn=False)
            self.let_through = self.rounds.number


BUDGET: ContextVar[WorkBudget | None] = ContextVar("keygraph-work", default=None)
"""The budget of the running operation."""


def operation_budget() -> WorkBudget:
    """Returns the budget of the running operation; one without a limit outside of operations, such as in a command."""
    found = BUDGET.get()
    if found is None:
        found = WorkBudget()
        found.seconds = math.inf
    return found


def operation_client() -> str:
    """Returns whoever has sent the running operation; an empty text outside of operations."""
    return operation_budget().client


def leave_place() -> None:
    """Gives the place of the running operation to others: it waits for something that not all may have at once."""
    if (leave := operation_budget().leave_place) is not None:
        leave()


class Had(defaultdict[ClientT, float]):
    """What clients have had since something waits."""

    def forget(self, waiting: Mapping[ClientT, object]) -> None:
        """Forgets what all have had if nothing waits. Of very many clients, it forgets those that do not wait."""
        if not waiting:
            self.clear()
        elif len(self) > len(waiting) + _CLIENTS:
            kept = {client: self[client] for client in waiting}
            self.clear()
            self.update(kept)


class ClientsInTurn(Generic[ClientT, ItemT]):
    """What waits, by client: in turn, something of the one that has had least, and of the one whose last turn is the longest
    ago. So who asks seldom is not behind a hundred that ask all the time, and these are not behind ever new ones. May be used
    in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[ClientT, deque[ItemT]] = {}
        self._had = Had[ClientT](float)
        self._is_oldest_next = False

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __contains__(self, client: ClientT) -> bool:
        return client in self._queues

    def add(self, client: ClientT, item: ItemT) -> None:
        """Adds something that a client waits for."""
        with self._lock:
            self._queues.setdefault(client, deque()).append(item)

    def take(self, starts: Callable[[ItemT], bool] = lambda item: True) -> tuple[ClientT, ItemT] | None:
        """Returns the client whose turn it is, and the oldest of what it waits for. Clients of whom that does not start are
        passed. None if nothing starts."""
        with self._lock:
            queues = self._queues
            in_order = queues if self._is_oldest_next else sorted(queues, key=self._had.__getitem__)
            client = next((each for each in in_order if starts(queues[each][0])), None)
            if client is None:
                return None
            self._is_oldest_next = not self._is_oldest_next
            item, rest = queues[client].popleft(), queues.pop(client)
            if rest:
                queues[client] = rest  # after all others
            self._had.forget(queues)
            return client, item

    def remove(self, client: ClientT, item: ItemT) -> None:
        """Removes something that the client does not wait for any more."""
        with self._lock:
            self._queues[client].remove(item)
            if not self._queues[client]:
                del self._queues[client]
            self._had.forget(self._queues)

    def count(self, client: ClientT, amount: float) -> None:
        """Counts what a client has had while others wait. All amounts are in one unit, such as requests, or seconds."""
        with self._lock:
            if self._queues:
                self._had[client] += amount


async def step_by_step(steps: Iterable[object]) -> None:
    """Does all steps, in turns with other work. Raises TooMuchWork."""
    budget, began = operation_budget(), perf_counter()
    rounds = budget.rounds
    clock = thread_time if rounds is None else rounds.thread_clock
    thread_began = clock()  # something else may have the processor meanwhile
    for _ in steps:
        most = min(TURN_SECONDS if rounds is None else rounds.turn, budget.seconds - budget.spent)
        elapsed = perf_counter() - began
        if elapsed > most and (worked := min(elapsed, thread_time() - thread_began)) > most:
            budget.spend(worked)
            await budget.wait()
            began, thread_began = perf_counter(), clock()
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
