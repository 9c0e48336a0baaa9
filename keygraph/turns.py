"""Work on many items: in turns with whatever else the event loop has to do, and within a budget of processor time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakKeyDictionary

from keygraph.codes import Code
from keygraph.errors import StoreError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

AT_ONCE = 500
"""So many items are worked on in one turn: 5 to 15 milliseconds."""


TURN_SECONDS = 0.004
"""Who goes on with many things lets others have their turn after so much processor time."""


class Rounds:
    """What all operations work in one round of the event loop, and those that wait to go on: one of these does in each round."""

    def __init__(self) -> None:
        self.number = 0
        self.worked = 0.0
        """The processor time of this round, in seconds."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.Handle | None = None

    def count(self, seconds: float) -> None:
        """Somebody has worked in this round."""
        self.worked += seconds
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """The event loop has gone round: all others have had their turn."""
        self._next, self.worked = None, 0.0
        self.number += 1
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # nobody has given it up
                first.set_result(None)
                self.count(0.0)
                return

    async def wait(self) -> None:
        """Waits for a round in which nobody else goes on who has waited too."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.count(0.0)
        await turn


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = WeakKeyDictionary()


def rounds() -> Rounds:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _ROUNDS.get(loop)
    if found is None:
        found = _ROUNDS[loop] = Rounds()
    return found


class TooMuchWork(StoreError):
    """The operation takes more processor time than it may."""

    code = Code.COST_LIMIT


class WorkBudget:
    """The processor time that an operation may spend on pages of many items, in seconds, and what it has spent.

    It holds nothing else of the operation: timers keep the context of a task for a time after its end.
    """

    seconds = 5.0
    spent = 0.0


BUDGET: ContextVar[WorkBudget | None] = ContextVar("keygraph-work", default=None)
"""The budget of the running operation."""


async def step_by_step(steps: Iterable[object]) -> None:
    """Does all steps, in turns with whatever else there is to do. Raises TooMuchWork."""
    budget, of_all = BUDGET.get(), rounds()
    began = time.thread_time()
    for _ in steps:
        worked = time.thread_time() - began
        if worked > TURN_SECONDS:
            _spend(budget, worked)
            of_all.count(worked)
            await of_all.wait()
            began = time.thread_time()
    of_all.count(time.thread_time() - began)


def _spend(budget: WorkBudget | None, worked: float) -> None:
    """Counts processor time. Raises TooMuchWork where there was none left."""
    if budget is None:
        return
    if budget.spent > budget.seconds:
        raise TooMuchWork(
            f"More than {budget.seconds:g} seconds of work: ask for a smaller range, or for what a key tells"
        )
    budget.spent += worked


async def in_turns(
    work: Callable[[Sequence[ItemT]], Sequence[ResultT]], items: Sequence[ItemT]
) -> list[ResultT]:
    """What the work gives for the items, `AT_ONCE` in each turn. Raises TooMuchWork."""
    budget, of_all, found = BUDGET.get(), rounds(), list[ResultT]()
    for start in range(0, len(items), AT_ONCE):
        _spend(budget, 0.0)
        if len(items) > AT_ONCE:
            await of_all.wait()
        began = time.thread_time()
        found += work(items[start : start + AT_ONCE])
        worked = time.thread_time() - began
        of_all.count(worked)
        if budget is not None:
            budget.spent += worked
    await asyncio.sleep(0)
    return found
