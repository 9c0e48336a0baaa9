"""Jobs beside the writers of a history: repairs, backfills and summaries, of a table that needs them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.errors import StoreError
from keygraph.model.node_shards import is_shard
from keygraph.model.records import RecordType
from keygraph.resolve.derived import COUNTED
from keygraph.tables.backfill import Backfill
from keygraph.tables.repair import BACKFILLED, REPAIRS, Repairs
from tests.keygraph.damaging import items_of, with_wrong_key
from tests.keygraph.histories.declared import graph
from tests.keygraph.summarized import summarize
from tests.keygraph.verified_net import told
from tests.verified import verified

JOBS = ("repair", "backfill", "summarize")


def is_old(seed: str) -> bool:
    """Whether the table of a history is an old one. In others, jobs have nothing to do, and must do nothing."""
    return random.Random(f"{seed} is old").random() < 0.6


async def grow_old(store: Store, seed: str) -> None:
    """Makes the table one of an older model, with wrong keys and numbers, in which every record is as it was."""
    dice = random.Random(f"{seed} old")
    items = (await items_of(store)).values()
    await store.send(BatchWrite(tuple(_old(item, dice) for item in items if not is_shard(item))))


def _old(item: Item, dice: random.Random) -> Item:
    record = graph.recognise(item)
    assert record is not None
    for path, former in record.former.items():
        if path[0] in item and dice.random() < 0.5:
            item = {former[0] if name == path[0] else name: value for name, value in item.items()}
    if item.get("mood") == "good" and dice.random() < 0.3:
        item = {name: value for name, value in item.items() if name != "mood"}  # its default
    for name in [*_numbers(record, item, dice)]:
        is_number = isinstance(item[name], Decimal)
        item = {**item, name: Decimal(50)} if is_number and dice.random() < 0.5 else _without(item, name)
    names = sorted(item.keys() & record.key_attributes - record.table_keys.names)
    if names and dice.random() < 0.3:
        made = with_wrong_key(graph, record, dice, item, dice.choice(names))
        item = item if made is None else made[1]
    has_copy = any(each.field.follows for each in graph.copies.get(record.name, ()))
    return {**item, "town": "Rome"} if has_copy and dice.random() < 0.3 else item


def _numbers(record: RecordType, item: Item, dice: random.Random) -> Iterator[str]:
    for each in record.fields.values():
        if each.kept in COUNTED and each.kept_attribute[0] in item and dice.random() < 0.2:
            yield each.kept_attribute[0]


def _without(item: Item, left_out: str) -> Item:
    return {name: value for name, value in item.items() if name != left_out}


# --- Jobs -----------------------------------------------------------------------------------------------


async def do(job: str, store: Store, folder: Path, *, resume: bool = False) -> list[str]:
    """Does a job. Returns what a repair or a backfill has left, or repaired. Raises StoreError."""
    if job == "summarize":
        await summarize(graph, store, folder, resume=resume, at=datetime.now(UTC))
        return []
    if job == "repair":
        repairs = Repairs(graph, store, REPAIRS, lambda *_: None)
    else:
        repairs = Repairs(graph, store, BACKFILLED, lambda *_: None, backfill=Backfill())
    report = await verified(graph, store, segments=2, repairs=repairs)
    return [*told(report), *(kind.what for kind in report.repaired)]


async def do_until(
    done: asyncio.Event, store: Store, folder: Path, seed: str, ended: set[str] | None = None
) -> None:
    """Does all jobs at the same time, each again and again until the writers are done. What fails is done again.

    `ended` gets the names of those that have read the whole table and found nothing: what is wrong then, they or writers
    did. A first one need not find what is moved meanwhile.
    """

    async def works(job: str) -> None:
        dice = random.Random(f"{seed} {job}")
        while True:
            with suppress(StoreError):
                # Some summaries go on with what an earlier one has left.
                left = await do(job, store, folder, resume=dice.random() < 0.5)
                if ended is not None and not left:
                    ended.add(job)
            if done.is_set():
                return

    await asyncio.gather(*map(works, JOBS))


async def finish(store: Store, folder: Path) -> list[str]:
    """Does all jobs once nobody writes any more. Returns what they have left."""
    for job in ("repair", "backfill"):
        await do(job, store, folder)
    left = [line for job in ("repair", "backfill") for line in await do(job, store, folder)]
    await summarize(graph, store, folder, at=datetime.now(UTC) + timedelta(hours=1))  # later than all others
    return left
