"""Many writers at once, requests that fail on their way, and processes that are killed leave a graph that is whole.

Afterwards `keygraph verify` finds nothing, and one order of the writes explains what every writer was told and what is left.
`python -m tests.keygraph.histories` does the same thousands of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ENGINES, on_exact_engines
from tests.keygraph.histories.running import Faults, after_kills, with_faults

WRITERS, EACH, KILLS = 32, 3, 6


def server_of(engine: str, request: pytest.FixtureRequest) -> str | None:
    """The address of the engine's server; None for the embedded engine."""
    return None if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))


@pytest.mark.parametrize("engine", ENGINES)
async def test_writers_at_the_same_time(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """An edge would be left without its mirror, a key with an old value, or somebody's write be lost."""
    # moto forgets what others wrote while a transaction of its own is canceled, and the tokens of transactions.
    faults = Faults.NOT_DONE if engine == "moto" else Faults.ALL
    events, problems = await with_faults(
        server_of(engine, request), tmp_path, "a", faults, WRITERS, EACH, one_by_one=engine == "moto"
    )
    assert problems == []
    assert sum(event.codes == frozenset() for event in events) > WRITERS * EACH // 4


@on_exact_engines
async def test_writers_that_are_killed(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Half a transaction would be left, or one that was acknowledged be lost."""
    events, problems = await after_kills(server_of(engine, request), tmp_path, "a", KILLS)
    assert problems == []
    assert any(event.codes is None for event in events)
