"""What a process that serves does once, and on what it says that it runs."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keygraph_server.app import app_from_environment, create_app
from keygraph_server.processes.collection import COLLECTED_AFTER
from keygraph_server.processes.process import runs_on
from keygraph_server.settings import read_settings
from tests.server.library import MODEL


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """Leaves the tests' own process as it was; another test may have started an application in it."""
    thresholds, switching = gc.get_threshold(), sys.getswitchinterval()
    gc.unfreeze()
    yield
    gc.unfreeze()
    sys.setswitchinterval(switching)
    gc.set_threshold(*thresholds)


@pytest.fixture
def environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "library.py").write_text(MODEL)
    monkeypatch.setenv("KEYGRAPH_MODEL", "library")
    monkeypatch.setenv("KEYGRAPH_STORE", "sqlite:library.sqlite")


@pytest.mark.long
async def test_a_worker_tunes_its_collector_when_it_has_started(environment: None) -> None:
    """The collector would look through the schema and the AWS SDK several times in every operation."""
    frozen = gc.get_freeze_count()
    app = app_from_environment()
    assert gc.get_freeze_count() == frozen
    async with app.router.lifespan_context(app):
        assert gc.get_freeze_count() > frozen + 50_000
        assert gc.get_threshold() == COLLECTED_AFTER


@pytest.mark.long
async def test_a_thread_that_works_lets_the_loop_go_on_soon(environment: None) -> None:
    """A request would wait five milliseconds several times while documents of others are read in a thread."""
    async with (app := app_from_environment()).router.lifespan_context(app):
        assert sys.getswitchinterval() < 0.001


async def test_an_application_in_somebody_elses_process_leaves_the_collector_alone(environment: None) -> None:
    """Who puts the application into a server of their own would find that what they hold is never collected."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    app = create_app(read_settings())
    async with app.router.lifespan_context(app):
        assert gc.get_freeze_count() == frozen
        assert gc.get_threshold() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(("limits", "wanted", "allowed"), [("300, 500", 450, 450), ("300, 500", 600, 500)])
def test_as_many_open_files_as_the_system_gives(limits: str, wanted: int, allowed: int) -> None:
    """A server with the usual limit of 1,024 open files would stop to accept when it has so many connections."""
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limits}))\n"
        "from keygraph_server.processes.process import allow_open_files\n"
        f"print(allow_open_files({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed == f"{allowed} {allowed}\n"


def test_the_loop_that_runs_is_the_one_that_is_said() -> None:
    """The log would say uvloop where a policy or a missing wheel has made it asyncio's."""

    async def said() -> str:
        return runs_on()[0]

    assert asyncio.run(said()) == "asyncio"
    uvloop = pytest.importorskip("uvloop", reason="the extra `fast` is not installed")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(said()) == "uvloop"
