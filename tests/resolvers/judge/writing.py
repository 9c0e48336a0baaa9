"""Random writes: what a mutation leaves in the table is what its input says, and nothing else has changed.

An input is made from values, and the item that it must leave is written from the same values (`items`). After each
mutation the whole table is compared, attribute by attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from graphql import GraphQLNonNull, get_named_type

from tests.resolvers.judge.items import GONE, Identity, Row, made_identity, made_row, put, take, written
from tests.resolvers.judge.plain import End, Model, Path, Type, camel

Table: TypeAlias = Mapping[tuple[str, ...], Row]
Named: TypeAlias = Callable[[Mapping[str, Any], Type, Path], str | None]
"""What a field, or a key field of the node at an end, is called among the fields of an input."""

_VERBS = ("create", "update", "update", "update", "upsert", "put", "put", "delete", "move")


@dataclass(frozen=True)
class Mutation:
    """A mutation, and what must come of it."""

    text: str
    rows: Table
    """The table where it is done."""
    codes: frozenset[str]
    """The codes with which it may be refused."""
    must_fail: bool


class Clerk:
    """Makes mutations. `inputs` has the types of the inputs, by mutation."""

    def __init__(
        self, model: Model, rows: Sequence[Row], inputs: Mapping[str, Any], named: Named, random: Random
    ) -> None:
        self.model, self.inputs, self.named, self.random = model, inputs, named, random
        self.types = [each for each in model.types if not each.is_virtual and not _has_unions(each)]
        self.known: dict[str, list[Identity]] = {node.name: [] for node in model.nodes}
        for row in rows:
            if row.type is not None and row.type.kind == "node":
                self.known[row.type.name].append(row.identity)
            for end in row.type.ends.values() if row.type else ():
                if identity := row.values[end.name]:
                    self.known[end.of(identity).name].append(identity)

    def mutation(self, table: Table) -> Mutation | None:
        """A random one; None where what was drawn cannot be."""
        random, type_ = self.random, self.random.choice(self.types)
        verb = random.choice(_VERBS)
        name = f"{verb}{type_.name}"
        drawn = self._drawn(type_, verb, table)
        if drawn is None or name not in self.inputs:
            return None
        values = dict(drawn.values)
        if verb in ("update", "move"):
            values = self._changed(type_, drawn.values, in_key=verb == "move")
        draft = _Draft(self.model, type_, verb, values, table.get(drawn.key), table, drawn.values)
        if (verb == "move" and not draft.changed) or draft.has_odd_mirror:
            return None
        text = f"mutation {{ {name}(input: {self._input(name, draft)}) {{ __typename }} }}"
        return draft.mutation(text, random)

    def _drawn(self, type_: Type, verb: str, table: Table) -> Row | None:
        """What the input is to name: a record that is there, or with the key of another type's, or that may be new."""
        random, shares = self.random, type_.shares
        others = [
            values
            for row in table.values()
            if shares is not None and row.type is shares.type and GONE not in row.values.values()
            if (values := shares.values(row.values, type_)) is not None
        ]
        if others and random.randrange(3) == 0:
            return made_row(self.model, type_, dict(random.choice(others)), self.known, random)
        stored = [row for row in table.values() if row.type is type_ and GONE not in row.values.values()]
        if verb in ("create", "put", "upsert") and (random.randrange(3) or not stored):
            identity = made_identity(type_, random) if random.randrange(2) else ()
            return made_row(self.model, type_, dict(identity), self.known, random)
        return random.choice(stored) if stored else None

    def _changed(self, type_: Type, old: Mapping[str, Any], *, in_key: bool) -> dict[str, Any]:
        """Other values for a few fields and ends: of those in the table's key, or of the others."""
        values, shared, in_table = dict(old), _shared_attributes(type_), _in_table_key(type_)
        for name in (*type_.fields, *type_.ends):
            attributes = {*_attributes(type_, name)}
            if (name in in_table) is not in_key or attributes & shared or self.random.randrange(3):
                continue
            of = type_.fields.get(name) or type_.ends[name]
            pool = self.known[of.node.name] if isinstance(of, End) else of.kind.pool
            pool = [*pool, *type_.taken.get(name, ())]
            if options := [*pool, *([None] if of.optional and not in_key else [])]:
                values[name] = self.random.choice(options)
        return values

    def differences(self, row: Row | None, item: Mapping[str, Any]) -> set[str]:
        """The attributes of an item that are not what they must be.

        A new key may be in any shard. Keys that a change does not touch may be left as they are, or written anew.
        """
        wanted = row.item if row else {}
        names = {name for name in wanted.keys() | item.keys() if wanted.get(name) != item.get(name)}
        for index, pair in row.type.keys.items() if names and row and row.type else ():
            attributes = ("PK", "SK") if index is None else self.model.indexes[index].attributes
            names -= {
                name for name in attributes if name in row.rendered and row.rendered[name] == item.get(name)
            }
            heads = [
                {each.get(attributes[0], "").removesuffix(shard) for shard in pair.shards}
                for each in (wanted, item)
            ]
            if pair.shards and heads[0] & heads[1]:
                names.discard(attributes[0])
        return names

    def settled(self, row: Row, item: dict[str, Any]) -> Row:
        """The row with the item that the table has."""
        anew = Row(row.type, row.values, row.rendered or row.item)
        old = self.differences(anew, item) if row.rendered else item.keys()
        stale = {
            index: values
            for index, values in row.stale.items()
            if index is not None and old & {*self.model.indexes[index].attributes}
        }
        return replace(row, item=item, stale=stale)

    # --- The text of an input -------------------------------------------------------------------------

    def _input(self, name: str, draft: _Draft) -> str:
        fields, old = self.inputs[name].fields, draft.old_values
        match draft.verb:
            case "delete":
                return self._object(fields, draft.type, old, {*old})
            case "move":
                inner = get_named_type(fields["to"].type).fields
                to = self._object(inner, draft.type, draft.values, draft.changed)
                return f"{self._object(fields, draft.type, old, {*old})[:-1]}, to: {to}}}"
            case "update":
                wanted = _in_table_key(draft.type) | draft.changed
                return self._object(fields, draft.type, draft.values, wanted)
        return self._object(fields, draft.type, draft.values, {*draft.values})

    def _object(
        self, fields: Mapping[str, Any], type_: Type, values: Mapping[str, Any], wanted: set[str]
    ) -> str:
        found: dict[str, str] = {}
        for field in type_.fields.values():
            if field.name in wanted and camel(field.name) in fields:
                found[camel(field.name)] = field.kind.literal(values[field.name])
        for method in type_.methods.values():
            if camel(method.name) in fields:  # it stands in the table's key
                found[camel(method.name)] = method.kind.literal(method(values))
        for end in type_.ends.values():
            if end.name in wanted:
                found |= self._end(fields, type_, end, values[end.name])
        told = [
            f"{name}: {text}"
            for name, text in found.items()
            if text != "null" or not isinstance(fields[name].type, GraphQLNonNull)
        ]
        return f"{{{', '.join(told)}}}"

    def _end(
        self, fields: Mapping[str, Any], type_: Type, end: End, identity: Identity | None
    ) -> dict[str, str]:
        if camel(end.name) in fields and len(end.attributes) > 1:
            inner = get_named_type(fields[camel(end.name)].type).fields
            told = (
                "null"
                if identity is None
                else self._object(inner, end.node, dict(identity), {*end.attributes})
            )
            return {camel(end.name): told}
        return {
            name: end.node.fields[key].kind.literal(dict(identity)[key] if identity else None)
            for key in end.attributes
            if (name := self.named(fields, type_, (end.name, key)))
        }


@dataclass
class _Draft:
    """What a mutation is to do."""

    model: Model
    type: Type
    verb: str
    values: dict[str, Any]
    """What the record is to say."""
    before: Row | None
    """What has the key that the input names."""
    table: Table
    named: Mapping[str, Any]
    """What the record says that the input names."""

    @property
    def old_values(self) -> Mapping[str, Any]:
        return self.before.values if self.is_change and self.before else self.named

    @property
    def is_change(self) -> bool:
        return self.before is not None and self.before.type is self.type

    @property
    def has_odd_mirror(self) -> bool:
        """Whether an edge is its own mirror, or the two disagree, or one with its own keys."""
        if not self.type.is_mirrored or self.before is None or not self.is_change:
            return False
        pair = (self.before, self._mirror(self.before))
        if pair[1] is None or pair[0].key == pair[1].key or self._swapped(pair[0].values) != pair[1].values:
            return True
        wanted = [written(self.model, self.type, row.values, Random(0)) for row in pair]
        return any(
            row.stale or each.item.keys() - row.item.keys() for row, each in zip(pair, wanted, strict=True)
        )

    @property
    def changed(self) -> set[str]:
        old = self.old_values
        return {name for name, value in self.values.items() if value != old[name]}

    def mutation(self, text: str, random: Random) -> Mutation:
        must, may = self._refusals()
        rows = dict(self.table)
        if self.before is not None and self.verb in ("put", "delete", "move"):
            for row in (self.before, self._mirror(self.before)):
                rows.pop(row.key if row else (), None)
        if self.verb != "delete":
            written_ = self._written(self.values, self.before, random)
            must |= {"ALREADY_EXISTS"} if self.verb == "move" and written_.key in rows else set()
            rows[written_.key] = written_
            if self.type.is_mirrored:
                before = self._mirror(self.before) if self.before and self.is_change else None
                changed = {name: self.values[name] for name in self.changed}
                other = self._swapped(
                    {**self.values, **(self._swapped(before.values) if before else {}), **changed}
                )
                mirror = self._written(other, before, random)
                rows[mirror.key] = mirror
        return Mutation(text, rows, frozenset(must | may), bool(must))

    def _refusals(self) -> tuple[set[str], set[str]]:
        """The codes of what must be refused, and of what may be."""
        must, may = set[str](), set[str]()
        if self.type.is_taken(self.values) or self.type.is_taken(self.named):
            must.add("BAD_USER_INPUT")
        if self.verb == "create" and self.before is not None:
            must.add("ALREADY_EXISTS")
        elif self.before is not None and not self.is_change:
            code = "ALREADY_EXISTS" if self.verb in ("put", "upsert") else "NOT_FOUND"
            # A put replaces an item of no declared type unless other types have such keys too.
            (may if self.verb == "put" and self.before.type is None else must).add(code)
        elif self.before is None and self.verb in ("update", "delete", "move"):
            must.add("NOT_FOUND")
        if self.type.is_mirrored and not self.is_change and self.verb in ("create", "put", "upsert"):
            mirror = written(self.model, self.type, self._swapped(self.values), Random(0))
            at = self.table.get(mirror.key) if mirror else None
            if at is not None and at.type is not self.type:
                (may if at.type is None else must).add("ALREADY_EXISTS")
        for end in () if self.verb == "delete" else self.type.ends.values():
            identity = self.values[end.name]
            if identity is not None and not self._is_there(end.of(identity), identity):
                is_new = self.verb in ("create", "put") or not self.is_change or end.name in self.changed
                (must if is_new else may).add("NOT_FOUND")
        if self.verb in ("delete", "move") and self.type.kind == "node" and self._is_named():
            may.add("CONFLICT")
        if self.model.awkward or self.verb == "move":  # keys that hold "#", or that stay the same
            may.add("BAD_USER_INPUT")
        return must, may

    def _is_there(self, node: Type, identity: Identity) -> bool:
        wanted = node.canonical(identity)
        return node.is_virtual or any(
            row.type is node and node.canonical(row.identity) == wanted for row in self.table.values()
        )

    def _is_named(self) -> bool:
        wanted = self.type.canonical(tuple((name, self.old_values[name]) for name in self.type.identity))
        return any(
            (identity := row.values[end.name]) is not None
            and end.of(identity) is self.type
            and self.type.canonical(identity) == wanted
            for row in self.table.values()
            if row.type is not None
            for end in row.type.ends.values()
        )

    def _mirror(self, row: Row) -> Row | None:
        """The other item of an edge that is stored twice."""
        if row.type is not self.type or not self.type.is_mirrored or GONE in row.values.values():
            return None
        key = written(self.model, self.type, self._swapped(row.values), Random(0))
        found = self.table.get(key.key) if key else None
        return found if found and found.type is self.type else None

    def _swapped(self, values: Mapping[str, Any]) -> dict[str, Any]:
        one, other = self.type.key_ends
        return {**values, one: values[other], other: values[one]}

    def _written(self, values: dict[str, Any], before: Row | None, random: Random) -> Row:
        """A row that is written: an item that changes keeps what is not of the model, and what does not change."""
        row = written(self.model, self.type, values, random)
        assert row is not None
        for field in self.type.fields.values():
            value = row.values[field.name]
            if value is not None and (field.attribute is None or field.kind.annotation == "ID"):
                stored = (
                    value if field.kind.annotation == "ID" else field.kind.attribute(value)
                )  # ids are texts
                put(row.item, self._attributes(field.name)[0], stored)
        for end in self.type.ends.values():
            if not end.is_whole and (identity := row.values[end.name]) is not None:
                for (key, _), text in zip(identity, end.node.canonical(identity), strict=True):
                    row.item[end.attributes[key]] = end.node.fields[key].kind.attribute(text)
        if not self.is_change or self.verb == "put" or before is None:
            return row
        item, changed = dict(before.item), self.changed
        if self.verb == "upsert":
            changed = {*self.values} - _in_table_key(self.type)
        if before is not self.before and self.type.is_mirrored:
            turned = dict(zip(self.type.key_ends, self.type.key_ends[::-1], strict=True))
            changed = {turned.get(name, name) for name in changed}
        told = {each for name in changed for each in self._attributes(name)}
        for index, pair in self.type.keys.items():
            if self.type.sources(pair) & changed:
                told |= {*(("PK", "SK") if index is None else self.model.indexes[index].attributes)}
        fresh = dict(row.item)
        for attribute in told:
            take(item, attribute)
            if (value := take(fresh, attribute)) is not None:
                put(item, attribute, value)
        return replace(row, item=item, rendered=row.item, stale=dict(before.stale))

    def _attributes(self, name: str) -> tuple[str, ...]:
        """Where a field or an end is stored; a field that items of others have in keys alone is in an attribute too."""
        found = _attributes(self.type, name)
        is_named_anew = name in self.type.fields and self.type.fields[name].attribute is None
        return tuple(map(camel, found)) if is_named_anew and self.model.is_camel else found


def _has_unions(type_: Type) -> bool:
    return any(end.others for end in type_.ends.values())


def _attributes(type_: Type, name: str) -> tuple[str, ...]:
    """Those in which a field or an end is stored."""
    if name in type_.ends:
        return (*type_.ends[name].attributes.values(),)
    return (type_.fields[name].attribute or name,)


def _shared_attributes(type_: Type) -> set[str]:
    """Those that several fields and ends have."""
    names = [each for name in (*type_.fields, *type_.ends) for each in _attributes(type_, name)]
    return {name for name in names if names.count(name) > 1}


def _in_table_key(type_: Type) -> set[str]:
    """The fields and ends that stand in the table's key."""
    return type_.sources(type_.keys[None])
