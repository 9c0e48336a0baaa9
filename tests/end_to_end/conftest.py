"""What tests of the real process share: starting it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import KEYGRAPH, WITHOUT_EXTRA, Process, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes in a fresh folder; those that still run are ended with the test."""
    started: list[Process] = []

    def start_one(*words: str, is_fast: bool = True, **settings: str) -> Process:
        command = [KEYGRAPH] if is_fast else WITHOUT_EXTRA
        started.append(Process(tmp_path, *words, command=command, **settings))
        return started[-1]

    yield start_one
    for process in started:
        if process.process.poll() is None:
            os.killpg(process.process.pid, signal.SIGKILL)
        process.ended()
