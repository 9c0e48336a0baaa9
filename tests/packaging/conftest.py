"""The distribution: built from a copy of the source, and installed into a venv of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = (
    *("keygraph", "resolvers", "server", "examples"),
    *("pyproject.toml", "README.md", "CHANGELOG.md", "constraints.txt", "MANIFEST.in"),
)
SECONDS = 300
"""How long an installation may take."""


def run(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a command does, without the paths and settings of this process."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("KEYGRAPH_", "PYTHON"))
    }
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                copy / name,
                ignore=shutil.ignore_patterns("__pycache__", "node_modules", "*.egg-info"),
            )
        else:
            shutil.copy(ROOT / name, copy / name)
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", made, copy)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="session")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a venv that has the wheel and what it needs, and nothing else. Skips if no package index answers."""
    venv = tmp_path_factory.mktemp("venv")
    assert run(sys.executable, "-m", "venv", venv).returncode == 0
    [wheel] = built.glob("*.whl")
    words = (
        "-m",
        "pip",
        "install",
        "--quiet",
        "--retries=1",
        "--constraint",
        ROOT / "constraints.txt",
        wheel,
    )
    done = run(venv / "bin/python", *words)
    if done.returncode and "connection" in done.stderr.lower():
        pytest.skip("the package index does not answer")
    assert done.returncode == 0, done.stderr
    return venv / "bin"
