"""What tests of the server share: no settings but their own, and folders with models."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keygraph_server.settings import Settings, environment_name
from tests.server.tables import FILE


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(environment_name(name), raising=False)


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Takes away what a test has set up for the log, which writes into a file that is closed afterwards."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory. Modules that are loaded from it are forgotten when the test ends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # A module that is written again in the same second, as long as before, would be the kept one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget_models(tmp_path)


@pytest.fixture
def address(engine: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Where a command finds its table, on each engine: in a file of an empty folder, or at a server."""
    return FILE if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))


def forget_models(folder: Path) -> None:
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        paths = [file] if file else list(getattr(module, "__path__", ()))
        if any(path.startswith(f"{folder}/") for path in paths):
            del sys.modules[name]
