"""The lists that paths between nodes can follow, and how each is read against its direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keygraph.declare.declaration import ListOptions
from keygraph.model.candidates import candidates
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType


@dataclass(frozen=True, eq=False)
class FollowedList:
    """A list that a path may follow."""

    path: AccessPath
    against: Mapping[RecordType, AccessPath] | None
    """The lists that find the nodes leading to a node, by its type; None if no keys find all of them."""


def followed_list(path: AccessPath) -> FollowedList | None:
    """Returns a list as paths follow it; None for one that leads to no nodes, has several types, or needs arguments."""
    leads = path.far_end is not None or (path.record.is_node and not path.members)
    if path.owner is None or path.required or not leads:
        return None
    against: dict[RecordType, AccessPath] | None = {}
    for node in path.nodes:
        found = _against(path, node)
        if found is None or against is None:
            against = None
        else:
            against[node] = found
    return FollowedList(path, against)


def _against(path: AccessPath, node: RecordType) -> AccessPath | None:
    if path.far_end is None:
        return None
    if path.record.is_mirrored:
        return path if _is_seen_from_both_ends(path.record) else None
    options = ListOptions(at=path.far_end, index=None, any_index=True)
    several = (each for each in candidates(path.name, node, path.record, options) if _has_all(each))
    return next((each for each in several if each.far_end == path.end and not each.required), None)


def _is_seen_from_both_ends(record: RecordType) -> bool:
    """Returns whether who sees one item of a mirrored edge sees the other: no rule uses its exchanged ends."""
    access = record.access
    if access is None:
        return True
    told = access.names("read")
    return not access.links("read") and told.isdisjoint(record.ends) and told.isdisjoint(record.key_fields)


def _has_all(path: AccessPath) -> bool:
    """Returns whether the list's keys hold every item of the type, and nothing in them is hidden from a viewer."""
    record = path.record
    for slot in path.keys.slots:
        name = slot.path[0]
        declared = record.fields.get(name) or record.ends.get(name)
        if slot.name in path.keys.optional or slot.computed or (declared is not None and declared.optional):
            return False
        if record.access is not None and not slot.is_shard and record.access.is_restricted(name):
            return False
    return True
