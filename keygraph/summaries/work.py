"""What the job does, as functions of the model: map, combine, finish.

An item of the table becomes rows (`Summaries.rows`): what it contributes to groups, such as the list of a node, and for each
summary that it stores itself, its target in a group. Sorted by summary, group and order, the contributions to a group
come before its targets, so that it is finished in one pass, in the memory of one value (`Summaries.reduced`). That makes the
rows of the next stage; those of the last one are what is to be written, by the key of the item. Rows of equal groups can
be combined at any time before (`Summaries.combined`), so that a popular node costs few rows. An engine only has to sort.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from keygraph.dynamo import items
from keygraph.dynamo.conditions import Path, at_path, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.order import number_bytes
from keygraph.graph import Graph
from keygraph.keys.types import NUMBERS, encode
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Copy, Tally, age_of, combined, is_storable
from keygraph.resolve.walks import NodeWalk
from keygraph.tables.totals import is_listed
from keygraph.tables.walked_edges import WalkedEdges, WalkSource, far_node
from keygraph.walks.walk import Vertex
from keygraph.writing.sending.idempotency import is_own

IMAGES, LINKS, GROUPS, RANKS, WALKS, WRITES, EDGES = range(7)
"""The stages of rows: by item, of those that are known by their changes; by node of a first list, of which the second list is computed; by group; by what is ranked; by
node where a walk begins; and by the item that is written. The edges of lists that walks follow stay as they are."""
_CONTRIBUTION, _TARGET, _UNRANKED = b"0", b"1", b"2"
"""The order of rows within a group."""
CLOCKS_DIFFER = timedelta(minutes=10)
"""By how much the clocks of two machines may differ."""
NO_GROUP = ""
_BEYOND = "beyond"


class GroupRow(NamedTuple):
    """A row between two stages. Rows are sorted by all but their content."""

    stage: int
    summary: int
    """The number of the summary in `Summaries.summaries`."""
    key: str
    """The group; in the last stage, the key of an item."""
    order: bytes
    """The place within the group."""
    content: bytes


class Result(NamedTuple):
    """The value of one summary of one item."""

    summary: Summary
    value: Value
    before: Item
    """What the item had of it when it was read: its table key, the value, its age, and what it was computed by."""


Contributions: TypeAlias = "Iterator[tuple[str, Value]]"
"""Groups, and what an item contributes to them."""


@dataclass(frozen=True, eq=False)
class Summary:
    """A field that the job computes."""

    record: RecordType
    """The type whose items store it."""
    field: Field

    stage = GROUPS

    @property
    def into(self) -> OfList | None:
        """Of the first of two levels, the summary to which its results contribute."""
        return None

    @property
    def age(self) -> Field | None:
        """The field with its age; None if transactions or the stream keep the value."""
        return age_of(self.record, self.field) if self.field.keeper == "job" else None

    @property
    def stored(self) -> list[Path]:
        """The attributes of an item that are kept until its value is written."""
        return [self.field.kept_attribute, *self.own, *([self.age.attribute] if self.age else [])]

    @property
    def own(self) -> tuple[Path, ...]:
        """The attributes of an item that determine its group, if they may change."""
        return ()

    def contributions(self, record: RecordType, item: Item) -> Contributions:
        """Yields what an item contributes."""
        return iter(())

    def group(self, item: Item) -> str:
        """Returns the group by which the value of an item is computed: the item itself. `NO_GROUP` for none."""
        identity = self.record.read_identity(item)
        return NO_GROUP if identity is None else _text(identity)

    def combined(self, values: Iterable[Value]) -> Value:
        """Returns the value of several contributions; those that were combined before can be combined again."""
        raise NotImplementedError

    def finished(self, value: Value) -> Value:
        """Returns what an item stores, given all contributions combined."""
        return value

    def results(
        self, group: str, rows: Iterable[GroupRow], walked: WalkSource | None = None
    ) -> Iterator[tuple[bytes, Value]]:
        """Yields the content of each target of a group, with the value, given the rows of the group in their order."""
        value: Value = None
        has_any = False
        for is_contribution, those in groupby(rows, key=lambda row: row.order == _CONTRIBUTION):
            if is_contribution:
                value, has_any = self.combined(_loaded(row.content) for row in those), group != NO_GROUP
                continue
            result = self.finished(value if has_any else self.combined(()))
            yield from ((row.content, result) for row in those)


@dataclass(frozen=True, eq=False)
class OfList(Summary):
    """A field that is computed over a list of a node."""

    graph: Graph
    tallies: Mapping[RecordType, Sequence[Tally]]
    """What items of each type add."""

    def contributions(self, record: RecordType, item: Item) -> Contributions:
        for tally in self.tallies.get(record, ()):
            added = tally.of(item)
            if added is not None and is_listed(self.graph, tally, item):
                yield self._group_of(tally.owner, added[0]), added[1]

    def _group_of(self, node: RecordType, identity: Texts) -> str:
        return _text(identity)

    def combined(self, values: Iterable[Value]) -> Value:
        return combined(self.field, values)


@dataclass(frozen=True, eq=False)
class OfNode(Summary):
    """A field that is copied from the node at an end."""

    copy: Copy

    @property
    def own(self) -> tuple[Path, ...]:
        return tuple(self.copy.end.attributes.values())

    def contributions(self, record: RecordType, item: Item) -> Contributions:
        source, identity = self.copy.sources.get(record), record.read_identity(item)
        value = None if source is None else record.readable_value(item, source)
        if source is not None and identity is not None and value is not None:
            stored: Any = at_path(item, source.attribute)
            yield _text((record.name, *identity)), encode(source.type, value) if stored is None else stored

    def group(self, item: Item) -> str:
        identity = self.record.readable_end(item, self.copy.end)
        if identity is None:
            return NO_GROUP
        members, own = self.copy.end.nodes(identity)
        return _text((members[0].name, *own))

    def combined(self, values: Iterable[Value]) -> Value:
        # A node has one item; of a sharded one with several, any.
        return next(iter(values), None)


@dataclass(frozen=True, eq=False)
class OfFirstList(OfList):
    """What the nodes of a list contribute to a field that is computed over their lists."""

    links: Mapping[RecordType, Sequence[Tally]]
    """The items of the first list."""
    whole: OfList

    stage = LINKS

    @property
    def into(self) -> OfList:
        return self.whole

    def _group_of(self, node: RecordType, identity: Texts) -> str:
        return _text((node.name, *identity))

    def linked(self, record: RecordType, item: Item) -> Iterator[tuple[str, str]]:
        """Yields the nodes that an item of the first list leads to, each with the node that has the list."""
        for tally in self.links.get(record, ()):
            added = tally.of(item)
            node = far_node(tally.path, item)
            if added is not None and node is not None and is_listed(self.graph, tally, item):
                yield _text((node[0].name, *node[1])), _text(added[0])


@dataclass(frozen=True, eq=False)
class OfTop(OfList):
    """The highest values of a list, or the keys of their nodes."""

    def contributions(self, record: RecordType, item: Item) -> Contributions:
        for tally in self.tallies.get(record, ()):
            node, entry = tally.node(item), self._entry(tally, item)
            score = None if tally.source is None else record.readable_value(item, tally.source)
            if None in (node, score, entry) or node is None or tally.source is None:
                continue
            if is_listed(self.graph, tally, item):
                yield _text(node), [[encode(tally.source.type, score), entry]]

    def _entry(self, tally: Tally, item: Item) -> Value:
        """Returns what is stored of an item besides its value: the key of its node; nothing if values are stored."""
        if self.field.type.of is not None and self.field.type.of.kind in NUMBERS:
            return ""
        node = far_node(tally.path, item)
        return None if node is None else node[1][0]

    def combined(self, values: Iterable[Value]) -> Value:
        best: list[Any] = []
        for value in values:
            several = [*best, *cast(list[Any], value)]
            best = sorted(several, key=_highest_first)
            if best and best[0][1]:
                # A node that has several items is named once, by the highest.
                best = [*{entry: [score, entry] for score, entry in reversed(best)}.values()]
                best.sort(key=_highest_first)
            del best[self.field.kept_size :]
        return cast(Value, best)

    def finished(self, value: Value) -> Value:
        return [entry or score for score, entry in cast(list[Any], value)]


def _highest_first(scored: tuple[Decimal, str]) -> tuple[Decimal, str]:
    # Unary minus rounds to 28 digits.
    return scored[0].copy_negate(), scored[1]


@dataclass(frozen=True, eq=False)
class OfRank(Summary):
    """The place of a record among others."""

    source: Field
    """The field by which they are ranked."""

    stage = RANKS

    def group(self, item: Item) -> str:
        name = self.field.kept_within
        if name in self.record.ends:
            identity = self.record.readable_end(item, self.record.ends[name])
            return NO_GROUP if identity is None else _text(identity)
        value = self.record.readable_value(item, self.record.fields[name]) if name else ""
        if value is None:
            return NO_GROUP
        return _dumped(encode(self.record.fields[name].type, value) if name else "").decode()

    def order(self, item: Item) -> bytes:
        """Returns the place of an item in its group."""
        value = self.record.readable_value(item, self.source)
        if value is None:
            return _UNRANKED
        try:
            negated = items.number(Decimal(str(value)).copy_negate())
        except ValueError:
            # An average may be nearer to 0 than any number that DynamoDB holds.
            negated = Decimal(0)
        return _TARGET + number_bytes(negated)

    def results(
        self, group: str, rows: Iterable[GroupRow], walked: WalkSource | None = None
    ) -> Iterator[tuple[bytes, Value]]:
        before, place = b"", 0
        for index, row in enumerate(rows, 1):
            if row.order != before:
                before, place = row.order, index
            is_ranked = group != NO_GROUP and row.order != _UNRANKED
            yield row.content, Decimal(place) if is_ranked else None


@dataclass(frozen=True, eq=False)
class OfWalk(Summary):
    """The first nodes that a walk finds."""

    walk: NodeWalk

    stage = WALKS

    def results(
        self, group: str, rows: Iterable[GroupRow], walked: WalkSource | None = None
    ) -> Iterator[tuple[bytes, Value]]:
        if walked is None:
            raise LookupError("a walk needs the edges of its lists")
        value = None
        if group != NO_GROUP:
            value = walked.found(self.walk, Vertex(self.record, tuple(orjson.loads(group))))
        yield from ((row.content, value) for row in rows)


# --- The work -------------------------------------------------------------------------------------------


@dataclass
class Summaries:
    """The summaries of a graph. `graph.made(Summaries)` is shared."""

    graph: Graph
    summaries: list[Summary] = field(default_factory=list)

    def __post_init__(self) -> None:
        tallies = defaultdict[Field, list[Tally]](list)
        for tally in (each for several in self.graph.every_tally.values() for each in several):
            tallies[tally.field].append(tally)
        self.summaries += [
            OfList(several[0].owner, of, self.graph, _by_type(several)) for of, several in tallies.items()
        ]
        for name, copies in self.graph.every_copy.items():
            record = self.graph.types[name]
            self.summaries += [
                OfNode(record, copy.field, copy) for copy in copies if copy.field.is_kept_later
            ]
        for record in self.graph.types.values():
            for each in record.fields.values():
                self.summaries += self._only_by_job(record, each) if each.is_only_by_job else ()

    def _only_by_job(self, record: RecordType, declared: Field) -> Iterator[Summary]:
        graph, lists = self.graph, self.graph.node_lists
        if declared.kept == "walk":
            yield OfWalk(record, declared, graph.walks[record.name, declared.name])
            return
        if declared.kept == "rank":
            yield OfRank(record, declared, record.fields[declared.kept_of])
            return
        names = declared.lists[: 1 if declared.is_of_two_levels else None]
        own = [each for name in names for each in lists[record.name, name].each]
        if not declared.is_of_two_levels:
            make = OfTop if declared.kept == "top" else OfList
            yield make(record, declared, graph, _by_type(_tally(record, declared, each) for each in own))
            return
        nodes = lists[record.name, names[0]].nodes
        second = [(each, path) for each in nodes for path in lists[each.name, declared.lists[1]].each]
        tallies = _by_type(_tally(each, declared, path) for each, path in second)
        links = _by_type(Tally(record, declared, path, None, None, frozenset()) for path in own)
        yield (whole := OfList(record, declared, graph, {}))
        yield OfFirstList(record, declared, graph, tallies, links, whole)

    @cached_property
    def walked(self) -> WalkedEdges:
        """The lists that kept walks follow."""
        return WalkedEdges(self.graph, [each.walk for each in self.summaries if isinstance(each, OfWalk)])

    @cached_property
    def _stored_in(self) -> Mapping[RecordType, Sequence[tuple[int, Summary]]]:
        found = defaultdict[RecordType, list[tuple[int, Summary]]](list)
        for index, summary in enumerate(self.summaries):
            if summary.into is None:
                found[summary.record].append((index, summary))
        return found

    @cached_property
    def _ranks_of(self) -> Mapping[Summary, Sequence[tuple[int, OfRank]]]:
        """The ranks by what the same job computes."""
        computed = {
            each.field: each for each in self.summaries if each.into is None and each.field.is_kept_later
        }
        found = defaultdict[Summary, list[tuple[int, OfRank]]](list)
        for index, summary in enumerate(self.summaries):
            if isinstance(summary, OfRank) and summary.source in computed:
                found[computed[summary.source]].append((index, summary))
        return found

    @cached_property
    def _late(self) -> frozenset[Summary]:
        return frozenset(rank for several in self._ranks_of.values() for _, rank in several)

    def rows(self, item: Item, at: Decimal) -> Iterator[GroupRow]:
        """Yields the rows of an item. `at` is the time of the job in seconds since 1970: what has expired has none."""
        record = None if is_own(item) else self.graph.recognise(item)
        if record is None or self.graph.is_expired(item, at):
            return
        for index, summary in enumerate(self.summaries):
            for group, value in summary.contributions(record, item):
                yield GroupRow(summary.stage, index, group, _CONTRIBUTION, _dumped(value))
            if isinstance(summary, OfFirstList):
                for group, owner in summary.linked(record, item):
                    yield GroupRow(LINKS, index, group, _TARGET, owner.encode())
        for edge in self.walked.of(record, item):
            yield GroupRow(EDGES, 0, edge.list, edge.place, edge.content)
        for index, summary in self._stored_in.get(record, ()):
            if summary not in self._late:
                yield self._target(index, summary, item, self._before(summary, item))

    def image(self, key: Item, time: int, item: Mapping[str, Any] | None) -> GroupRow:
        """Returns the row of an item as it was after a change, in DynamoDB's typed form; None if it was deleted."""
        text = orjson.dumps(
            [items.to_typed(key[each.name]) for each in self.graph.table.keys], default=items.base64_text
        )
        content = b"" if item is None else orjson.dumps(item, default=items.base64_text)
        return GroupRow(IMAGES, 0, text.decode(), time.to_bytes(8), content)

    def newest(self, rows: Iterable[GroupRow], at: Decimal) -> Iterator[GroupRow]:
        """Yields the rows of items, given those of their changes in their order."""
        for _, changes in groupby(rows, key=lambda row: row.key):
            last = deque(changes, maxlen=1).pop()
            if last.content:
                yield from self.rows(items.untyped_item(orjson.loads(last.content)), at)

    def _target(self, index: int, summary: Summary, item: Item, before: bytes) -> GroupRow:
        order = summary.order(item) if isinstance(summary, OfRank) else _TARGET
        return GroupRow(summary.stage, index, summary.group(item), order, before)

    def _before(self, summary: Summary, item: Item) -> bytes:
        """Returns what is kept of an item until its summary is written."""
        several = [summary, *(rank for _, rank in self._ranks_of.get(summary, ()))]
        paths = [path for each in several for path in each.stored]
        names = {path[0] for path in paths} | {key.name for key in self.graph.table.keys}
        if len(several) > 1:
            names = {*item}
        part = {name: item[name] for name in names if name in item}
        return orjson.dumps(items.typed_item(part), default=items.base64_text)

    def combined(self, rows: Iterable[GroupRow]) -> Iterator[GroupRow]:
        """Yields the rows with one for all contributions to a group."""
        values = defaultdict[GroupRow, list[Value]](list)
        for row in rows:
            if row.order == _CONTRIBUTION:
                values[row._replace(content=b"")].append(_loaded(row.content))
            else:
                yield row
        for row, several in values.items():
            yield row._replace(content=_dumped(self.summaries[row.summary].combined(several)))

    def reduced(self, rows: Iterable[GroupRow], walked: WalkSource | None = None) -> Iterator[GroupRow]:
        """Yields the rows of the next stages, given those of one stage in their order. `walked` is for the stage of walks."""
        for (index, group), several in groupby(rows, key=lambda row: (row.summary, row.key)):
            summary = self.summaries[index]
            for content, value in summary.results(group, several, walked):
                if summary.into is None:
                    yield from self._finished(index, content, value)
                else:
                    into = self.summaries.index(summary.into)
                    yield GroupRow(GROUPS, into, content.decode(), _CONTRIBUTION, _dumped(value))

    def _finished(self, index: int, before: bytes, value: Value) -> Iterator[GroupRow]:
        """Yields what is to be written, and what is ranked by it."""
        part = orjson.loads(before)
        key = orjson.dumps([part[key.name] for key in self.graph.table.keys]).decode()
        yield GroupRow(
            WRITES, index, key, b"", orjson.dumps([_typed(value), part], default=items.base64_text)
        )
        ranks = self._ranks_of.get(self.summaries[index], ())
        if ranks:
            item, path = items.untyped_item(part), self.summaries[index].field.kept_attribute
            put_at_path(item, path, value if is_storable(value) else None)
            for number_, rank in ranks:
                yield self._target(number_, rank, item, before)

    def unread_results(self, item: Item) -> list[Result]:
        """Returns a result of each summary that an item stores, with its name in braces instead of a value that depends on
        other items, to explain how it is written."""
        record = self.graph.recognise(item)
        several = () if record is None else self._stored_in.get(record, ())
        return [Result(each, f"{{{each.field.name}}}", item) for _, each in several]

    def result(self, row: GroupRow) -> Result:
        """Returns the value in a row of the last stage."""
        value, before = orjson.loads(row.content)
        return Result(self.summaries[row.summary], _untyped(value), items.untyped_item(before))


def _tally(owner: RecordType, declared: Field, path: AccessPath) -> Tally:
    is_counted = declared.kept in ("degree", "count")
    source = None if is_counted else path.record.fields[declared.kept_of.rpartition(".")[2]]
    return Tally(owner, declared, path, source, None, frozenset())


def _by_type(tallies: Iterable[Tally]) -> dict[RecordType, list[Tally]]:
    found = defaultdict[RecordType, list[Tally]](list)
    for tally in tallies:
        found[tally.record].append(tally)
    return dict(found)


def _text(parts: Sequence[str]) -> str:
    return orjson.dumps(parts).decode()


def _typed(value: Value) -> Mapping[str, Any]:
    """Returns the value in DynamoDB's typed form, or a sum that DynamoDB cannot hold in one like it: other items may
    still make it smaller."""
    try:
        return items.to_typed(value)
    except ValueError:
        if isinstance(value, dict):
            return {_BEYOND: {name: str(each) for name, each in value.items()}}
        return {_BEYOND: str(value)}


def _untyped(typed: Mapping[str, Any]) -> Value:
    beyond = typed.get(_BEYOND)
    if beyond is None:
        return items.from_typed(typed)
    return (
        {name: Decimal(each) for name, each in beyond.items()}
        if isinstance(beyond, dict)
        else Decimal(beyond)
    )


def _dumped(value: Value) -> bytes:
    return orjson.dumps(_typed(value), default=items.base64_text)


def _loaded(content: bytes) -> Value:
    return _untyped(orjson.loads(content))
