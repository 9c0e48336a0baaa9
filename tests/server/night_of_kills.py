"""The review counts of a shop, kept by the stream, while everything is killed: `python -m tests.server.night_of_kills 60`.

Two workers of `keygraph follow` and a program that writes to the SQLite file are killed at random and replaced, while this
process sends mutations. Afterwards, each product has the count of its reviews.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from keygraph import open_store
from keygraph.changes.totals import StreamTotals
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.dynamo.streams import EnableStream
from keygraph_resolvers import Service, build_schema
from tests.resolvers.worlds import SECRET, shop_items
from tests.server.streamed_shop import graph  # type: ignore[attr-defined]  # it is made when it is imported

MODEL = "tests.server.streamed_shop:graph"
ROOT = Path(__file__).parents[2]
PRODUCTS = [f"NIGHT{number}" for number in range(4)]
REVIEWS = [f"REV{number:03d}" for number in range(12)]
MADE = "2024-02-20T17:00:00Z"
CATCHES_UP = 90.0
LEAST_KILLS = 4


def of_product(name: str) -> Item:
    [first, *_] = (each for each in shop_items() if each.get("Type") == "Product")
    key = f"PRODUCT#{name}"
    return {**first, "PK": key, "SK": key, "productId": name}


def of_review(product: str, review: str) -> Item:
    keys = {"PK": f"PRODUCT#{product}", "SK": f"REVIEW#{review}"}
    indexed = {"GSI1PK": keys["SK"], "GSI1SK": keys["PK"]}
    return {
        **keys,
        **indexed,
        "Type": "ProductReview",
        "productId": product,
        "reviewId": review,
        "CreatedAt": MADE,
    }


async def write(store_address: str) -> None:
    """Writes and deletes reviews, and now and then a product, until it is killed."""
    chosen = random.Random()
    async with open_store(store_address, graph.table) as store:
        sys.stderr.write("writing\n")
        while True:
            reviews = [of_review(chosen.choice(PRODUCTS), chosen.choice(REVIEWS)) for _ in range(4)]
            several = {(str(each["PK"]), str(each["SK"])): each for each in reviews}
            product = of_product(chosen.choice(PRODUCTS))
            match chosen.randrange(12):
                case 0:
                    await store.send(BatchWrite(deletes=((str(product["PK"]), str(product["SK"])),)))
                    await store.send(BatchWrite(puts=(product,)))
                case 1 | 2 | 3 | 4:
                    await store.send(BatchWrite(deletes=tuple(several)))
                case _:
                    await store.send(BatchWrite(puts=tuple(several.values())))
            # SQLite's lock is not fair: without pauses, others would hardly get it.
            await asyncio.sleep(0.1 + chosen.random() * 0.1)


class Night:
    """The processes of a night: each is killed at random as soon as it does something, and replaced."""

    def __init__(self, store_address: str, seed: int) -> None:
        self.store_address, self.random = store_address, random.Random(seed)
        self.kills = 0
        self.is_over = False

    async def follow(self) -> None:
        main = "from keygraph_server.cli import main; main()"
        options = ("--store", self.store_address, "--lease", "1", "--poll", "0.05")
        await self._replace("Following the table", "-c", main, "follow", "--model", MODEL, *options)

    async def write(self) -> None:
        await self._replace("writing", "-m", "tests.server.night_of_kills", "--write", self.store_address)

    async def _replace(self, sign: str, *words: str) -> None:
        """Starts a process again and again, until the night is over; then the last one goes on until this is canceled."""
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *words, cwd=ROOT, stderr=asyncio.subprocess.PIPE
            )
            assert process.stderr is not None
            try:
                while sign not in (line := (await process.stderr.readline()).decode()):
                    assert line, f"{words} ended"
                await asyncio.sleep(1.5 * self.random.random())
                if self.is_over:
                    await process.stderr.read()
            finally:
                process.kill()
                await process.communicate()
            self.kills += 1


async def differing(service: Service) -> dict[str, tuple[int | None, int]]:
    """The counts that are wrong, with what they should be."""
    found = {}
    for name in PRODUCTS:
        query = f'{{ product(productId: "{name}") {{ reviewCount reviews {{ totalCount }} }} }}'
        answer = await service.execute(query)
        assert "errors" not in answer, answer
        product = answer["data"]["product"]
        if product is not None and product["reviewCount"] != product["reviews"]["totalCount"]:
            found[name] = (product["reviewCount"], product["reviews"]["totalCount"])
    return found


async def night(folder: Path, seconds: float, seed: int) -> tuple[int, int]:
    """Returns how many processes were killed, and how many mutations succeeded. Raises AssertionError if a count is wrong,
    TimeoutError if it stays so."""
    address = f"sqlite:{folder / 'shop.sqlite'}"
    async with open_store(address, graph.table) as store:
        await store.send(CreateTable())
        await store.send(EnableStream())
        await store.send(BatchWrite(puts=(*shop_items(), *(of_product(each) for each in PRODUCTS))))
        service = Service(build_schema(graph), store, secret=SECRET)
        over = Night(address, seed)
        followers = [asyncio.create_task(over.follow()) for _ in range(2)]
        writers = [asyncio.create_task(over.write())]
        mutations, ends = 0, time.monotonic() + seconds
        try:
            # On a busy machine, it takes seconds to start a process.
            while time.monotonic() < ends or over.kills < LEAST_KILLS:
                for task in (*followers, *writers):
                    if task.done():
                        task.result()
                product, review = over.random.choice(PRODUCTS), over.random.choice(["REV002", "REV003"])
                ends_ = f'productId: "{product}", reviewId: "{review}"'
                document = over.random.choice(
                    [
                        f'mutation {{ putProductReview(input: {{{ends_}, createdAt: "{MADE}"}}) {{ created }} }}',
                        f"mutation {{ deleteProductReview(input: {{{ends_}}}) {{ deletedId }} }}",
                    ]
                )
                mutations += "errors" not in await service.execute(document)
                await asyncio.sleep(0.01)
            over.is_over = True
            await _canceled(writers)
            async with asyncio.timeout(CATCHES_UP):
                while await differing(service):  # noqa: ASYNC110  # other processes count
                    await asyncio.sleep(0.05)
            for name in PRODUCTS:
                wrong = await StreamTotals(graph, store).wrong((graph.types["Product"], (name,)), fixes=False)
                assert wrong == {}, wrong
        finally:
            await _canceled((*writers, *followers))
    return over.kills, mutations


async def _canceled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--write"]:
        asyncio.run(write(words[1]))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        kills, mutations = asyncio.run(night(Path(folder), given.seconds, given.seed))
    sys.stdout.write(f"{kills} processes killed, {mutations:,} mutations: every count is right\n")


if __name__ == "__main__":
    main(sys.argv[1:])
