"""The attributes of an item that a client needs, so that the others are not sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keygraph.dynamo.conditions import Condition, Path, paths_of
from keygraph.model.links import LinkName
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.resolve.record_types import RecordTypes

MOST_ATTRIBUTES = 100
"""If more are needed, the whole item is read: a projection of that many saves nothing, and an expression may have 4
KB."""


def attributes_of(
    model: RecordTypes, record: RecordType, names: Iterable[str] | None
) -> frozenset[str] | None:
    """Returns the attributes with these fields, ends and methods of an item, and its type; None for all of them.

    A field may be only in a key of an index, which is then included.
    """
    if names is None:
        return None
    attributes = {*record.table_keys.names, *record.attributes_of_identity}
    attributes.update(model.type_values.attributes)
    if record.expiry is not None:
        attributes.add(record.expiry.attribute[0])
    for name in names:
        if name in record.key_fields:
            continue  # the key contains it
        inside = (
            [(name, *path) for path in record.ends[name].attributes] if name in record.ends else [(name,)]
        )
        for keys in record.keys.values():
            if any(
                record.is_same(slot.path, path) and record.reads_from(keys, path)
                for slot in keys.slots
                for path in inside
            ):
                attributes |= keys.names
        if name in record.fields:
            field = record.fields[name]
            attributes.update(path[0] for path in field.attributes)
            attributes.update(field.shard_attributes.values() if field.shards else ())
        elif name in record.ends:
            attributes.update(path[0] for path in record.ends[name].attributes.values())
        elif record.methods[name].needs is None:
            return None
    return frozenset(attributes)


def list_projection(
    model: RecordTypes, path: AccessPath, condition: Condition | None, attributes: frozenset[str] | None
) -> tuple[Path, ...] | None:
    """Returns the projection of a list's requests: the attributes that the index holds, those for an item's type and
    position, and those of a condition that is decided here. None for whole items."""
    if attributes is None:
        return None
    wanted = attributes.union(path.position, model.type_values.attributes)
    for member in path.each:
        if member.undetermined and member.end is not None:
            # The owner that they name distinguishes the list's own items from others.
            wanted |= attributes_of(model, member.record, [member.end]) or frozenset()
        # A narrower list may be answered from this one.
        wanted |= member.attributes_of_uncertain | member.record.attributes_of_identity
    if condition is not None:
        names = {inner[0] for inner in paths_of(condition)}
        links = {name for name in names if isinstance(name, LinkName)}
        wanted |= names - links
        for member in path.each:
            # What is decided here may be in any key of the item.
            wanted |= member.record.key_attributes
            own = [name.link.end for name in links if name.link.end in member.record.ends.values()]
            wanted |= attributes_of(model, member.record, [end.name for end in own if end]) or frozenset()
    return _paths(name for name in wanted if model.table.has(path.keys.index_name, name))


@dataclass(frozen=True)
class Attributes:
    """The attributes that a client wants from the items of each type.

    One answer for everything that is read together, so that an item that was read in one place serves all others.
    """

    of_items: Mapping[RecordType, frozenset[str] | None]
    """None for all of them."""
    projection: tuple[Path, ...] | None
    """The projection of reads by key; None for whole items."""

    def of_any(self, records: Iterable[RecordType]) -> frozenset[str] | None:
        """Returns the attributes wanted from items of any of these types; None for all of them."""
        wanted = [self.of_items.get(record, frozenset()) for record in records]
        if len(wanted) == 1:
            return wanted[0]
        return None if None in wanted else frozenset[str]().union(*(each or () for each in wanted))

    @classmethod
    def of(
        cls,
        model: RecordTypes,
        needed: Mapping[RecordType, Iterable[str] | None],
        found_by_key: Iterable[tuple[AccessPath, frozenset[str] | None]] = (),
    ) -> Attributes:
        """Returns the attributes with these fields, ends and methods of each type, and for the lists whose items are read
        by key, with the items' positions and with these attributes, which decide about them."""
        attributes = {record: attributes_of(model, record, names) for record, names in needed.items()}
        for path, deciding in found_by_key:
            wanted = attributes.get(path.record)
            if wanted is not None:
                attributes[path.record] = None if deciding is None else wanted.union(path.position, deciding)
        every = {key.name for key in model.table.keys}
        for of_type in attributes.values():
            if of_type is None:
                return cls(attributes, None)
            every |= of_type
        return cls(attributes, _paths(every))


def _paths(names: Iterable[str]) -> tuple[Path, ...] | None:
    paths = tuple((name,) for name in sorted(names))
    return paths if len(paths) <= MOST_ATTRIBUTES else None
