"""What a process that serves does once, and on what it says that it runs."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keygraph.admission import Admission
from keygraph.dynamo.store import UnreadStore
from keygraph_examples.commerce import graph
from keygraph_resolvers import Service, build_schema
from keygraph_server.app import app_from_environment, create_app
from keygraph_server.processes.collection import COLLECTED_AFTER, tune_collection
from keygraph_server.processes.process import runs_on
from keygraph_server.settings import read_settings
from tests.server.library import MODEL


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """Leaves the tests' own process as it was; another test may have started an application in it."""
    thresholds, switching, callbacks = gc.get_threshold(), sys.getswitchinterval(), len(gc.callbacks)
    gc.unfreeze()
    yield
    gc.unfreeze()
    sys.setswitchinterval(switching)
    del gc.callbacks[callbacks:]
    gc.set_threshold(*thresholds)


@pytest.fixture
def environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "library.py").write_text(MODEL)
    monkeypatch.setenv("KEYGRAPH_MODEL", "library")
    monkeypatch.setenv("KEYGRAPH_STORE", "sqlite:library.sqlite")


@pytest.mark.long
async def test_a_worker_tunes_its_collector_and_its_threads_when_it_has_started(environment: None) -> None:
    frozen = gc.get_freeze_count()
    app = app_from_environment()
    async with app.router.lifespan_context(app):
        assert gc.get_freeze_count() > frozen + 50_000
        assert gc.get_threshold() == COLLECTED_AFTER
        assert sys.getswitchinterval() < 0.001


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "bound", "counts", "most"),
    [
        ("admission", 0, range(11, 40), 50_000),
        ("admission", 5_000, range(51, 99), 13_000),
        ("_preparing", 0, range(51, 99), 13_000),
    ],
)
async def test_a_collection_looks_at_few_objects_however_many_an_operation_keeps(
    where: str, bound: int, counts: range, most: int
) -> None:
    looked_at: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations = range(info["generation"] + 1)
            looked_at.append(sum(len(gc.get_objects(generation=each)) for each in generations))

    service = Service(build_schema(graph), UnreadStore(graph.table), secret=b"secret")
    tune_collection(service.makes_much)
    admission: Admission = getattr(service, where)
    async with admission.place(bound):
        gc.collect(0)
        gc.callbacks.append(note)
        kept = [[number] for number in range(400_000)]
    assert len(kept) == 400_000
    assert len(looked_at) in counts
    assert max(looked_at) < most
    gc.collect(0)
    assert gc.get_threshold() == COLLECTED_AFTER


async def test_an_application_in_somebody_elses_process_leaves_the_collector_alone(environment: None) -> None:
    before, older = gc.get_threshold(), [object()]
    app = create_app(read_settings())
    async with app.router.lifespan_context(app):
        # What is frozen is not among these. Some versions of Python freeze a few objects of their own.
        assert any(each is older for each in gc.get_objects())
        assert gc.get_threshold() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(("limits", "wanted", "allowed"), [("300, 500", 450, 450), ("300, 500", 600, 500)])
def test_as_many_open_files_as_the_system_gives(limits: str, wanted: int, allowed: int) -> None:
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limits}))\n"
        "from keygraph_server.processes.process import allow_open_files\n"
        f"print(allow_open_files({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed == f"{allowed} {allowed}\n"


def test_the_loop_that_runs_is_the_one_that_is_said() -> None:
    async def said() -> str:
        return runs_on()[0]

    assert asyncio.run(said()) == "asyncio"
    uvloop = pytest.importorskip("uvloop", reason="the extra `fast` is not installed")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(said()) == "uvloop"
