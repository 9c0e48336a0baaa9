"""Two engines, one answer: the embedded one and DynamoDB's (against moto), on tables and requests made at random.

Where moto answers otherwise than DynamoDB, DynamoDB's documented rule decides. Each such difference is kept out of
what is made or compared here, and only here:

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
    and one for each key of a BatchGetItem.             only one small GetItem is compared; test_sqlite_rules
                                                        has the others.
    Fetches nothing from the table for a local index.   What it does not project is fetched: no more than it does
                                                        is asked for there, and a filter only where it projects
                                                        all; test_sqlite fetches.
    Takes positions outside the range, and positions    Both are refused: starts are made within the range.
    of another partition.
    Pages of a Scan and its segments are cut by         Any order of partitions is right: whole scans are compared,
    another hash.                                       as sets.
    Fails at a segment where the partition key is       Segments are for every table: such a table is scanned
    binary.                                             whole.

Among items of equal index keys DynamoDB's order is not specified: they are compared as sets, over all pages, and
no start is made up in an index without a sort key, where all of a partition are such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from keygraph.conditions import (
    And,
    BeginsWith,
    Between,
    Condition,
    Contains,
    Eq,
    Exists,
    Ge,
    Gt,
    In,
    Le,
    Lt,
    Ne,
    Not,
    Or,
)
from keygraph.dynamodb import open_dynamodb
from keygraph.items import Item, Value
from keygraph.sqlite import open_sqlite
from keygraph.store import (
    Above,
    AtLeast,
    AtMost,
    BatchGet,
    BatchWrite,
    Below,
    Count,
    CreateTable,
    DeleteTable,
    DescribeTable,
    Equals,
    Page,
    Prefix,
    Query,
    Range,
    Scan,
    Store,
    Within,
    pages,
)
from keygraph.table import Index, KeyAttribute, KeyType, KeyValue, Position, Projection, Table

TEXTS = ["A", "a", "ab", "abc", "b", "é", "\uffff", "😀"]
NUMBERS = [
    Decimal(text) for text in ("-1E+20", "-12.01", "-12", "-0.5", "0.05", "2", "10", "199.99", "1E+100")
]
BINARIES = [b"\x00", b"\x00\x01", b"A", b"\x7f\xff", b"\x80", b"\xff", b"\xff\xff"]
ALPHABETS: dict[KeyType, Sequence[KeyValue]] = {"S": TEXTS, "N": NUMBERS, "B": BINARIES}

# --- Tables -------------------------------------------------------------------------------------------


def key_attributes(name: str) -> st.SearchStrategy[KeyAttribute]:
    """An attribute that is a key, most often of text."""
    return st.builds(KeyAttribute, st.just(name), st.sampled_from(("S", "S", "N", "B")))


projections: st.SearchStrategy[Projection] = st.sampled_from(("ALL", "ALL", "KEYS_ONLY", ("any", "text")))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table with or without a sort key, and up to four indexes of every kind."""
    partition, one, other = (
        draw(key_attributes("PK")),
        draw(key_attributes("one")),
        draw(key_attributes("other")),
    )
    sort = draw(st.none() | key_attributes("SK"))
    possible = [
        Index("both", one, other, projection=draw(projections)),
        Index("alone", other, projection=draw(projections)),
        Index("shared", one, partition, projection=draw(projections)),
    ]
    if sort is not None:
        possible.append(Index("inverted", sort, partition, projection=draw(projections)))
        possible.append(Index("local", partition, other, projection=draw(projections), local=True))
    indexes = draw(st.lists(st.sampled_from(possible), unique=True, max_size=4))
    return Table("Agree", partition_key=partition, sort_key=sort, indexes=indexes)


# --- Items --------------------------------------------------------------------------------------------

scalars: st.SearchStrategy[Any] = st.sampled_from([*TEXTS, *NUMBERS, *BINARIES, True, False])
any_values: st.SearchStrategy[Any] = st.one_of(
    scalars,
    st.none(),
    st.just(""),
    *(st.frozensets(st.sampled_from(alphabet), min_size=1, max_size=3) for alphabet in ALPHABETS.values()),
    st.lists(scalars | st.none(), max_size=3),
    st.dictionaries(
        st.sampled_from(["x", "y"]), scalars | st.dictionaries(st.just("z"), scalars, max_size=1)
    ),
)
others = st.fixed_dictionaries(
    {},
    optional={
        "any": any_values,
        "text": st.sampled_from(TEXTS),
        "number": st.sampled_from(NUMBERS),
        "binary": st.sampled_from(BINARIES),
        "map": st.fixed_dictionaries(
            {}, optional={"x": any_values, "y": st.dictionaries(st.sampled_from(["z", "other"]), scalars)}
        ),
    },
)


def values_of(key: KeyAttribute) -> st.SearchStrategy[Any]:
    """Few values, so that keys collide."""
    return st.sampled_from(ALPHABETS[key.type])


@st.composite
def items_of(draw: st.DrawFn, table: Table) -> Item:
    """An item with its keys, with or without each key of an index."""
    item: Item = dict(draw(others))
    for key in table.keys:
        item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][: 2 if key.name == "PK" else None]))
    for key in table.key_attributes():
        if key not in table.keys and draw(st.integers(0, 3)):
            item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][:3]))
    return item


# --- Requests -----------------------------------------------------------------------------------------


def ranges(key: KeyAttribute) -> st.SearchStrategy[Range]:
    """Every kind of range."""
    value = values_of(key)
    kinds: list[st.SearchStrategy[Range]] = [
        st.builds(kind, value) for kind in (Equals, AtLeast, AtMost, Above, Below)
    ]
    kinds.append(st.lists(value, min_size=2, max_size=2).map(sorted).map(lambda bounds: Within(*bounds)))
    if key.type != "N":
        kinds.append(st.builds(Prefix, value))
    return st.one_of(kinds)


ordered = st.one_of(
    [
        st.tuples(st.just((name,)), st.lists(st.sampled_from(alphabet), min_size=2, max_size=2).map(sorted))
        for name, alphabet in (("text", TEXTS), ("number", NUMBERS), ("binary", BINARIES))
    ]
)
paths = st.sampled_from(
    [("any",), ("map",), ("map", "x"), ("map", "y", "z"), ("any", "x"), ("text",), ("none",)]
)
operands = any_values.filter(lambda value: value is not None)
comparisons: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Eq, paths, operands),
    st.builds(Ne, paths, operands),
    st.builds(In, paths, st.lists(operands, max_size=4).map(tuple)),
    st.builds(Exists, paths),
    st.builds(BeginsWith, paths, st.sampled_from(TEXTS)),
    st.builds(Contains, paths, st.sampled_from([*TEXTS, *NUMBERS])),
    *(st.builds(lambda pair, kind=kind: kind(pair[0], pair[1][0]), ordered) for kind in (Lt, Le, Gt, Ge)),
    st.builds(lambda pair: Between(pair[0], *pair[1]), ordered),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=4,
)


@st.composite
def queries(draw: st.DrawFn, table: Table) -> Query:
    """A Query that DynamoDB takes, of the table or of one of its indexes."""
    index = draw(st.sampled_from([None, *(index.name for index in table.indexes)]))
    keyed = table.keyed(index)
    is_global = isinstance(keyed, Index) and not keyed.local
    is_filtered = isinstance(keyed, Table) or is_global or keyed.projection == "ALL"
    partition = draw(st.sampled_from(ALPHABETS[keyed.partition.type][:2]))
    range_ = None if keyed.sort is None else draw(st.none() | ranges(keyed.sort))
    # The keys are always asked for, so that items of equal index keys can be told.
    keys = [(key.name,) for key in keyed.keys]
    return Query(
        partition,
        index=index,
        range=range_,
        filter=draw(st.none() | conditions) if is_filtered else None,
        projection=draw(st.none() | _projected(table, keyed).map(lambda paths: (*keys, *paths))),
        forward=draw(st.booleans()),
        limit=draw(st.none() | st.integers(2, 6)),
        start=draw(st.none() | _starts(table, index, partition, range_)) if keyed.sort else None,
        consistent=False if is_global else draw(st.booleans()),
    )


def _projected(table: Table, keyed: Table | Index) -> st.SearchStrategy[tuple[tuple[str, ...], ...]]:
    named = [("PK",), ("one",), ("any",), ("map", "x"), ("map", "y", "z"), ("text",), ("none",)]
    if isinstance(keyed, Index) and keyed.projection != "ALL":
        others_held = () if keyed.projection == "KEYS_ONLY" else keyed.projection
        held = {key.name for key in table.position(keyed.name)}.union(others_held)
        named = [path for path in named if path[0] in held]
    return st.lists(st.sampled_from(named), unique=True, max_size=3).map(tuple)


def _starts(
    table: Table, index: str | None, partition: KeyValue, range_: Range | None
) -> st.SearchStrategy[Position]:
    """Positions in the partition and the range, whether or not an item stands there."""
    _, *rest = table.position(index)
    columns = [values_of(key) for key in rest]
    positions = st.tuples(st.just(partition), *columns)
    return positions if range_ is None else positions.filter(lambda position: _is_in(range_, position[1]))


def _is_in(range_: Range, value: Any) -> bool:
    match range_:
        case Equals(other):
            return bool(value == other)
        case Prefix(prefix):
            return bool(value.startswith(prefix))
        case Within(low, high):
            return bool(low <= value <= high)
        case AtLeast(other):
            return bool(value >= other)
        case AtMost(other):
            return bool(value <= other)
        case Above(other):
            return bool(value > other)
        case Below(other):
            return bool(value < other)


@dataclass(frozen=True)
class Scenario:
    """A table with its items, and what is asked of it."""

    table: Table
    items: tuple[Item, ...]
    deleted: tuple[tuple[KeyValue, ...], ...]
    queries: tuple[Query, ...]
    batches: tuple[BatchGet, ...]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    table = draw(tables())
    items = draw(st.lists(items_of(table), min_size=4, max_size=25))
    keys = st.tuples(*(values_of(key) for key in table.keys))
    asked = st.lists(keys | st.sampled_from([table.key_of(item) for item in items]), max_size=6)
    batches = st.builds(BatchGet, asked.map(tuple), projection=st.none() | _projected(table, table))
    return Scenario(
        table,
        tuple(items),
        tuple(draw(st.lists(keys, max_size=2))),
        tuple(draw(st.lists(queries(table), min_size=6, max_size=10))),
        tuple(draw(st.lists(batches, min_size=1, max_size=3))),
    )


# --- Agreement ----------------------------------------------------------------------------------------


@asynccontextmanager
async def both(table: Table, path: Path, endpoint: str) -> AsyncIterator[tuple[Store, Store]]:
    """The embedded engine and DynamoDB's on moto, both with a new table."""
    async with open_sqlite(path, table, readers=1) as embedded, open_dynamodb(table, endpoint) as dynamodb:
        for store in (embedded, dynamodb):
            await store.send(DeleteTable())
            await store.send(CreateTable())
        yield embedded, dynamodb


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


def _told(items: Iterable[Item | None]) -> Counter[object]:
    return Counter(None if item is None else _frozen(item) for item in items)


async def _agree_on_query(embedded: Store, dynamodb: Store, query: Query) -> None:
    keys = embedded.table.keyed(query.index).keys

    def in_order(found: list[Page]) -> list[tuple[object, Counter[object]]]:
        """The items of all pages in their order, those of equal keys as a set."""
        items = [item for page in found for item in page.items]
        groups = groupby(items, key=lambda item: [item[key.name] for key in keys])
        return [(key, _told(group)) for key, group in groups]

    ours = [page async for page in pages(embedded, query)]
    theirs = [page async for page in pages(dynamodb, query)]
    assert [page.last is not None for page in ours] == [page.scanned == query.limit for page in ours]
    _drop_empty_end(ours)
    _drop_empty_end(theirs)
    assert [page.scanned for page in ours] == [page.scanned for page in theirs]
    assert in_order(ours) == in_order(theirs)
    assert [page.cost.requests for page in ours] == [page.cost.requests for page in theirs]


def _drop_empty_end(found: list[Page]) -> None:
    """Only the embedded engine looks on after a last page that was full."""
    if len(found) > 1 and found[-1].scanned == 0:
        found.pop()


async def _agree_on_count(embedded: Store, dynamodb: Store, query: Query) -> None:
    count = Count(
        query.partition,
        index=query.index,
        range=query.range,
        filter=query.filter,
        limit=query.limit,
        consistent=query.consistent,
    )
    ours, theirs = await embedded.send(count), await dynamodb.send(count)
    assert (ours.count, ours.scanned) == (theirs.count, theirs.scanned)


async def _agree_on_batch(embedded: Store, dynamodb: Store, batch: BatchGet) -> None:
    ours, theirs = await embedded.send(batch), await dynamodb.send(batch)
    assert ours.items == theirs.items
    assert ours.cost.requests == theirs.cost.requests
    if len(set(batch.keys)) == 1:
        assert ours.cost == theirs.cost


async def _agree_on_scan(embedded: Store, dynamodb: Store, segments: int, limit: int | None) -> None:
    found = [
        [
            item
            for segment in range(segments)
            async for page in pages(store, Scan(segment=segment, segments=segments, limit=limit))
            for item in page.items
        ]
        for store in (embedded, dynamodb)
    ]
    assert _told(found[0]) == _told(found[1])


# No shrinking: each try makes tables over HTTP, so a failure would be told minutes later.
@settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(scenario=scenarios())
async def test_both_engines_give_one_answer(
    scenario: Scenario, moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is tried out on the embedded engine would behave otherwise on DynamoDB."""
    path = tmp_path_factory.getbasetemp() / "agree.db"
    async with both(scenario.table, path, moto_endpoint) as (embedded, dynamodb):
        for write in (BatchWrite(puts=scenario.items), BatchWrite(deletes=scenario.deleted)):
            ours, theirs = await embedded.send(write), await dynamodb.send(write)
            assert ours.cost.requests == theirs.cost.requests
        assert await embedded.send(DescribeTable()) == await dynamodb.send(DescribeTable())
        for query in scenario.queries:
            await _agree_on_query(embedded, dynamodb, query)
            if query.filter is not None:
                await _agree_on_count(embedded, dynamodb, query)
        for batch in scenario.batches:
            await _agree_on_batch(embedded, dynamodb, batch)
        await _agree_on_scan(embedded, dynamodb, segments=1, limit=5)
        if scenario.table.partition.type != "B":
            await _agree_on_scan(embedded, dynamodb, segments=3, limit=None)
        for store in (embedded, dynamodb):
            await store.send(DeleteTable())
