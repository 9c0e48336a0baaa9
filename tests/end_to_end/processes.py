"""A real `keygraph` process, for tests to start, ask and stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx

KEYGRAPH = Path(sys.executable).with_name("keygraph")
WITHOUT_EXTRA = [
    sys.executable,
    "-c",
    # To import a module that is None here fails as if it was not installed.
    "import sys; sys.modules['uvloop'] = sys.modules['httptools'] = None; from keygraph_server.cli import main; main()",
]
START_SECONDS = 30.0


class Process:
    """A `keygraph` that runs in a folder, what it has written so far, and the address it has printed."""

    def __init__(
        self, folder: Path, *words: str, command: Sequence[str | Path] = (KEYGRAPH,), **settings: str
    ) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KEYGRAPH_", "COVERAGE"))
        }
        # The hosts that requests of these tests name.
        environment |= {"PYTHONUNBUFFERED": "1", "KEYGRAPH_ALLOWED_HOSTS": "keygraph, k, x", **settings}
        self.process = subprocess.Popen(
            [*command, *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Of a group of its own, so that its workers can be found and ended with it.
            start_new_session=True,
        )
        self.lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._readers = [self._read("stdout", self.process.stdout), self._read("stderr", self.process.stderr)]

    def _read(self, name: str, stream: IO[str] | None) -> threading.Thread:
        assert stream is not None

        def read_lines() -> None:
            with stream:
                for line in stream:
                    self.lines[name].append(line)

        thread = threading.Thread(target=read_lines, daemon=True)
        thread.start()
        return thread

    def text(self, name: str) -> str:
        return "".join(self.lines[name])

    def warnings(self) -> list[str]:
        """What it has written to standard error that is more than information."""
        return [line for line in self.lines["stderr"] if " INFO " not in line]

    def address(self) -> str:
        """Where it serves; waits until it has said so and answers."""
        ended = time.monotonic() + START_SECONDS
        while time.monotonic() < ended and self.process.poll() is None:
            said = self.text("stdout") + self.text("stderr")
            found = re.search(r"""(?:GraphQL +|"graphql": ?")(http://\S+)/graphql""", said)
            if found:
                # It listens already, so this waits until it is there to answer.
                assert httpx.get(f"{found[1]}/healthz", timeout=START_SECONDS).text == "ok"
                return found[1]
            time.sleep(0.02)
        raise AssertionError(f"it does not serve: {self.text('stdout')}{self.text('stderr')}")

    def ended(self) -> int:
        """Its exit code, when it has ended and everything that it wrote has been read."""
        code = self.process.wait(START_SECONDS)
        for reader in self._readers:
            reader.join(START_SECONDS)
        return code

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ended()

    @property
    def peak(self) -> float:
        """The most memory that it has had, in MB."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1000


@contextmanager
def started_processes() -> Iterator[list[Process]]:
    """A list of processes; those that still run in the end are killed, with their workers."""
    started: list[Process] = []
    yield started
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
        each.ended()


Start = Callable[..., Process]


def ask(address: str, query: str) -> Any:
    response = httpx.post(f"{address}/graphql", json={"query": query}, timeout=START_SECONDS)
    assert response.status_code == 200
    return response.json()


SLOW_MODEL = """
from __future__ import annotations

import asyncio
from pathlib import Path

from keygraph import ID, Graph, Table, field, node


@node("THING#{thing_id}", item=False)
class Thing:
    thing_id: ID

    @field(needs=("thing_id",))
    async def slowly(self, seconds: int) -> str:
        Path("asked").touch()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            Path("cancelled").touch()
            raise
        return self.thing_id


graph = Graph(Table("Things", partition_key="pk"), Thing)
"""


def wait_for(file: Path) -> None:
    ended = time.monotonic() + START_SECONDS
    while not file.exists():
        assert time.monotonic() < ended, f"{file.name} was not made"
        time.sleep(0.02)


def all_serve(server: Process, count: int) -> list[int]:
    """The ids of the processes, as soon as so many have said that they serve."""
    return logged(server, r"Process (\d+) serves on", count)


def logged(server: Process, pattern: str, count: int = 1) -> list[int]:
    """The numbers in these lines of the log, as soon as there are so many."""
    # One that is frozen before its parent knows that it serves has the time of one that starts.
    ended = time.monotonic() + 2 * START_SECONDS
    while len(found := re.findall(pattern, server.text("stderr"))) < count:
        assert time.monotonic() < ended, server.text("stderr")
        time.sleep(0.02)
    return [int(number) for number in found]
