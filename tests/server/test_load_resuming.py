"""`keygraph load` that was interrupted: it goes on where it stopped, and nowhere else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet
from keygraph.engines.open import open_store
from keygraph.tables.bulk import write_batches
from keygraph_examples import social
from keygraph_examples.commerce import graph as commerce
from keygraph_examples.commerce import sample
from keygraph_server.jobs.checkpoint import StateFile
from tests.server.command_line import refused, run
from tests.server.loading import user, without_times, write_lines
from tests.server.tables import FILE, items_in, make_table

EXAMPLES = Path(__file__).parents[2] / "examples/keygraph_examples"
LARGE = ("load", "--sample", "commerce", "--users", "100000", "--store", FILE)

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.long]


def interrupt_after(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """Makes the next load end as by Ctrl-C when so many batches are in the table."""

    async def interrupted(store: Any, given: Any, written: Any, in_flight: int, write: Any) -> None:
        marks = []

        def stop(mark: Any) -> None:
            written(mark)
            marks.append(mark)
            if len(marks) == batches:
                raise KeyboardInterrupt

        await write_batches(store, given, stop, in_flight, write)

    monkeypatch.setattr("keygraph_server.commands.load.write_batches", interrupted)
    monkeypatch.setattr("keygraph_server.commands.load._LOCAL_BATCHES", 1)


def test_a_load_into_a_file_writes_large_batches_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [user(number) for number in range(2000)])
    sizes: list[int] = []

    async def watched(store: Any, given: Any, written: Any, in_flight: int, write: Any) -> None:
        assert in_flight == 1
        batches = list(given)
        sizes.extend(len(items) for items, _ in batches)
        await write_batches(store, batches, written, in_flight, write)

    monkeypatch.setattr("keygraph_server.commands.load.write_batches", watched)
    assert run("load", lines, "--store", FILE).exit_code == 0
    assert sizes == [2000]


def test_an_interrupted_load_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(FILE)
    lines = write_lines("users.jsonl", [user(number) for number in range(2000)])
    with monkeypatch.context() as patched:
        interrupt_after(patched, 2)
        result = run("load", lines, "--store", FILE)
    assert result.exit_code == 130
    assert result.stderr == (
        "keygraph: interrupted. 500 items are loaded. Run the load again with --resume to continue after them.\n"
    )
    assert len(items_in(FILE)) >= 500

    result = run("load", lines, "--store", FILE, "--resume")
    assert (
        without_times(result.stdout) == "Loaded 1,500 items in N s into EcommerceData, 500 loaded earlier.\n"
    )
    assert items_in(FILE) == [user(number) for number in range(2000)]
    assert not list(Path(".keygraph/loads").iterdir())

    again = run("load", lines, "--store", FILE, "--resume")
    assert again.stderr == "Found no interrupted load to resume. Loading from the start.\n"
    assert without_times(again.stdout) == "Loaded 2,000 items in N s into EcommerceData.\n"


@pytest.mark.parametrize("change", ["file", "shorter", "table"])
def test_a_load_goes_on_only_where_it_can(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    make_table(FILE)
    users = [user(number) for number in range(1000)]
    lines = write_lines("users.jsonl", users)
    with monkeypatch.context() as patched:
        interrupt_after(patched, 2)
        run("load", lines, "--store", FILE)
    match change:
        case "file":
            write_lines("users.jsonl", [user(5000), *users[1:]])
            reason = "the first 500 lines have changed since they were loaded"
        case "shorter":
            write_lines("users.jsonl", users[:300])
            reason = "only 300 lines are left"
        case _:
            make_table(FILE)
            reason = "the table does not have the last item that was loaded"
    assert refused("load", lines, "--store", FILE, "--resume") == (
        f"the load cannot be resumed: {reason}. "
        "Load without --resume: items that are already there are replaced by themselves.\n"
    )
    fresh = run("load", lines, "--store", FILE)
    assert fresh.exit_code == 0
    assert fresh.stdout.startswith("Loaded 300 items" if change == "shorter" else "Loaded 1,000 items")


def test_a_load_needs_no_place_for_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(FILE)
    Path(".keygraph").write_text("a file where the folder would be", "utf-8")
    lines = write_lines("users.jsonl", [user(number) for number in range(500)])
    interrupt_after(monkeypatch, 1)
    result = run("load", lines, "--store", FILE)
    assert (result.exit_code, result.stderr) == (
        130,
        "keygraph: interrupted. 250 items are loaded. Run the load again: loaded items are replaced by themselves.\n",
    )


def test_an_interrupted_sample_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(FILE)
    with monkeypatch.context() as patched:
        interrupt_after(patched, 1)
        run("load", "--sample", "commerce", "--users", "20", "--store", FILE)
    other = run("load", "--sample", "commerce", "--users", "10", "--store", FILE, "--resume")
    assert other.stderr == "Found no interrupted load to resume. Loading from the start.\n"
    make_table(FILE)
    run("load", "--sample", "commerce", "--users", "20", "--store", FILE)
    wanted = items_in(FILE)
    make_table(FILE)
    with monkeypatch.context() as patched:
        interrupt_after(patched, 1)
        run("load", "--sample", "commerce", "--users", "20", "--store", FILE)
    resumed = run("load", "--sample", "commerce", "--users", "20", "--store", FILE, "--resume")
    assert "250 loaded earlier" in resumed.stdout
    assert items_in(FILE) == wanted


def loading_process() -> subprocess.Popen[str]:
    """A process that loads a large sample and has kept how far it has come."""
    started = subprocess.Popen(
        [sys.executable, "-c", "from keygraph_server.cli import main; main()", *LARGE],
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(Path(".keygraph/loads").glob("*.json")):
        if started.poll() is not None or time.monotonic() > deadline:
            started.kill()
            pytest.fail(f"no checkpoint was kept: {started.communicate()}")
        time.sleep(0.05)
    return started


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_what_a_killed_load_says_is_in_the_table(kill: signal.Signals) -> None:
    make_table(FILE)
    started = loading_process()
    started.send_signal(kill)
    output, errors = started.communicate(timeout=60)
    found = StateFile.named(
        "loads", FILE, "EcommerceData", "sample keygraph_examples.commerce users=100000"
    ).read()
    assert found is not None
    items = found["items"]
    if kill is signal.SIGINT:
        assert (started.returncode, output, errors) == (
            130,
            "",
            f"keygraph: interrupted. {items:,} items are loaded. Run the load again with --resume to continue after "
            "them.\n",
        )
    first = islice(sample(users=100_000), items)
    keys = tuple((item["PK"], item["SK"]) for item in first)

    async def present() -> list[Item | None]:
        async with open_store(FILE, commerce.table) as store:
            return (await store.send(BatchGet(keys))).items

    assert items > 0
    assert None not in asyncio.run(present())


def test_a_mirror_is_made_of_what_was_loaded_before_the_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    table = social.graph.table
    monkeypatch.setenv("KEYGRAPH_MODEL", "keygraph_examples.social:graph")
    make_table(FILE, table=table)
    friends = [
        {"PK": f"USER#{number}", "SK": "FRIEND#Ann", "friendship_since": "2024-01-01"}
        for number in range(400)
    ]
    lines = write_lines("friends.jsonl", friends)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1)
        assert run("load", lines, "--store", FILE).exit_code == 130
    resumed = run("load", lines, "--store", FILE, "--resume")
    assert without_times(resumed.stdout) == (
        "Loaded 150 items in N s into Users, 250 loaded earlier, 400 other items of edges made.\n"
    )
    assert len([item for item in items_in(FILE, table) if item["PK"] == "USER#Ann"]) == 400
