"""Candidates: the access paths that a list could read, and which of them is the best."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph.declare.declaration import ListOptions
from keygraph.keys.template import Slot, Token, replaced
from keygraph.model.paths import AccessPath, are_tables
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType


def candidates(name: str, owner: RecordType, record: RecordType, options: ListOptions) -> list[AccessPath]:
    """Returns every path from the owner to the type, the best first: by whether the keys hold the owner's whole
    identity, by required arguments, then the table first."""
    return ranked([path for path in possible(name, owner, record, options) if path.leads])


def ranked(paths: list[AccessPath]) -> list[AccessPath]:
    """Returns the paths, the best first."""
    return sorted(paths, key=_rank)


def best(paths: list[AccessPath]) -> list[AccessPath]:
    """Returns the best candidates, all that tie; only one of the two ends of a mirrored edge."""
    tied = [path for path in paths if _rank(path) == _rank(paths[0])]
    mirrored = [path.end for path in tied if path.end in _same_ends(path.record)]
    return [path for path in tied if path.end not in mirrored or path.end == mirrored[0]]


def _same_ends(record: RecordType) -> tuple[str, ...]:
    """Returns the ends that a list need not choose between: a mirrored edge is found from both of them alike."""
    return record.key_ends if record.is_mirrored else ()


def _rank(path: AccessPath) -> tuple[bool, int, bool]:
    return bool(path.undetermined), len(path.required), path.keys.index is not None


def possible(name: str, owner: RecordType, record: RecordType, options: ListOptions) -> Iterator[AccessPath]:
    """Yields the possible paths from the owner to the type: each end that it can be, with each of the keys."""
    same = _same_ends(record)
    wanted = same if options.at in same else (options.at,)
    for end in record.ends.values():
        if owner not in end.members or (options.at is not None and end.name not in wanted):
            continue
        for keys in record.keys.values():
            if options.any_index or keys.index == options.index:
                yield AccessPath(name, owner, record, end.name, keys)


def stands_beside(path: AccessPath) -> bool:
    """Returns whether a list reads the partition of the node that it belongs to."""
    if path.owner is None or path.end is None or path.keys.index is not None:
        return False
    if path.keys.shards or path.undetermined:
        return False
    return path.canonical(path.keys.partition) == own_partition(path.owner)


def own_partition(owner: RecordType) -> tuple[Token, ...]:
    """Returns the partition of a node's own item, in the form that `AccessPath.canonical` gives its lists' ones."""
    return replaced(
        owner.table_keys.partition.tokens,
        lambda slot: (slot if slot.is_shard else Slot(("", *slot.path), slot.text, slot.computed),),
    )


def is_listable(record: RecordType, keys: Keys) -> bool:
    """Returns whether the root lists these keys by default: the partition has no end, and not all of the type's own key
    fields. The keys of an inverted index were not chosen for that."""
    if keys.index is not None and are_tables(record, keys):
        return False
    slots = [slot for slot in keys.partition.slots if not slot.is_shard]
    if any(slot.path[0] in record.ends for slot in slots):
        return False
    return not {slot.path for slot in record.identity} <= {slot.path for slot in slots}
