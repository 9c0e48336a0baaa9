"""Runs the program's commands in processes of their own, and measures each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import NamedTuple

FOUND = 3
"""The exit code of a command that has left problems."""


class Used(NamedTuple):
    """What a command has used."""

    seconds: float
    processor: float
    """Seconds of processor time, which other programs do not make longer."""
    memory: int
    """Its peak memory in MB. It is at least what the process had that started it."""
    said: str
    """The last line of what it wrote to its standard error."""

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s ({self.processor:.0f} s of processor time), {self.memory} MB"


class RunningCommand:
    """A command that runs with a model."""

    def __init__(self, model: str, *words: str) -> None:
        name, *options = words
        command = (sys.executable, "-m", "keygraph", name, "--model", model, *options)
        self._started = time.monotonic()
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ended(self) -> Used:
        """Waits for its end. It must not fail; it may have left problems."""
        assert self._process.stderr
        said = self._process.stderr.read().decode().strip()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        assert self._process.returncode in {0, FOUND}, said
        processor = used.ru_utime + used.ru_stime
        return Used(
            time.monotonic() - self._started,
            processor,
            used.ru_maxrss // 1024,
            said.splitlines()[-1] if said else "",
        )

    def kill_after(self, seconds: float) -> None:
        """Kills it after this time, at once and without a warning."""
        time.sleep(max(0.0, self._started + seconds - time.monotonic()))
        self._process.kill()
        assert self._process.wait() < 0, "it ended before it was killed: the machine is less busy than before"
        assert self._process.stderr
        self._process.stderr.close()


def run(model: str, *words: str) -> Used:
    """Runs a command to its end."""
    return RunningCommand(model, *words).ended()
