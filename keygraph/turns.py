"""Work on many items, which takes turns with the other work of the event loop and has a budget of processor time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Protocol, TypeVar

from keygraph.codes import Code
from keygraph.errors import StoreError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

AT_ONCE = 500
"""How many items are processed in one turn: 5 to 15 milliseconds."""


TURN_SECONDS = 0.004
"""The processor time after which long work lets others have their turn."""


class TooMuchWork(StoreError):
    """The operation needs more processor time than the server allows."""

    code = Code.COST_LIMIT


class Rounds(Protocol):
    """The rounds of the event loop: the work of all operations in one, and the operations that wait for another."""

    def count(self, seconds: float) -> None:
        """Counts work in this round."""

    async def wait(self) -> None:
        """Waits for a round in which no other waiting operation continues."""


class WorkBudget:
    """The processor time that an operation may spend on pages of many items, in seconds, and what it has spent.

    It references nothing else of the operation: timers keep the context of a task for some time after its end.
    """

    seconds = 5.0
    spent = 0.0
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
        await (asyncio.sleep(0) if self.rounds is None else self.rounds.wait())


BUDGET: ContextVar[WorkBudget | None] = ContextVar("keygraph-work", default=None)
"""The budget of the running operation."""


def _budget() -> WorkBudget:
    """Returns the budget of the running operation; one without a limit outside of operations, such as in a command."""
    found = BUDGET.get()
    if found is None:
        found = WorkBudget()
        found.seconds = math.inf
    return found


async def step_by_step(steps: Iterable[object]) -> None:
    """Does all steps, in turns with other work. Raises TooMuchWork."""
    budget = _budget()
    began = time.thread_time()
    for _ in steps:
        worked = time.thread_time() - began
        if worked > TURN_SECONDS:
            budget.spend(worked)
            await budget.wait()
            began = time.thread_time()
    budget.spend(time.thread_time() - began)


async def in_turns(
    work: Callable[[Sequence[ItemT]], Sequence[ResultT]], items: Sequence[ItemT]
) -> list[ResultT]:
    """Returns the results of the work on the items, `AT_ONCE` in each turn. Raises TooMuchWork."""
    budget, found = _budget(), list[ResultT]()
    for start in range(0, len(items), AT_ONCE):
        if len(items) > AT_ONCE:
            await budget.wait()
        began = time.thread_time()
        found += work(items[start : start + AT_ONCE])
        budget.spend(time.thread_time() - began)
    await asyncio.sleep(0)
    return found
