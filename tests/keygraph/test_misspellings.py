"""A misspelt name in a model file is found by mypy and by pyright, before the program runs.

Each file in `misspelt` is `nothing.py` with one misspelling in one line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "misspelt"
CORRECT = FOLDER / "nothing.py"
MISSPELT = sorted(path for path in FOLDER.glob("*.py") if path != CORRECT)


def _run(*command: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    return answer.stdout


def test_mypy_finds_every_misspelling(tmp_path: Path) -> None:
    """Somebody who mistypes a name would learn of it when the server starts, or never."""
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\n")
    shown = _run("mypy", "--strict", f"--config-file={settings}", f"--cache-dir={tmp_path}", str(FOLDER))
    found = re.findall(r"^(.+?\.py):\d+: error: ", shown, re.MULTILINE)
    _is_told_of_each_misspelt_file([Path(path).name for path in found])


def test_pyright_finds_every_misspelling() -> None:
    """An editor would underline nothing while a name is being mistyped; pyproject.toml makes pyright strict."""
    version = subprocess.run(
        [sys.executable, "-m", "pyright", "--version"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if version.returncode != 0 or not version.stdout.startswith("pyright "):
        pytest.skip("pyright does not run here: it needs Node.js")
    shown = json.loads(_run("pyright", "--pythonpath", sys.executable, "--outputjson", str(FOLDER)))
    assert shown["summary"]["filesAnalyzed"] == len(MISSPELT) + 1
    _is_told_of_each_misspelt_file([Path(told["file"]).name for told in shown["generalDiagnostics"]])


def _is_told_of_each_misspelt_file(names: list[str]) -> None:
    told = Counter(names)
    assert told[CORRECT.name] == 0, "a correct model must pass"
    assert [path.name for path in MISSPELT if not told[path.name]] == []


@pytest.mark.parametrize("path", MISSPELT, ids=lambda path: path.stem)
def test_a_file_has_one_misspelling(path: Path) -> None:
    """What the tools find could be something else than the misspelling that the file is called for."""
    correct = CORRECT.read_text().splitlines()
    misspelt = path.read_text().splitlines()
    others = [(line, other) for line, other in zip(correct, misspelt, strict=True) if line != other]
    assert len(others) == 2, "the docstring and one line"
