"""SECURITY.md: every threat has a defence, and a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.removed_defences import REMOVALS, Removal, named_test

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`tests/" in line
]


def test_there_are_rows() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_row_names_a_test(row: list[str]) -> None:
    threat, defence, named = row
    assert threat
    assert defence
    found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", named)
    assert found is not None
    tree = ast.parse((ROOT / found[1]).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_row_has_a_removal() -> None:
    assert {named_test(row)[1] for row in ROWS} == {*REMOVALS}


@pytest.mark.parametrize("name", REMOVALS)
def test_what_is_removed_is_there(name: str) -> None:
    removal: Removal | None = REMOVALS[name]
    while removal is not None:
        assert removal.text in (ROOT / removal.file).read_text("utf-8")
        removal = removal.other
