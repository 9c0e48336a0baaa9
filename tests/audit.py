"""Looks for published vulnerabilities in what is pinned: `make audit`. What cannot be asked is skipped by name.

pip-audit and npm ask the advisory sources that they are configured for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LOCKS = ("server/playground", "tests/clients", "bench/compare/peers/apollo")
_SECONDS = 300


class Audit(NamedTuple):
    """What was found in one list of packages."""

    of: str
    vulnerabilities: list[str]
    skipped: str | None = None
    """Why nothing could be asked."""


def of_pip(output: str) -> Audit:
    found = _json(output)
    packages = found.get("dependencies", [])
    known = [each for each in packages if "vulns" in each]
    if not known:
        return Audit("constraints.txt", [], "no advisory source answers pip-audit")
    named = [(f"{each['name']} {each['version']}", vuln["id"]) for each in known for vuln in each["vulns"]]
    return Audit("constraints.txt", [f"{package}: {vuln}" for package, vuln in named])


def of_npm(folder: str, output: str) -> Audit:
    """What `npm audit` has answered for a lock file."""
    found = _json(output).get("vulnerabilities")
    if not isinstance(found, dict):
        return Audit(folder, [], "no advisory source answers npm")
    return Audit(folder, [f"{name}: {each['severity']}" for name, each in found.items()])


def _json(output: str) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _output(command: list[str], folder: Path) -> str:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def audits() -> list[Audit]:
    pip = [
        sys.executable,
        "-m",
        "pip_audit",
        "--requirement",
        "constraints.txt",
        "--no-deps",
        "--disable-pip",
    ]
    found = [of_pip(_output([*pip, "--progress-spinner", "off", "--format", "json"], ROOT))]
    npm = shutil.which("npm")
    for folder in LOCKS:
        if npm is None:
            found.append(Audit(folder, [], "npm is not installed"))
        else:
            output = _output([npm, "audit", "--package-lock-only", "--json"], ROOT / folder)
            found.append(of_npm(folder, output))
    return found


def main() -> int:
    """Says what was found; 1 if that is anything."""
    found = audits()
    for each in found:
        told = (
            f"skipped: {each.skipped}"
            if each.skipped
            else ", ".join(each.vulnerabilities) or "nothing is known"
        )
        sys.stdout.write(f"{each.of}: {told}\n")
    return int(any(each.vulnerabilities for each in found))


if __name__ == "__main__":
    sys.exit(main())
