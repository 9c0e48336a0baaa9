"""Random items of a model, and what each one says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from tests.resolvers.judge.plain import Identity, Model, Slot, Type


class Gone:
    """The value of a field that every item should have, and this one lacks."""


GONE = Gone()


@dataclass(eq=False, repr=False)
class Row:
    """An item, its type (None: no declared one), and what it says."""

    type: Type | None
    values: dict[str, Any]
    item: dict[str, Any]
    hidden: Type | None = None
    """The type of which it has the keys, though it says another one: an index that lacks what it says shows it so."""
    stale: dict[str | None, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """What the keys of indexes say where that is not what the item says."""
    rendered: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Of an item that a mutation has changed: its keys, if all of them are written anew."""

    def __repr__(self) -> str:
        return f"{self.type} {' / '.join(self.key)}"

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.item[name] for name in ("PK", "SK") if name in self.item)

    def values_in(self, index: str | None) -> dict[str, Any]:
        return self.stale.get(index, self.values)

    @property
    def identity(self) -> Identity:
        return tuple((name, self.values[name]) for name in (self.type.identity if self.type else ()))


def put(item: dict[str, Any], attribute: str, value: Any) -> None:
    name, _, member = attribute.partition(".")
    item[name] = {**item.get(name, {}), member: value} if member else value


def take(item: dict[str, Any], attribute: str) -> Any:
    """Removes an attribute, or a member of a map, and returns what it was."""
    name, _, member = attribute.partition(".")
    if not member:
        return item.pop(name, None)
    held = dict(item.get(name, {}))
    found = held.pop(member, None)
    if name in item:
        item[name] = held
    return found


def made_rows(model: Model, random: Random) -> list[Row]:
    known = {node.name: _identities(node, random) for node in model.nodes}
    found: dict[tuple[str, ...], Row] = {}
    for type_ in model.types:
        if type_.is_virtual:
            continue
        wanted = known[type_.name] if type_.kind == "node" else [()] * random.choice([15, 30, 45])
        for identity in wanted:
            if type_.kind == "node" and random.randrange(8) == 0:
                continue  # nothing but a name that others know
            row = made_row(model, type_, dict(identity), known, random)
            if row is not None and row.key not in found:
                found[row.key] = row
                if type_.is_mirrored and random.randrange(10):
                    one, other = type_.key_ends
                    values = {**row.values, one: row.values[other], other: row.values[one]}
                    mirror = written(model, type_, values, random)
                    if mirror is not None:
                        found.setdefault(mirror.key, mirror)
    rows = [*found.values()]
    for row in rows:
        if random.randrange(12) == 0:
            _spoil(model, row, random)
    for row in random.sample(rows, min(3, len(rows))):
        stranger = _stranger(model, row, random)
        found.setdefault(stranger.key, stranger)
    return [*found.values()]


def _identities(node: Type, random: Random) -> list[Identity]:
    count = 12 if len(node.identity) > 1 or len(node.ends) else 6
    return [*dict.fromkeys(made_identity(node, random) for _ in range(count))]


def made_identity(node: Type, random: Random) -> Identity:
    return tuple((name, random.choice(node.fields[name].kind.pool)) for name in node.identity)


def made_row(
    model: Model, type_: Type, values: dict[str, Any], known: Mapping[str, list[Identity]], random: Random
) -> Row | None:
    """A row that says these values, and others that are drawn."""
    given = {*values}
    for field in type_.fields.values():
        if field.name not in values:
            is_none = field.optional and random.randrange(4) == 0
            values[field.name] = None if is_none else random.choice(field.kind.pool)
    shared: dict[str, Any] = {}
    for end in type_.ends.values():
        if end.name in given:
            shared |= {end.attributes[key]: value for key, value in values[end.name] or ()}
            continue
        wanted = [
            each
            for node in end.nodes
            for each in known[node.name]
            if end.others or all(shared.get(end.attributes[key], value) == value for key, value in each)
        ]
        if not wanted or (end.optional and random.randrange(4) == 0):
            values[end.name] = None
            if not end.optional:
                return None
            continue
        values[end.name] = random.choice(wanted if end.others else wanted[:4])
        if not end.others:
            shared |= {end.attributes[key]: value for key, value in values[end.name]}
    return written(model, type_, values, random)


def written(model: Model, type_: Type, values: dict[str, Any], random: Random) -> Row | None:
    """The item that says these values."""
    item: dict[str, Any] = {model.type_attribute: type_.name} if model.type_attribute else {}
    for name in type_.keys:
        if name is not None and not model.indexes[name].is_written:
            continue
        keys = _keys(model, type_, name, values, random)
        if keys is None and name is None:
            return None
        item |= keys or {}
    for field in type_.fields.values():
        if values[field.name] is not None and field.attribute:
            put(item, field.attribute, field.kind.attribute(values[field.name]))
    for end in type_.ends.values():
        if (end.others or end.is_whole) and values[end.name] is not None:
            key = end.key if end.others else next(iter(end.attributes.values()))
            item[key] = end.of(values[end.name]).partition_text(values[end.name])
            continue
        for key, value in values[end.name] or ():
            item[end.attributes[key]] = end.node.fields[key].kind.attribute(value)
    return Row(type_, values, item)


def _keys(
    model: Model, type_: Type, index: str | None, values: dict[str, Any], random: Random
) -> dict[str, Any] | None:
    """What an item that says these values has as its key in an index; None where it is not in it."""
    pair = type_.keys[index]
    attributes = ("PK", "SK") if index is None else model.indexes[index].attributes
    shard = random.choice(pair.shards) if pair.shards else ""
    texts = [type_.text(values, pair.partition, shard)]
    texts += [] if pair.sort is None else [type_.text(values, pair.sort)]
    if None in texts:
        return None
    keys: dict[str, Any] = dict(zip(attributes, texts, strict=False))
    if index is not None and model.indexes[index].is_number:
        keys[attributes[1]] = Decimal(str(texts[1]))
    return keys


def _spoil(model: Model, row: Row, random: Random) -> None:
    """Takes something from an item: an index, its type, or an attribute."""
    type_ = row.type
    if type_ is None:
        return
    kind = random.randrange(6)
    indexes = [name for name in type_.keys if name is not None and model.indexes[name].is_written]
    if kind == 0 and indexes:
        for attribute in model.indexes[random.choice(indexes)].attributes:
            if attribute != "PK":
                row.item.pop(attribute, None)
    elif kind == 1 and model.type_attribute and not any(pair.shards for pair in type_.keys.values()):
        row.item[model.type_attribute] = "Stranger"
        row.type, row.hidden = None, type_
    elif kind > 3:
        _outdate(model, row, random)
    elif kind == 2:
        names = [
            name
            for name in type_.fields
            if not any(name in type_.sources(pair) for pair in type_.keys.values())
        ]
        if names:
            field = type_.fields[random.choice(names)]
            take(row.item, field.attribute or "")
            if not field.optional:
                row.values[field.name] = GONE
            else:
                row.values[field.name] = None
    elif kind == 3 and not model.awkward:
        # What the table's key tells need not be an attribute.
        pair = type_.keys[None]
        told = {
            slot.path[0]
            for template in (pair.partition, pair.sort or ())
            for slot in type_.slots(template)
            if len(slot.path) == 1 and not slot.form.loses
        }
        plain = {each for index in model.indexes.values() if index.is_plain for each in index.attributes}
        names = [name for name in told if name in type_.fields and type_.fields[name].attribute not in plain]
        if names:
            take(row.item, type_.fields[random.choice(sorted(names))].attribute or "")


def _outdate(model: Model, row: Row, random: Random) -> None:
    """Writes the key of an index as if something in it had been otherwise, and nobody had written it anew; or a word for
    what is not there."""
    type_ = row.type
    assert type_ is not None
    indexes = [
        name
        for name in type_.keys
        if name is not None and model.indexes[name].is_written and model.indexes[name].projection == "ALL"
    ]
    if not indexes or model.awkward:
        return
    index = random.choice(indexes)
    pair = type_.keys[index]
    names = {slot.path[0] for part in (pair.partition, pair.sort or ()) for slot in type_.slots(part)}
    names = {type_.methods[name].need if name in type_.methods else name for name in names}
    told = {
        slot.path[0]
        for part in (type_.keys[None].partition, type_.keys[None].sort or ())
        for slot in type_.slots(part)
    }
    names -= told | {type_.methods[name].need for name in told if name in type_.methods}
    fields = [type_.fields[name] for name in sorted(names) if name in type_.fields]
    fields = [field for field in fields if row.values[field.name] is not GONE]
    if not fields:
        return
    field = random.choice(fields)
    left = ["undefined"] if row.values[field.name] is None and field.kind.is_text else []
    values = {**row.values, field.name: random.choice([*left * 3, *field.kind.pool])}
    keys = _keys(model, type_, index, values, random)
    if keys is not None and (not model.indexes[index].is_local or keys["PK"] == row.item["PK"]):
        row.item |= keys
        row.stale[index] = values


def _stranger(model: Model, row: Row, random: Random) -> Row:
    """An item of no type that stands among those of another."""
    other_key = random.choice(["%other", "~~other", "\U0010ffff"])
    item: dict[str, Any] = {"PK": other_key} if model.is_flat else {"PK": row.item["PK"], "SK": other_key}
    if model.type_attribute:
        item[model.type_attribute] = "Stranger"
    for index in model.indexes.values():
        if index.is_written and index.attributes[0] in row.item and random.randrange(2):
            partition, *sort = index.attributes
            item[partition] = row.item[partition]
            for name in sort:
                other: Any = Decimal(5) if index.is_number else random.choice(["%other", "~~other"])
                item[name] = row.item.get(name, other) if random.randrange(2) else other
    if row.type is not None:
        first, *_ = row.type.keys[None].sort or row.type.keys[None].partition
    if model.type_attribute and row.type is not None and not isinstance(first, Slot) and random.randrange(2):
        # It says a type whose keys it does not have, which is told by their beginning.
        item[model.type_attribute] = row.type.name
    return Row(None, {}, item)
