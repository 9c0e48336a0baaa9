"""Many writers at once, requests that fail on their way, and processes that are killed leave a graph that is whole.

Afterwards `keygraph verify` finds nothing, and one order of the writes explains what every writer was told and what is left.
`python -m tests.keygraph.histories` does the same thousands of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph.dynamo.actions import UpdateItem
from keygraph.dynamo.store import CreateTable, Write
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.writing.marks import new_token, set_mark
from keygraph.writing.requests import Create, Delete, Move, OnEdges
from keygraph.writing.sending import sender
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, on_exact_engines
from tests.keygraph.histories.asking import deed, note, person, rumor
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.history import Event, carry_out, unexplained
from tests.keygraph.histories.plain import State
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


# --- What the judge of histories knows --------------------------------------------------------------------

DEE: State = {("Person", ("Dee",)): {"name": "Dee", "times": 1}}
RUMOR: State = {("Rumor", ("n2",)): {"note_id": "n2", "title": "r"}}
NOTE: State = {("Note", ("n2",)): {"note_id": "n2", "title": "n"}}
BY_DEE: State = {name: {**values, "author": ("Dee",)} for name, values in NOTE.items()}


@pytest.mark.parametrize(("left", "is_explained"), [(NOTE, True), ({}, False)])
def test_a_record_that_is_gone_moves_to_where_another_type_is(left: State, is_explained: bool) -> None:
    """It was there when it was read: the transaction then finds both that it is gone and that the place is taken."""
    codes = frozenset({"NOT_FOUND", "ALREADY_EXISTS"})
    events = [
        Event(1, 2, requests=[Move(rumor, ("n2",), {"note_id": "n1"})]),
        *(Event(3, 4, requests=[Create(note, values)]) for values in left.values()),
        Event(6, 7, requests=[Delete(rumor, ("n1",))]),
        Event(5, 8, requests=[Move(rumor, ("n1",), {"note_id": "n2"})], codes=codes),
    ]
    assert bool([*unexplained(RUMOR, left, events)]) is not is_explained


@pytest.mark.parametrize(("left", "is_explained"), [(NOTE, True), (BY_DEE, False)])
def test_who_was_named_from_the_start_is_detached(left: State, is_explained: bool) -> None:
    detached = Event(1, 2, requests=[Delete(person, ("Dee",), on_edges=OnEdges.DETACH)])
    assert bool([*unexplained({**DEE, **BY_DEE}, left, [detached])]) is not is_explained


async def test_a_mark_that_stays_is_no_reason_but_for_who_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names a node that somebody who died was deleting is told so in the end, at any time."""
    monkeypatch.setattr(sender, "_PAUSE", 0.0)
    codes = []
    async with open_sqlite(tmp_path / "held.db", graph.table) as store:
        await store.send(CreateTable())
        await write(graph, store, [Create(person, {"name": name}) for name in ("Ann", "Dee")])
        for name in ("Ann", "Dee"):
            [key] = graph.table_keys(person, (name,))
            await store.send(Write(UpdateItem(key, (set_mark(new_token()),))))
            event = Event(0, requests=[Create(deed, {"person": (name,), "at": 1})])
            await carry_out(store, event)
            codes.append(event.codes)
    assert codes == [{"CONFLICT"}, {"Others change"}]
