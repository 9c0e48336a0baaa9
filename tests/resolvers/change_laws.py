"""The law of changes: whoever listens to them hears what has changed of what they may read, and nothing else.

A random viewer under random rules listens to the changes of every type, while items of a random table are written. What each
write is to the viewer follows from the rules as `NaiveAccess` reads them, and what is in `old` and `new` from what a query
answered before and after it. `python -m tests.resolvers.change_laws 100 --seed 5` takes so many tables.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson
from graphql import GraphQLObjectType, get_nullable_type, is_leaf_type

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable, Store
from keygraph.dynamo.streams import StreamRecord
from keygraph.dynamo.table import Key
from keygraph.engines.open import open_store
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.limits import LiveLimits
from keygraph.model.instances import instance_for
from keygraph.model.records import Method, RecordType
from keygraph_resolvers import NO_LIMITS, OperationRequest, Service, build_schema
from keygraph_resolvers.live import LiveQueries
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.naming.names import change_field
from keygraph_resolvers.schema import field_kinds
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.strawberry_internals import core_schema, strawberry_field
from tests.resolvers.differential import MODELS, model
from tests.resolvers.guarded import NaiveAccess
from tests.resolvers.made_items import made_items, spoilt
from tests.resolvers.made_rules import guarded, made_rules
from tests.resolvers.worlds import SECRET

WRITES = 40
SECONDS = 60.0


class Record(NamedTuple):
    """A record as it is in one item."""

    record: RecordType
    identity: tuple[str, ...]
    item: Item


class Event(NamedTuple):
    kind: str
    old: Any
    new: Any


@dataclass
class Counts:
    tables: int = 0
    writes: int = 0
    events: int = 0
    hidden: int = 0
    """Changes of records of which the viewer hears nothing."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = (
            f"{self.tables} tables, {self.writes} writes, {self.events} events, {self.hidden} changes hidden"
        )
        return f"{told}; {len(self.wrong)} wrong"


class Silent:
    """The changes are handed over by the test."""

    async def start_at_latest(self) -> None: ...

    async def read(self) -> Sequence[Any]:
        await asyncio.Event().wait()
        return ()


async def as_json(response: dict[str, Any]) -> bytes:
    return orjson.dumps(response)


# --- What is heard ------------------------------------------------------------------------------------


@dataclass
class Oracle:
    """Says what a write is to the viewer."""

    graph: Graph
    access: NaiveAccess

    def named(self, item: Item | None) -> Record | None:
        found = None if item is None else self.graph.identified(item)
        return None if found is None or item is None else Record(*found, item)

    def changes(self, old: Item | None, new: Item | None) -> Iterator[tuple[Record | None, Record | None]]:
        """The records that a write of an item changes."""
        before, after = self.named(old), self.named(new)
        if before and after and before[:2] == after[:2]:
            yield before, after
            return
        if before:
            yield before, None
        if after:
            yield None, after

    def kind(self, old: Record | None, new: Record | None) -> str | None:
        seen = [each is not None and self.access.sees(*each) is True for each in (old, new)]
        if not all(seen):
            return "DELETED" if seen[0] else "CREATED" if seen[1] else None
        assert old is not None
        assert new is not None
        record = old.record
        changed = {name for name in (*record.fields, *record.ends) if _value(name, old) != _value(name, new)}
        for name, method in record.methods.items():
            used = {*changed} - {*record.methods} if method.needs is None else changed & {*method.needs}
            is_open = record.access is None or not all(record.access.is_restricted(each) for each in used)
            if used and (is_open or _called(method, old) != _called(method, new)):
                changed.add(name)
        for name in (*record.fields, *record.ends, *record.methods):
            readable = [bool(self.access.reads(record, name, *each[1:])) for each in (old, new)]
            if readable[0] != readable[1] or (readable[0] and name in changed):
                return "UPDATED"
        return None


def _value(name: str, of: Record) -> object:
    record = of.record
    try:
        if name in record.ends:
            return record.end_identity(of.item, record.ends[name])
        return record.reader(record.fields[name])(of.item)
    except CorruptItem as error:
        return str(error)


def _called(method: Method, of: Record) -> object:
    """What a method gives: something else each time where more than the record decides that."""
    try:
        found: object = method.function(instance_for(of.record, of.item, method))
    except Exception as error:
        own = str(error) if isinstance(error, CorruptItem) else Exception
        return object() if method.parameters or method.injected else own
    if inspect.iscoroutine(found):
        found.close()
        return object()
    return object() if method.nodes else found


# --- Writes -------------------------------------------------------------------------------------------


def other_contents(graph: Graph, item: Item, items: Sequence[Item], random: Random) -> Item:
    """The item with attributes of others of its type, or none of its own, or one that does not fit."""
    keys = {key.name for key in graph.table.key_attributes()}
    record = graph.recognise(item)
    alike = [each for each in items if record is not None and graph.recognise(each) is record]
    if random.randrange(6) == 0:
        return spoilt(graph, item, keys, random)
    made = dict(item)
    names = sorted({name for each in alike for name in each} - keys)
    for name in random.sample(names, min(len(names), random.choice((1, 1, 2, 5)))):
        source = random.choice(alike)
        made.pop(name, None)
        if name in source:
            made[name] = source[name]
    return made


def mirror_of(graph: Graph, item: Item, table: Mapping[Key, Item]) -> Key | None:
    """The key of the other item of a mirrored edge; None where it is not there."""
    record = graph.recognise(item)
    other = None if record is None or not record.is_mirrored else graph.counterpart(record, item)
    keys = [] if other is None else graph.table_keys(other.record, other.identity)
    return next((key for key in keys if key in table), None)


def written_pairs(
    graph: Graph, table: dict[Key, Item], gone: dict[Key, Item], random: Random
) -> list[tuple[Item | None, Item | None]]:
    """Writes an item, of a mirrored edge both. Returns what was there before and after."""
    if gone and random.randrange(5) == 0:
        item = gone.pop(random.choice(sorted(gone, key=repr)))
        key = graph.table.key_of(item)
        before = table.get(key)
        table[key] = item
        return [(before, item)] if before != item else []
    key = random.choice(sorted(table, key=repr))
    item = table[key]
    record = graph.recognise(item)
    if record is None or record.is_mirrored:
        try:
            other = mirror_of(graph, item, table) if record is not None else None
        except (CorruptItem, ValueError):
            return []
        pair = [each for each in (key, other) if each is not None]
        if record is not None and len(pair) < 2:
            return []
        if random.randrange(4) == 0 and record is not None:
            return [(table.pop(each), None) for each in pair]
        keys = {each.name for each in graph.table.key_attributes()}
        new = other_contents(graph, item, [*table.values()], random)
        shared = {name: value for name, value in new.items() if name not in keys and name in item}
        found: list[tuple[Item | None, Item | None]] = []
        ends = {
            path[0] for end in (record.ends.values() if record else ()) for path in end.attributes.values()
        }
        for each in pair:
            old = table[each]
            table[each] = {**old, **{name: value for name, value in shared.items() if name not in ends}}
            found.append((old, table[each]))
        return [(old, made) for old, made in found if old != made]
    if random.randrange(4) == 0:
        gone[key] = table.pop(key)
        return [(item, None)]
    table[key] = other_contents(graph, item, [*table.values()], random)
    return [(item, table[key])] if table[key] != item else []


# --- The law ------------------------------------------------------------------------------------------


def selection(schema: Any, record: RecordType) -> str:
    """The fields of a node that are values. There is no query for one edge or record: of these, the id."""
    if not record.is_node:
        return "id"
    type_ = core_schema(schema).type_map[record.name]
    assert isinstance(type_, GraphQLObjectType)
    names = [
        name
        for name, each in type_.fields.items()
        if isinstance(kind_of(strawberry_field(each)), field_kinds.Stored)
        and is_leaf_type(get_nullable_type(each.type))
    ]
    return " ".join(["id", *names])


async def of_query(service: Service, schema: Any, viewer: Any, of: Record | None) -> Any:
    """What a query answers of a node, and the id of another record."""
    if of is None:
        return None
    if not of.record.is_node:
        return {"id": global_id(of.record, of.identity)}
    document = f"query Q($id: ID!) {{ node(id: $id) {{ ... on {of.record.name} {{ {selection(schema, of.record)} }} }} }}"
    given = {"id": global_id(of.record, of.identity)}
    return (await service.execute(OperationRequest(document, given, viewer=viewer)))["data"]["node"]


async def judge(name: str, seed: int, folder: Path, counts: Counts) -> None:
    """Writes into one table while somebody listens."""
    base, sample = model(name)
    random = Random(f"changes {name} {seed}")
    items = made_items(base.graph, sample, random, awkward=seed % 3 == 0)
    graph, rules = None, made_rules(base.graph, items, random)
    while graph is None:
        graph = guarded(base.graph, rules)
        rules = rules if graph is not None else made_rules(base.graph, items, random)
    schema = build_schema(graph, live=True)
    oracle, fixed = (
        Oracle(graph, NaiveAccess(rules)),
        {edge.record.name for each in rules.edges.values() for edge in each},
    )
    async with open_store(f"sqlite:{folder / f'{name}-{seed}-changes.db'}", graph.table) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(items)))
        service = Service(schema, store, secret=SECRET, limits=NO_LIMITS)
        queries = LiveQueries(service, Silent(), as_json, limits=LiveLimits(live_events=10_000))
        records = [record for record in graph.types.values() if not record.is_virtual]
        listeners = {}
        for record in records:
            own = selection(schema, record)
            document = f"subscription {{ {change_field(record)} {{ kind old {{ {own} }} new {{ {own} }} }} }}"
            listeners[record] = await queries.listen(OperationRequest(document, viewer=rules.claims))
        async with asyncio.timeout(SECONDS):
            # Nothing says when it has run.
            while not all(each.operation.reads.wanted for each in listeners.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        expected, written = await _write(
            service, schema, store, oracle, (items, rules.claims, fixed), random, counts
        )
        await queries.changed(written)
        for record, listener in listeners.items():
            wanted = expected.get(record.name, [])
            found = []
            async with asyncio.timeout(SECONDS):
                while listener.operation.changes or listener.operation.task:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            while listener._waiting_answers or (listener._waiting is not None and listener._waiting.done()):
                answer = await listener.next()
                assert answer is not None
                found.append(orjson.loads(answer.text)["data"][change_field(record)])
            counts.events += len(found)
            told = [Event(each["kind"], each["old"], each["new"]) for each in found]
            if told != wanted:
                pairs = (pair for pair in zip_longest(told, wanted) if pair[0] != pair[1])
                counts.wrong.append(f"[{name} {seed}] {record.name}: {next(pairs)}")
        queries.close()
    counts.tables += 1


async def _write(
    service: Service,
    schema: Any,
    store: Store,
    oracle: Oracle,
    known: tuple[Sequence[Item], Any, set[str]],
    random: Random,
    counts: Counts,
) -> tuple[dict[str, list[Event]], list[StreamRecord]]:
    """Writes, and returns what is to be heard, by type, with the changes."""
    graph, (items, viewer, fixed) = oracle.graph, known
    table, gone = {graph.table.key_of(item): item for item in items}, dict[Key, Item]()
    expected: dict[str, list[Event]] = {}
    written: list[StreamRecord] = []
    for _ in range(WRITES):
        before = dict(table), dict(gone)
        pairs = written_pairs(graph, table, gone, random)
        changes = [change for pair in pairs for change in oracle.changes(*pair)]
        if any(each is not None and each.record.name in fixed for change in changes for each in change):
            table, gone = before
            continue
        counts.writes += 1
        answers = [[await of_query(service, schema, viewer, old)] for old, _ in changes]
        for old, new in pairs:
            request = (
                BatchWrite(puts=(new,))
                if new is not None
                else BatchWrite(deletes=(graph.table.key_of(old or {}),))
            )
            await store.send(request)
            written.append(
                StreamRecord(graph.table.key_of(new or old or {}), old, new, f"{len(written):09d}", 0.0)
            )
        heard = list[tuple[Record, Event]]()
        for (old, new), answer in zip(changes, answers, strict=True):
            answer.append(await of_query(service, schema, viewer, new))
            kind, named = oracle.kind(old, new), old or new
            if kind is None or named is None:
                counts.hidden += 1
                continue
            seen = (kind != "CREATED", kind != "DELETED")
            event = Event(kind, *(one if each else None for one, each in zip(answer, seen, strict=True)))
            heard.append((named, event))
        if len(heard) == 2 and heard[0][0].record is heard[1][0].record and heard[0][0].record.is_mirrored:
            heard = [min(heard, key=lambda pair: pair[0].identity)]
        for named, event in heard:
            expected.setdefault(named.record.name, []).append(event)
    return expected, written


async def run(tables: int, seed: int, names: Sequence[str] = MODELS) -> Counts:
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(seed, seed + tables):
            await judge(names[turn % len(names)], turn, Path(folder), counts)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = asyncio.run(run(given.tables, given.seed))
    sys.stdout.write("\n".join([*counts.wrong[:5], str(counts)]) + "\n")
    sys.exit(bool(counts.wrong))


if __name__ == "__main__":
    main()
