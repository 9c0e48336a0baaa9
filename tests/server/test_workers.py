"""Workers: when one that has ended is replaced."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from keygraph_server.processes.workers import Worker, Workers


class Ended:
    """A worker that has ended."""

    pid, exitcode, end = 7, 0, Worker.end

    @property
    def process(self) -> Ended:
        return self

    def is_alive(self) -> bool:
        return False


def workers_with(signals: list[int], monkeypatch: pytest.MonkeyPatch) -> Any:
    found: Any = Workers.__new__(Workers)
    found.signal_queue, found.processes, found.should_exit = signals, [Ended()], threading.Event()
    monkeypatch.setattr(found, "_started", lambda: "a new one")
    return found


def test_one_that_has_ended_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There would be fewer and fewer workers."""
    found = workers_with([], monkeypatch)
    found.keep_subprocess_alive()
    assert found.processes == ["a new one"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_signal_to_all_is_no_death(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C would be logged as the death of a worker, and start new ones."""
    found = workers_with([signal.SIGINT], monkeypatch)
    found.keep_subprocess_alive()
    assert isinstance(found.processes[0], Ended)
    assert caplog.records == []


def test_one_that_ends_with_the_server_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C would start workers anew that it has just ended."""
    workers = workers_with([], monkeypatch)
    workers.should_exit.set()
    [ended] = workers.processes
    workers.keep_subprocess_alive()
    assert workers.processes == [ended]
