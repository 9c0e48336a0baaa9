"""How many lines of Python the packages and their tests have. Each figure may only sink."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = {("keygraph", "resolvers"): 63_864, ("server",): 14_262, ("tests",): 102_296}


@pytest.mark.parametrize("folders", LINES)
def test_there_are_no_more_lines(folders: tuple[str, ...]) -> None:
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert sum(path.read_text("utf-8").count("\n") for path in paths) <= LINES[folders]
