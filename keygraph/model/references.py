"""References: where records name nodes, and the path that finds the records that name one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from keygraph.declare.declaration import ListOptions
from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem
from keygraph.keys.template import Slot
from keygraph.keys.types import is_optional
from keygraph.model.candidates import candidates
from keygraph.model.counterparts import Correspondence
from keygraph.model.paths import AccessPath
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.model.shared_attributes import SharedAttributes

_ANY = ListOptions(None, None, any_index=True)


@dataclass(frozen=True, eq=False)
class EndReference:
    """An end of a record type whose node may be of a given type."""

    node: RecordType
    record: RecordType
    end: End
    path: AccessPath | None
    """The path that finds the records naming a node at this end; None if no keys do, or another reference does."""
    is_found: bool = True
    """Whether this path, or that of another reference, finds all of them."""

    @property
    def name(self) -> str:
        """`Order.customer`."""
        return f"{self.record.name}.{self.end.name}"

    @cached_property
    def is_removable(self) -> bool:
        """Whether a record remains valid without its end."""
        record, name = self.record, self.end.name
        in_key = {name for slot in record.identity for name in (slot.path[0], *record.needs_of(slot))}
        is_needed = name in in_key or not self.end.optional
        return not is_needed and bool(SharedAttributes(record).removed_with(name))

    def names(self, item: Item, identity: Texts) -> bool:
        """Returns whether a record names the node with this identity."""
        try:
            found = self.record.end_identity(item, self.end)
        except CorruptItem:
            return False
        return found == self.end.identity_of(self.node, identity)


def references(
    node: RecordType, types: Mapping[str, RecordType], correspondences: Mapping[str, Correspondence]
) -> tuple[EndReference, ...]:
    """Returns every end that may be a node of the type."""
    found = [
        (record, end, _best(node, record, end))
        for record in types.values()
        if not record.is_virtual
        for end in record.ends.values()
        if node in end.members
    ]
    whole = {(record.name, end.name) for record, end, path in found if path and _finds_all(path)}
    return tuple(_reference(node, *each, correspondences, whole) for each in found)


def _reference(
    node: RecordType,
    record: RecordType,
    end: End,
    path: AccessPath | None,
    correspondences: Mapping[str, Correspondence],
    whole: Iterable[tuple[str, str]],
) -> EndReference:
    same = correspondences.get(record.name)
    theirs = [(same.other.name, name) for name, own in same.ends.items() if own == end.name] if same else []
    is_found_otherwise = any(each in whole for each in theirs)
    if is_found_otherwise and record.is_mirrored and end.name == record.key_ends[1]:
        # Both items of a mirrored edge name both nodes: one of the ends finds every edge.
        path = None
    return EndReference(node, record, end, path, is_found_otherwise or (record.name, end.name) in whole)


def _best(node: RecordType, record: RecordType, end: End) -> AccessPath | None:
    paths = [
        path
        for path in candidates(end.name, node, record, _ANY)
        if path.end == end.name and not path.required
    ]
    return min(paths, key=lambda path: not _finds_all(path), default=None)


def _finds_all(path: AccessPath) -> bool:
    """Returns whether every record that names the node is in these keys: an index lacks records with a missing part."""
    return path.keys.index is None or not any(
        may_be_missing(path.record, slot)
        for template in path.keys.templates
        for slot in template.tokens
        if isinstance(slot, Slot) and slot.name not in path.known and not slot.is_shard
    )


def may_be_missing(record: RecordType, slot: Slot) -> bool:
    """Returns whether a record may have no text for a slot."""
    name = slot.path[0]
    if name in record.methods:
        return is_optional(record.methods[name].hints.get("return"))[1]
    return record.ends[name].optional if name in record.ends else record.fields[name].optional
