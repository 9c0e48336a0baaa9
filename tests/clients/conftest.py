"""Clients from npm, and servers for them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keygraph_server.models import load_model, printed
from tests.end_to_end.processes import Process, started_processes

HERE = Path(__file__).parent
INSTALLED = HERE / "node_modules/.installed"
SECONDS = 300
"""How long npm may take. Everything after it takes seconds."""

Serve = Callable[..., Process]


def run(folder: Path, *words: str | Path, seconds: int = 100) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of the pinned packages, installed if they are not yet. Skips if npm is not there or fails."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm or node was not found")
    lockfile = HERE / "package-lock.json"
    with (HERE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not INSTALLED.is_file() or INSTALLED.read_bytes() != lockfile.read_bytes():
            _install()
            shutil.copyfile(lockfile, INSTALLED)
    return INSTALLED.parent


def _install() -> None:
    words = ("npm", "ci", "--ignore-scripts", "--silent", "--no-audit", "--no-fund", "--fetch-retries=1")
    try:
        run(HERE, *words, seconds=SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not finish within {SECONDS} seconds")
    except AssertionError as error:
        pytest.skip(f"npm failed: {(str(error).splitlines() or ['it says nothing'])[0]}")


@pytest.fixture
def application(packages: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies an application of this folder, with its packages and the server's schema."""

    def copied(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(HERE / name, folder)
        (folder / "node_modules").symlink_to(packages)
        (folder / "schema.graphql").write_text(
            printed(load_model("keygraph_examples.commerce").schema), "utf-8"
        )
        return folder

    return copied


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers of the commerce example with settings; they end with the module."""
    with started_processes() as started:

        def start(**settings: str) -> Process:
            folder = tmp_path_factory.mktemp("served")
            started.append(Process(folder, "serve", "--port", "0", **settings))
            return started[-1]

        yield start
