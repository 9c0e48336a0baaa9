"""Workers: when one that has ended is replaced."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from typing import Any

import pytest
from uvicorn import Config

from keygraph_server.processes.workers import Worker, Workers
from keygraph_server.uvicorn_internals import STARTUP_FAILURE, Process


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
    found.config = Config("", timeout_graceful_shutdown=0)
    monkeypatch.setattr(found, "_started", lambda: "a new one")
    return found


@pytest.mark.parametrize("has_served", [False, True])
def test_one_that_cannot_start_stops_no_others(monkeypatch: pytest.MonkeyPatch, has_served: bool) -> None:
    """The disk, the file or the model may be as before when the next one is tried."""
    found = workers_with([], monkeypatch)
    found._has_served = has_served
    found.processes = ended = [Ended(), Ended()]
    for each in ended:
        each.exitcode = STARTUP_FAILURE
    found.keep_subprocess_alive()
    assert found.should_exit.is_set() == found.cannot_start == (not has_served)
    if has_served:
        # The other one waits for some seconds.
        assert found.processes == ["a new one", ended[1]]


class Running:
    """A worker that runs until it is told to end, and takes some time for that."""

    pid, exitcode, end, is_new, is_hanging, is_killed = 7, 0, Worker.end, False, False, False

    def __init__(self, told: list[str], signals: list[int]) -> None:
        self.told, self.signals, self.process, self.joined = told, signals, self, 0

    def starts(self) -> Running:
        self.told.append("starts")
        self.is_new = True
        if self.told.count("starts") == 2 and not self.is_hanging:
            self.signals.append(signal.SIGTERM)
        return self

    def seconds_silent(self) -> float:
        self.is_new = False
        return 0

    def is_alive(self) -> bool:
        return not self.is_killed and (self.is_hanging or self.joined < 3)

    def join(self, seconds: float) -> None:
        self.joined += "ends" in self.told
        self.told.append("joined")

    def terminate(self) -> None:
        self.told.append("ends")

    def kill(self) -> None:
        self.told.append("killed")
        self.is_killed = True


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_a_stop_waits_for_no_hangup(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signals: list[int] = [signal.SIGHUP] * 5
    told: list[str] = []
    found = workers_with(signals, monkeypatch)
    found._terminals = []
    found.processes = [Running(told, signals) for _ in range(3)]
    monkeypatch.setattr(found, "_started", lambda: Running(told, signals).starts())
    found.handle_signals()
    # One is replaced; while the second one starts, it is told to stop.
    assert told == ["starts", "joined", "ends", "joined", "joined", "joined", "starts", "killed", "joined"]
    assert (len(found.processes), signals) == (3, [signal.SIGTERM])
    # A worker that still ends is ended with the others.
    told.clear()
    found.restart_all()
    assert told == []
    found.handle_signals()
    assert found.should_exit.is_set()
    assert caplog.records == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", ["SIGHUP", "SIGTTOU"])
def test_no_signal_waits_for_a_worker_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: str
) -> None:
    told: list[str] = []
    found = workers_with([getattr(signal, number)], monkeypatch)
    found._terminals, found.processes_num = [], 2
    hanging = Running(told, [])
    hanging.is_hanging = True
    monkeypatch.setattr(hanging, "terminate", lambda: (told.append("ends"), setattr(other, "joined", 3)))
    other = Running(told, [])
    found.processes = [other, hanging] if number == "SIGTTOU" else [hanging, other]
    news = [Running([], []) for _ in range(4)]
    monkeypatch.setattr(found, "_started", iter(news).__next__)
    monkeypatch.setattr("keygraph_server.processes.workers._LAST_SECONDS", 0.02)
    found.handle_signals()
    # The other one dies while it is waited for, and is replaced before the end of the wait.
    assert told[:2] == ["ends", "joined"]
    assert told[-2:] == ["killed", "joined"]
    assert caplog.messages.count("Worker 7 does not stop: it is killed") == told.count("killed") == 1
    assert not {hanging, other} & {*found.processes}
    assert found.processes_num == (1 if number == "SIGTTOU" else 2)
    assert caplog.messages.index("Worker 7 ended with exit code 0: it is replaced") == 0
    # It stops whatever hangs.
    found.signal_queue, hanging.is_killed = [signal.SIGTERM], False
    told.clear()
    found._end(hanging)
    assert told == ["ends"]
    assert found.processes[-1] is hanging


def test_what_ends_a_worker_is_a_record_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("unexpected")

    monkeypatch.setattr(Process, "target", fail)
    with pytest.raises(SystemExit):
        Worker.__new__(Worker).target()
    [record] = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "unexpected"


async def test_one_that_freezes_at_once_has_said_that_it_serves() -> None:
    """It would otherwise have the time of one that starts."""
    worker = Worker(Config(app, port=0, lifespan="off"), [])
    assert worker.seconds_silent() >= 0
    assert worker.is_new
    worker.server.config.load()
    worker.server.lifespan = worker.server.config.lifespan_class(worker.server.config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        await worker.server.startup([listening])
        # Its thread has not answered yet.
        assert worker.seconds_silent() < 60
        assert not worker.is_new
        # Whatever it starts does not keep the port.
        assert not listening.get_inheritable()
        await worker.server.shutdown()


async def app(scope: object, receive: object, send: object) -> None:
    """Answers nothing."""
