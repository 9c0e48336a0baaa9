"""The items that a request depends on: what must be read before its steps are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from keygraph.access.language import WRITES, Action
from keygraph.declare.declaration import OF_ENDS
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput
from keygraph.model.links import LinkName
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.writing import ends, partners, rules, shards
from keygraph.writing.context import NOTHING_STORED, WriteContext
from keygraph.writing.presence import after_changes
from keygraph.writing.records import changes_of_move, new_item
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    NewRequest,
    Put,
    Upsert,
    WriteRequest,
    decided_by_stored,
)
from keygraph.writing.tallies import counted_nodes, counted_types, is_counted, node_places

_DECIDED: tuple[Action, ...] = ("read", *WRITES, "move")


def needed(write: WriteContext, request: WriteRequest) -> list[Key]:
    """Returns the keys of the items that must be known first, as far as the known ones determine them. The items under
    some of them may name further ones."""
    is_known = isinstance(request, Create) or (isinstance(request, Put) and not write.is_replaced(request))
    is_open = not write.is_guarded and not write.is_whole
    if is_known and is_open and write.fact(_is_independent, request.record):
        return []
    keys = list[Key]()
    if write.is_guarded:
        # Nothing is copied from a node before it is known that the viewer sees it.
        _learn(write, all_linked(write, request))
    if request.record.name in write.graph.copies:
        keys += ends.copied_from(write, request)
        request, _ = ends.with_copies(write.separate(), request, NOTHING_STORED)
    keys += [*ends.keys_of_spread_ends(write, request), *_own_items(write, request)]
    keys += _counting_nodes(write, request)
    if write.are_others_read:
        named = ((each, own) for _, members, own in ends.given_nodes(write, request) for each in members)
        keys += [key for each, own in named for key in shards.keys_to_read(write, each, own)]
    return [*keys, *_deciding_items(write, request)] if write.is_guarded else keys


def needed_by_all(write: WriteContext, requests: Sequence[WriteRequest]) -> tuple[Key, ...]:
    """Returns the keys of further items that must be known for these requests."""
    found = dict.fromkeys(key for request in requests for key in needed(write, request))
    return tuple([key for key in found if key not in write.stored])


def most_read_later(write: WriteContext, request: WriteRequest) -> tuple[int, int]:
    """Returns how many items may have to be read once the first ones are known, and how many after these."""
    other, partner = other_read_later(write, request), partners.of(write, request.record)
    count = 0 if other is None else len(other.table_keys.shard_texts)
    count += ends.most_copied_by_move(write, request)
    # Before and after the write an item may add to two nodes, and two other items may decide.
    count += 2 * sum(node_places(write, each) for each in counted_types(write, request.record))
    if not write.is_guarded or not may_be_linked(write, request.record):
        return count, 0
    nodes = (each for _, members, _ in ends.given_nodes(write, request) for each in members)
    count += sum(_links(write, each) for each in nodes)
    if isinstance(request, Create):
        return count, 0  # the input determines those about the record and its other item
    count += 2 * _links(write, request.record, is_moved=isinstance(request, Move))
    links = 0 if partner is None else 2 * _links(write, partner.record, is_moved=True)
    return (count + links, 0) if other is None else (count, links)


def _links(write: WriteContext, record: RecordType, *, is_moved: bool = False) -> int:
    """Returns how many other items decide about a record that only its item determines, or a new key that it gets."""
    permissions, names = write.permissions, (None, *record.fields, *record.ends)
    decisions = (permissions.decision(record, action, name) for action in _DECIDED for name in names)
    found = {name for each in decisions for name in permissions.links(record, each)}
    return sum(is_moved or name.link.needs_item for name in found)


def other_read_later(write: WriteContext, request: WriteRequest) -> RecordType | None:
    """Returns the other type of an edge, if its item has to be read after the edge; None if nothing is."""
    partner = partners.of(write, request.record)
    if partner is None or not partners.is_read(write, request):
        return None
    is_determined = isinstance(request, NewRequest) and not partner.moving
    return None if is_determined else partner.record


def lists_of_ends(write: WriteContext, request: WriteRequest) -> int:
    """Returns how many lists may have to be read for the items that are first or last once a request has removed one."""
    if isinstance(request, Create):
        return 0
    own, *others = counted_types(write, request.record)
    # The other item of an edge may get another key whenever the edge changes.
    types = [*([own] if isinstance(request, Delete | Move | Put) else []), *others]
    tallies = (each for record in types for each in write.graph.tallies.get(record.name, ()))
    return sum(each.field.kept in OF_ENDS for each in tallies)


def is_counting(write: WriteContext, request: WriteRequest) -> bool:
    """Returns whether the stored item may be counted elsewhere, and a request changes that."""
    names = write.changed_names(request) if isinstance(request, Change) else None
    return not isinstance(request, Create) and is_counted(write, request.record, names)


# --- The record and its other item --------------------------------------------------------------------


def _is_independent(write: WriteContext, record: RecordType) -> bool:
    """Returns whether a request to create or put a record alone determines everything that is written."""
    return not (
        record.table_keys.shards
        or partners.of(write, record)
        or write.fact(ends.spread_ends, record)
        or is_counted(write, record)
        or any(node.shard_count for end in record.every_end for node in end.members)
        or record.name in write.graph.copies
    )


def _own_items(write: WriteContext, request: WriteRequest) -> list[Key]:
    record, item = request.record, None
    partner, shards = partners.of(write, record), bool(record.table_keys.shards)
    is_whole = write.is_whole
    if write.is_guarded:
        is_whole = is_whole or rules.must_read(write, request) or rules.is_other_guarded(write, record)
    if isinstance(request, NewRequest):
        # A new record may be in another place than its key says, or depend on another item.
        is_read = shards or partners.is_read(write, request) or isinstance(request, Upsert)
        is_read = is_read or write.is_replaced(request)
        is_read = is_read or ((is_whole or is_counted(write, record)) and isinstance(request, Put))
        identity: Texts | None = None
        if is_read:
            item, identity = new_item(write, request)
    else:
        is_read = shards or partner is not None or is_whole or _depends_on_stored(write, request)
        identity = request.identity
    if not is_read:
        return []
    own = [] if identity is None else write.graph.table_keys(record, identity)
    if not partners.is_read(write, request):
        return own
    there = [] if identity is None else write.perhaps_visible(record, identity)
    return [*own, *partners.keys(write, record, [item, *there])]


def _depends_on_stored(write: WriteContext, request: Change | Delete | Move) -> bool:
    if not isinstance(request, Change):
        return isinstance(request, Move) or is_counted(write, request.record)
    record, names = request.record, write.changed_names(request)
    parts = [record.fields[name] for name in (*request.added, *request.taken)]
    return bool(
        rules.ruled_in_keys(record, names)
        or is_counted(write, record, names)
        or any(each.is_of(names) for each in write.graph.followers.get(record.name, ()))
        or write.maker(record).keys_that_follow(names)
        or any(each.type.kind == "set" and len(each.attribute) > 1 for each in parts)
        or decided_by_stored(request)
        or ends.undecided_ends(write, request)
    )


# --- The nodes that it adds to ------------------------------------------------------------------------


def _counting_nodes(write: WriteContext, request: WriteRequest) -> Iterator[Key]:
    """Yields the keys of the nodes that the record or its other item adds to."""
    types = counted_types(write, request.record)
    if not any(
        is_counted(write, each) and (write.are_others_read or node_places(write, each)) for each in types
    ):
        return
    for record, _, item in _states(write, request):
        if record is request.record and item is not None:
            yield from counted_nodes(write, record, item)
            other = partners.other(write.separate(), record, item, ()) if len(types) > 1 else None
            yield from () if other is None else counted_nodes(write, types[1], other)


# --- Other items that decide --------------------------------------------------------------------------


def may_be_linked(write: WriteContext, record: RecordType) -> bool:
    """Returns whether other items may decide who writes records of the type, or names the nodes at their ends."""
    partner = partners.of(write, record)
    types = [record, *(member for end in record.every_end for member in end.members)]
    types += [partner.record] if partner else []
    return any(each.access is not None and each.access.has_links for each in types)


def _deciding_items(write: WriteContext, request: WriteRequest) -> list[Key]:
    """Returns the keys of other items that decide who may write and that stored items determine, and of nodes whose
    items must be known. Learns the stored ones."""
    keys = list[Key]()
    _learn(write, linked := all_linked(write, request))
    for _, members, own in ends.given_nodes(write, request):
        if any(rules.is_visible_by_item(write, each, is_whole=write.is_whole) for each in members):
            keys += write.graph.table_keys(members[0], own)
    return [*keys, *(key for key, _ in linked)]


def _learn(write: WriteContext, linked: Iterable[tuple[Key, LinkName]]) -> None:
    for key in {key for key, _ in linked} & write.stored.keys():
        write.permissions.learn(key, write.stored[key])


def all_linked(write: WriteContext, request: WriteRequest) -> dict[tuple[Key, LinkName], None]:
    """Returns the keys of other items that decide who may write or what may be named, with what they decide."""
    found = dict[tuple[Key, LinkName], None]()
    for record, identity, item in _states(write, request) if may_be_linked(write, request.record) else ():
        found |= rules.linked_items(write, request, record, identity, item)
        if record is request.record and item is not None and rules.is_other_guarded(write, record):
            other = write.graph.correspondences[record.name].other
            there = partners.stored(write, record, item) or partners.other(write.separate(), record, item, ())
            own = None if there is None else other.read_identity(there)
            found |= {} if own is None else rules.linked_items(write, request, other, own, there)
    return found


def _states(write: WriteContext, request: WriteRequest) -> Iterator[tuple[RecordType, Texts, Item | None]]:
    """Yields what rules apply to: the record before and after the write, and the nodes that it names."""
    record, maker, separate = request.record, write.maker(request.record), write.separate()
    identity: Texts | None
    if isinstance(request, NewRequest):
        item, identity = new_item(write, request)
        if identity is not None:
            yield record, identity, item
    else:
        identity = request.identity
    there = next(iter([] if identity is None else write.perhaps_visible(record, identity)), None)
    if identity is not None and (there is not None or not isinstance(request, NewRequest)):
        yield record, identity, there
    change = request.as_change(identity) if isinstance(request, Upsert) and identity else request
    if there is not None and isinstance(change, Change):
        after: Item | None = None
        with suppress(BadUserInput):  # the step refuses what does not fit
            after = after_changes(there, ends.attribute_changes(separate, change))
        if after is not None:
            yield record, change.identity, after
    elif there is not None and isinstance(change, Move):
        attributes = after_changes(maker.without_own_keys(there), changes_of_move(separate, change))
        made, new = maker.with_keys(attributes, separate.refusals.at(change.to))
        if not separate.refusals.found:
            yield record, new, made
    for _, members, own in ends.given_nodes(write, request):
        keys = write.graph.table_keys(members[0], own)
        node = next((found for key in keys if (found := write.stored.get(key)) is not None), None)
        for member in members:
            yield member, own, node
    for _, members, own in ends.given_nodes(write, request, are_virtual=True):
        yield from ((member, own, None) for member in members)
