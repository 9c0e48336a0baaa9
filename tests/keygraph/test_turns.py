"""Work on many items in turns."""

from __future__ import annotations

import pytest

from keygraph import turns
from keygraph.turns import AT_ONCE, BUDGET, TooMuchWork, WorkBudget, in_turns


async def test_an_operation_has_a_budget_and_a_command_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    items, seconds = [*range(3 * AT_ONCE)], iter(range(0, 1_000_000, 4))
    for clock in ("thread_time", "perf_counter"):
        monkeypatch.setattr(turns, clock, lambda: next(seconds))
    assert await in_turns(list, items) == items
    token = BUDGET.set(WorkBudget())
    try:
        with pytest.raises(TooMuchWork, match="More than 5 seconds of work"):
            await in_turns(list, items)
    finally:
        BUDGET.reset(token)
