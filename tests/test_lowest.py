"""`constraints-lowest.txt`, which `make lowest` installs, has the lowest versions that `pyproject.toml` allows."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def test_the_lowest_versions_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [
        *project["dependencies"],
        *(each for name in ("aws", "fast", "tracing", "valkey") for each in extras[name]),
    ]
    lowest = {}
    for each in map(Requirement, requirements):
        [bound] = [part.version for part in each.specifier if part.operator == ">="]
        lowest[each.name.replace("_", "-")] = Version(bound)
    lines = (ROOT / "constraints-lowest.txt").read_text("utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    pinned = {each.name.lower().replace("_", "-"): Version(str(each.specifier)[2:]) for each in pins}
    assert {name: pinned[name] for name in lowest} == lowest
