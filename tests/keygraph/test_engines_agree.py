"""One answer: the embedded engine and DynamoDB's, on tables and requests made at random.

DynamoDB Local is AWS's own; moto is another's reading of the documentation, and is there where Java is not. Where one
of them answers otherwise than AWS documents, AWS's documentation decides. Each such difference is kept out of what is
made (`made_requests`) or compared (here), and is named only here:

    Difference of moto                                  DynamoDB's rule, and how it is kept out
    --------------------------------------------------- -----------------------------------------------------------
    Names no last position where the limit is reached   A page that ends by its limit has a LastEvaluatedKey: an
    with the last item of a partition.                  empty page at the end is left out of the comparison.
    Has no begins_with and contains for binary in       Both are defined for them: no such condition is made.
    filters.
    Takes `true` for 1, a missing attribute for NULL.   Types differ, so they are unequal: numbers are neither 0
                                                        nor 1, no condition has NULL as its operand.
    Fails at comparing two types (<, BETWEEN).          False: an order is asked of attributes of one type.
    Fails at projecting a part of what is no map.       The item does not have it: `map` and its `y` are maps.
    Charges one unit, whatever is read or written,      Sizes in steps of 4 KB, halved for eventual consistency:
    and one for each key of a BatchGetItem.             only one small GetItem is compared.
    Fetches nothing from the table for a local index.   What it does not project is fetched: no more than it does
                                                        is asked for there.
    Takes a filter on what an index does not project.   It is refused: a filter only where the index projects all.
    Takes positions outside the range, and positions    Both are refused: starts are made within the range.
    of another partition.
    Pages of a Scan and its segments are cut by         Any order of partitions is right: whole scans are compared,
    another hash.                                       as sets.
    Fails at a segment where the partition key is       Segments are for every table: such a table is scanned
    binary.                                             whole.

    Takes much of what DynamoDB refuses.                It is never sent: test_limits_agree has what is refused.

    Difference of DynamoDB Local                        DynamoDB's rule, and how it is kept out
    --------------------------------------------------- -----------------------------------------------------------
    Charges nothing for a Query that finds nothing,     The least that such a read costs (API reference of Query,
    or for the missing keys of a BatchGetItem.          guide to read operations): not compared.
    Charges two units for deleting what is not there.   One: only deletes of what is there are compared.
    Charges a fetch from the table for a local index    Nothing is fetched for them: costs are compared where no
    where only attributes are asked for that it         attributes are named.
    projects.
    Goes on beyond 1 MB where a filter drops items;     1 MB is counted before the filter, and of an index in its
    fills pages of an index by the sizes of the items.  entries: pages here are small; test_pages_agree has large
                                                        ones.
    Names no last position where 1 MB ends with the     "LastEvaluatedKey does not necessarily mean that there is
    last item of a partition.                           more": no such partition is made there.
    Takes a partition key of 2,049 bytes in a Query,    2,048 and 1,024 are the limits, as for items: not asked.
    and a start whose sort key has 1,025.

Among items of equal index keys DynamoDB's order is not specified, and each engine has its own: they are compared as
sets, over all pages. No start is made up among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import (
    Answer,
    BatchGet,
    BatchWrite,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Page,
    Query,
    Request,
    Scan,
    Store,
    Written,
    pages,
)
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.engine import open_dynamodb
from keygraph.engines.dynamodb.transport import TransportName
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.errors import BadUserInput
from tests.keygraph.made_requests import Scenario, scenarios

# No shrinking: each try makes tables over HTTP, so a failure would be told minutes later.
made_at_random = settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)


through_each = pytest.mark.parametrize("transport", get_args(TransportName))


@pytest.mark.long
@pytest.mark.parametrize("transport", ["direct", pytest.param("aioboto3", marks=pytest.mark.long)])
@made_at_random
@given(scenario=scenarios(exact=False))
async def test_the_embedded_engine_and_moto_give_one_answer(
    scenario: Scenario, transport: TransportName, moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "agree-with-moto.db"
    async with both(scenario.table, path, moto_endpoint, transport) as (embedded, moto):
        await Comparison(embedded, moto, exact=False).compare(scenario)


@pytest.mark.dynamodb_local
@through_each
@made_at_random
@given(scenario=scenarios(exact=True))
async def test_the_embedded_engine_and_dynamodb_local_give_one_answer(
    scenario: Scenario,
    transport: TransportName,
    local_endpoint: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "agree-with-local.db"
    async with both(scenario.table, path, local_endpoint, transport) as (embedded, local):
        await Comparison(embedded, local, exact=True).compare(scenario)


@asynccontextmanager
async def both(
    table: Table, path: Path, endpoint: str, transport: TransportName
) -> AsyncIterator[tuple[Store, Store]]:
    """The embedded engine and the one at the endpoint, both with a new table."""
    async with (
        open_sqlite(path, table, readers=1) as embedded,
        open_dynamodb(table, endpoint, transport=transport) as dynamodb,
    ):
        for store in (embedded, dynamodb):
            await store.send(DeleteTable())
            await store.send(CreateTable())
        yield embedded, dynamodb
        for store in (embedded, dynamodb):
            await store.send(DeleteTable())


class Comparison:
    """What two stores answer to the same requests, side by side."""

    def __init__(self, embedded: Store, dynamodb: Store, *, exact: bool) -> None:
        """`exact`: that costs and refusals are DynamoDB's too."""
        self.stores = (embedded, dynamodb)
        self.table = embedded.table
        self.exact = exact

    async def compare(self, scenario: Scenario) -> None:
        held = {self.table.key_of(item): item for item in scenario.items}
        ours, theirs = await self.answers(BatchWrite(puts=scenario.items))
        self.agree_on_written(ours, theirs, charged=True)
        ours, theirs = await self.answers(BatchWrite(deletes=scenario.deleted))
        self.agree_on_written(ours, theirs, charged=held.keys() >= set(scenario.deleted))
        for key in scenario.deleted:
            held.pop(key, None)
        described, also_described = await self.answers(DescribeTable())
        assert described == also_described
        for query in scenario.queries:
            await self.agree_on_query(self._without_start_among_equals(query, held.values()))
            if query.filter is not None:
                await self.agree_on_count(query)
        for batch in scenario.batches:
            await self.agree_on_batch(batch)
        await self.agree_on_scan(segments=1, limit=5)
        if self.exact or self.table.partition.type != "B":
            await self.agree_on_scan(segments=3, limit=None)

    def _without_start_among_equals(self, query: Query, items: Iterable[Item]) -> Query:
        """The query, without a start at index keys that items have: which of those come after it is not said."""
        if query.index is None or query.start is None:
            return query
        keys = self.table.keyed(query.index).keys
        there = query.start[: len(keys)]
        is_shared = any(tuple(item.get(key.name) for key in keys) == there for item in items)
        return replace(query, start=None) if is_shared else query

    async def answers(self, request: Request[Answer]) -> tuple[Answer, Answer]:
        embedded, dynamodb = self.stores
        return await embedded.send(request), await dynamodb.send(request)

    def agree_on_written(self, ours: Written, theirs: Written, *, charged: bool) -> None:
        assert ours.cost.requests == theirs.cost.requests
        if self.exact and charged:
            assert ours.cost == theirs.cost

    async def agree_on_query(self, query: Query) -> None:
        ours, theirs = [await _pages_or_refusal(store, query) for store in self.stores]
        if isinstance(ours, str) or isinstance(theirs, str):
            assert ours == theirs
            return
        if not self.exact:
            _drop_empty_end(ours)
            _drop_empty_end(theirs)
        keyed = self.table.keyed(query.index)
        assert [page.scanned for page in ours] == [page.scanned for page in theirs]
        assert _in_order(ours, keyed) == _in_order(theirs, keyed)
        assert [page.cost.requests for page in ours] == [page.cost.requests for page in theirs]
        if not self.exact:
            return
        assert [page.last is None for page in ours] == [page.last is None for page in theirs]
        if query.index is None:
            assert [page.last for page in ours] == [page.last for page in theirs]
        names_attributes = query.projection is not None and isinstance(keyed, Index) and keyed.local
        # Which of the items of equal keys are on a page, and so what it costs, is not said.
        if not names_attributes and (query.index is None or len(ours) == 1):
            assert [page.cost for page in ours if page.scanned] == [
                page.cost for page in theirs if page.scanned
            ]

    async def agree_on_count(self, query: Query) -> None:
        count = Count(
            query.partition,
            index=query.index,
            range=query.range,
            filter=query.filter,
            limit=query.limit,
            consistent=query.consistent,
        )
        try:
            ours = await self.stores[0].send(count)
        except BadUserInput:
            with pytest.raises(BadUserInput):
                await self.stores[1].send(count)
            return
        theirs = await self.stores[1].send(count)
        # Among equal keys it is not said which are looked at first.
        if query.index is None or query.limit is None:
            assert (ours.count, ours.scanned) == (theirs.count, theirs.scanned)
        assert ours.scanned == theirs.scanned

    async def agree_on_batch(self, batch: BatchGet) -> None:
        ours, theirs = await self.answers(batch)
        assert ours.items == theirs.items
        assert ours.cost.requests == theirs.cost.requests
        if len(set(batch.keys)) == 1 or (self.exact and None not in ours.items):
            assert ours.cost == theirs.cost

    async def agree_on_scan(self, segments: int, limit: int | None) -> None:
        found = [
            [
                item
                for segment in range(segments)
                async for page in pages(store, Scan(segment=segment, segments=segments, limit=limit))
                for item in page.items
            ]
            for store in self.stores
        ]
        assert _told(found[0]) == _told(found[1])


async def _pages_or_refusal(store: Store, query: Query) -> list[Page] | str:
    try:
        return [page async for page in pages(store, query)]
    except BadUserInput:
        return "refused"


def _drop_empty_end(found: list[Page]) -> None:
    """Only the embedded engine looks on after a last page that was full."""
    if len(found) > 1 and found[-1].scanned == 0:
        found.pop()


def _in_order(found: list[Page], keyed: Table | Index) -> list[tuple[object, Counter[object]]]:
    """The items of all pages in their order, those of equal keys as a set."""
    items = [item for page in found for item in page.items]
    groups = groupby(items, key=lambda item: [item[key.name] for key in keyed.keys])
    return [(key, _told(group)) for key, group in groups]


def _told(items: Iterable[Item | None]) -> Counter[object]:
    return Counter(None if item is None else _frozen(item) for item in items)


def _frozen(value: Value) -> object:
    """The value as something that can stand in a set, types told apart."""
    match value:
        case dict():
            return frozenset((name, _frozen(inner)) for name, inner in value.items())
        case list():
            return tuple(_frozen(inner) for inner in value)
        case frozenset():
            return frozenset(_frozen(member) for member in value)
        case _:
            return type(value).__name__, value
