"""Two engines, one answer: the embedded one and DynamoDB's (against moto), on tables and requests made at random.

Where moto answers otherwise than DynamoDB, DynamoDB's documented rule decides. Each such difference is kept out of
what is made or compared here, and only here:

    Difference of moto                                  DynamoDB's rule, and how it is kept out
    --------------------------------------------------- -----------------------------------------------------------
    Names no last position where the limit is reached   "If the number of processed items reaches the limit, it
    with the last item of a partition.                  stops and returns LastEvaluatedKey": `_agree_on_last`
                                                        demands that nothing follows the embedded engine's.
    Compares binary as base64 text.                     Bytes, unsigned: `BINARIES` are those whose base64 has the
                                                        same order and the same prefixes. Test_sqlite has others.
    Has no begins_with and contains for binary in       Both are defined for them: no such condition is made.
    filters.
    Takes `true` for 1, a missing attribute for NULL,   Types differ, so they are unequal: numbers are neither 0
    binary for text that is its base64.                 nor 1, no condition has NULL as its operand, and no text
                                                        is base64 of `BINARIES`.
    Fails at comparing two types (<, BETWEEN).          False: an order is asked of attributes of one type.
    Charges one unit, whatever is read or written,      Sizes in steps of 4 KB, halved for eventual consistency:
    and one for each key of a BatchGetItem.             only one small GetItem is compared. Test_sqlite has others.
    Takes positions outside the range, and positions    Both are refused: starts are made within the range.
    of another partition.
    Pages of a Scan and its segments are cut by         Any order of partitions is right: whole scans are compared,
    another hash.                                       as sets.

Among items of equal index keys DynamoDB's order is not specified: they are compared as sets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
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
NUMBERS = [Decimal(text) for text in ("-1E+20", "-12.01", "-12", "-0.5", "0.05", "2", "10", "199.99", "1E+100")]
BINARIES = [b"\x00\x00\x00", b"\x00\x00\x00\x00\x00\x01", b"\x00\x00\x01", b"\x10\x41\x08", b"\x6d\xb6\xdb"]
ALPHABETS: dict[KeyType, Sequence[KeyValue]] = {"S": TEXTS, "N": NUMBERS, "B": BINARIES}

# --- Tables -------------------------------------------------------------------------------------------


def key_attributes(name: str) -> st.SearchStrategy[KeyAttribute]:
    """An attribute that is a key, most often of text."""
    return st.builds(KeyAttribute, st.just(name), st.sampled_from(("S", "S", "N", "B")))


projections: st.SearchStrategy[Projection] = st.sampled_from(("ALL", "ALL", "KEYS_ONLY", ("any", "text")))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table with or without a sort key, and up to four indexes of every kind."""
    partition, one, other = draw(key_attributes("PK")), draw(key_attributes("one")), draw(key_attributes("other"))
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
    st.dictionaries(st.sampled_from(["x", "y"]), scalars | st.dictionaries(st.just("z"), scalars, max_size=1)),
)
others = st.fixed_dictionaries(
    {},
    optional={
        "any": any_values,
        "text": st.sampled_from(TEXTS),
        "number": st.sampled_from(NUMBERS),
        "binary": st.sampled_from(BINARIES),
        "map": st.dictionaries(st.sampled_from(["x", "y"]), any_values),
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
        item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][:2 if key.name == "PK" else None]))
    for key in table.key_attributes():
        if key not in table.keys and draw(st.integers(0, 3)):
            item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][:3]))
    return item


# --- Requests -----------------------------------------------------------------------------------------


def ranges(key: KeyAttribute) -> st.SearchStrategy[Range]:
    """Every kind of range."""
    value = values_of(key)
    kinds: list[st.SearchStrategy[Range]] = [st.builds(kind, value) for kind in (Equals, AtLeast, AtMost, Above, Below)]
    kinds.append(st.lists(value, min_size=2, max_size=2).map(sorted).map(lambda bounds: Within(*bounds)))
    if key.type != "N":
        kinds.append(st.builds(Prefix, value))
    return st.one_of(kinds)


ordered = st.one_of(
    st.tuples(st.just((name,)), st.lists(st.sampled_from(alphabet), min_size=2, max_size=2).map(sorted))
    for name, alphabet in (("text", TEXTS), ("number", NUMBERS), ("binary", BINARIES))
)
paths = st.sampled_from([("any",), ("map",), ("map", "x"), ("map", "y", "z"), ("any", "x"), ("text",), ("none",)])
operands = any_values.filter(lambda value: value is not None)
comparisons: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Eq, paths, operands),
    st.builds(Ne, paths, operands),
    st.builds(In, paths, st.lists(operands, max_size=4).map(tuple)),
    st.builds(Exists, paths),
    st.builds(BeginsWith, paths, st.sampled_from(TEXTS)),
    st.builds(Contains, paths, st.sampled_from([*TEXTS, *NUMBERS])),
    *(
        st.builds(lambda pair, kind=kind: kind(pair[0], pair[1][0]), ordered)
        for kind in (Lt, Le, Gt, Ge)
    ),
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
    partition = draw(st.sampled_from(ALPHABETS[keyed.partition.type][:2]))
    range_ = None if keyed.sort is None else draw(st.none() | ranges(keyed.sort))
    return Query(
        partition,
        index=index,
        range=range_,
        filter=draw(st.none() | conditions),
        projection=draw(st.none() | _projected(table, keyed)),
        forward=draw(st.booleans()),
        limit=draw(st.none() | st.integers(1, 6)),
        start=draw(st.none() | _starts(table, index, partition, range_)),
        consistent=False if is_global else draw(st.booleans()),
    )


def _projected(table: Table, keyed: Table | Index) -> st.SearchStrategy[tuple[tuple[str, ...], ...]]:
    named = [("PK",), ("one",), ("any",), ("map", "x"), ("map", "y", "z"), ("text",), ("none",)]
    if isinstance(keyed, Index) and not keyed.local and keyed.projection != "ALL":
        held = {key.name for key in table.position(keyed.name)} | (set(keyed.projection) - {*"KEYS_ONLY"})
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
        case _:
            return type(value).__name__, value


def _groups(items: Sequence[Item], table: Table, index: str | None) -> list[tuple[object, frozenset[object]]]:
    """The items in order, those of equal keys as a set. They must have their keys."""
    keys = table.keyed(index).keys
    grouped = groupby(items, key=lambda item: tuple(item[key.name] for key in keys))
    return [(key, frozenset(map(_frozen, group))) for key, group in grouped]


async def _read(store: Store, query: Query) -> tuple[list[Item], list[int]]:
    """The items of all pages, and how many were looked at for each page that looked at any."""
    found = [page async for page in pages(store, query)]
    return [item for page in found for item in page.items], [page.scanned for page in found if page.scanned]


async def _agree_on_query(embedded: Store, dynamodb: Store, query: Query) -> None:
    table = embedded.table
    one, other = await embedded.send(query), await dynamodb.send(query)
    assert (one.scanned, len(one.items)) == (other.scanned, len(other.items))
    await _agree_on_last(embedded, query, one, other)
    assert await _read(embedded, query) == await _read(dynamodb, query) if _is_told(query) else True
    # With their keys, items of equal index keys can be told apart and compared as sets.
    whole = replace(query, projection=None)
    (items, looked_at), (other_items, other_looked_at) = await _read(embedded, whole), await _read(dynamodb, whole)
    assert _groups(items, table, query.index) == _groups(other_items, table, query.index)
    assert looked_at == other_looked_at


def _is_told(query: Query) -> bool:
    return query.index is None


async def _agree_on_last(embedded: Store, query: Query, one: Page, other: Page) -> None:
    assert (one.last is not None) == (one.scanned == query.limit)
    if (one.last is None) == (other.last is None):
        return
    assert other.last is None
    assert (await embedded.send(replace(query, start=one.last))).scanned == 0
