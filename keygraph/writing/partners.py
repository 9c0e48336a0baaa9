"""The other item of an edge: a mirror or a counterpart that is put, changed and deleted with it.

A mirror has all the same values, so one item determines the other. A counterpart may have rules, its own fields, also
in its keys, be counted, or have a key with a changing field. Such a pair is loose: both items are read before a write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, KeygraphError
from keygraph.lists.placeholders import placeholder_key
from keygraph.model.counterparts import Counterpart
from keygraph.model.records import RecordType
from keygraph.writing.context import WriteContext
from keygraph.writing.items import Replaced
from keygraph.writing.requests import Move, WriteRequest


@dataclass(frozen=True, slots=True)
class Partner:
    """The other type of a pair of edges."""

    record: RecordType
    moving: frozenset[str]
    """The fields of the edge that are in the other item's table key but not in its own."""
    own: frozenset[str]
    """The fields and ends that only the other type has."""
    shared: frozenset[str]
    """The fields and ends that both have."""
    is_loose: bool
    """Whether the other item has to be known before it is written."""


def of(write: WriteContext, record: RecordType) -> Partner | None:
    """Returns the other type of a pair; None for a type without one."""
    return write.fact(_find_partner, record) if record.name in write.graph.correspondences else None


def _find_partner(write: WriteContext, record: RecordType) -> Partner:
    pair = write.graph.correspondences[record.name]
    other, maker = pair.other, write.maker(pair.other)
    mine, theirs = write.names_in_key(pair.one), write.names_in_key(other)
    shared = frozenset({*pair.fields, *pair.ends})
    own = frozenset({*other.fields, *other.ends}) - shared
    is_loose = not pair.is_mirror and (
        mine != theirs
        or bool(own & maker.sources(other.keys.values()))
        or bool(other.table_keys.shards)
        or bool(other.rules)
        or (other.access is not None and any(not own.isdisjoint(rule.names) for rule in other.access.every))
        or other.name in write.graph.tallies
    )
    return Partner(other, frozenset(theirs - mine), own, shared, is_loose)


def other(write: WriteContext, record: RecordType, item: Item, where: InputPath) -> Item | None:
    """Returns the other item of an edge, with the values that this one determines; None without one or on a problem."""
    found = _counterpart(write, record, item, where)
    if found is None:
        return None
    maker = write.maker(found.record)
    made, _ = maker.with_rendered(found.attributes, found.texts, write.refusals.at(where))
    return None if write.refusals.found else made


def _counterpart(write: WriteContext, record: RecordType, item: Item, where: InputPath) -> Counterpart | None:
    try:
        return write.graph.counterpart(record, item)
    except (ValueError, KeygraphError) as error:
        write.refusals.add(where, f"The other item of this {record.name} cannot be made: {error}.")
        return None


def is_read(write: WriteContext, request: WriteRequest) -> bool:
    """Returns whether a request needs an edge's other item: a move keeps the fields that only that item has."""
    partner = of(write, request.record)
    is_moved = isinstance(request, Move) and partner is not None and bool(partner.own)
    return partner is not None and (partner.is_loose or write.are_others_read or is_moved)


def keys(write: WriteContext, record: RecordType, items: Iterable[Item | None]) -> list[Key]:
    """Returns the possible keys of the other item of an edge that is one of these items."""
    write = write.separate()
    found = [_counterpart(write, record, item, ()) for item in items if item is not None]
    return [key for each in found if each for key in write.graph.table_keys(each.record, each.identity)]


def described(write: WriteContext, record: RecordType, item: Item) -> Item | None:
    """Returns the key of an edge's other item, with placeholders for unknowns, and its ends as far as they are known;
    None if it is its own mirror."""
    pair = write.graph.correspondences[record.name]
    key = placeholder_key(pair.other, known=pair.known_identity(item))
    if key == write.key_of(item):
        return None
    made: Item = write.graph.table.attributes_of(key)
    ends = {theirs: record.end_identity(item, record.ends[own]) for theirs, own in pair.ends.items()}
    known = {name: identity for name, identity in ends.items() if identity is not None}
    write.maker(pair.other).place(made, known, write.separate().refusals.at(()))
    return made


def stored(write: WriteContext, record: RecordType, item: Item) -> Item | None:
    """Returns the other item of an edge among those that were read."""
    read = (write.stored.get(key) for key in keys(write, record, [item]))
    wanted, recognise = write.graph.correspondences[record.name].other, write.graph.recognise
    return next((each for each in read if each is not None and recognise(each) is wanted), None)


def changed(write: WriteContext, record: RecordType, there: Item, after: Item, where: InputPath) -> Item:
    """Returns the stored other item with the edge's new values, keeping the fields that only it has."""
    partner = write.fact(_find_partner, record)
    maker = write.maker(partner.record)
    shared = {path[0] for path in maker.paths(partner.shared)}
    kept = {name: value for name, value in maker.without_own_keys(there).items() if name not in shared}
    new = kept | maker.without_own_keys(after)
    made, _ = maker.with_keys(new, write.refusals.at(where), replaced=Replaced(there, partner.shared))
    return made
