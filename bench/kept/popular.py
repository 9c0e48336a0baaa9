"""What it takes to add to one node with many writers at once, with and without shards: `python -m bench.kept.popular [WRITERS]`.

Each writer creates twenty reviews of one product, one after the other, in a table on SQLite. SQLite writes one transaction after
the other, and DynamoDB cancels those that are about an item of one that is under way. So a store in between holds the items
of each transaction for ten milliseconds, and cancels other transactions about them as DynamoDB does.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

from keygraph import ID, Graph, Many, Table, counts, node, record
from keygraph.dynamo.actions import key_of
from keygraph.dynamo.store import Answer, CreateTable, Request, Store, Transaction
from keygraph.dynamo.table import Key
from keygraph.engines.open import open_store
from keygraph.errors import Reason, TransactionCanceled, WriteRefused
from keygraph.writing.requests import Create
from keygraph.writing.sending.writer import write

WRITERS, EACH, SECONDS = 32, 20, 0.01


def graph_with(shards: int) -> Graph:
    @node("PRODUCT#{sku}")
    class Product:
        sku: ID

        reviews: Many[Review]
        reviews_count: int = counts("reviews", shards=shards)

    @record("{product}", "REVIEW#{review_id}")
    class Review:
        product: Product
        review_id: ID

    return Graph(Table("Products", partition_key="PK", sort_key="SK"), Product, Review, writes=True).check()


@dataclass(eq=False)
class ConflictingStore:
    """A store in which transactions about one item at the same time are in conflict."""

    store: Store
    sent: Counter[str] = field(default_factory=Counter)
    _held: set[Key] = field(default_factory=set)

    @property
    def table(self) -> Table:
        return self.store.table

    async def close(self) -> None:
        await self.store.close()

    async def send(self, request: Request[Answer], /) -> Answer:
        self.sent[type(request).__name__] += 1
        actions = request.actions if isinstance(request, Transaction) else ()
        keys = [key_of(action, self.table) for action in actions]
        if not self._held.isdisjoint(keys):
            self.sent["conflicts"] += 1
            await asyncio.sleep(SECONDS / 2)
            raise TransactionCanceled(
                [Reason("TransactionConflict", None) if key in self._held else None for key in keys]
            )
        self._held.update(keys)
        try:
            await asyncio.sleep(SECONDS if keys else 0)
            return await self.store.send(request)
        finally:
            self._held.difference_update(keys)


async def measured(url: str, shards: int, writers: int) -> str:
    graph = graph_with(shards)
    product, review = graph.types.values()
    async with open_store(url, graph.table) as store:
        await store.send(CreateTable())
        await write(graph, store, [Create(product, {"sku": "1"})])
        held, refused = ConflictingStore(store), 0

        async def writes(number: int) -> None:
            nonlocal refused
            for turn in range(EACH):
                values = {"product": ("1",), "review_id": f"{number}-{turn}"}
                try:
                    await write(graph, held, [Create(review, values)])
                except WriteRefused:
                    refused += 1

        start = time.perf_counter()
        await asyncio.gather(*map(writes, range(writers)))
        seconds = time.perf_counter() - start
    done = writers * EACH - refused
    return (
        f"{shards or 'no'} shards: {done} of {writers * EACH} reviews written, {refused} refused, "
        f"{held.sent['conflicts']:,} conflicts of {held.sent['Transaction']:,} transactions, "
        f"{seconds:.1f} s, {done / seconds:.0f} a second"
    )


async def main(writers: int) -> None:
    for shards in (0, 10, 50):
        with tempfile.TemporaryDirectory() as folder:
            print(await measured(f"sqlite:{folder}/table.db", shards, writers))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else WRITERS))
