"""What tests of the real process share: starting it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import KEYGRAPH, WITHOUT_EXTRA, Process, Start, started_processes


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes in a fresh folder; those that still run are ended with the test."""
    with started_processes() as started:

        def start_one(*words: str, is_fast: bool = True, **settings: str) -> Process:
            command = [KEYGRAPH] if is_fast else WITHOUT_EXTRA
            started.append(Process(tmp_path, *words, command=command, **settings))
            return started[-1]

        yield start_one
