"""The law of live operations: whatever changes an answer touches what the operation has read.

Random operations of the judge's random models are run with their reads recorded. After random writes, all are run again:
an operation whose answer is another one must have been touched. `python -m tests.resolvers.live_laws 100 --seed 5` says
how often operations are touched in vain.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Scan, pages
from keygraph_resolvers import OperationRequest, Service
from keygraph_resolvers.live.matching import OwnReads, ReadIndex
from tests.resolvers.judge.asked import Writer
from tests.resolvers.judge.asking import Court, Wrong, court

OPERATIONS, WRITES = 12, 12


class Change(NamedTuple):
    old: Item | None
    new: Item | None


@dataclass
class Counts:
    operations: int = 0
    writes: int = 0
    changed: int = 0
    """How often an answer has become another one."""
    touched: int = 0
    untouched: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        pairs = self.touched + self.untouched
        return (
            f"{self.operations} operations, {self.writes} writes, {pairs} pairs of both: {self.touched} touched, "
            f"of which {self.changed} have another answer; {len(self.missed)} missed"
        )


async def items_of(service: Service) -> dict[Any, Item]:
    store, found = service.store, {}
    async for page in pages(store, Scan(consistent=True)):
        found |= {store.table.key_of(item): item for item in page.items}
    return found


def changes_between(before: dict[Any, Item], after: dict[Any, Item]) -> Iterator[Change]:
    for key in before.keys() | after.keys():
        if before.get(key) != after.get(key):
            yield Change(before.get(key), after.get(key))


async def raw_write(service: Service, random: Random) -> None:
    """Deletes an item, or gives it an attribute that another one has, as another program might."""
    items = [*(await items_of(service)).values()]
    if not items:
        return
    table, item = service.store.table, random.choice(items)
    names = sorted({*random.choice(items)} - table.key_names)
    if not names or random.randrange(3) == 0:
        await service.store.send(BatchWrite(deletes=(table.key_of(item),)))
        return
    name, new = random.choice(names), dict(item)
    new.pop(name, None)
    sources = [each[name] for each in items if name in each and each is not item]
    if sources and random.randrange(4):
        new[name] = random.choice(sources)
    await service.store.send(BatchWrite(puts=(new,)))


async def judge(here: Court, seed: int, counts: Counts) -> None:
    """Lets one table's operations be touched by writes."""
    random, service, clerk = Random(f"{seed} live"), here.service, here.clerk()
    index: ReadIndex[int] = ReadIndex(service.store.table)
    texts: list[str] = []
    for _ in range(OPERATIONS):
        writer = Writer(here.names, here.known_cursors, here.known_ids, here.compared_names)
        texts.append(writer.selection(await here.operation()))
    reads: list[OwnReads[int]] = [index.of(number) for number in range(len(texts))]

    async def answer(number: int) -> Any:
        reads[number].forget()
        reads[number] = index.of(number)
        return await service.execute(OperationRequest(texts[number], reads=reads[number]))

    answers = [await answer(number) for number in range(len(texts))]
    counts.operations += len(texts)
    for _ in range(WRITES):
        before = await items_of(service)
        mutation = clerk.mutation({row.key: row for row in here.judge.rows}) if random.randrange(2) else None
        if mutation is not None:
            await service.execute(mutation.text)
        else:
            await raw_write(service, random)
        changes = [*changes_between(before, await items_of(service))]
        touched = {number for change in changes for number in index.touched(*change)}
        counts.writes += 1
        for number, earlier in enumerate(answers):
            if number not in touched:
                counts.untouched += 1
                later = await service.execute(OperationRequest(texts[number]))
            else:
                counts.touched += 1
                later = await answer(number)
            if without_ids(later) != without_ids(earlier):
                counts.changed += 1
                if number not in touched:
                    counts.missed.append(f"[{seed}] {texts[number]}\n{earlier}\n{later}\n{changes}")
            answers[number] = later


def without_ids(answer: Any) -> Any:
    """The answer without what is another text each time: the ids of unexpected errors."""
    match answer:
        case dict():
            return {key: without_ids(inner) for key, inner in answer.items() if key != "extensions"}
        case list():
            return [without_ids(inner) for inner in answer]
    return answer


async def run(tables: int, seed: int) -> Counts:
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(seed, seed + tables):
            async with court(turn, Path(folder)) as here:
                try:
                    await judge(here, turn, counts)
                except Wrong as wrong:  # what the judge itself looks for: no matter of what is touched
                    counts.wrong.append(f"[{turn}] {wrong}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = asyncio.run(run(given.tables, given.seed))
    sys.stdout.write("\n".join([*counts.missed[:5], *counts.wrong[:2], str(counts)]) + "\n")
    sys.exit(bool(counts.missed))


if __name__ == "__main__":
    main()
