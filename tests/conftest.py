"""What tests of every package share: moto's server, and stores on each engine."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from moto.server import ThreadedMotoServer

from keygraph.engines import open_store
from keygraph.store import CreateTable, DeleteTable, Store
from keygraph.table import Table

ENGINES = ("sqlite", "moto")

MakeStore: TypeAlias = Callable[[Table], Awaitable[Store]]
"""Gives an open store with a new, empty table. What was made last under a name is the one that is there."""


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """The URL of a moto server in this process; every process of a parallel run has its own."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine a test runs on: each in turn."""
    return str(request.param)


@pytest.fixture(autouse=True)
def no_settings_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps the credentials and settings of whoever runs the tests out of them."""
    for name in (
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
async def make_store(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    """Makes stores on the engine; their tables, and what else they hold, go when the test ends.

    The table keeps its declared name: a file of its own for each on SQLite, one test at a time on moto.
    """
    numbers = itertools.count()
    async with AsyncExitStack() as stores:

        async def make(table: Table) -> Store:
            sqlite = f"sqlite:{tmp_path / f'{next(numbers)}.db'}"
            url = sqlite if engine == "sqlite" else str(request.getfixturevalue("moto_endpoint"))
            store = await stores.enter_async_context(open_store(url, table))
            await store.send(DeleteTable())
            await store.send(CreateTable())
            if engine == "moto":
                stores.push_async_callback(store.send, DeleteTable())
            return store

        yield make
