"""Many writers at once, requests that fail on their way, and processes that are killed leave a graph that is whole.

Afterwards `keygraph verify` finds nothing, and one order of the writes explains what every writer was told and what is left.
`python -m tests.keygraph.histories` does the same thousands of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ENGINES, on_exact_engines
from tests.keygraph.histories.running import Faults, after_kills, in_between, with_faults

WRITERS, EACH = 32, 3
KILLS, EACH_OF_KILLED = 6, 12


def server_of(engine: str, request: pytest.FixtureRequest) -> str | None:
    """The address of the engine's server; None for the embedded engine."""
    return None if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.long
async def test_writers_at_the_same_time(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # moto forgets what others wrote while a transaction of its own is canceled, and the tokens of transactions.
    faults = Faults.NOT_DONE if engine == "moto" else Faults.ALL
    events, problems = await with_faults(
        server_of(engine, request), tmp_path, "a", faults, WRITERS, EACH, one_by_one=engine == "moto"
    )
    assert problems == []
    assert sum(event.codes == frozenset() for event in events) > WRITERS * EACH // 4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.long
async def test_jobs_beside_writers(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """An old table is repaired, backfilled and summarized meanwhile."""
    faults, is_moto = Faults.NOT_DONE if engine == "moto" else Faults.ALL, engine == "moto"
    _, problems = await with_faults(
        server_of(engine, request), tmp_path, "b", faults, WRITERS, EACH, one_by_one=is_moto, jobs=True
    )
    assert problems == []


@pytest.mark.parametrize("jobs", [False, True])
@on_exact_engines
@pytest.mark.long
async def test_writers_that_are_killed(
    jobs: bool, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = server_of(engine, request)
    events, problems = await after_kills(server, tmp_path, "a", KILLS, EACH_OF_KILLED, jobs=jobs)
    assert problems == []
    assert any(event.codes is None for event in events)


@on_exact_engines
@pytest.mark.long
async def test_writes_between_the_requests_of_another(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    events, problems = await in_between(server_of(engine, request), tmp_path, "a", 60)
    assert problems == []
    assert sum(event.codes == frozenset() for event in events) > len(events) // 4


@pytest.mark.long
async def test_writes_between_the_requests_of_a_job(tmp_path: Path) -> None:
    events, problems = await in_between(None, tmp_path, "a", 12, jobs=True)
    assert problems == []
    assert events
