"""Several server processes that share one socket: started, monitored, replaced and stopped.

`uvicorn_internals` says what it depends on.
"""

from __future__ import annotations

import logging
import signal
import time

from keygraph_server.processes.server import Server
from keygraph_server.uvicorn_internals import STARTUP_FAILURE, Multiprocess, Process

_log = logging.getLogger(__name__)

_LAST_SECONDS = 1.0
"""Time for a worker to close the store after its requests."""
_START_SECONDS = 60.0
"""How long a worker may take until its first sign of life. Workers that start together share the cores."""


class Worker(Process):
    """A server process, as seen by its parent."""

    pinged_at: float | None = None
    """When it was asked for a sign of life that it has not given yet."""
    is_new = True
    """Whether it has given no sign of life yet."""

    @property
    def server(self) -> Server:
        """The server, in the worker itself."""
        if self._server is None:
            self._server = Server(self.config)
        return self._server  # type: ignore[return-value]  # made here alone

    def pong(self) -> None:
        """Gives a sign of life when the event loop has run. A thread alone does not show that it runs."""
        self.child_conn.recv()
        self.server.wait_for_loop()
        self.child_conn.send(self.server.started)

    def seconds_silent(self) -> float:
        """How long a sign of life has been due. Asks for the next one if none is due, and never waits."""
        now = time.monotonic()
        try:
            if self.pinged_at is not None and self.parent_conn.poll():
                self.parent_conn.recv()
                self.pinged_at, self.is_new = None, False
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

    def init_processes(self) -> None:
        """Starts all workers."""
        self.processes += [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replaces workers that have died or do not give a sign of life."""
        if self.signal_queue or self.should_exit.is_set():
            # A terminal sends Ctrl-C to the workers too, which may end before it is handled here.
            return
        for place, worker in enumerate(self.processes):
            if worker.process.is_alive():
                silent = worker.seconds_silent()
                allowed = self.config.timeout_worker_healthcheck
                if silent <= (max(allowed, _START_SECONDS) if worker.is_new else allowed):
                    continue
                _log.error("Worker %d has been frozen for %.0f seconds: it is replaced", worker.pid, silent)
                worker.kill()
                worker.join()
            elif worker.exitcode == STARTUP_FAILURE:
                # The next one would fail in the same way.
                _log.error("Worker %d cannot start: the server stops", worker.pid)
                self.should_exit.set()
                return
            else:
                _log.error("Worker %d %s: it is replaced", worker.pid, worker.end)
            self.processes[place] = self._started()

    def restart_all(self) -> None:
        """Replaces each worker as soon as its successor serves (SIGHUP)."""
        for place, old in enumerate(self.processes):
            new = self._started()
            if not new.wait_until_ready(_START_SECONDS, self.should_exit):
                _log.error("Worker %d was not ready in time: the old ones stay", new.pid)
                new.kill()
                new.join()
                return
            self.processes[place] = new
            old.terminate()
            old.join()

    def handle_ttin(self) -> None:
        """Adds a worker (SIGTTIN)."""
        self.processes_num += 1
        self.processes.append(self._started())

    def terminate_all(self) -> None:
        """Tells all workers to finish."""
        super().terminate_all()
        # The workers have the socket too. The last one closes it, and then new connections are refused.
        for listening in self.sockets:
            listening.close()

    def join_all(self) -> None:
        """Waits until all workers have ended, and kills those that do not."""
        ended = time.monotonic() + (self.config.timeout_graceful_shutdown or 0) + _LAST_SECONDS
        for worker in self.processes:
            worker.process.join(max(0.0, ended - time.monotonic()))
            if worker.process.is_alive():
                _log.error("Worker %d does not stop: it is killed", worker.pid)
                worker.process.kill()
                worker.process.join()

    def _started(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker
