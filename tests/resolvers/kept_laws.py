"""Laws of kept values under access rules: random copies, counts and sums on the models of `rule_laws`, with random rules.

`python -m tests.resolvers.kept_laws 10000` asks so many operations. Either `check()` refuses such a model, or the answer,
with its errors and its cost report, is the same in two tables that differ in what the viewer may not see. A kept value is
part of that:

- One with rules of its own that the viewer may read stays: whoever declares the model said that they may know it.
- One that they may not read follows what it was made of in the other table, or is another one.
- One without rules of its own follows it too, so where it tells of what is hidden, the answers differ.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from keygraph import Graph, Long, read
from keygraph.declare.declaration import OF_ENDS, Declaration, Kept, StoredAs, declaration_of
from keygraph.dynamo.conditions import at_path, put_at_path
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.dynamo.table import Key
from keygraph.engines.open import open_store
from keygraph.model.fields import Field
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Copy, Tally, as_stored, combined
from keygraph_resolvers import NO_LIMITS, Service, build_schema
from tests.resolvers.differential import model, run_served
from tests.resolvers.guarded import MODELS
from tests.resolvers.made_items import made_items
from tests.resolvers.made_operations import Operation, Words, words_of
from tests.resolvers.made_rules import ROLES, RuleMaker, Rules, guarded, made_rules
from tests.resolvers.many_operations import main
from tests.resolvers.rule_laws import Laws, Table, _is_done, json_copy
from tests.resolvers.worlds import SECRET

PLAIN = frozenset({"id", "string", "int", "long", "float", "decimal", "boolean", "enum", "datetime", "date"})


# --- Models -------------------------------------------------------------------------------------------


@dataclass
class KeptField:
    """A kept value that is added to a type."""

    record: RecordType
    kept: Kept
    of: str
    annotation: Any
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"kept_{self.of.replace('.', '_')}_{self.kept}"


def possible_fields(graph: Graph) -> Iterator[KeptField]:
    """The counts, sums and copies that the types of a graph may have."""
    for (owner, name), path in graph.node_lists.items():
        record = graph.types[owner]
        yield KeptField(record, "count", name, int | None)
        for each in path.record.fields.values() if len(path.each) == 1 else ():
            if each.type.kind in ("int", "long", "decimal", "float") and each.type.written is None:
                kind: Any = {"int": Long, "long": Long, "decimal": Decimal, "float": float}[each.type.kind]
                yield KeptField(record, "sum", f"{name}.{each.name}", kind | None)
                yield KeptField(record, "average", f"{name}.{each.name}", Decimal | None)
            if each.type.kind in PLAIN and not each.kept:
                annotation = annotation_of(path.record.cls, each.name)
                for kept in OF_ENDS:
                    yield KeptField(record, kept, f"{name}.{each.name}", annotation)
    for record in graph.types.values():
        for end in record.ends.values():
            for source in end.members[0].fields.values():
                if source.type.kind in PLAIN and not source.kept:
                    annotation = annotation_of(end.members[0].cls, source.name)
                    yield KeptField(record, "copy", f"{end.name}.{source.name}", annotation)


def annotation_of(cls: type, name: str) -> Any:
    found = next(own[name] for each in cls.__mro__ if name in (own := inspect.get_annotations(each)))
    if isinstance(found, str):
        return found if found.endswith("| None") else f"{found} | None"
    return found | None


@contextmanager
def added(fields: Sequence[KeptField]) -> Iterator[None]:
    """The classes of a model with these fields."""
    before: list[tuple[type, Declaration]] = []
    for each in fields:
        cls = each.record.cls
        told = declaration_of(cls)
        assert told is not None
        before.append((cls, told))
        path = each.path or (each.name,)
        meaning = StoredAs(path, {}, kept=each.kept, kept_of=each.of)
        cls.__keygraph__ = replace(told, own={**told.own, each.name: meaning})  # type: ignore[attr-defined]
        cls.__annotations__[each.name] = each.annotation
    try:
        yield
    finally:
        for each, (cls, told) in zip(reversed(fields), reversed(before), strict=True):
            cls.__keygraph__ = told  # type: ignore[attr-defined]
            del cls.__annotations__[each.name]


def made_fields(graph: Graph, random: Random) -> list[KeptField]:
    """Some of the kept values that a graph may have, so that it has no mistakes without rules."""
    possible = [*possible_fields(graph)]
    fields = random.sample(possible, min(len(possible), random.randrange(2, 9)))
    while True:
        with added(fields):
            mistakes = Graph(graph.table, *graph.classes, **graph.options).mistakes
        wrong = {each.where for each in mistakes}
        left = [each for each in fields if f"{each.record.name}.{each.name}" not in wrong]
        if left == fields:
            assert not mistakes, mistakes
            return fields
        fields = left


def allow_some(graph: Graph, fields: Sequence[KeptField], rules: Rules, random: Random) -> None:
    """Gives kept values rules of their own, or none."""
    for each in fields:
        own = rules.own[each.record.name]
        match random.randrange(6):
            case 0 | 1:
                own.pop(each.name, None)
            case 2:
                own[each.name] = [read()]
            case 3 | 4:
                own[each.name] = [read(role=random.choice(ROLES))]
            case _:
                there = RuleMaker(graph.types[each.record.name], (), random, rules.claims)
                own[each.name] = [there.rule(of_type=False)]


# --- Values -------------------------------------------------------------------------------------------


class KeptValues:
    """The kept values of a table, worked out from its items."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.fields: dict[RecordType, list[Field]] = {}
        for tally in (each for several in graph.tallies.values() for each in several):
            self.fields.setdefault(tally.owner, []).append(tally.field)
        for name, copies in graph.copies.items():
            self.fields.setdefault(graph.types[name], []).extend(each.field for each in copies)

    def of(self, items: Sequence[Item]) -> dict[tuple[Key, str], Any]:
        """The values by the keys of their items, and by their names."""
        graph, added = self._graph, dict[tuple[Key, str], tuple[Field, list[Any]]]()
        there = {graph.table.key_of(item): item for item in items}
        for key, item in there.items():
            record = graph.recognise(item)
            for each in self.fields.get(record, ()) if record else ():
                if each.kept != "copy":
                    added[key, each.name] = each, []
        for item in items:
            record = graph.recognise(item)
            for tally in graph.tallies.get(record.name, ()) if record else ():
                self._add(tally, item, added)
        found: dict[tuple[Key, str], Any] = {
            place: combined(each, values) for place, (each, values) in added.items()
        }
        for item in items:
            record = graph.recognise(item)
            for each in graph.copies.get(record.name, ()) if record else ():
                assert record is not None
                value = self._copied(record, each, item, there)
                if value is not None:
                    found[graph.table.key_of(item), each.field.name] = value
        return found

    def _add(
        self, tally: Tally, item: Item, added: Mapping[tuple[Key, str], tuple[Field, list[Any]]]
    ) -> None:
        counted = tally.of(item)
        for key in self._graph.table_keys(tally.owner, counted[0]) if counted else ():
            if counted and (key, tally.field.name) in added:
                added[key, tally.field.name][1].append(counted[1])

    def _copied(self, record: RecordType, copied: Copy, item: Item, there: Table) -> Any:
        try:
            identity = record.end_identity(item, copied.end)
            members, own = copied.end.nodes(identity or ())
        except Exception:
            return None
        for key in self._graph.table_keys(members[0], own) if identity is not None else ():
            node = there.get(key)
            source = None if node is None else self._graph.recognise(node)
            if node is not None and source in copied.sources:
                return at_path(node, copied.sources[source].attribute)
        return None


def put(item: Item, field: Field, value: Any) -> None:
    if value is not None:
        put_at_path(item, field.kept_attribute, as_stored(field, value, item))
    elif len(field.kept_attribute) == 1:
        item.pop(field.kept_attribute[0], None)


# --- Tables -------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class KeptLaws(Laws):
    """A random table of a model with kept values."""

    values: KeptValues = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tables = [self._followed(items) for items in self._tables]

    def _followed(self, others: Sequence[Item]) -> list[Item]:
        """The other table, with the kept values that are not said to be known to the viewer as they follow there."""
        graph = self.graph
        before, after = self.values.of(self.items), self.values.of(others)
        there, found = self._by_key(self.items), list[Item]()
        for other in others:
            key, record = graph.table.key_of(other), graph.recognise(other)
            made, own = json_copy(other), there[key]
            for each in self.values.fields.get(record, ()) if record else ():
                assert record is not None
                is_read = self.access.reads(record, each.name, record.read_identity(own) or (), own)
                access = record.access
                if is_read and access is not None and access.guards(each.name):
                    put(made, each, at_path(own, each.kept_attribute))
                elif before.get((key, each.name)) != after.get((key, each.name)):
                    is_gone = each.kept == "copy" and (key, each.name) not in after
                    put(
                        made,
                        each,
                        at_path(own, each.kept_attribute) if is_gone else after.get((key, each.name)),
                    )
            found.append(made)
        return found

    async def _check_written(
        self, name: str, operation: Operation, found: Mapping[str, Any], before: Table, table: Table
    ) -> None:
        """What may be written is a law of `rule_laws`."""
        assert _is_done(found) or table == before, "failed, and wrote"


@asynccontextmanager
async def served(name: str, seed: int, folder: Path) -> AsyncIterator[KeptLaws]:
    """A random table of a model with random kept values, rules and a viewer; the seed says which."""
    plain, sample = model(name)
    random = Random(f"kept {seed}")
    fields = made_fields(plain.graph, random)
    with added(fields):
        graph = Graph(plain.graph.table, *plain.graph.classes, **plain.graph.options)
        values = KeptValues(graph)
        items = made_items(graph, sample, random, awkward=seed % 3 == 0)
        for (key, of), value in values.of(items).items():
            item = next(each for each in items if graph.table.key_of(each) == key)
            record = graph.recognise(item)
            if record is not None and random.randrange(12):
                put(item, record.fields[of], value)
        made: Graph | None = None
        while made is None:
            rules = made_rules(graph, items, random, writes=True)
            allow_some(graph, fields, rules, random)
            made = guarded(graph, rules)
    async with open_store(f"sqlite:{folder / f'{name}-{seed}-kept.db'}", made.table) as store:
        await store.send(CreateTable())
        services = [
            Service(each, store, secret=SECRET, limits=NO_LIMITS)
            for each in (build_schema(made), build_schema(graph))
        ]
        known: dict[str, list[Words]] = {}
        for item in items:
            record = graph.recognise(item)
            if record is not None:
                known.setdefault(record.name, []).append(words_of(services[1].schema, [item]))
        words = words_of(services[1].schema, items)
        yield KeptLaws(
            f"{name} {seed}",
            made,
            store,
            items,
            rules,
            *services,
            services[0].schema,
            words,
            known,
            values=KeptValues(made),
        )


run = partial(run_served, served, of_each=25)  # type: ignore[arg-type]
"""Asks that many operations in all, and gives what was found."""

if __name__ == "__main__":
    main(__doc__, MODELS, run)
