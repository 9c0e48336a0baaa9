"""Several server processes that share one socket: started, monitored, replaced and stopped.

`uvicorn_internals` says what it depends on.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import time

import uvicorn

from keygraph_server.listening import end_new_connections
from keygraph_server.processes import MOST_WORKERS
from keygraph_server.processes.process import terminals
from keygraph_server.processes.server import Server
from keygraph_server.uvicorn_internals import STARTUP_FAILURE, Multiprocess, Process

_log = logging.getLogger(__name__)

_LAST_SECONDS = 1.0
"""Time for a worker to close the store after its requests, and to be gone when it is killed."""
_LOOK_SECONDS = 0.1
_START_SECONDS = 60.0
"""How long a worker may take until its first sign of life. Workers that start together share the cores."""
_RETRY_SECONDS = 10.0
"""How long after a worker that could not start the next one is tried."""


class Worker(Process):
    """A server process, as seen by its parent."""

    pinged_at: float | None = None
    """When it was asked for a sign of life that it has not given yet."""
    is_new = True
    """Whether it does not serve yet."""

    @property
    def server(self) -> Server:
        """The server, in the worker itself."""
        if self._server is None:
            # Said without being asked: one that freezes right then is not taken for one that starts.
            self._server = Server(self.config, lambda: self.child_conn.send(True))
        return self._server  # type: ignore[return-value]  # made here alone

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves in the worker. An unexpected error is a record of the log; `multiprocessing` would print many lines."""
        try:
            super().target(sockets)
        except Exception:
            _log.critical("the process ends because of an unexpected error", exc_info=True)
            sys.exit(1)

    def pong(self) -> None:
        """Gives a sign of life when the event loop has run. A thread alone does not show that it runs."""
        self.child_conn.recv()
        self.server.wait_for_loop()
        self.child_conn.send(self.server.started)

    def seconds_silent(self) -> float:
        """How long a sign of life has been due. Asks for the next one if none is due, and never waits."""
        now = time.monotonic()
        try:
            while self.parent_conn.poll():
                self.pinged_at, self.is_new = None, not self.parent_conn.recv()
            if self.pinged_at is None:
                self.parent_conn.send(b"ping")
                self.pinged_at = now
        except (OSError, EOFError):
            # The worker is ending, which `exitcode` will show.
            return 0.0
        return now - self.pinged_at

    @property
    def end(self) -> str:
        """Describes how it ended."""
        code = self.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


class Workers(Multiprocess):
    """Server processes that share one socket. One that dies or freezes is logged and replaced."""

    processes: list[Worker]  # type: ignore[assignment]  # made here alone
    cannot_start = False
    """Whether it ends because no worker could start."""
    _has_served = False
    _next_try = 0.0

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._terminals = terminals()

    def init_processes(self) -> None:
        self.processes += [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replaces workers that have died or do not give a sign of life."""
        if self.is_set():
            # A terminal sends Ctrl-C to the workers too, which may end before it is handled here.
            return
        for place, worker in enumerate(self.processes):
            if worker.process.is_alive():
                silent = worker.seconds_silent()
                self._has_served |= not worker.is_new
                allowed = self.config.timeout_worker_healthcheck
                if silent <= (max(allowed, _START_SECONDS) if worker.is_new else allowed):
                    continue
                _log.error("Worker %d has been frozen for %.0f seconds: it is replaced", worker.pid, silent)
                worker.kill()
                worker.process.join(_LAST_SECONDS)
            elif worker.exitcode == STARTUP_FAILURE and not self._has_served:
                # The next one would fail in the same way.
                _log.error("Worker %d cannot start: the server stops", worker.pid)
                self.cannot_start = True
                self.should_exit.set()
                return
            elif worker.exitcode == STARTUP_FAILURE:
                # What others could do, the next one can when the disk, the file or the model is as it was.
                if time.monotonic() < self._next_try:
                    continue
                self._next_try = time.monotonic() + _RETRY_SECONDS
                _log.error("Worker %d cannot start: it is tried again and again", worker.pid)
            else:
                _log.error("Worker %d %s: it is replaced", worker.pid, worker.end)
            self.processes[place] = self._started()

    def handle_signals(self) -> None:
        """Handles the signals since the last time. Several that replace all workers do so once."""
        for _ in range(self.signal_queue.count(getattr(signal, "SIGHUP", 0)) - 1):
            self.signal_queue.remove(signal.SIGHUP)
        super().handle_signals()

    def is_set(self) -> bool:
        """Whether it has been told to stop, perhaps by a signal that it has not handled yet."""
        return self.should_exit.is_set() or not {signal.SIGTERM, signal.SIGINT}.isdisjoint(self.signal_queue)

    def handle_hup(self) -> None:
        """Replaces all workers, or stops if the terminal is gone (SIGHUP)."""
        if self._terminals and not terminals():
            self.should_exit.set()
        else:
            self.restart_all()

    def restart_all(self) -> None:
        """Replaces each worker as soon as its successor serves, until it is told to stop."""
        for place in range(len(self.processes)):
            if self.is_set():
                return
            new = self._started()
            if not self._is_served_by(new):
                if not self.is_set():
                    _log.error("Worker %d has ended or was not ready in time: the old ones stay", new.pid)
                new.kill()
                new.process.join(_LAST_SECONDS)
                return
            # Perhaps it was replaced meanwhile.
            old, self.processes[place] = self.processes[place], new
            self._end(old)

    def _is_served_by(self, new: Worker) -> bool:
        """Returns whether it serves in time. Until then, the others are looked after."""
        ended = time.monotonic() + _START_SECONDS
        while new.is_new:
            if self.is_set() or not new.process.is_alive() or time.monotonic() > ended:
                return False
            new.process.join(_LOOK_SECONDS)
            new.seconds_silent()
            self.keep_subprocess_alive()
        return True

    def _end(self, worker: Worker) -> None:
        """Ends a worker, or kills it if it hangs. Until then, the others are looked after."""
        worker.terminate()
        ended = time.monotonic() + self._last_seconds
        while worker.process.is_alive():
            if self.is_set():
                # Ends with all others, or is killed.
                self.processes.append(worker)
                return
            if time.monotonic() > ended:
                self._kill(worker)
                return
            worker.process.join(_LOOK_SECONDS)
            self.keep_subprocess_alive()

    @property
    def _last_seconds(self) -> float:
        return (self.config.timeout_graceful_shutdown or 0) + _LAST_SECONDS

    def _kill(self, worker: Worker) -> None:
        _log.error("Worker %d does not stop: it is killed", worker.pid)
        worker.process.kill()
        worker.process.join(_LAST_SECONDS)

    def handle_ttin(self) -> None:
        """Adds a worker (SIGTTIN)."""
        if self.processes_num >= MOST_WORKERS:
            _log.warning("SIGTTIN is ignored: there are %d workers", self.processes_num)
            return
        self.processes_num += 1
        self.processes.append(self._started())

    def handle_ttou(self) -> None:
        """Removes a worker, but not the last one (SIGTTOU)."""
        if self.processes_num > 1:
            self.processes_num -= 1
            self._end(self.processes.pop())

    def terminate_all(self) -> None:
        """Tells all workers to finish."""
        # The workers have the socket too, and accept what waits. The last one closes it.
        for listening in self.sockets:
            end_new_connections(listening)
            listening.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Waits until all workers have ended, and kills those that do not."""
        ended = time.monotonic() + self._last_seconds
        for worker in self.processes:
            worker.process.join(max(0.0, ended - time.monotonic()))
            if worker.process.is_alive():
                self._kill(worker)

    def _started(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker
