"""Work on many items in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from keygraph import turns
from keygraph.turns import AT_ONCE, BUDGET, TooMuchWork, WorkBudget, in_turns, step_by_step

ITEMS = [*range(3 * AT_ONCE)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes four seconds of work."""
    seconds = iter(range(0, 1_000_000, 4))
    monkeypatch.setattr(turns.time, "thread_time", lambda: next(seconds))


async def all_steps() -> list[int]:
    done: list[int] = []
    await step_by_step(done.append(each) for each in ITEMS[:10])
    return done


@pytest.mark.parametrize("work", [lambda: in_turns(list, ITEMS), all_steps])
async def test_an_operation_has_a_budget_and_a_command_has_none(
    work: Callable[[], Awaitable[list[int]]],
) -> None:
    """`keygraph verify` would end in the middle of a large table, or an operation would work for ever."""
    assert await work() in (ITEMS, ITEMS[:10])
    token = BUDGET.set(WorkBudget())
    try:
        with pytest.raises(TooMuchWork, match="More than 5 seconds of work"):
            await work()
    finally:
        BUDGET.reset(token)
