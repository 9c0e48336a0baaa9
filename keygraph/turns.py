"""Work on many items: in turns with whatever else the event loop has to do, and within a budget of processor time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

from keygraph.codes import Code
from keygraph.errors import StoreError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

AT_ONCE = 500
"""So many items are worked on in one turn: 5 to 15 milliseconds."""


TURN_SECONDS = 0.004
"""Who goes on with many things lets others have their turn after so much processor time."""


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


async def in_turns(
    work: Callable[[Sequence[ItemT]], Sequence[ResultT]], items: Sequence[ItemT]
) -> list[ResultT]:
    """What the work gives for the items, `AT_ONCE` in each turn. Raises TooMuchWork."""
    budget, found = BUDGET.get(), list[ResultT]()
    for start in range(0, len(items), AT_ONCE):
        if budget is not None and budget.spent > budget.seconds:
            raise TooMuchWork(
                f"More than {budget.seconds:g} seconds of work: ask for a smaller range, or for what a key tells"
            )
        began = time.thread_time()
        found += work(items[start : start + AT_ONCE])
        if budget is not None:
            budget.spent += time.thread_time() - began
        await asyncio.sleep(0)
    return found
