"""The steps of each kind of request: for the record itself, the other item of an edge, and the nodes that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import cast

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.actions import SetTo
from keygraph.dynamo.conditions import And, Condition, Not, Path, at_path, conjunction, put_at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, KeygraphError, Refusal
from keygraph.model.node_shards import shard_keys
from keygraph.model.permissions import as_it_is
from keygraph.model.record_keys import Keys, Texts
from keygraph.model.records import RecordType
from keygraph.model.references import EndReference
from keygraph.writing import ends, partners, rules
from keygraph.writing.context import Made, WriteContext
from keygraph.writing.items import Replaced, differences
from keygraph.writing.marks import MARK
from keygraph.writing.presence import after_changes, are_as_read, has_version, is_unchanged, within_maps
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Done,
    Move,
    NewRequest,
    Put,
    Upsert,
    WriteRequest,
    decided_by_stored,
    in_own_key,
    missing,
    place_of,
)
from keygraph.writing.step import TransactionStep, again

# --- New records ---------------------------------------------------------------------------------------


def new_item(write: WriteContext, request: NewRequest) -> tuple[Item, Texts] | tuple[None, None]:
    """Returns the item and identity that the values give; None if they give none, which the steps report."""
    write, record = write.separate(), request.record
    maker, at = write.maker(record), write.refusals.at(request.where)
    given = request.values_of_new if isinstance(request, Upsert) else request.values
    values = {**given, **write.kept(record, is_new=True)}
    item = maker.attributes(values, at)
    write.refusals.found.clear()
    item, identity = maker.with_keys(item, at, values)
    return (None, None) if write.refusals.found else (item, identity)


def identity_of(write: WriteContext, request: WriteRequest) -> Texts | None:
    """Returns the identity of a request's record; None if its values give none."""
    return new_item(write, request)[1] if isinstance(request, NewRequest) else request.identity


def written(write: WriteContext, request: Create | Put) -> Made:
    """Returns the steps of a new record, which may replace a stored one."""
    record, where, refusals = request.record, request.where, write.refusals
    maker, partner = write.maker(record), partners.of(write, record)
    known = new_item(write, request)[1] if write.is_replaced(request) else None
    there = None if known is None else write.found(record, known, where)
    kept = write.kept(record, is_new=True, before=there)
    values = {**request.values, **kept} if kept else request.values
    attributes = maker.attributes(values, refusals.at(where))
    for path in [field.kept_attribute for field in maker.counted]:
        value = at_path(there or {}, path)
        if value is not None:
            put_at_path(attributes, path, cast(Value, value))
    item, identity = maker.with_keys(attributes, refusals.at(where), values)
    size = maker.check(item, values, request, refusals)
    rules.check(write, record, item, where)
    if refusals.found:
        return [], Done(record, identity, None)
    if known is None and write.stored:
        there = write.found(record, identity, where)
    is_new = isinstance(request, Create)
    conditions = [write.presence.is_free(record)] if is_new else [*write.presence.is_replaceable(record)]
    conditions += _allowed(write, request, identity, item, there)
    exists = partial(rules.taken, write, request)
    if there is not None and is_new:
        refusals.found.append(exists(there))
    elif there is not None:
        item |= _in_its_shard(write, there)
        size = None
    if known is not None:
        lasting = [field.kept_attribute for field in write.lasting(record)]
        conditions += write.presence.is_as_read(record, lasting, there)
    if not is_new and partner is not None:
        conditions += write.presence.is_as_read(record, maker.paths(partner.moving), there)
    refusal = exists if is_new else partial(rules.taken_or_again, write, record, request)
    put = actions.PutItem(item, conjunction(*conditions) if conditions else None, size=size)
    steps = [TransactionStep(put, refusal, before=there)]
    steps += [] if partner is None else _other_written(write, request, partner, item, there)
    if there is None and write.stored:
        # No item of a new record is in another shard where the viewer does not see it.
        free, keys = write.presence.is_free(record), map(write.key_of, write.read(record, identity))
        others = [key for key in keys if key != write.key_of(item)]
        steps += [TransactionStep(actions.CheckItem(key, free), exists) for key in others]
    is_known = isinstance(request, Create) or request.is_read
    done = Done(record, identity, item, is_new=there is None if is_known else None)
    return [*steps, *ends.checks(write, request)], done


def _in_its_shard(write: WriteContext, there: Item) -> Item:
    """Returns the key of a stored item: whoever writes it leaves it in the shard where it was put."""
    return {key.name: there[key.name] for key in write.graph.table.keys}


def _allowed(
    write: WriteContext, request: Create | Put, identity: Texts, item: Item, there: Item | None
) -> Sequence[Condition]:
    """Refuses what the viewer may not write. Returns the conditions that nothing has changed in between."""
    if not write.is_guarded:
        return ()
    record, is_create = request.record, there is None or isinstance(request, Create)
    rules.refuse_new(write, request, identity, item, "create" if is_create else "update")
    if isinstance(request, Create) or (
        rules.may_put(write, request) and not rules.is_other_guarded(write, record)
    ):
        return ()
    if there is None:
        return (write.presence.is_free(record),)
    conditions = rules.guard(write, request, there, identity=identity).conditions
    return (write.presence.is_there(record), *conditions)


def _other_written(
    write: WriteContext, request: Create | Put, partner: partners.Partner, item: Item, there: Item | None
) -> list[TransactionStep]:
    """Returns the steps by which a new edge, which may replace a stored one, writes its other item."""
    record, where, key_of = request.record, request.where, write.key_of
    made = partners.other(write, record, item, where)
    if made is None:
        return []
    mine = None if there is None else partners.other(write, record, there, where)
    found = partners.stored(write, record, item)
    if not partner.is_loose:
        mine = found if key_of(made) in write.stored else mine
        put = actions.PutItem(made, conjunction(*rules.guard_other(write, request, mine, made)))
        return [TransactionStep(put, again, is_partner=True, before=mine)]
    other = partner.record
    rules.check(write, other, made, where)
    refusal: Callable[[Item | None], Refusal | None] = again
    if there is None and rules.is_other_guarded(write, record):
        # One that the viewer does not see is as good as absent until the transaction finds it.
        found = found if found is not None and write.is_visible(other, found) else None
        refusal = partial(rules.taken_or_again, write, other, request)
    read = None if there is None else partners.stored(write, record, there)
    back = None if found is None else partners.other(write, other, found, where)
    if found is not None:
        made |= _in_its_shard(write, found)
    held = rules.guard_other(write, request, found or read, made)
    if back is not None and key_of(back) != key_of(item) and not write.refusals.found:
        problem = (
            f"The {other.name} of this {record.name} is that of another one: change or delete that one first."
        )
        write.refusals.add(where, problem, code=Code.CONFLICT)
    moving = write.maker(other).paths(cast(partners.Partner, partners.of(write, other)).moving)
    conditions = [*write.presence.is_as_read(other, moving, found), *(held if found else ())]
    conditions += [write.presence.is_free(other)] if found is None and refusal is not again else []
    put = actions.PutItem(made, conjunction(*conditions))
    steps = [TransactionStep(put, refusal, is_partner=True, before=found)]
    before = read
    if there is not None and read is None:
        # It was read later than the edge, and may be back when this is carried out.
        before = partners.other(write, record, there, where)
    if before is not None and key_of(before) != key_of(made):
        gone = held
        if read is None:
            gone = [write.presence.is_free(other)] if rules.is_other_guarded(write, record) else []
        elif found is not None:
            gone = rules.guard_other(write, request, before, None)
        delete = actions.DeleteItem(key_of(before), conjunction(*gone))
        steps.append(TransactionStep(delete, again, is_partner=True, before=before))
    return steps


def upserted(write: WriteContext, request: Upsert) -> Made:
    """Returns the steps of a record that is created, or changed if it was found."""
    record, where = request.record, request.where
    _, identity = new_item(write, request)
    if identity is not None and write.found(record, identity, where):
        return changed(write, request.as_change(identity), is_upsert=True)
    if request.version is not None:
        write.refusals.found.append(missing(request))
        return [], Done(record, identity or (), None)
    made, done = written(write, Create(record, request.values_of_new, where))
    # If the first step fails, somebody created it in the meantime.
    refusal = partial(rules.taken_or_again, write, record, request)
    return [*(replace(step, refusal=refusal) for step in made[:1]), *made[1:]], done


# --- Changes ------------------------------------------------------------------------------------------


def changed(write: WriteContext, request: Change, *, is_upsert: bool = False) -> Made:
    """Returns the steps of a change. If an upsert finds nothing there, somebody has deleted the record meanwhile."""
    record, where, done = request.record, request.where, Done(request.record, request.identity, None)
    maker, refusals = write.maker(record), write.refusals
    _refuse_key(write, request, request.names & in_own_key(record))
    changes = _without_key(write, request, ends.attribute_changes(write, request))
    key, old = write.place(request)
    upserted_identity = request.identity if is_upsert else None
    if refusals.found or (
        old is not None and rules.refused_as_it_is(write, request, old, identity=upserted_identity)
    ):
        return [], done
    if old is not None:
        changes = [*_in_present_attributes(record, changes, old)]
        _refuse_unfit(write, request, changes, old)
    if refusals.found:
        return [], done
    partner = partners.of(write, record)
    following, relied = relied_on(write, request)
    changes, are_maps = within_maps(changes, old)
    conditions: list[Condition] = [write.presence.is_there(record), *are_maps]
    others: list[TransactionStep] = []
    foreseen = _foreseen(write, request, changes, old, conditions)
    readable = rules.readable_after(write, request, changes, old)
    conditions += [each.condition for each in readable]
    foreseen += readable
    guarded = rules.guard(write, request, old, identity=upserted_identity, changes=changes)
    conditions += guarded.conditions
    if old is not None and (following or partner):
        attributes = actions.changed(maker.without_own_keys(old), changes)
        replaced = Replaced(old, frozenset(write.changed_names(request)))
        new, identity = maker.with_keys(attributes, refusals.at(where), replaced=replaced)
        new |= _in_its_shard(write, old)
        if identity != request.identity:
            # A method would write another key.
            _refuse_key(write, request, request.names & write.names_in_key(record))
            return [], done
        # Values that keys hold are not written a second time.
        left_out = attributes.keys() - new.keys()
        changes = [change for change in changes if change.path[0] not in left_out]
        changes += differences({**old, **attributes}, new, maker.own_keys)
        changes += [actions.Remove((name,)) for name in sorted(left_out & old.keys())]
        # Values of which a key has gone become attributes.
        alone = attributes.keys() - old.keys() - {change.path[0] for change in changes}
        held = record.completed({name: value for name, value in new.items() if name not in alone})
        lost = [name for name in sorted(alone & new.keys()) if held.get(name) != new[name]]
        changes += [SetTo((name,), new[name]) for name in lost]
        others = _other_changed(write, request, old, new)
    if old is not None:
        conditions += are_as_read(record, relied, old)
        maker.check(actions.changed(old, changes), request.names, request, refusals)
    condition = And((*conditions, *has_version(record, request.version)))
    # DynamoDB refuses an update in a transaction that changes nothing.
    update = (
        actions.UpdateItem(key, tuple(changes), condition) if changes else actions.CheckItem(key, condition)
    )

    def refusal(item: Item | None) -> Refusal | None:
        may_create = is_upsert and request.version is None
        own = None if may_create else rules.not_as_required(write, request, guarded, item)
        return own or (rules.broken(foreseen, item) if item else None)

    steps = [TransactionStep(update, refusal, before=old), *others]
    return [*steps, *ends.checks(write, request)], done


def _in_present_attributes(
    record: RecordType, changes: Iterable[actions.AttributeChange], old: Item
) -> Iterator[actions.AttributeChange]:
    """Yields the changes; what adds to a value in a former attribute sets the present one instead, and removes that."""
    for change in changes:
        former = record.former.get(change.path)
        is_whole = former is None or isinstance(change, SetTo | actions.Remove)
        if former is None or is_whole or at_path(old, former) is None:
            yield change
            continue
        value = cast(Value, at_path(after_changes(record.current(old), [change]), change.path))
        yield actions.Remove(change.path) if value is None else SetTo(change.path, value)
        yield actions.Remove(former)


def _refuse_key(write: WriteContext, request: Change, names: Iterable[str]) -> None:
    """Refuses changes of these fields and ends, which would change the table's key."""
    record = request.record
    fix = f" Use move{record.name}." if "move" in record.writes else ""
    problem = f" is part of the key of {record.name} and cannot be changed.{fix}"
    for name in sorted(names):
        write.maker(record).refuse(name, write.refusals.at(place_of(request, name)), problem)


def _refuse_unfit(
    write: WriteContext, request: Change, changes: Iterable[actions.AttributeChange], old: Item
) -> None:
    """Refuses changes that do not fit the values of a stored item, each at its field."""
    maker = write.maker(request.record)
    for change in changes:
        try:
            after_changes(old, [change])
        except BadUserInput as error:
            named = (name for name in request.names if change.path in maker.shared.paths[name])
            name = next(named, None)
            at = [] if name is None else [maker.input_name(name)]
            write.refusals.add((*place_of(request, name), *at), *error.parts)


def _foreseen(
    write: WriteContext,
    request: Change,
    changes: Sequence[actions.AttributeChange],
    old: Item | None,
    conditions: list[Condition],
) -> list[rules.Foreseen]:
    """Returns what the model's rules require of the stored item, and adds it to the conditions."""
    record, names = request.record, write.changed_names(request)
    if not record.rules:
        return []
    maker, known = write.maker(record), [*changes]
    in_keys = rules.ruled_in_keys(record, names) if old is not None else []
    if old is not None and in_keys:
        whole = record.completed(old)
        known += [as_it_is(whole, path) for path in maker.paths(in_keys)]
        keys = maker.keys_that_follow(in_keys)
        relied = [(key.name,) for each in keys for key in each.attributes]
        conditions += [is_unchanged(path, old) for path in (*maker.paths(in_keys), *relied)]
    foreseen = rules.foreseen(write, request, names, known)
    conditions += [each.condition for each in foreseen]
    return foreseen


def relied_on(write: WriteContext, request: Change) -> tuple[list[Keys], list[Path]]:
    """Returns the keys that a change renders again, and the attributes that must still be as read for it."""
    record, maker, names = request.record, write.maker(request.record), write.changed_names(request)
    following = maker.keys_that_follow(names)
    sources, partner = maker.sources(following), partners.of(write, record)
    sources |= {end.name for end in ends.undecided_ends(write, request)} | {*decided_by_stored(request)}
    if partner is not None:
        sources |= {*names, *write.kept(record), *partner.moving}
        sources |= partner.shared if partner.is_loose else set()
        sources |= {record.version.name} if record.version else set()
    return following, maker.paths(sorted(sources))


def _without_key(
    write: WriteContext, request: Change, changes: Sequence[actions.AttributeChange]
) -> list[actions.AttributeChange]:
    """Returns the changes without attributes that the table's key determines. Refuses other values of them."""
    maker = write.maker(request.record)
    own = {change.path: change for change in changes}
    for path, number, text_of in maker.shared.in_key:
        change, item = own.get(path), Item()
        if change is None:
            continue
        if isinstance(change, SetTo):
            put_at_path(item, path, change.value)
        if (text_of(item) or "") != request.identity[number]:
            given = (*request.values, *request.added)
            name = next(name for name in given if path in maker.shared.paths[name])
            maker.refuse_other(name, write.refusals.at(place_of(request, name)))
    return [change for change in changes if change.path not in maker.shared.paths_in_key]


# --- The other item of an edge ------------------------------------------------------------------------


def _other_changed(write: WriteContext, request: Change, old: Item, new: Item) -> list[TransactionStep]:
    """Returns the steps by which a change of an edge changes its other item."""
    record, where = request.record, request.where
    before, after = (partners.other(write, record, each, where) for each in (old, new))
    if write.refusals.found or (before is None and after is None):
        return []
    if before is None or after is None:
        return _other_moved(write, request, before, after, rules.guard_other(write, request, before, after))
    conditions: list[Condition] = []
    partner, there = partners.of(write, record), partners.stored(write, record, old)
    if partner is not None and there is not None:
        rules.guard_other(write, request, there, after, is_whole=False)
        if write.refusals.found:
            return []
        before, after = there, partners.changed(write, record, there, after, where)
        rules.check(write, partner.record, after, where)
        own = write.maker(partner.record).paths(partner.own)
        conditions += are_as_read(partner.record, own, there)
    conditions += rules.guard_other(write, request, before, after)
    key, key_after = map(write.key_of, (before, after))
    if key != key_after:
        return _other_moved(write, request, before, after, conditions)
    changes = differences(before, after, before.keys() | after.keys())
    if not changes:
        return []
    # The other item may hold in a former attribute what this one does not.
    paths, former = {change.path for change in changes}, write.graph.correspondences[record.name].other.former
    gone = [was for attribute, was in former.items() if attribute[:1] in paths and was[0] not in after]
    changes += [actions.Remove(was) for was in gone if was not in paths]
    update = actions.UpdateItem(key, tuple(changes), And((write.presence.there, *conditions)))
    return [TransactionStep(update, _lost(request), is_partner=True, before=before)]


def _other_moved(
    write: WriteContext,
    request: Change,
    before: Item | None,
    after: Item | None,
    conditions: Sequence[Condition],
) -> list[TransactionStep]:
    """Returns the steps that move the other item of an edge. An edge that is its own mirror has no other item."""
    other = write.graph.correspondences[request.record.name].other
    taken_already = taken_by_another(request)
    steps = []
    if before is not None:
        delete = actions.DeleteItem(write.key_of(before), And((write.presence.there, *conditions)))
        steps.append(TransactionStep(delete, _lost(request), is_partner=True, before=before))
    if after is not None:
        put = actions.PutItem(after, write.presence.is_free(other))
        hidden = partial(rules.hidden_at_key, write, request)
        steps.append(TransactionStep(put, lambda item: hidden(item) or taken_already, is_partner=True))
    return steps


def taken_by_another(request: WriteRequest) -> Refusal:
    """Returns the refusal for an edge whose other item would take the place of another one."""
    problem = f"The other item of this {request.record.name} would take the place of another one."
    return Refusal(Code.CONFLICT, (problem,), request.where)


def _lost(request: Change) -> Callable[[Item | None], Refusal | None]:
    """Returns the refusal for a missing other item of an edge; none if somebody has changed it."""
    lost = f"The other item of this {request.record.name} is missing."
    return lambda item: Refusal(Code.CONFLICT, (lost,), request.where) if item is None else None


# --- Deletes ------------------------------------------------------------------------------------------


def deleted(write: WriteContext, request: Delete) -> Made:
    record = request.record
    key, old = write.place(request)
    guarded = rules.guard(write, request, old)
    conditions = rules.conditions_on_record(write, request, guarded)
    others: list[TransactionStep] = []
    partner = partners.of(write, record)
    if old is not None and partner is not None:
        conditions += are_as_read(record, write.maker(record).paths(partner.moving), old)
        other = partners.stored(write, record, old) or partners.other(write, record, old, request.where)
        if other and write.key_of(other) != key:
            others = [_other_deleted(write, request, old, other)]
    elif partner is not None and write.is_described:
        other = partners.described(write, record, write.in_key(record, request.identity))
        if other is not None:
            delete = actions.DeleteItem(write.key_of(other))
            others = [TransactionStep(delete, again, is_partner=True, before=other)]
    delete = actions.DeleteItem(key, And(tuple(conditions)))
    refusal = partial(rules.not_as_required, write, request, guarded)
    steps = [TransactionStep(delete, refusal, before=old), *_shards_deleted(record, key)]
    return [*steps, *others], Done(record, request.identity, None)


def _shards_deleted(record: RecordType, key: Key) -> list[TransactionStep]:
    """Returns the steps that delete the shards of a node that is deleted or moved."""
    return [TransactionStep(actions.DeleteItem(each), again) for each in shard_keys(record, key)]


def _other_deleted(write: WriteContext, request: Delete, old: Item, other: Item) -> TransactionStep:
    """Returns the step that deletes the other item of an edge, or checks that it is missing if it was found to be."""
    key, conditions = write.key_of(other), rules.guard_other(write, request, other, None)
    keys = partners.keys(write, request.record, [old])
    if all(each in write.stored for each in keys) and partners.stored(write, request.record, old) is None:
        check = actions.CheckItem(key, Not(write.presence.there))
        return TransactionStep(check, again, is_partner=True)
    delete = actions.DeleteItem(key, conjunction(*conditions))
    return TransactionStep(delete, again, is_partner=True, before=other)


def detaching(write: WriteContext, references: Sequence[EndReference], item: Item) -> Change | Delete:
    """Returns the request that stops a record from naming a deleted node: it removes the ends, or the record."""
    record = references[0].record
    identity = record.read_identity(item) or ()
    if not all(reference.is_removable for reference in references):
        return Delete(record, identity)
    removed = dict.fromkeys(reference.end.name for reference in references)
    given = ends.given_ends(write.knowing({}), Change(record, identity, removed))
    lost = {named.name for named, own in given if own is None}
    copies = write.graph.copies.get(record.name, ())
    return Change(
        record, identity, removed | {each.field.name: None for each in copies if each.end.name in lost}
    )


# --- Moves --------------------------------------------------------------------------------------------


def moved(write: WriteContext, request: Move) -> Made:
    """Returns the steps that put a record under another key, and delete the old item if it is as it was read."""
    record, maker, refusals = request.record, write.maker(request.record), write.refusals
    changes = changes_of_move(write, request)
    key, old = write.place(request)
    if refusals.found or (old is None and not write.is_described):
        return [], Done(record, request.identity, None)
    if old is None:
        return _described_move(write, request, changes)
    if rules.refused_as_it_is(write, request, old):
        return [], Done(record, request.identity, None)
    attributes = after_changes(maker.without_own_keys(old), changes)
    replaced = Replaced(old, frozenset(write.changed_names(request)))
    made, identity = maker.with_keys(attributes, refusals.at(request.to), replaced=replaced)
    if refusals.found:
        return [], Done(record, identity, None)
    rules.check(write, record, made, request.to)
    rules.refuse_new(write, request, identity, made, "move")
    in_keys_alone = attributes.keys() - old.keys() - {change.path[0] for change in changes}
    new = {name: value for name, value in made.items() if name not in {MARK, *in_keys_alone}}
    # The shards are deleted: what is left of such a number is nothing, because no item names the node.
    known = [
        path for each in record.spread for path in each.shard_attributes if at_path(new, path) is not None
    ]
    new = actions.changed(new, [SetTo(path, Decimal(0)) for path in known])
    read = {*maker.paths((*record.fields, *record.ends)), *((name,) for name in old)}
    kept = {(MARK,), *((key.name,) for key in write.graph.table.keys)}
    same = are_as_read(record, sorted(read - kept), old)
    steps = [
        *_put_again(write, request, key, new, identity, old, same),
        *_other_changed(write, request.as_change, old, new),
    ]
    return [*steps, *_checks_of_move(write, request, new)], Done(record, identity, new)


def _described_move(write: WriteContext, request: Move, changes: Sequence[actions.AttributeChange]) -> Made:
    """Returns the same as far as the input determines it, without the stored item."""
    record, maker, graph = request.record, write.maker(request.record), write.graph
    old = write.in_key(record, request.identity)
    given = [change for change in changes if isinstance(change, SetTo)]
    attributes = after_changes(maker.without_own_keys(old), given)
    done = Done(record, request.identity, None)
    try:
        texts = maker.texts_after(request.identity, attributes, write.changed_names(request))
    except KeygraphError:
        return [], done  # only a read determines the new key
    new, identity = maker.with_rendered(attributes, texts, write.refusals.at(request.to))
    if write.refusals.found:
        return [], done
    known = {*(change.path[0] for change in given), *(each.name for each in graph.table.key_attributes())}
    put = {name: value for name, value in new.items() if name in known}
    key, *_ = graph.table_keys(record, request.identity)
    steps = _put_again(write, request, key, put, identity, None, ())
    if record.name in graph.correspondences:
        before, after = (partners.described(write, record, each) for each in (old, old | put))
        keys = [None if each is None else write.key_of(each) for each in (before, after)]
        if after is not None and not graph.store_key_fields:
            after = {key.name: after[key.name] for key in graph.table.keys}
        if keys[0] != keys[1]:
            steps += _other_moved(write, request.as_change, before, after, ())
    return [*steps, *_checks_of_move(write, request, old | put)], done


def _checks_of_move(write: WriteContext, request: Move, new: Item) -> list[TransactionStep]:
    given = {named.name for named, _ in ends.given_ends(write, request)}
    return [*ends.checks(write, request), *ends.unmarked_checks(write, request.record, new, given)]


def changes_of_move(write: WriteContext, request: Move) -> list[actions.AttributeChange]:
    """Returns what a move changes. Refuses fields that are not in the key."""
    record = request.record
    for name in sorted({*rules.names_given(request)} - write.names_in_key(record)):
        problem = f" is no part of the key of {record.name}."
        write.maker(record).refuse(name, write.refusals.at(request.to), problem)
    return ends.attribute_changes(write, request.as_change)


def _put_again(
    write: WriteContext,
    request: Move,
    key: Key,
    new: Item,
    identity: Texts,
    old: Item | None,
    same: Sequence[Condition],
) -> list[TransactionStep]:
    """Returns the steps that put the item under its new key, and delete the old one if it is as it was read."""
    record = request.record
    if identity == request.identity:
        write.refusals.add(request.to, f"The key of this {record.name} would stay the same.")
    exists = partial(rules.taken, write, replace(request, where=request.to))
    free = write.presence.is_free(record)
    absent = [other for other in write.graph.table_keys(record, identity) if other != write.key_of(new)]
    guarded = rules.guard(write, request, old)
    delete = actions.DeleteItem(key, And((*rules.conditions_on_record(write, request, guarded), *same)))
    return [
        TransactionStep(actions.PutItem(new, free), exists),
        *(TransactionStep(actions.CheckItem(other, free), exists) for other in absent),
        TransactionStep(delete, partial(rules.not_as_required, write, request, guarded), before=old),
        *_shards_deleted(record, key),
    ]
