"""What `make audit` makes of what pip-audit and npm answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit import LOCKS, ROOT, Audit, of_npm, of_pip

NO_PIP = Audit("constraints.txt", [], "no advisory source answers pip-audit")
NO_NPM = Audit("a", [], "no advisory source answers npm")


@pytest.mark.parametrize(
    ("dependencies", "expected"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], Audit("constraints.txt", [])),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}, {"name": "b", "skip_reason": "x"}],
            Audit("constraints.txt", ["a 1: PYSEC-1"]),
        ),
        ([{"name": "b", "skip_reason": "Dependency not found"}], NO_PIP),
    ],
)
def test_pip_audit_is_understood(dependencies: list[object], expected: Audit) -> None:
    assert of_pip(json.dumps({"dependencies": dependencies, "fixes": []})) == expected


@pytest.mark.parametrize("output", ["", "Traceback (most recent call last):", "[]"])
def test_a_tool_that_fails_is_skipped_by_name(output: str) -> None:
    assert of_pip(output) == NO_PIP
    assert of_npm("a", output) == NO_NPM


def test_npm_is_understood() -> None:
    """The same, for npm."""
    assert of_npm("a", '{"vulnerabilities": {}}') == Audit("a", [])
    assert of_npm("a", '{"vulnerabilities": {"x": {"severity": "high"}}}') == Audit("a", ["x: high"])
    assert of_npm("a", '{"message": "405 Method Not Allowed", "error": {}}') == NO_NPM


@pytest.mark.long
def test_every_lock_file_is_audited() -> None:
    ignored = {"node_modules", ".venv"}
    found = {path.parent for path in ROOT.rglob("package-lock.json") if not ignored & {*path.parts}}
    assert found == {ROOT / Path(folder) for folder in LOCKS}
