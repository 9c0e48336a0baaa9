"""Random items of a model, and what each one says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from tests.resolvers.judge.plain import Model, Type


class Gone:
    """The value of a field that every item should have, and this one lacks."""


GONE = Gone()
Identity = tuple[tuple[str, Any], ...]


@dataclass(eq=False, repr=False)
class Row:
    """An item, its type (None: no declared one), and what it says."""

    type: Type | None
    values: dict[str, Any]
    item: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.type} {self.item['PK']} / {self.item['SK']}"

    @property
    def identity(self) -> Identity:
        """Of a node."""
        return tuple((name, self.values[name]) for name in (self.type.identity if self.type else ()))


def made_rows(model: Model, random: Random) -> list[Row]:
    """The items of a table."""
    known = {node.name: _identities(node, random) for node in model.nodes}
    found: dict[tuple[Any, Any], Row] = {}
    for type_ in model.types:
        if type_.is_virtual:
            continue
        wanted = known[type_.name] if type_.kind == "node" else [()] * random.choice([15, 30, 45])
        for identity in wanted:
            if type_.kind == "node" and random.randrange(8) == 0:
                continue  # nothing but a name that others know
            row = _row(model, type_, dict(identity), known, random)
            if row is not None:
                found.setdefault((row.item["PK"], row.item["SK"]), row)
    rows = [*found.values()]
    for row in rows:
        if random.randrange(12) == 0:
            _spoil(model, row, random)
    for row in random.sample(rows, min(3, len(rows))):
        stranger = _stranger(model, row, random)
        if (stranger.item["PK"], stranger.item["SK"]) not in found:
            found[stranger.item["PK"], stranger.item["SK"]] = stranger
    return [*found.values()]


def _identities(node: Type, random: Random) -> list[Identity]:
    """The names of a few nodes."""
    found: dict[Identity, None] = {}
    for _ in range(12 if len(node.identity) > 1 or len(node.ends) else 6):
        made = tuple((name, random.choice(node.fields[name].kind.pool)) for name in node.identity)
        found[made] = None
    return [*found]


def _row(
    model: Model, type_: Type, values: dict[str, Any], known: Mapping[str, list[Identity]], random: Random
) -> Row | None:
    for field in type_.fields.values():
        if field.name not in values:
            is_none = field.optional and random.randrange(4) == 0
            values[field.name] = None if is_none else random.choice(field.kind.pool)
    shared: dict[str, Any] = {}
    for end in type_.ends.values():
        wanted = [
            each
            for each in known[end.node.name]
            if all(shared.get(end.attributes[key], value) == value for key, value in each)
        ]
        if not wanted or (end.optional and random.randrange(4) == 0):
            values[end.name] = None
            if not end.optional:
                return None
            continue
        values[end.name] = random.choice(wanted[:4])
        shared |= {end.attributes[key]: value for key, value in values[end.name]}
    item: dict[str, Any] = {model.type_attribute: type_.name} if model.type_attribute else {}
    for name, pair in type_.keys.items():
        attributes = ("PK", "SK") if name is None else model.indexes[name].attributes
        if name is not None and model.indexes[name].is_plain:
            continue
        shard = random.choice(pair.shards) if pair.shards else ""
        texts = [type_.text(values, pair.partition, shard), type_.text(values, pair.sort or ())]
        if None in texts:
            if name is None:
                return None
            continue
        keys: dict[str, Any] = dict(zip(attributes, texts, strict=True))
        if name is not None and model.indexes[name].is_number:
            keys[attributes[1]] = Decimal(str(texts[1]))
        item |= keys
    for field in type_.fields.values():
        if values[field.name] is not None and field.attribute:
            item[field.attribute] = field.kind.attribute(values[field.name])
    for end in type_.ends.values():
        for key, value in values[end.name] or ():
            item[end.attributes[key]] = end.node.fields[key].kind.attribute(value)
    return Row(type_, values, item)


def _spoil(model: Model, row: Row, random: Random) -> None:
    """Takes something from an item: an index, its type, or an attribute."""
    type_ = row.type
    if type_ is None:
        return
    kind = random.randrange(4)
    indexes = [name for name in type_.keys if name is not None and not model.indexes[name].is_plain]
    if kind == 0 and indexes:
        for attribute in model.indexes[random.choice(indexes)].attributes:
            row.item.pop(attribute, None)
    elif (
        kind == 1
        and model.type_attribute
        and all(name is None or model.indexes[name].projection == "ALL" for name in type_.keys)
    ):
        # Behind an index that has keys alone nobody sees that it is no longer of its type.
        row.item[model.type_attribute] = "Stranger"
        row.type = None
    elif kind == 2:
        names = [name for name in type_.fields if name not in _in_keys(type_)]
        if names:
            field = type_.fields[random.choice(names)]
            row.item.pop(field.attribute or "", None)
            if not field.optional:
                row.values[field.name] = GONE
            else:
                row.values[field.name] = None
    elif kind == 3:
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
            row.item.pop(type_.fields[random.choice(sorted(names))].attribute or "", None)


def _in_keys(type_: Type) -> set[str]:
    """The fields from which keys are written."""
    paths = {
        slot.path[0]
        for pair in type_.keys.values()
        for template in (pair.partition, pair.sort or ())
        for slot in type_.slots(template)
    }
    return paths | {type_.methods[name].need for name in paths if name in type_.methods}


def _stranger(model: Model, row: Row, random: Random) -> Row:
    """An item of no type that stands among those of another."""
    item: dict[str, Any] = {"PK": row.item["PK"], "SK": random.choice(["%other", "~~other", "\U0010ffff"])}
    if model.type_attribute:
        item[model.type_attribute] = "Stranger"
    for index in model.indexes.values():
        if not index.is_plain and index.attributes[0] in row.item and random.randrange(2):
            item[index.attributes[0]] = row.item[index.attributes[0]]
            other: Any = Decimal(5) if index.is_number else random.choice(["%other", "~~other"])
            item[index.attributes[1]] = other
    return Row(None, {}, item)
