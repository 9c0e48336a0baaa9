"""Where pages and ranges end: with a megabyte, with the last item, and nowhere behind it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    AtLeast,
    AtMost,
    BatchGet,
    BatchWrite,
    Cost,
    Count,
    Equals,
    Page,
    Query,
    Range,
    Scan,
    Store,
    Within,
    pages,
)
from keygraph.dynamo.table import Table
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.limits import (
    KB,
    TABLE,
    sized,
)

# --- Pages of 1 MB ------------------------------------------------------------------------------------


def many(count: int, size: int) -> tuple[Item, ...]:
    """So many items of one partition, each of that size."""
    return tuple(
        sized(size, SK=f"{number:04}", kind="k", mark=Decimal(100 + number)) for number in range(count)
    )


@on_exact_engines
@pytest.mark.parametrize(
    ("count", "size", "on_pages"),
    [
        (4, 256 * KB - 1, [4]),
        (5, 256 * KB, [4, 1]),
        (6, 256 * KB - 1, [5, 1]),
        (6, 256 * KB + 1, [4, 2]),
        (4, 400 * KB, [3, 1]),
        (1060, 1000, [1049, 11]),
        (12, 100_000, [11, 1]),
    ],
)
async def test_a_page_ends_with_the_item_that_fills_a_megabyte(
    make_store: MakeStore, count: int, size: int, on_pages: list[int]
) -> None:
    store = await make_store(TABLE)
    items = many(count, size)
    # Two at a time: aiohttp warns of bodies of more than 1 MB.
    for at in range(0, count, 2):
        await store.send(BatchWrite(puts=items[at : at + 2]))
    units = [max(1, -(-number * size // (4 * KB))) for number in on_pages]

    async def read(request: Query | Scan) -> list[Page]:
        return [page async for page in pages(store, request)]

    for found in (
        await read(Query("p")),
        await read(Query("k", index="by-kind")),
        await read(Scan()),
        await read(Query("p", projection=(("PK",),))),
        # The last item of the range is not asked to be gone on from.
        await read(Query("p", range=Within("0000", f"{count - 1:04}"))),
    ):
        assert [page.scanned for page in found] == on_pages
        assert [page.cost.read_units for page in found] == [unit / 2 for unit in units]
    assert [item for page in await read(Query("p")) for item in page.items] == list(items)
    backward = await read(Query("p", forward=False, consistent=True))
    assert [page.cost.read_units for page in backward] == units
    assert [item for page in backward for item in page.items] == list(items)[::-1]
    counted = await store.send(Count("p"))
    assert (counted.count, counted.last is None) == (on_pages[0], len(on_pages) == 1)


@on_exact_engines
async def test_a_batch_finds_16_megabytes_at_once(make_store: MakeStore) -> None:
    store = await make_store(TABLE)
    items = tuple(sized(400 * KB, SK=f"{number:02}") for number in range(41))
    for at in range(0, len(items), 2):
        await store.send(BatchWrite(puts=items[at : at + 2]))
    for count, requests in ((40, 1), (41, 2)):
        batch = await store.send(BatchGet(tuple(TABLE.key_of(item) for item in items[:count])))
        assert batch.items == list(items[:count])
        assert batch.cost == Cost(requests, read_units=50.0 * count)


# --- Where a range ends -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("range_", "forward"),
    [
        (Within("b", "d"), True),
        (Within("b", "d"), False),
        (AtMost("d"), True),
        (AtLeast("b"), False),
        (Equals("c"), True),
        (Equals("c"), False),
    ],
)
async def test_nothing_is_asked_for_behind_the_end_of_a_range(
    make_store: MakeStore, range_: Range, forward: bool
) -> None:
    store = await make_store(TABLE, *({"PK": "p", "SK": sort} for sort in "abcde"))
    request = Query("p", range=range_, forward=forward)
    whole = await store.send(request)
    for limit in (len(whole.items), 1):
        found = [page async for page in pages(store, Query("p", range=range_, forward=forward, limit=limit))]
        assert [item for page in found for item in page.items] == whole.items
        assert len(found) * limit == len(whole.items)
    last = TABLE.key_of(whole.items[-1])
    assert await store.send(Query("p", range=range_, forward=forward, start=last)) == Page(
        [], 0, None, Cost()
    )


async def test_a_table_without_sort_keys_has_nothing_behind_an_item(make_store: MakeStore) -> None:
    store: Store = await make_store(Table("Limits", partition_key="PK"))
    await store.send(BatchWrite(puts=({"PK": "p"},)))
    assert (await store.send(Query("p", limit=1))).last is None
    assert await store.send(Query("p", start=("p",))) == Page([], 0, None, Cost())
