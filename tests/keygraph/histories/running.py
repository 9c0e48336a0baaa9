"""Runs one history on an engine: behind faults, or with processes that are killed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from unittest.mock import patch

from keygraph.dynamo.store import CreateTable, DeleteTable, Store
from keygraph.dynamo.streams import EnableStream
from keygraph.dynamo.table import Table
from keygraph.engines.open import open_store
from keygraph.writing.sending import sender
from tests.keygraph import streamed
from tests.keygraph.faulty import FaultyProxy
from tests.keygraph.histories import following
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.derived import wrong_values
from tests.keygraph.histories.history import Beside, Event, begin, problems, run, run_between, unexplained
from tests.keygraph.histories.jobs import JOBS, do, do_until, finish, grow_old, is_old
from tests.keygraph.histories.killed import events_of_killed
from tests.keygraph.histories.plain import State
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
async def _table(url: str, table: Table = graph.table) -> AsyncIterator[Store]:
    """An empty table; behind a server's address it goes with the block."""
    async with open_store(url, table) as store:
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
    jobs: bool = False,
) -> tuple[list[Event], list[str]]:
    """A history on the server, or on the embedded engine in the folder, and what is wrong with what it leaves. With
    `jobs`, the table may be old and jobs run at the same time."""
    async with _table(server or f"sqlite:{folder / 'held.db'}") as store:
        before = await _begun(store, seed, jobs=jobs)

        ended = set[str]()

        def beside(through: Store) -> Beside | None:
            return partial(do_until, store=through, folder=folder, seed=seed, ended=ended) if jobs else None

        if server is None:
            events = await run(store, seed, writers, each, beside(store))
        else:
            failing = 0.3 if faults.value else 0
            proxy = FaultyProxy(server, seed, failing, faults.value, one_by_one=one_by_one)
            # Who waits for all others must not ask again meanwhile: both requests would be done.
            deadline = 60.0 if one_by_one else 10.0
            async with proxy.running() as url, open_store(url, graph.table, deadline=deadline) as through:
                events = await run(through, seed, writers, each, beside(through))
        is_right = not is_old(seed) or {"repair", "backfill"} <= ended
        return events, await _ended(store, before, events, folder if jobs else None, is_right=is_right)


async def after_kills(
    server: str | None, folder: Path, seed: str, kills: int, each: int, *, jobs: bool = False
) -> tuple[list[Event], list[str]]:
    """A history of processes that are killed, with `jobs` also in the middle of jobs."""
    url = server or f"sqlite:{folder / 'held.db'}"
    async with _table(url) as store:
        before = await _begun(store, seed, jobs=jobs)
        killed = partial(events_of_killed, url, folder, seed, kills, each, jobs=jobs)
        events = await asyncio.to_thread(killed)
        ended = _ended(store, before, events, folder if jobs else None, is_right=not is_old(seed))
        return events, await ended


async def _begun(store: Store, seed: str, *, jobs: bool) -> State:
    before = await begin(store)
    if jobs and is_old(seed):
        await grow_old(store, seed)
    return before


async def _ended(
    store: Store, before: State, events: list[Event], folder: Path | None, *, is_right: bool
) -> list[str]:
    """What is wrong. With a folder, jobs did something meanwhile, and finish it. `is_right`: what is wrong before that, they
    or the writers did."""
    found = list[str]()
    if folder is not None:
        if is_right:
            found += await mistakes(store)
            found += await wrong_values(store, await contents(store), by_job=False)
        found += await finish(store, folder)
    return [*found, *await problems(store, before, events, by_job=folder is not None)]


async def in_between(
    server: str | None, folder: Path, seed: str, transactions: int, *, jobs: bool = False
) -> tuple[list[Event], list[str]]:
    """So many histories, one after the other, of a transaction between whose requests others are carried out; with
    `jobs`, of a job on an old table."""
    events, found = list[Event](), list[str]()
    async with _table(server or f"sqlite:{folder / 'held.db'}") as store:
        left = await begin(store)
        # Whoever waits for the mark of one who waits for them need not wait long.
        with patch.object(sender, "_PAUSE", 0.0):
            for number in range(transactions):
                seed_of_one, job = f"{seed}-{number}", None
                if jobs:
                    await grow_old(store, seed_of_one)
                    job = partial(do, JOBS[number % len(JOBS)], folder=folder)
                before, own = left, await run_between(store, seed_of_one, job)
                left = await contents(store)
                events += own
                found += [*unexplained(before, left, own)]
        found += await finish(store, folder) if jobs else []
        return events, [*found, *await mistakes(store), *await wrong_values(store, left, by_job=jobs)]


async def while_followed(
    server: str | None, folder: Path, seed: str, kills: int, faults: Faults = Faults.NONE
) -> tuple[Counter[str], list[str]]:
    """What happens to a table that workers follow who are killed, and what is wrong with what it leaves."""
    async with _table(server or f"sqlite:{folder / 'followed.db'}", streamed.graph.table) as store:
        await store.send(EnableStream())
        if server is None:
            split = streamed.Resharded(store)
            return await following.history(split, split, seed, kills)
        proxy = FaultyProxy(server, seed, 0.3 if faults.value else 0, faults.value)
        async with proxy.running() as url, open_store(url, streamed.graph.table) as through:
            return await following.history(store, through, seed, kills)
