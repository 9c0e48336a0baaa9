"""Clients from npm, and a server for them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.processes import Process

HERE = Path(__file__).parent
INSTALLED = HERE / "node_modules/.installed"
SECONDS = 240
"""How long npm may take. Everything after it takes seconds."""

Node = Callable[..., str]
Serve = Callable[..., Process]


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
    return HERE / "node_modules"


def _install() -> None:
    words = ("npm", "ci", "--ignore-scripts", "--silent", "--no-audit", "--no-fund", "--fetch-retries=1")
    try:
        done = subprocess.run(
            words,
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not finish within {SECONDS} seconds")
    if done.returncode:
        pytest.skip(f"npm failed: {(done.stderr.strip() or str(done.returncode)).splitlines()[0]}")


@pytest.fixture(scope="session")
def node(packages: Path) -> Node:
    """Runs a script of this folder with arguments, and returns what it prints."""

    def run(script: str, *arguments: str, folder: Path = HERE) -> str:
        done = subprocess.run(
            ["node", str(HERE / script), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers of the commerce example with settings; they end with the module."""
    with serving(tmp_path_factory.mktemp("served")) as start:
        yield start


@contextmanager
def serving(folder: Path) -> Iterator[Serve]:
    started: list[Process] = []

    def start(**settings: str) -> Process:
        started.append(Process(folder, "serve", "--port", "0", **settings))
        return started[-1]

    yield start
    for process in started:
        if process.process.poll() is None:
            os.killpg(process.process.pid, signal.SIGKILL)
        process.ended()
