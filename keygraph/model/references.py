"""References: where records name nodes, and the path that finds the records that name one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from keygraph.declare.declaration import ListOptions
from keygraph.dynamo.items import Item
from keygraph.model.candidates import candidates
from keygraph.model.counterparts import Correspondence
from keygraph.model.paths import AccessPath, hold_all
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
        return self.record.readable_end(item, self.end) == self.end.identity_of(self.node, identity)


def references(
    node: RecordType, types: Mapping[str, RecordType], correspondences: Mapping[str, Correspondence]
) -> tuple[EndReference, ...]:
    """Returns every end that may be a node of the type; no key finds those of lists and sets."""
    found: list[tuple[RecordType, End, AccessPath | None]] = [
        (record, end, _best(node, record, end))
        for record in types.values()
        if not record.is_virtual
        for end in record.ends.values()
        if node in end.members
    ]
    found += [
        (record, end, None)
        for record in types.values()
        for end in record.list_ends.values()
        if node in end.members
    ]
    whole = {(record.name, end.name) for record, end, path in found if path and _finds_all(path)}
    made = []
    for record, end, path in found:
        same = correspondences.get(record.name)
        theirs = [(same.other.name, n) for n, own in same.ends.items() if own == end.name] if same else []
        is_found_otherwise = any(each in whole for each in theirs)
        if is_found_otherwise and record.is_mirrored and end.name == record.key_ends[1]:
            # Both items of a mirrored edge name both nodes: one of the ends finds every edge.
            path = None
        is_found = is_found_otherwise or (record.name, end.name) in whole
        made.append(EndReference(node, record, end, path, is_found))
    return tuple(made)


def _best(node: RecordType, record: RecordType, end: End) -> AccessPath | None:
    paths = [
        path
        for path in candidates(end.name, node, record, _ANY)
        if path.end == end.name and not path.required
    ]
    return min(
        paths,
        key=lambda path: (not _finds_all(path), not hold_all(path.record, path.keys, path.known)),
        default=None,
    )


def _finds_all(path: AccessPath) -> bool:
    """Returns whether every record that names the node is in these keys."""
    return hold_all(path.record, path.keys, path.known, has_hidden=True)
