"""Tables, items and requests made at random, for two engines to give one answer.

What is made for moto leaves out what moto answers otherwise than DynamoDB; test_engines_agree.py says why for each.
What is made for DynamoDB Local leaves out nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from keygraph.dynamo.conditions import (
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
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    Above,
    AtLeast,
    AtMost,
    BatchGet,
    Below,
    Equals,
    Prefix,
    Query,
    Range,
    Within,
)
from keygraph.dynamo.table import Index, KeyAttribute, KeyType, KeyValue, Position, Projection, Table

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


@cache
def scalars(exact: bool) -> st.SearchStrategy[Any]:
    """Texts, numbers, binary and truth values; where it is exact, those too that are taken for others."""
    easily_confused = ["", b"", Decimal(0), Decimal(1)] if exact else []
    return st.sampled_from([*TEXTS, *NUMBERS, *BINARIES, True, False, *easily_confused])


@cache
def any_values(exact: bool) -> st.SearchStrategy[Any]:
    """Values of every type."""
    inner = scalars(exact)
    sets = (
        st.frozensets(st.sampled_from(alphabet), min_size=1, max_size=3) for alphabet in ALPHABETS.values()
    )
    return st.one_of(
        inner,
        st.none(),
        st.just(""),
        *sets,
        st.lists(inner | st.none(), max_size=3),
        st.dictionaries(
            st.sampled_from(["x", "y"]), inner | st.dictionaries(st.just("z"), inner, max_size=1)
        ),
    )


@cache
def others(exact: bool) -> st.SearchStrategy[Item]:
    """The attributes of an item that are no keys."""
    maps = st.fixed_dictionaries(
        {},
        optional={
            "x": any_values(exact),
            "y": st.dictionaries(st.sampled_from(["z", "other"]), scalars(exact)),
        },
    )
    optional: dict[str, st.SearchStrategy[Any]] = {
        "any": any_values(exact),
        "text": st.sampled_from(TEXTS),
        "number": st.sampled_from(NUMBERS),
        "binary": st.sampled_from(BINARIES),
        "map": maps | any_values(exact) if exact else maps,
    }
    if exact:
        # Several items to a unit, and several units to an item.
        optional["large"] = st.sampled_from(["x" * 700, "x" * 1500, "é" * 3000])
    return st.fixed_dictionaries({}, optional=optional)


def values_of(key: KeyAttribute) -> st.SearchStrategy[Any]:
    """Few values, so that keys collide."""
    return st.sampled_from(ALPHABETS[key.type])


@st.composite
def items_of(draw: st.DrawFn, table: Table, exact: bool) -> Item:
    """An item with its keys, with or without each key of an index."""
    item: Item = dict(draw(others(exact)))
    for key in table.keys:
        item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][: 2 if key.name == "PK" else None]))
    for key in table.key_attributes():
        if key not in table.keys and draw(st.integers(0, 3)):
            item[key.name] = draw(st.sampled_from(ALPHABETS[key.type][:3]))
    return item


# --- Requests -----------------------------------------------------------------------------------------


def ranges(key: KeyAttribute) -> st.SearchStrategy[Range]:
    value = values_of(key)
    kinds: list[st.SearchStrategy[Range]] = [
        st.builds(kind, value) for kind in (Equals, AtLeast, AtMost, Above, Below)
    ]
    kinds.append(st.lists(value, min_size=2, max_size=2).map(sorted).map(lambda bounds: Within(*bounds)))
    if key.type != "N":
        kinds.append(st.builds(Prefix, value))
    return st.one_of(kinds)


PATHS = [("any",), ("map",), ("map", "x"), ("map", "y", "z"), ("any", "x"), ("text",), ("none",)]


@cache
def comparisons(exact: bool) -> st.SearchStrategy[Condition]:
    paths = st.sampled_from(PATHS)
    operands = any_values(exact) if exact else any_values(exact).filter(lambda value: value is not None)
    # What is compared in order, with two operands in order.
    ordered = st.one_of(
        [
            st.tuples(
                paths | st.just((name,)) if exact else st.just((name,)),
                st.lists(st.sampled_from(alphabet), min_size=2, max_size=2).map(sorted),
            )
            for name, alphabet in (("text", TEXTS), ("number", NUMBERS), ("binary", BINARIES))
        ]
    )
    binaries = BINARIES if exact else []
    return st.one_of(
        st.builds(Eq, paths, operands),
        st.builds(Ne, paths, operands),
        st.builds(In, paths, st.lists(operands, max_size=4).map(tuple)),
        st.builds(Exists, paths),
        st.builds(BeginsWith, paths, st.sampled_from([*TEXTS, *binaries])),
        st.builds(Contains, paths, st.sampled_from([*TEXTS, *NUMBERS, *binaries])),
        *(st.builds(lambda pair, kind=kind: kind(pair[0], pair[1][0]), ordered) for kind in (Lt, Le, Gt, Ge)),
        st.builds(lambda pair: Between(pair[0], *pair[1]), ordered),
    )


@cache
def conditions(exact: bool) -> st.SearchStrategy[Condition]:
    return st.recursive(
        comparisons(exact),
        lambda inner: st.one_of(
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Not, inner),
        ),
        max_leaves=4,
    )


@st.composite
def queries(draw: st.DrawFn, table: Table, exact: bool) -> Query:
    """A Query of the table or of one of its indexes; DynamoDB may refuse it for its start, filter or projection."""
    index = draw(st.sampled_from([None, *(index.name for index in table.indexes)]))
    keyed = table.keyed(index)
    is_global = isinstance(keyed, Index) and not keyed.local
    is_whole = isinstance(keyed, Table) or keyed.projection == "ALL"
    partition = draw(st.sampled_from(ALPHABETS[keyed.partition.type][:2]))
    range_ = None if keyed.sort is None else draw(st.none() | ranges(keyed.sort))
    # The keys are always asked for, so that items of equal index keys can be told.
    keys = [(key.name,) for key in keyed.keys]
    return Query(
        partition,
        index=index,
        range=range_,
        filter=draw(st.none() | conditions(exact)) if exact or is_whole else None,
        projection=draw(st.none() | projected(table, keyed, exact).map(lambda paths: (*keys, *paths))),
        forward=draw(st.booleans()),
        limit=draw(st.none() | st.integers(1 if exact else 2, 6)),
        start=draw(st.none() | starts(table, index, partition, range_, exact)) if keyed.sort else None,
        consistent=False if is_global else draw(st.booleans()),
    )


def projected(
    table: Table, keyed: Table | Index, exact: bool
) -> st.SearchStrategy[tuple[tuple[str, ...], ...]]:
    named = [("PK",), ("one",), ("any",), ("map", "x"), ("map", "y", "z"), ("text",), ("none",)]
    if exact:
        named += [("any", "x"), ("map",)]
    elif isinstance(keyed, Index):
        named = [path for path in named if table.has(keyed.name, path[0])]
    return st.lists(st.sampled_from(named), unique=True, max_size=3).map(tuple)


def starts(
    table: Table, index: str | None, partition: KeyValue, range_: Range | None, exact: bool
) -> st.SearchStrategy[Position]:
    """Positions in the partition and the range, whether or not an item stands there; where it is exact, others too."""
    first, *rest = table.position(index)
    columns = [values_of(key) for key in rest]
    here = st.tuples(st.just(partition), *columns)
    if exact:
        return st.one_of(here, here, here, st.tuples(values_of(first), *columns))
    return here if range_ is None else here.filter(lambda position: _is_in(range_, position[1]))


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


# --- Scenarios ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A table with its items, and what is asked of it."""

    table: Table
    items: tuple[Item, ...]
    deleted: tuple[tuple[KeyValue, ...], ...]
    queries: tuple[Query, ...]
    batches: tuple[BatchGet, ...]


@st.composite
def scenarios(draw: st.DrawFn, exact: bool) -> Scenario:
    """`exact`: for an engine that has DynamoDB's own rules, not for moto."""
    table = draw(tables())
    items = draw(st.lists(items_of(table, exact), min_size=4, max_size=25))
    keys = st.tuples(*(values_of(key) for key in table.keys))
    held = st.sampled_from([table.key_of(item) for item in items])
    batches = st.builds(
        BatchGet,
        st.lists(keys | held, max_size=6).map(tuple),
        projection=st.none() | projected(table, table, exact),
        consistent=st.booleans() if exact else st.just(False),
    )
    return Scenario(
        table,
        tuple(items),
        tuple(draw(st.lists(keys | held if exact else keys, max_size=2))),
        tuple(draw(st.lists(queries(table, exact), min_size=6, max_size=10))),
        tuple(draw(st.lists(batches, min_size=1, max_size=3))),
    )
