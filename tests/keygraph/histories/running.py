"""Runs one history on an engine: behind faults, or with processes that are killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from unittest.mock import patch

from keygraph.dynamo.store import CreateTable, DeleteTable, Store
from keygraph.engines.open import open_store
from keygraph.writing.sending import sender
from tests.keygraph.faulty import FaultyProxy
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.history import Event, begin, problems, run, run_between, unexplained
from tests.keygraph.histories.killed import events_of_killed
from tests.keygraph.histories.table import contents, mistakes


class Faults(Enum):
    """What happens to three of ten requests on their way to a server."""

    NONE = ()
    THROTTLED = ("throttled",)
    NOT_DONE = ("throttled", "conflict", "cut before", "failed", "unavailable")
    LOST = ("cut after", "half", "garbled")
    """They are done, and their answer is lost. moto does them again when they are sent again."""
    ALL = (*NOT_DONE, *LOST)


@asynccontextmanager
async def _table(url: str) -> AsyncIterator[Store]:
    """An empty table of the histories; behind a server's address it goes with the block."""
    async with open_store(url, graph.table) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        yield store
        if not url.startswith("sqlite:"):
            await store.send(DeleteTable())


async def with_faults(
    server: str | None,
    folder: Path,
    seed: str,
    faults: Faults,
    writers: int,
    each: int,
    *,
    one_by_one: bool = False,
) -> tuple[list[Event], list[str]]:
    """A history on the server, or on the embedded engine in the folder, and what is wrong with what it leaves."""
    async with _table(server or f"sqlite:{folder / 'held.db'}") as store:
        before = await begin(store)
        if server is None:
            events = await run(store, seed, writers, each)
        else:
            failing = 0.3 if faults.value else 0
            proxy = FaultyProxy(server, seed, failing, faults.value, one_by_one=one_by_one)
            # Who waits for all others must not ask again meanwhile: both requests would be done.
            deadline = 60.0 if one_by_one else 10.0
            async with proxy.running() as url, open_store(url, graph.table, deadline=deadline) as through:
                events = await run(through, seed, writers, each)
        return events, await problems(store, before, events)


async def after_kills(
    server: str | None, folder: Path, seed: str, kills: int, each: int
) -> tuple[list[Event], list[str]]:
    """A history of processes that are killed."""
    url = server or f"sqlite:{folder / 'held.db'}"
    async with _table(url) as store:
        before = await begin(store)
        events = await asyncio.to_thread(events_of_killed, url, folder, seed, kills, each)
        return events, await problems(store, before, events)


async def in_between(
    server: str | None, folder: Path, seed: str, transactions: int
) -> tuple[list[Event], list[str]]:
    """So many histories, one after the other, of a transaction between whose requests others are carried out."""
    events, found = list[Event](), list[str]()
    async with _table(server or f"sqlite:{folder / 'held.db'}") as store:
        left = await begin(store)
        # Whoever waits for the mark of one who waits for them need not wait long.
        with patch.object(sender, "_PAUSE", 0.0):
            for number in range(transactions):
                before, own = left, await run_between(store, f"{seed}-{number}")
                left = await contents(store)
                events += own
                found += [*unexplained(before, left, own)]
        return events, [*found, *await mistakes(store)]
