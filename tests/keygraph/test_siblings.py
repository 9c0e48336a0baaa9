"""Siblings: a list is what recognition finds in its range, however items of other types are left out of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record
from keygraph.dynamo.conditions import Condition, Eq, holds
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.errors import BadUserInput
from keygraph.lists.extent import Extent
from keygraph.lists.named_edges import in_list, read_to
from keygraph.lists.query import ListForm, ListQuery
from keygraph.lists.ranges import KeyArguments, Narrowing, beginning_with
from keygraph.lists.reading import count, read, send_reads
from tests.conftest import MakeStore

by_topic = Index("by_topic", "TOPIC", "ORD")


class Mood(Enum):
    CALM = "calm"
    PROUD = "proud"


@node("USER#{user_id}", "PROFILE")
class User:
    user_id: ID
    days: Many[Day] = many()
    levels: Many[Level] = many()
    moods: Many[Feeling] = many()
    notes: Many[Note] = many()
    orders: Many[Order] = many()
    likes: Many[Like] = many()
    stays: Many[Stay] = many()
    visits: Many[Visit] = many()
    marks: Many[Mark] = many()


@record("{user}", "{day}")
class Day:
    """Its sort template begins with a placeholder: its range is open."""

    user: User
    day: date


@record("{user}", "{level}|{name}")
class Level:
    """Numbers, some below zero, which stand on both sides of the days."""

    user: User
    level: int
    name: str


@record("{user}", "{mood}/{name}")
class Feeling:
    user: User
    mood: Mood
    name: str


@record("{user}", "{text}", by_topic("{topic}", "{text}", lists="notes_on"))
class Note:
    """Any text at all: where types are told apart by keys, whatever is more special wins."""

    user: User
    text: str
    topic: str | None


@node("USER#{user.user_id}", "ORDER#{number}", by_topic("{topic}", "O#{number}", lists="orders_on"))
class Order:
    user: User
    number: int
    topic: str | None


@edge("{user}", "LIKE#{order.user.user_id}#{order.number}")
class Like:
    user: User
    order: Order


@record("{user}", "STAY#{place}#{room}", type=None)
class Stay:
    """Its items do not say their type."""

    user: User
    place: str
    room: str


@record("SPREAD#{user.user_id}#{shard}", "{text}", shards=3)
class Visit:
    """Spread over partitions in which marks stand among them."""

    user: User
    text: str


@record("SPREAD#{user.user_id}#{shard}", "ORDER#{name}", shards=3)
class Mark:
    user: User
    name: str


def graph_of(*types: type, **options: Any) -> Graph:
    table = Table("Mixed", partition_key="PK", sort_key="SK", indexes=[by_topic])
    return Graph(table, *types, **options).check()


TYPES = (User, Day, Level, Feeling, Note, Order, Like, Stay, Visit, Mark)
BY_KEY = graph_of(*TYPES)
BY_TYPE = graph_of(*TYPES, type_attribute="kind")
LISTS = [
    "days",
    "levels",
    "moods",
    "notes",
    "orders",
    "likes",
    "stays",
    "visits",
    "marks",
    "notes_on",
    "orders_on",
]
OWNERS = itertools.count()

SORT_KEYS = st.one_of(
    st.sampled_from(
        [
            "PROFILE",
            "PROFILEs",
            "PROFIL",
            "ORDER#",
            "ORDER",
            "ORDER$",
            "ORDER#x",
            "ORDER#01",
            "LIKE#",
            "LIKE#1",
        ]
    ),
    st.sampled_from(
        ["2024-01-01", "2024-02-30", "2024-1", "9", "9|a", "-3|a", "1.5|b", "-", ":", "calm/", "/"]
    ),
    st.sampled_from(
        ["calm/x", "proud/y", "happy/z", "STAY#a#b", "STAY#a#b#c", "STAY#", "STAY#a", "~", "z", "\0"]
    ),
    st.dates(date(2023, 12, 1), date(2024, 3, 1)).map(str),
    st.integers(-20, 200).map(lambda number: f"{number}|n"),
    st.integers(-20, 200).map(lambda number: f"ORDER#{number}"),
    st.tuples(st.integers(0, 3), st.integers(0, 9)).map(lambda pair: f"LIKE#{pair[0]}#{pair[1]}"),
    st.text("aO#D9-|", min_size=1, max_size=4),
)


@dataclass(frozen=True)
class Row:
    sort: str
    kind: str
    number: int
    order: str | None
    shard: int | None


@dataclass(frozen=True)
class Case:
    """A partition, one list of it, and how it is read."""

    graph: Graph = field(repr=False)
    is_typed: bool
    rows: tuple[Row, ...]
    name: str
    said: tuple[tuple[str, Narrowing], ...]
    where: Condition | None
    size: int
    forward: bool
    budget: int

    def items(self, owner: str) -> list[Item]:
        items: list[Item] = []
        for row in self.rows:
            partition = f"USER#{owner}" if row.shard is None else f"SPREAD#{owner}#{row.shard}"
            item: Item = {"PK": partition, "SK": row.sort, "number": Decimal(row.number)}
            if row.order is not None:
                item |= {"TOPIC": f"t{owner}", "ORD": row.order}
            if self.is_typed:
                # Items that lie about their type are counted: see `keygraph.lists.reading`.
                record = self.graph.types.get(row.kind)
                kind = (
                    "Other"
                    if record is None or record.read_identity(item) is None
                    else self.graph.type_values.of(record)["kind"]
                )
                # A type that is NULL is none.
                if kind is not None or row.number:
                    item["kind"] = kind
            items.append(item)
        return items

    def bound(self, owner: str) -> ListQuery:
        path = next(path for path in self.graph.paths if path.name == self.name)
        names = {argument.name for argument in path.ranged}
        keys = KeyArguments({"topic": f"t{owner}"}, {name: n for name, n in self.said if name in names})
        form = ListForm(self.graph, path, keys, {path: self.where})
        return form.of(None if path.owner is None else (owner,))

    def wanted(self, owner: str, neighbours: ListQuery) -> list[tuple[str, ...]]:
        """The keys of the list's items, found by recognition alone."""
        path, keys, found = neighbours.path, neighbours.path.keys, []
        slots = {argument.name: argument.slot.name for argument in path.ranged}
        said = {slots[name]: n for name, n in self.said if name in slots}
        for item in self.items(owner):
            names = [key.name for key in self.graph.table.position(keys.index_name)]
            if any(name not in item for name in names) or self.graph.recognise(item) is not path.record:
                continue
            if not beginning_with(neighbours.prefix).contains(str(item[names[1]])):
                continue
            texts = keys.parse(item) or {}
            if not all(narrowing.contains(texts.get(name)) for name, narrowing in said.items()):
                continue
            if self.where is None or holds(self.where, item):
                found.append(tuple(str(item[name]) for name in (*names[1:], names[0])))
        return sorted(found, reverse=not self.forward)


NARROWINGS: dict[str, st.SearchStrategy[Narrowing]] = {
    "day": st.sampled_from(
        [Narrowing(eq="2024-01-01"), Narrowing(low="2024-01-01"), Narrowing(high="2024-01-31")]
    ),
    "level": st.integers(-3, 9).map(lambda number: Narrowing(eq=str(number))),
    "mood": st.sampled_from([Narrowing(eq="calm"), Narrowing(eq="proud")]),
    "text": st.sampled_from(
        [
            Narrowing(prefix="O"),
            Narrowing(prefix="ORDER#"),
            Narrowing(low="9", high="P"),
            Narrowing(eq="PROFILE"),
        ]
    ),
    "place": st.sampled_from(
        [Narrowing(eq="a"), Narrowing(eq="a#b"), Narrowing(low="a", high="b"), Narrowing(prefix="a")]
    ),
    "number": st.integers(-3, 9).map(lambda number: Narrowing(eq=str(number))),
}


def cases() -> st.SearchStrategy[Case]:
    kinds = st.sampled_from([*(record.__name__ for record in TYPES), "Other"])
    orders = st.one_of(st.none(), SORT_KEYS, st.integers(-3, 9).map(lambda number: f"O#{number}"))
    shards = st.sampled_from([None, None, 0, 1, 2])
    rows = st.lists(
        st.builds(Row, SORT_KEYS, kinds, st.integers(0, 1), orders, shards),
        max_size=25,
        unique_by=lambda row: (row.sort, row.shard),
    )
    said = st.one_of(st.just({}), st.fixed_dictionaries(NARROWINGS)).map(lambda given: tuple(given.items()))
    return st.booleans().flatmap(
        lambda typed: st.builds(
            Case,
            graph=st.just(BY_TYPE if typed else BY_KEY),
            is_typed=st.just(typed),
            rows=rows.map(tuple),
            name=st.sampled_from(LISTS),
            said=said,
            where=st.sampled_from([None, None, Eq(("number",), Decimal(1))]),
            size=st.integers(1, 6),
            forward=st.booleans(),
            budget=st.sampled_from([1, 3, 10_000]),
        )
    )


async def paged(store: Store, neighbours: ListQuery, case: Case) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    after = None
    for _ in range(200):
        extent = Extent(case.size, case.forward, after, look_ahead=True, budget=case.budget)
        page = await send_reads(store, neighbours, read(neighbours.part(extent)))
        places = [neighbours.place_of(each.item) for each in page.items]
        found += [tuple(map(str, (*place.position[1:], place.position[0]))) for place in places]
        if not page.more:
            return found
        reached = page.resume or places[-1]
        assert reached != after
        after = reached
    raise AssertionError("the list never ends")


@pytest.mark.parametrize("engine", ["sqlite"])
@given(case=cases())
@settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@pytest.mark.long
async def test_a_list_is_what_recognition_finds(mixed: Store, case: Case) -> None:
    owner = str(next(OWNERS))
    await mixed.send(BatchWrite(puts=tuple(case.items(owner))))
    if case.name == "stays" and ("place", Narrowing(eq="a#b")) in case.said:
        with pytest.raises(BadUserInput, match="place: no key can hold this value"):
            case.bound(owner)
        return
    neighbours = case.bound(owner)
    wanted = case.wanted(owner, neighbours)
    assert await paged(mixed, neighbours, case) == wanted
    assert await send_reads(mixed, neighbours, count(neighbours, 20)) == len(wanted)
    if case.name == "likes":
        named = [("1", str(number)) for number in range(4)]
        items = [item for node in named for item in await read_to(mixed, neighbours, node)]
        found = [each.item["SK"] for each in in_list(neighbours, items)]
        likes = {f"LIKE#1#{number}" for _, number in named}
        assert sorted(found) == sorted(sort for sort, _ in wanted if sort in likes)


@pytest.fixture
async def mixed(make_store: MakeStore) -> Store:
    return await make_store(BY_KEY.table)
