"""A misspelled name in a model file is found by mypy and by pyright, before the program runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOLDER = Path(__file__).parent / "misspelt"
CORRECT = Path(__file__).parent / "correct_model.py"

MISSPELT = sorted(path for path in FOLDER.glob("*.py") if path != CORRECT)
MISSPELLINGS = {
    "argument_of_a_decorator": ("shards=None", 'shards="5"'),
    "class_in_an_annotation": ("Many[Order]", "Many[Ordr]"),
    "class_in_the_graph": ("    Note,\n", "    Nota,\n"),
    "class_of_an_end": ("    shop: Shop\n    written_at", "    shop: Shp\n    written_at"),
    "enum_member": ("default=Status.OPEN", "default=Status.OPENED"),
    "field_in_a_method": ("self.name", "self.nam"),
    "index": ('by_date("SHOP"', 'by_data("SHOP"'),
    "key_of_a_decorator": ('"{shop}")\nclass Line', '"{shop}", by_date)\nclass Line'),
    "keyword_of_a_constructor": ("name=", "nmae="),
    "keyword_of_an_index_call": ('"SHOP", "{created_at}"', '"SHOP", "{created_at}", list="shops"'),
    "keyword_of_field": ("needs=", "need="),
    "keyword_of_graph": ("type_attribute=", "type_attr="),
    "keyword_of_index": ('"DateSK")', '"DateSK", projecton="ALL")'),
    "keyword_of_many": ("index=None", "indx=None"),
    "keyword_of_node": ('"ORDER#{created_at}")', '"ORDER#{created_at}"), itme=True'),
    "keyword_of_record": ("lists=False", "list=False"),
    "keyword_of_table": ("partition_key=", "partion_key="),
    "list_in_a_constructor": ('name="Corner"', 'name="Corner", orders=None'),
    "list_without_many": ("Many[Order] = many()", "Many[Order]"),
    "positional_constructor": ("shop_id=ID(", "ID("),
    "projection": ('"DateSK")', '"DateSK", projection="KEY_ONLY")'),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    correct = CORRECT.read_text("utf-8")
    (tmp_path / "correct.py").write_text(correct, "utf-8")
    for name, (text, misspelled) in MISSPELLINGS.items():
        assert correct.count(text) == 1, name
        (tmp_path / f"{name}.py").write_text(correct.replace(text, misspelled), "utf-8")
    return tmp_path


def _run(*command: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.long
def test_mypy_finds_every_misspelling(folder: Path) -> None:
    settings = folder / "mypy.ini"
    settings.write_text("[mypy]\n")
    lines = _run(
        "mypy", "--strict", f"--config-file={settings}", f"--cache-dir={folder / 'cache'}", str(folder)
    )
    names = re.findall(r"^(.+?)\.py:\d+: error: ", lines, re.MULTILINE)
    assert {Path(name).name for name in names} == {*MISSPELLINGS}


@pytest.mark.long
def test_pyright_finds_every_misspelling(folder: Path) -> None:
    """pyproject.toml makes pyright strict."""
    version = subprocess.run(
        [sys.executable, "-m", "pyright", "--version"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if version.returncode != 0 or not version.stdout.startswith("pyright "):
        pytest.skip("pyright does not run here: it needs Node.js")
    answer = json.loads(_run("pyright", "--pythonpath", sys.executable, "--outputjson", str(folder)))
    assert answer["summary"]["filesAnalyzed"] == len(MISSPELLINGS) + 1
    assert {Path(each["file"]).stem for each in answer["generalDiagnostics"]} == {*MISSPELLINGS}


@pytest.mark.parametrize("path", MISSPELT, ids=lambda path: path.stem)
def test_a_file_has_one_misspelling(path: Path) -> None:
    correct = CORRECT.read_text().splitlines()
    misspelt = path.read_text().splitlines()
    others = [(line, other) for line, other in zip(correct, misspelt, strict=True) if line != other]
    assert len(others) == 2, "the docstring and one line"
