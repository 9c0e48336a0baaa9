"""The ends that a request gives, by their names or by attributes that they share.

Checks that the nodes there exist, are visible and are not being deleted; and copies fields of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, cast

from keygraph.dynamo import actions
from keygraph.dynamo.actions import AddMembers, AddNumber, Append, RemoveMembers, SetTo
from keygraph.dynamo.conditions import And, Condition, Path, at_path, disjunction
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.rules import refuse_many_actions
from keygraph.dynamo.table import Key
from keygraph.errors import FieldName, InputPath, Refusal
from keygraph.model.expiry import now
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.resolve.derived import Copy
from keygraph.writing import shards
from keygraph.writing.context import Stored, WriteContext
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED, is_marked
from keygraph.writing.presence import NamedEnd, after_changes, are_as_read
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    NewRequest,
    Put,
    WriteRequest,
    place_of,
)
from keygraph.writing.rules import is_visible_by_item, visible_if
from keygraph.writing.step import TransactionStep, again

# --- What a request changes ---------------------------------------------------------------------------


def attribute_changes(write: WriteContext, request: Change) -> list[actions.AttributeChange]:
    """Returns what a change does to attributes; each is set or removed once, whatever names are stored in it."""
    record, maker, at = request.record, write.maker(request.record), write.refusals.at(request.where)
    values, part = {**request.values, **write.kept(record)}, Item()
    set_to = {name: value for name, value in values.items() if value is not None}
    maker.place(part, set_to, at)
    given = {name for name, value in request.values.items() if value is not None}
    maker.check_texts(part, given, at)
    own: dict[Path, actions.AttributeChange] = {}
    for name, value in values.items():
        paths = maker.shared.paths[name]
        if value is None:
            paths = maker.shared.removed_with(name)
            _refuse_removal(write, request, name, paths, part)
        for path in paths:
            stored = cast(Value, at_path(part, path))
            own[path] = actions.Remove(path) if stored is None else SetTo(path, stored)
    changes = [*own.values()]
    for name, value in request.added.items():
        added: Any = maker.encoded(name, value, write.refusals.at(place_of(request, name)))
        path = record.fields[name].attribute
        match record.fields[name].type.kind:
            case "set":
                changes += [AddMembers(path, added)] if added else []
            case "list":
                changes += [Append(path, tuple(added))] if added else []
            case _:
                changes += [] if added is None else [AddNumber(path, added)]
    for name, value in request.taken.items():
        members: Any = maker.encoded(name, value, write.refusals.at(place_of(request, name)))
        changes += [RemoveMembers(record.fields[name].attribute, members)] if members else []
    version = record.version
    return [*changes, *([AddNumber(version.attribute, Decimal(1))] if version else [])]


def _refuse_removal(
    write: WriteContext, request: Change, name: str, removed: Sequence[Path], part: Item
) -> None:
    """Refuses the removal of a field or an end that is required, or whose attributes are needed or given."""
    record, maker, at = request.record, write.maker(request.record), write.refusals.at(request.where)
    if not maker.is_optional(name):
        maker.refuse(name, at, f" of {record.name} cannot be removed.")
    elif not removed:
        problem = f" of {record.name} cannot be removed: its attributes also store "
        others = [FieldName(other) for other in maker.shared.others_at(name)]
        joined = [part for other in others for part in (", ", other)][1:]
        maker.refuse(name, at, problem, *joined, ".")
    elif any(at_path(part, path) is not None for path in removed):
        maker.refuse_other(name, at)


def _shared_after(write: WriteContext, request: Change | Move, item: Item) -> Item:
    """Returns the attributes of ends that share some, after what a request changes in an item."""
    maker = write.maker(request.record)
    change = request.as_change if isinstance(request, Move) else request
    paths = {path for end in maker.shared.ends for path in maker.shared.paths[end.name]}
    names = {path[0] for path in paths}
    whole = maker.without_own_keys(item)
    after = {name: value for name, value in whole.items() if name in names}
    changes = [each for each in attribute_changes(write.separate(), change) if each.path in paths]
    return after_changes(after, changes)


# --- The ends that a request gives --------------------------------------------------------------------


def given_ends(write: WriteContext, request: WriteRequest) -> list[tuple[NamedEnd, Texts | None]]:
    """Returns the ends that a request gives, with the identity of the node there; None if it removes the end.

    It names some. Others follow from attributes that it gives by another name; such an end is called by that name.
    One that becomes the same node as before, as far as that is known, is not given.
    """
    if isinstance(request, Delete):
        return []
    values, record = request.values, request.record
    found = [(named, values[named.name]) for named in write.fact(_named_ends, record) if named.name in values]
    ends = [end for end in write.maker(record).shared.ends if end.name not in values]
    for end, identity in _following_ends(write, request, ends) if ends else ():
        found.append((NamedEnd(end, _given_as(write, request, end)), identity))
    return [*found, *_given_members(write, request)] if record.list_ends else found


def given_nodes(
    write: WriteContext, request: WriteRequest, *, are_virtual: bool = False
) -> Iterator[tuple[NamedEnd, tuple[RecordType, ...], Texts]]:
    """Yields the ends at which a request names a node that may have an item, or a virtual one, which has none, with its
    possible types and its identity."""
    for named, identity in given_ends(write, request):
        nodes = named.end.nodes if are_virtual else named.nodes
        members, own = ((), ()) if identity is None else nodes(identity)
        if members and (not are_virtual or all(each.is_virtual for each in members)):
            yield named, members, own


def _given_members(
    write: WriteContext, request: NewRequest | Change | Move
) -> Iterator[tuple[NamedEnd, Texts]]:
    """Yields what lists and sets of nodes are given to name, each node once."""
    added = {} if isinstance(request, Create | Put | Move) else request.added
    for name, end in request.record.list_ends.items():
        field_name, named = write.maker(request.record).input_name(name), set[Texts]()
        for place, given in (((), request.values), (("add",), added)):
            for number, identity in enumerate(given.get(name) or ()):
                if identity not in named:
                    yield NamedEnd(end, field_name, (*place, field_name, number)), identity
                named.add(identity)


def _following_ends(
    write: WriteContext, request: NewRequest | Change | Move, ends: Sequence[End]
) -> Iterator[tuple[End, Texts | None]]:
    """Yields the ends among these that follow from other values of a request, with the node's identity."""
    record, maker = request.record, write.maker(request.record)
    if isinstance(request, NewRequest):
        item = maker.attributes(request.values, Refusals().at(request.where))
        for end in ends:
            identity = record.readable_end(item, end)
            if identity is not None:
                yield end, identity
        return
    written = write.changed_attributes(request)
    ends = [end for end in ends if not written.isdisjoint(maker.shared.paths[end.name])]
    if not ends:
        return
    stored = write.read(record, request.identity)
    old = next((each for each in stored if write.is_visible(record, each)), None)
    item = _shared_after(write, request, old or write.in_key(record, request.identity))
    undecided = _undecided(write, request, ends)
    for end in ends:
        identity = record.readable_end(item, end)
        is_decided = end not in undecided and (old is None or isinstance(request, Change))
        if is_decided or (old is not None and identity != record.readable_end(old, end)):
            yield end, identity


def undecided_ends(write: WriteContext, request: Change) -> list[End]:
    """Returns the ends that a change gives by other names, and whose node depends on the stored item too."""
    shared, written = write.maker(request.record).shared, write.changed_attributes(request)
    ends = [end for end in shared.ends if end.name not in request.values]
    given = [end for end in ends if not written.isdisjoint(shared.paths[end.name])]
    return _undecided(write, request, given)


def _undecided(write: WriteContext, request: Change | Move, ends: Iterable[End]) -> list[End]:
    shared = write.maker(request.record).shared
    removed = {
        path for name, value in request.values.items() if value is None for path in shared.removed_with(name)
    }
    known = shared.changed(request.values) | shared.paths_in_key
    return [
        end
        for end in ends
        if not known.issuperset(shared.paths[end.name]) and not shared.is_lost(end.name, removed)
    ]


def _given_as(write: WriteContext, request: NewRequest | Change | Move, end: End) -> FieldName:
    """Returns the name by which a request gives an end that it does not name: first one outside the key."""
    maker = write.maker(request.record)
    mine, in_key = {*maker.shared.paths[end.name]}, maker.shared.paths_in_key
    further = (*request.added, *request.taken) if isinstance(request, Change) else ()
    names = [name for name in (*request.values, *further) if mine.intersection(maker.shared.paths[name])]
    paths = maker.shared.paths
    first = min(names, key=lambda name: in_key.issuperset(mine & {*paths[name]}), default=end.name)
    return maker.input_name(first)


# --- Checks of nodes ----------------------------------------------------------------------------------


def checks(write: WriteContext, request: NewRequest | Change | Move) -> list[TransactionStep]:
    """Returns the checks that each end of the record is a node that exists. Refuses virtual nodes that are hidden."""
    steps, where = [], place_of(request)
    for named, members, own in given_nodes(write, request, are_virtual=True) if write.is_guarded else ():
        if not any(visible_if(write, each, own, None) is True for each in members):
            write.refusals.found.append(named.missing(where))
    given = [*given_nodes(write, request)]
    refuse_many_actions(len({own for _, _, own in given}), "without its own")
    for named, members, own in given:
        keys = write.graph.table_keys(members[0], own)
        if write.checked is not None and len(keys) == 1:
            if (keys[0], members) in write.checked:
                continue  # the first check decides
            write.checked.add((keys[0], members))
        condition = _is_open(write, members, own, keys)
        is_visible = condition == write.presence.is_open(members)
        of_shard = shards.check(write, request.record, named.end, members, own) if is_visible else None
        if of_shard is not None:
            steps.append(of_shard)
            continue
        if len(keys) > 1:
            keys = [key for key in keys if write.visible_at(key) is not None]
        if condition is None or not keys:
            write.refusals.found.append(named.missing(where))
            continue
        refusal = partial(_not_open, write, named, where)
        check, of_types = actions.CheckItem(keys[0], condition), write.presence.is_open(members)
        steps.append(TransactionStep(check, refusal, is_check=True, of_types=of_types))
    return steps


def _not_open(write: WriteContext, named: NamedEnd, where: InputPath, item: Item | None) -> Refusal | None:
    """Returns the refusal for a node that must exist; None if another try may find it, or it has a mark: it may stay."""
    refusal = named.missing(where)
    if item is None or not write.is_guarded:
        return None if is_marked(item) else refusal
    record = write.graph.recognise(item)
    if record is None or record not in named.end.members or write.graph.is_expired(item, now()):
        return refusal
    # The store does not see values that only a key holds.
    may_be_there = is_marked(item) or is_visible_by_item(write, record, is_whole=True)
    return None if may_be_there and write.is_visible(record, item) else refusal


def _is_open(
    write: WriteContext, members: tuple[RecordType, ...], identity: Texts, keys: Iterable[Key]
) -> Condition | None:
    """Returns the condition that a node that the viewer sees exists; None if they see none with that key."""
    is_open = write.presence.is_open
    if not write.is_guarded:
        return is_open(members)
    stored = [*map(write.visible_at, keys), *map(write.stored.get, keys)]
    there = next((item for item in stored if item is not None), None)
    visible = {each: visible_if(write, each, identity, there) for each in members}
    if all(decision is True for decision in visible.values()):
        return is_open(members)
    parts: list[Condition] = []
    for each, decision in visible.items():
        if decision is not False:
            own = is_open((each,))
            parts.append(own if isinstance(decision, bool) else And((own, decision)))
    if not parts and there is not None and any(visible_if(write, each, identity, None) for each in members):
        # The transaction fails as if nothing were there, so that other failures are reported too.
        return write.presence.nothing
    return disjunction(*parts)


def unmarked_checks(
    write: WriteContext, record: RecordType, item: Item, given: Iterable[str]
) -> list[TransactionStep]:
    """Returns checks that no node that an item names under its new key is being deleted and was searched."""
    kept = (named for named in write.fact(_named_ends, record) if named.name not in given)
    found = ((named, record.end_identity(item, named.end)) for named in kept)
    nodes = (named.nodes(identity) for named, identity in found if identity is not None)
    keys = (write.graph.table_keys(members[0], own) for members, own in nodes if members)
    checks = (actions.CheckItem(key, UNMARKED) for several in keys for key in several)
    return [TransactionStep(check, again, is_check=True) for check in checks]


def keys_of_spread_ends(write: WriteContext, request: WriteRequest) -> list[Key]:
    """Returns the keys of nodes that a request names and that may be in one of several places."""
    names = {each.name for each in write.fact(spread_ends, request.record)}
    if not names:
        return []
    named = (each for each in given_nodes(write, request) if each[0].name in names)
    several = [write.graph.table_keys(members[0], own) for _, members, own in named]
    return [key for keys in several if len(keys) > 1 for key in keys]


# --- Copied fields ------------------------------------------------------------------------------------


def _copies(write: WriteContext, request: WriteRequest) -> list[tuple[Copy, NamedEnd, Texts | None]]:
    """Returns what a request copies, and the node at each end that it gives; None if it removes the end."""
    copies = write.graph.copies.get(request.record.name, ())
    if not copies or isinstance(request, Delete):
        return []
    given = {named.name: (named, identity) for named, identity in given_ends(write, request)}
    made = [(copy, *given[copy.end.name]) for copy in copies if copy.end.name in given]
    maker = write.maker(request.record)
    # A record that moves may not be found any more by whoever changes the copies of its nodes.
    for old in write.perhaps_visible(request.record, request.identity) if isinstance(request, Move) else ():
        made += [
            (copy, NamedEnd(copy.end, maker.input_name(copy.end.name)), identity)
            for copy in copies
            if copy.field.follows and copy.end.name not in given
            if (identity := request.record.readable_end(old, copy.end)) is not None
        ]
    return made


def copied_from(write: WriteContext, request: WriteRequest) -> list[Key]:
    """Returns the keys of the nodes that a request copies from, and those of its other nodes if a missing one is refused
    before the store says which others are missing."""
    copies = _copies(write, request)
    nodes = [named.nodes(identity) for _, named, identity in copies if identity]
    if any(_is_ruled(write, request, copy) for copy, _, identity in copies if identity):
        nodes += [(members, own) for _, members, own in given_nodes(write, request)]
    return [key for members, own in nodes for key in write.graph.table_keys(members[0], own)]


def most_copied_by_move(write: WriteContext, request: WriteRequest) -> int:
    """Returns how many places there are for the nodes of which a move takes along what copies follow."""
    copies = write.graph.copies.get(request.record.name, ()) if isinstance(request, Move) else ()
    ends = {copy.end for copy in copies if copy.field.follows}
    return sum(max(len(each.table_keys.shard_texts) for each in end.members) for end in ends)


def with_copies(
    write: WriteContext, request: WriteRequest, made: Stored
) -> tuple[WriteRequest, list[TransactionStep]]:
    """Returns the request with what it copies from known nodes, and the steps that check that these are as read.

    `made` has the nodes that the same transaction makes. If a node is missing, or the viewer does not see it, one of the
    steps fails.
    """
    values: dict[str, Any] = {}
    steps: list[TransactionStep] = []
    for copy, named, identity in _copies(write, request):
        if identity is None:
            values[copy.field.name] = None
            continue
        members, own = named.nodes(identity)
        keys = write.graph.table_keys(members[0], own)
        before = {key: item for key in keys if (item := write.visible_at(key)) is not None}
        there = next(
            ((key, made.get(key) or before.get(key)) for key in keys if key in made or key in before),
            None,
        )
        if there is None:
            is_kept = isinstance(request, Move) and copy.end.name not in request.values
            if all(key in write.stored for key in keys) and not is_kept:
                # This check fails: then the store says at once which other nodes are missing.
                nothing = actions.CheckItem(keys[0], write.presence.nothing)
                refusal = partial(_not_open, write, named, place_of(request))
                steps.append(TransactionStep(nothing, refusal, is_check=True, is_rule=True))
                if _is_ruled(write, request, copy):
                    _refuse_missing(write, request, made)
            continue
        key, item = there
        node = write.graph.recognise(item or {})
        source = None if node is None else copy.sources.get(node)
        if node is None or item is None or source is None:
            write.refusals.put(named.missing(place_of(request)))
            continue
        values[copy.field.name] = node.reader(source)(item)
        if key in before:
            same = And(tuple(are_as_read(node, source.attributes, before[key])))
            steps.append(TransactionStep(actions.CheckItem(key, same), again, is_check=True, is_rule=True))
    if isinstance(request, Delete) or not values:
        return request, steps
    return replace(request, values={**request.values, **values}), steps


def _is_ruled(write: WriteContext, request: WriteRequest, copy: Copy) -> bool:
    """Returns whether rules may be about a copied field, so that they cannot be applied without it."""
    return write.is_guarded or any(copy.field.name in rule.names for rule in request.record.rules)


def _refuse_missing(write: WriteContext, request: WriteRequest, made: Stored) -> None:
    """Refuses all nodes that a request names and that are not there, or that the viewer does not see."""
    for named, members, own in given_nodes(write, request):
        there = ((member, item) for member in members for item in write.read(member, own))
        is_there = any(
            write.is_visible(member, item) and not write.graph.is_expired(item, now())
            for member, item in there
        )
        keys = write.graph.table_keys(members[0], own)
        if not is_there and not any(key in made or key not in write.stored for key in keys):
            write.refusals.put(named.missing(place_of(request)))


def _named_ends(write: WriteContext, record: RecordType) -> list[NamedEnd]:
    maker = write.maker(record)
    return [NamedEnd(end, maker.input_name(name)) for name, end in record.ends.items()]


def spread_ends(write: WriteContext, record: RecordType) -> list[NamedEnd]:
    """Returns the ends whose node may be in one of several places."""
    lists = [NamedEnd(end, write.maker(record).input_name(name)) for name, end in record.list_ends.items()]
    ends = [*write.fact(_named_ends, record), *lists]
    return [each for each in ends if any(member.table_keys.shards for member in each.end.members)]
