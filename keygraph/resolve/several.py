"""Lists of several types: joins paths to each type that read one partition into one path."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from keygraph.declare.declaration import ListOptions
from keygraph.keys.shards import Shard
from keygraph.keys.template import Slot, Token, replaced
from keygraph.model.candidates import candidates, own_partition, ranked
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

NEIGHBOURS = "neighbours"
"""The name of the list of everything in a node's partition."""
_EVERYTHING = "Everything that stands under it, of any type."


def candidates_of(
    name: str, owner: RecordType, records: Sequence[RecordType], options: ListOptions
) -> list[AccessPath]:
    """Returns every path from the owner to the type, or to one partition with items of all types, the best first.

    With several types, `at` applies to those that have such an end.
    """
    if len(records) == 1:
        return candidates(name, owner, records[0], options)
    found = []
    for record in records:
        own = options if options.at in record.ends else replace(options, at=None)
        found.append(candidates(name, owner, record, own))
    return joined(found)


def root_candidates(name: str, records: Sequence[RecordType], options: ListOptions) -> list[AccessPath]:
    """Returns every path from the root to the type, or to one partition with items of all types, the best first."""
    found = [
        [
            AccessPath(name, None, record, None, keys)
            for keys in record.keys.values()
            if (options.any_index or keys.index == options.index) and not record.is_virtual
        ]
        for record in records
    ]
    return joined(found) if len(found) > 1 else ranked(found[0])


def neighbours(owner: RecordType, records: Iterable[RecordType]) -> AccessPath | None:
    """Returns the path to everything else in a node's partition of the table; None if nothing can be there."""
    table = ListOptions(None, None, any_index=False)
    own = own_partition(owner), owner.table_keys.shards
    found = [
        [path for path in candidates(NEIGHBOURS, owner, record, table) if _partition_of(path) == own][:1]
        for record in records
    ]
    members = [path for paths in found for path in paths]
    return replace(_as_one(members), description=_EVERYTHING) if members else None


def joined(found: Sequence[Sequence[AccessPath]]) -> list[AccessPath]:
    """Joins the paths to each type that read one partition, taking the best of each. If no two partitions have the same
    names, those are one that differ only in the names of their fields."""
    return _joined(found, _partition_of) or _joined(found, _unnamed_partition_of)


def _joined(
    found: Sequence[Sequence[AccessPath]], partition_of: Callable[[AccessPath], _Partition]
) -> list[AccessPath]:
    by_partition = []
    for paths in found:
        groups: dict[Hashable, list[AccessPath]] = {}
        for path in paths:
            groups.setdefault((path.keys.index_name, *partition_of(path)), []).append(path)
        by_partition.append(groups)
    first, *others = by_partition
    paths = [
        _as_one([group[place][0] for group in by_partition])
        for place in first
        if all(place in other for other in others)
    ]
    return ranked(paths)


def _as_one(members: Iterable[AccessPath]) -> AccessPath:
    first, *others = (replace(member, is_member=True) for member in members)
    names = tuple(argument.name for argument in first.required)
    joined = (first, *(replace(other, names=names) for other in others))
    return replace(first, is_member=False, members=joined)


_Partition: TypeAlias = tuple[tuple[Token, ...], tuple[Shard, ...]]


def _partition_of(path: AccessPath) -> _Partition:
    return path.canonical(path.keys.partition), path.keys.shards


def _unnamed_partition_of(path: AccessPath) -> _Partition:
    """Returns what a path reads, with numbers in place of the names of its required arguments."""
    tokens, shards = _partition_of(path)
    numbers: dict[Slot, tuple[str, ...]] = {}

    def numbered(slot: Slot) -> tuple[Slot]:
        is_named = slot.is_shard or slot.path[0] == ""
        path = slot.path if is_named else numbers.setdefault(slot, ("", str(len(numbers))))
        return (replace(slot, path=path),)

    return replaced(tokens, numbered), shards
