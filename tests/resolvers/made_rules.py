"""Random access rules for a graph, and the graph with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Any, NamedTuple

from keygraph import Graph, create, delete, read, update, viewer, write
from keygraph.access.language import AccessRule, Claim
from keygraph.declare.declaration import Declaration, ListOptions, StoredAs, declaration_of
from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.resolve.record_types import GraphOptions

ROLES = ("r1", "r2")
KINDS = ("id", "string", "int", "boolean", "enum")


@dataclass
class Rules:
    """What is said of each type and its fields, and the claims of somebody about whom it is."""

    types: dict[str, list[AccessRule]]
    own: dict[str, dict[str, list[AccessRule]]]
    claims: dict[str, Any]
    edges: dict[tuple[str, str], list[Edge]] = field(default_factory=dict)
    """The edges that rules ask for, by the type and the name of the list."""
    wall: list[AccessRule] = field(default_factory=list)
    """The rules of the graph."""
    outside: frozenset[str] = frozenset()
    """The types that the wall is not about."""


class Edge(NamedTuple):
    """An edge of a list, by the texts of the nodes at its ends."""

    near: tuple[str, ...]
    far: str
    record: RecordType
    item: Item


def made_rules(graph: Graph, items: Sequence[Item], random: Random, *, writes: bool = False) -> Rules:
    """Rules with which much is seen, and much is not; of writing too, if it is asked for."""
    made = Rules({}, {}, {"roles": [role for role in ROLES if random.random() < 0.4]})
    if random.random() < 0.3:
        make_wall(graph, items, made, random, writes=writes)
    for record in graph.types.values():
        there = [item for item in items if graph.recognise(item) is record]
        rule = RuleMaker(record, there, random, made.claims).rule
        if random.random() < 0.93:
            made.types[record.name] = [rule(of_type=True) for _ in range(random.choice((1, 1, 2, 3)))]
        if random.random() < 0.3 and (linked := made_link(graph, record, items, made, random)) is not None:
            made.types.setdefault(record.name, []).append(linked)
        if random.random() < 0.4:
            made.types[record.name] = [read()]
        if writes and record.writes:
            made.types[record.name] = [*made.types.get(record.name, ()), *made_writes(record, rule, random)]
        key = {slot.path[0] for slot in record.identity}
        names = [name for name in record.order if name not in key and name not in record.methods]
        chosen = random.sample(names, min(len(names), random.choice((0, 1, 2))))
        made.own[record.name] = {name: [rule(of_type=False)] for name in chosen}
        for name in chosen:
            if writes and (name in record.fields or name in record.ends) and random.random() < 0.5:
                made.own[record.name][name].append(_writing(rule(of_type=False), random, is_field=True))
    return made


def make_wall(
    graph: Graph, items: Sequence[Item], made: Rules, random: Random, *, writes: bool = False
) -> None:
    """Rules of the graph: for a role, or about a field that some types have."""
    record = random.choice(sorted(graph.types.values(), key=lambda each: each.name))
    there = [item for item in items if graph.recognise(item) is record]
    rule = RuleMaker(record, there, random, made.claims).rule(of_type=False)
    made.wall = [rule]
    if random.random() < 0.4:
        made.wall.append(read(role=random.choice(ROLES)))
    if rule.where is not None:
        names = names_in(rule.where)
        made.outside = frozenset(
            each.name for each in graph.types.values() if not names <= each.fields.keys() | each.ends.keys()
        )
    if writes and random.random() < 0.5:
        made.wall.append(write(role=random.choice((None, "r1"))))


def names_in(where: Mapping[str, Any]) -> set[str]:
    """The fields and ends that a condition is about."""
    found: set[str] = set()
    for name, said in where.items():
        parts = said if name in ("and", "or") else [said] if name == "not" else []
        found |= {inner for part in parts for inner in names_in(part)} if parts else {name}
    return found


def made_writes(record: RecordType, rule: Callable[..., AccessRule], random: Random) -> list[AccessRule]:
    """Who may write records of a type: often everybody everything, or what a condition says."""
    if random.random() < 0.4:
        return [write()]
    made = [_writing(rule(of_type=True), random) for _ in range(random.choice((1, 2, 3)))]
    return made if random.random() < 0.5 else [*made, create(), update(role="r1")]


def _writing(rule: AccessRule, random: Random, *, is_field: bool = False) -> AccessRule:
    word = random.choice(
        (create, update, write) if rule.fields or is_field else (create, update, write, delete)
    )
    said = {} if rule.fields is None else {"fields": rule.fields}
    return word(role=rule.role, where=rule.where, **said)  # type: ignore[operator]  # delete has no fields


def made_link(
    graph: Graph, record: RecordType, items: Sequence[Item], made: Rules, random: Random
) -> AccessRule | None:
    """A rule that asks for an edge of a list: of the record's own, or of that of a node at an end."""
    through = [
        None,
        *(end.name for end in record.ends.values() if end.text is None and len(end.members) == 1),
    ]
    name = random.choice(through)
    owner = record if name is None else record.ends[name].members[0]
    lists = [
        path
        for (node, _), path in graph.node_lists.items()
        if node == owner.name and len(path.each) == 1 and _is_plain_edge(path)
    ]
    if not lists:
        return None
    path = random.choice(lists)
    edge, near, far = path.record, path.end or "", path.far_end or ""
    edges = made.edges[owner.name, path.name] = []
    for item in items:
        if graph.recognise(item) is edge and (identity := edge.read_identity(item)):
            ends = [edge.end_readers[each](identity) for each in (near, far)]
            edges.append(Edge(ends[0], ends[1][0], edge, item))
    claim = f"{owner.name}.{path.name}"
    if edges and random.random() < 0.8:
        made.claims.setdefault(claim, random.choice(edges).far)
    said: Any = {path.name: {far: viewer(claim)}}
    if random.random() < 0.2:
        said = {"not": said}
    return read(
        where=said if name is None else {name: said} if "not" not in said else {"not": {name: said["not"]}}
    )


def _is_plain_edge(path: AccessPath) -> bool:
    """Whether the two nodes at the ends of a list's edges, each of one text, are all of their key."""
    edge = path.record
    if edge.kind != "edge" or path.far_end is None or path.end is None or edge.table_keys.shards:
        return False
    ends = [edge.ends[each] for each in (path.end, path.far_end)]
    plain = all(
        end.text is None
        and len(end.identity) == 1
        and end.identity[0].text.is_plain_text
        and not end.identity[0].lossy
        for end in ends
    )
    return (
        plain
        and {slot.path[0] for slot in edge.identity} == {path.end, path.far_end}
        and len(edge.identity) == 2
    )


@dataclass
class RuleMaker:
    """Makes rules of one type; what they say of claims is put into the claims."""

    record: RecordType
    items: Sequence[Item]
    random: Random
    claims: dict[str, Any]

    def rule(self, *, of_type: bool) -> AccessRule:
        random = self.random
        role = random.choice((None, None, "r1", ["r1", "r2"]))
        where = self.where() if random.random() < 0.7 else None
        names = self.record.order
        some = random.sample(names, random.randrange(1, len(names) + 1)) if names else None
        return read(role=role, where=where, fields=some if of_type and random.random() < 0.2 else None)

    def where(self, depth: int = 0) -> Mapping[str, Any] | None:
        record, random = self.record, self.random
        shape = random.randrange(8) if depth < 2 else 0
        if shape == 7 and (inner := self.where(depth + 1)):
            return {"not": inner}
        if shape == 6:
            parts = [part for part in (self.where(depth + 1), self.where(depth + 1)) if part]
            return {random.choice(("and", "or")): parts} if parts else None
        lossy = {slot.path[0] for slot in record.identity if slot.lossy}
        fields = [
            field.name
            for field in record.fields.values()
            if field.type.kind in KINDS and field.type.written is None and field.name not in lossy
        ]
        ends = [
            end.name
            for end in record.ends.values()
            if end.text is None
            and len(end.identity) == 1
            and end.name not in lossy
            and end.identity[0].text.is_plain_text
            and not end.identity[0].lossy
        ]
        if not fields and not ends:
            return None
        name = random.choice([*fields, *ends])
        values = [value for item in self.items if (value := known_value(record, name, item)) is not None]
        value = random.choice(values) if values else "none"
        if not values and name in fields and record.fields[name].type.kind not in ("id", "string"):
            return None
        if name in ends or (random.random() < 0.6 and not isinstance(value, float)):
            claim = f"{record.name}.{name}{random.choice('ab')}"
            told = value.value if isinstance(value, Enum) else value
            if claim not in self.claims and random.random() < 0.9:
                self.claims[claim] = [told, told] if random.random() < 0.2 else told
            value = viewer(claim)
        operator = random.choice(("eq", "eq", "ne", "in"))
        if operator == "in":
            if not isinstance(value, Claim) and record.fields[name].type.kind == "boolean":
                return {name: value}
            return {name: {"in": [value]}} if self._has(name, "in") else {name: value}
        return {name: value} if operator == "eq" else {name: {"ne": value}}

    def _has(self, name: str, operator: str) -> bool:
        return name in self.record.ends or self.record.fields[name].type.kind != "boolean"


@contextmanager
def declared(graph: Graph, rules: Rules) -> Iterator[None]:
    before: list[tuple[type, Declaration]] = []
    for record in graph.types.values():
        cls, own = record.cls, rules.own[record.name]
        told = declaration_of(cls)
        assert told is not None
        before.append((cls, told))
        said = {
            name: meaning
            for each in reversed(cls.__mro__)
            for name, meaning in getattr(declaration_of(each), "own", {}).items()
        }
        meanings = dict(told.own)
        for name, rules_of_name in own.items():
            plain = ListOptions(None, None, True) if name in record.lists else StoredAs((), {})
            meanings[name] = replace(said.get(name, plain), access=rules_of_name)
        cls.__keygraph__ = replace(told, access=rules.types.get(record.name, ()), own=meanings)
    try:
        yield
    finally:
        for cls, told in before:
            cls.__keygraph__ = told


def guarded(graph: Graph, rules: Rules) -> Graph | None:
    """The same graph with rules; None where they have mistakes."""
    with declared(graph, rules):
        outside = [record.cls for record in graph.types.values() if record.name in rules.outside]
        options: GraphOptions = {**graph.options, "access": rules.wall, "shared": outside}
        made = Graph(graph.table, *graph.classes, **options)
        return None if made.mistakes or not made.has_access_rules else made


def known_value(record: RecordType, name: str, item: Item) -> Any:
    """The value of a field, as a model sees it, of an end the text of its key; None where the item has none that fits."""
    try:
        if name in record.fields:
            return record.reader(record.fields[name])(item)
        identity = record.end_identity(item, record.ends[name])
        return None if identity is None else identity[0]
    except CorruptItem:
        return None
