"""Resolves the values that the server derives from other items: counts and sums of lists, and copies of nodes'
fields."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import cast

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem, Mistake
from keygraph.keys.types import Kind, encode
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.names import with_article

_WHOLE_NUMBERS = frozenset[Kind]({"int", "long"})
_NUMBERS = _WHOLE_NUMBERS | frozenset[Kind]({"float", "decimal"})


@dataclass(frozen=True, eq=False)
class Tally:
    """A field of a node that holds the number of items of one type in a list, or their sum."""

    owner: RecordType
    field: Field
    path: AccessPath
    """The path of the list to that type."""
    summed: Field | None
    """The field that is added up; None if items are counted."""

    @property
    def record(self) -> RecordType:
        """The type of the items."""
        return self.path.record

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The fields and ends that determine what an item adds, and to which node; None for all."""
        record, found = self.record, {self.path.end or ""}
        for slot in self.path.keys.slots:
            if not slot.is_shard:
                if slot.computed and len(slot.path) == 1 and record.methods[slot.path[0]].needs is None:
                    return None
                found.update(record.needs_of(slot))
        return frozenset(found if self.summed is None else {*found, self.summed.name})

    @cached_property
    def node(self) -> Callable[[Item], Texts | None]:
        """A function that returns the identity of the node whose list has an item; None if no such list has it."""
        record, owner, end = self.record, self.owner, self.record.ends[self.path.end or ""]
        names = [key.name for key in self.path.keys.attributes]

        def node(item: Item) -> Texts | None:
            if not all(name in item for name in names):
                return None
            try:
                identity = record.end_identity(item, end)
            except CorruptItem:
                return None
            if identity is None:
                return None
            members, own = end.nodes(identity) if end.text else (end.members, identity)
            return own if owner in members else None

        return node

    def of(self, item: Item) -> tuple[Texts, Decimal] | None:
        """Returns the node whose list has an item, and what the item adds; None if no such list has it."""
        node = self.node(item)
        try:
            return None if node is None else (node, self._amount(item))
        except CorruptItem:
            return None

    @cached_property
    def _amount(self) -> Callable[[Item], Decimal]:
        """A function that returns what an item adds."""
        if self.summed is None:
            return lambda item: Decimal(1)
        read, type_ = self.record.reader(self.summed), self.summed.type

        def amount(item: Item) -> Decimal:
            value = read(item)
            return Decimal(0) if value is None else cast(Decimal, encode(type_, value))

        return amount


@dataclass(frozen=True, eq=False)
class Copy:
    """A field that copies a field of the node at an end."""

    field: Field
    end: End
    sources: Mapping[RecordType, Field]
    """The copied field, by the type of the node."""


def resolve_copies(
    types: Mapping[str, RecordType], partners: Container[str]
) -> tuple[dict[str, tuple[Copy, ...]], list[Mistake]]:
    """Returns the copies of each type, by its name, and the mistakes in those that cannot be kept.

    `partners` are the types with another item that is kept in step.
    """
    found: dict[str, tuple[Copy, ...]] = {}
    mistakes = []
    for record in types.values():
        for field in record.fields.values():
            if field.kept != "copy":
                continue
            end, _, name = field.kept_of.partition(".")
            members = record.ends[end].members if end in record.ends else ()
            sources = {node: node.fields[name] for node in members if name in node.fields}
            wrong = [*_wrong_copy(record, field, sources, partners)]
            mistakes += [Mistake("kept", f"{record.name}.{field.name}", *each) for each in wrong]
            if not wrong:
                found[record.name] = (*found.get(record.name, ()), Copy(field, record.ends[end], sources))
    return found, mistakes


def _wrong_copy(
    record: RecordType, field: Field, sources: Mapping[RecordType, Field], partners: Container[str]
) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a copy, and how to fix it."""
    name, _, of = field.kept_of.partition(".")
    end = record.ends.get(name)
    if end is None or not of:
        ends = ", ".join(record.ends) or "none"
        yield (
            f"{field.kept_of!r} is no field of the node at an end; its ends: {ends}.",
            'Write copy("an_end.a_field").',
        )
        return
    for node in end.members:
        source = sources.get(node)
        if source is None or node.is_virtual:
            lacking = "has no item" if node.is_virtual else f"has no field {of}"
            yield f"{node.name} {lacking}.", f"Name a field that is stored in items of {node.name}."
        elif source.type != field.type:
            problem = f"{node.name}.{of} is of type {source.type.name}, and this of type {field.type.name}."
            yield problem, "Give both one type."
        elif (source.optional or end.optional) and not field.optional:
            yield f"{node.name}.{of} or {name} may be absent, and this may not.", "Annotate it with | None."
    if record.name in partners:
        problem = f"the other item of a {record.name} is written with it, and is named by its own ends."
        yield problem, f"Read {name}.{of} instead."
    if any(field.name in (slot.path[0], *record.needs_of(slot)) for slot in record.identity):
        yield (
            f"it is a part of the key of {record.name}.",
            f"Write {{{name}.{of}}} in the template, or take it out.",
        )


def resolve_tallies(
    types: Mapping[str, RecordType], lists: Mapping[tuple[str, str], AccessPath]
) -> tuple[tuple[Tally, ...], list[Mistake]]:
    """Returns the tallies of all nodes, one for each listed type, and the mistakes in those that cannot be kept."""
    found: list[Tally] = []
    mistakes = []
    for owner in types.values():
        for field in owner.fields.values():
            if field.kept not in ("count", "sum"):
                continue
            path = lists.get((owner.name, field.kept_of.partition(".")[0]))
            wrong = [*_wrong(owner, field, path)]
            mistakes += [Mistake("kept", f"{owner.name}.{field.name}", *each) for each in wrong]
            if path is not None and not wrong:
                found += (Tally(owner, field, each, _summed(field, each.record)) for each in path.each)
    return tuple(found), mistakes


def _summed(field: Field, record: RecordType) -> Field | None:
    return record.fields.get(field.kept_of.partition(".")[2]) if field.kept == "sum" else None


def _wrong(owner: RecordType, field: Field, path: AccessPath | None) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a count or sum, and how to fix it."""
    name, _, of = field.kept_of.partition(".")
    if not owner.is_node:
        yield "only a node has lists.", "Move it to a node."
        return
    if name not in owner.lists or (field.kept == "sum") != bool(of):
        lists = ", ".join(owner.lists) or "none"
        mend = f'Write {"sums" if field.kept == "sum" else "counts"}("{next(iter(owner.lists), "a_list")}{".a_field" * (field.kept == "sum")}").'
        yield (
            f"{field.kept_of!r} is no {'field of the items of a list' if field.kept == 'sum' else 'list'}; its lists: {lists}.",
            mend,
        )
        return
    if path is None:
        return  # the mistake of the list is reported there
    reason = why_not_counted(owner, path)
    if reason is not None:
        yield reason
    if any(field.name in rule.names for rule in owner.rules):
        yield "a rule in check= is about it, and writes of other items change it.", "Remove the rule."
    yield from _wrong_key(owner, field)
    if not _is_guarded(owner, field.name) and _hides(owner, field, path):
        problem = (
            f"it counts all of {name}, also what access rules hide from a viewer, and has no rules itself."
        )
        yield problem, "Give it access=[…]; access=[read()] if everybody who sees the node may know it."
    for record in path.records if field.kept == "sum" else ():
        summed = _summed(field, record)
        if summed is None or summed.type.kind not in _NUMBERS or summed.type.written is not None:
            yield (
                f"{record.name} has no field {of} that is stored as a number.",
                f"Name a field of the items of {name}.",
            )
        elif field.type.kind in _WHOLE_NUMBERS and summed.type.kind not in _WHOLE_NUMBERS:
            yield (
                f"{record.name}.{of} is of type {summed.type.name}, and this of type {field.type.name}.",
                f"Annotate it as {with_article(summed.type.name)}.",
            )
    if field.type.written is not None:
        yield "it is not stored as a number.", "Remove the format of its type."


def _is_guarded(record: RecordType, name: str) -> bool:
    """Returns whether rules decide who reads a field."""
    access = record.access
    return access is None or "read" in access.own.get(name, ()) or access.is_restricted(name)


def _hides(owner: RecordType, field: Field, path: AccessPath) -> bool:
    """Returns whether rules may hide a list, an item or the field added up from somebody who sees the node."""
    name, _, of = field.kept_of.partition(".")
    if owner.access is not None and owner.access.is_restricted(name):
        return True
    guarded = [each.access for each in path.records if each.access is not None]
    return any(not access.is_open_behind_walls or (of and access.is_restricted(of)) for access in guarded)


def why_not_counted(owner: RecordType, path: AccessPath) -> tuple[str, str] | None:
    """Returns why the server cannot keep the count of a list, and how to fix it; None if it can."""
    if path.required:
        problem = f"{path.name} needs the argument {path.required[0].name}: it is many lists."
        return problem, "Name a list without such arguments."
    expiring = [each.name for each in (owner, *path.records) if each.expiry is not None]
    if expiring:
        problem = f"items of {expiring[0]} expire, and nothing is written then."
        return problem, "Remove it: read the list's totalCount or aggregate."
    for each in path.each:
        end = each.record.ends[each.end or ""]
        if end.is_ambiguous:
            problem = (
                f"the key at {each.record.name}.{end.name} does not show whether it belongs to {owner.name}."
            )
            return problem, f"Give {owner.name} a key of its own."
    return None


def _wrong_key(owner: RecordType, field: Field) -> Iterator[tuple[str, str]]:
    """Yields the mistake of a key that would have to be rendered again with every item that is counted."""
    for keys in owner.keys.values():
        for attribute, template in keys.parts:
            for slot in template.slots:
                method = owner.methods.get(slot.path[0]) if slot.computed else None
                is_read = slot.path == (field.name,) and (attribute.name,) != field.attribute
                if is_read or (method is not None and (method.needs is None or field.name in method.needs)):
                    yield (
                        f"the key {attribute.name} of {owner.name} is made of it, and would change with every item.",
                        f'Store it in the key as a number: Index("…", "…", ("{field.attribute[0]}", "N")).',
                    )
                    return
