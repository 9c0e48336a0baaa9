"""What the tests of the job share: a run of it, stopped at any point and resumed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keygraph import Graph
from keygraph.dynamo.actions import SetTo, UpdateItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Request, Store, Write
from keygraph.summaries.exports import Exports
from keygraph.summaries.local import LocalJob, WorkFile, scanned
from keygraph.summaries.work import Summaries
from keygraph.summaries.writing import SummaryWriter, WriteOptions
from keygraph.tables.bulk import whole_table
from keygraph.tables.findings import FindingKind
from keygraph.tables.repair import ItemChange
from tests.tracing import HeldStore

AT = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
AS_OF = "2020-01-02T03:04:05Z"


class Stopped(Exception):
    """The job was killed."""


async def summarize(
    graph: Graph,
    store: Store,
    folder: Path,
    *,
    resume: bool = False,
    at: datetime = AT,
    folder_of_exports: Path | None = None,
    listen: Callable[[FindingKind, list[ItemChange]], None] = lambda kind, items: None,
    read: Callable[[int], None] = lambda items: None,
    **options: Any,
) -> Counter[str]:
    """Does the whole job. Returns what became of how many items."""
    work = graph.made(Summaries)
    file = WorkFile(folder / "work.db", [], resume=resume)
    try:
        exports = None if folder_of_exports is None else Exports(folder_of_exports, graph.table.name)
        job = LocalJob(work, file, at if exports is None else exports.as_of)
        scan = scanned(work, store, job.at, 3)
        await job.read(scan if exports is None else exports.parts(work, job.at), read)
        await job.combine()
        writer = SummaryWriter(graph, store, job.as_of, WriteOptions(**options), listen)
        await job.write(writer, lambda results: None)
    finally:
        file.close()
    return Counter(dict(writer.counted))


def killed_after(store: Store, requests: int) -> HeldStore:
    """A store with which the job is killed when it sends one more request than these."""
    left = iter(range(requests))

    async def before(request: Request[Any]) -> None:
        if next(left, None) is None:
            raise Stopped

    return HeldStore(store, before)


def before_first(store: Store, kind: type[Request[Any]], act: Callable[[], Awaitable[object]]) -> HeldStore:
    """A store that calls a function before the first request of a kind; others wait until it is done."""
    is_first, done = iter((True,)), asyncio.Event()

    async def before(request: Request[Any]) -> None:
        if not isinstance(request, kind):
            return
        if next(is_first, False):
            await act()
            done.set()
        await done.wait()

    return HeldStore(store, before)


async def contents(store: Store) -> list[Item]:
    """Every item of the table, sorted by key."""
    items = [item async for item in whole_table(store)]
    return sorted(items, key=lambda item: [str(value) for value in store.table.key_of(item)])


async def change(store: Store, key: tuple[str, ...], **values: Any) -> None:
    """Changes an item as nobody but another program does."""
    changes = tuple(SetTo((name,), value) for name, value in values.items())
    await store.send(Write(UpdateItem(key, changes)))
