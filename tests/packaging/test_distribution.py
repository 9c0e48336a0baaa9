"""The wheel and the source distribution: their contents, their metadata, and what they need."""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

from tests.packaging.conftest import ROOT, run

PACKAGES = {"keygraph", "keygraph_examples", "keygraph_resolvers", "keygraph_server"}
PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
INSIDES = {"aioboto3", "httptools", "strawberry-graphql", "typer", "uvicorn"}
"""The libraries of which undocumented names are used."""


def wheel(built: Path) -> zipfile.ZipFile:
    [file] = built.glob("*.whl")
    return zipfile.ZipFile(file)


def source(name: str) -> set[str]:
    """The files of a package in the source, as they are named in a wheel."""
    room = ROOT / name.removeprefix("keygraph_") / name
    folder = room if room.is_dir() else ROOT / name
    return {
        file.relative_to(folder.parent).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_it_is_accepted_by_a_package_index(built: Path) -> None:
    done = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    assert done.returncode == 0, done.stdout


def test_the_wheel_has_the_packages_and_nothing_else(built: Path) -> None:
    found = {name for name in wheel(built).namelist() if ".dist-info/" not in name}
    assert found == set().union(*map(source, PACKAGES))
    assert {f"{name}/py.typed" for name in PACKAGES} <= found


def test_the_source_distribution_can_be_built_again(built: Path) -> None:
    [file] = built.glob("*.tar.gz")
    with tarfile.open(file) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "constraints.txt", "PKG-INFO"} <= names
    assert {name for name in names if name.split("/")[0] in {"bench", "docs", "tests"}} == set()


def test_the_metadata_is_complete(built: Path) -> None:
    files = wheel(built)
    [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
    found = message_from_bytes(files.read(name))
    assert (found["Name"], found["Version"]) == ("keygraph", PROJECT["version"])
    assert found["Description-Content-Type"] == "text/markdown"
    assert "# Keygraph" in str(found.get_payload())
    assert found["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in (found.get_all("Classifier") or [])
    assert found["Summary"] == PROJECT["description"]
    # Nothing names a license that nobody has granted.
    has_license = any(ROOT.glob("LICENSE*"))
    named = [name for name in found.get_all("Classifier") or [] if name.startswith("License ::")]
    named += [found[name] for name in ("License", "License-Expression", "License-File") if found[name]]
    assert bool(named) == has_license


def test_each_dependency_says_what_it_is_for() -> None:
    [listed] = re.findall(r"^dependencies = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert [line for line in listed.splitlines() if '", ' not in line or "# " not in line] == []
    extras = PROJECT["optional-dependencies"]
    bounded = {
        re.split(r"[><=;\[]", each)[0]
        for each in [*PROJECT["dependencies"], *extras["aws"], *extras["fast"]]
        if "<" in each
    }
    assert bounded >= INSIDES
