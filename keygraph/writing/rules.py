"""The rules of a model on writes: on the values that are written, and on who may write them.

If the input or a key decides, a violation is refused at once; otherwise the rule becomes a condition of the
transaction. A rule on values applies to the record after the write. The record before and after the write decides who
may change it. For a change, both become conditions on the item before it, so the rules hold whatever others write
meanwhile. A record that the viewer cannot see is reported as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from keygraph.access.grants import Decision, all_of
from keygraph.access.language import WRITES, Action
from keygraph.codes import Code
from keygraph.dynamo.actions import AttributeChange, Remove, SetTo, changed
from keygraph.dynamo.conditions import And, Between, Condition, Exists, Ne, Not, Or, Path, holds, paths_of
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, Refusal
from keygraph.keys.types import INT_MAX, INT_MIN
from keygraph.model.comparisons import WriteRule
from keygraph.model.expiry import now
from keygraph.model.links import LinkName
from keygraph.model.permissions import KnownRecord, as_it_is
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.names import public_path, with_article
from keygraph.writing.context import WriteContext
from keygraph.writing.items import Refusals
from keygraph.writing.presence import are_as_read, has_version
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    NewRequest,
    Put,
    Upsert,
    WriteRequest,
    missing,
    place_of,
)

# --- Rules on values ---------------------------------------------------------------------------------


class Foreseen(NamedTuple):
    """A condition on the stored item, and the refusal if it does not hold."""

    condition: Condition
    refusal: Refusal


def rules_of(record: RecordType, names: Iterable[str]) -> list[WriteRule]:
    """Returns the rules that use one of these fields."""
    changed = {*names}
    return [rule for rule in record.rules if not changed.isdisjoint(rule.names)]


def ruled_in_keys(record: RecordType, names: Iterable[str]) -> list[str]:
    """Returns the other fields that the rules on these fields use and that an item may have only in a key."""
    changed = {*names}
    others = dict.fromkeys(name for rule in rules_of(record, changed) for name in rule.names)
    in_keys = record.attributes_in_keys
    return [name for name in others if name not in changed and record.fields[name].attribute[0] in in_keys]


def check(write: WriteContext, record: RecordType, item: Item, where: InputPath) -> None:
    """Refuses an item that breaks a rule on fields that are not refused already."""
    if record.rules:
        whole, refused = record.completed(item), write.refusals.places
        input_name = write.maker(record).input_name
        for rule in record.rules:
            is_known = refused.isdisjoint(public_path((*where, input_name(name))) for name in rule.names)
            if is_known and not holds(rule.condition, whole):
                write.refusals.found.append(_refusal(write, record, rule, where, Code.BAD_USER_INPUT))


def foreseen(
    write: WriteContext, request: Change, names: Iterable[str], changes: Sequence[AttributeChange]
) -> list[Foreseen]:
    """Returns what the item must meet so that the rules hold after the change. Refuses certain violations."""
    found, record = [], request.record
    for rule in rules_of(record, names):
        where = place_of(request, rule.names[0]) if len(rule.names) == 1 else request.where
        condition = simplified(before(rule.condition, changes))
        if condition is False:
            write.refusals.found.append(_refusal(write, record, rule, where, Code.BAD_USER_INPUT))
        elif not isinstance(condition, bool):
            found.append(Foreseen(condition, _refusal(write, record, rule, where, Code.CONFLICT)))
    return found


def readable_after(
    write: WriteContext, request: Change, changes: Sequence[AttributeChange], old: Item | None
) -> list[Foreseen]:
    """Returns what the item must meet so that an integer that is added to has 32 bits, and a required set that is taken
    from keeps a member. Refuses certain violations."""
    found = []
    for name in (*request.added, *request.taken):
        field = request.record.fields[name]
        if field.type.kind == "int":
            wanted: Condition = Between(field.attribute, Decimal(INT_MIN), Decimal(INT_MAX))
            problem = " would be an integer of more than 32 bits."
        elif name in request.taken and field.is_required:
            wanted, problem = Exists(field.attribute), f" of {request.record.name} needs a member."
        else:
            continue
        field_name = write.maker(request.record).input_name(name)
        refusal = Refusal(Code.BAD_USER_INPUT, (field_name, problem), (*place_of(request, name), field_name))
        try:
            left = simplified(before(wanted, changes))
        except ValueError:  # several members are removed, from a set that stays as it was read
            left = holds(wanted, changed(old or {}, changes))
        if left is False:
            write.refusals.found.append(refusal)
        elif not isinstance(left, bool):
            found.append(Foreseen(left, refusal))
    return found


def broken(foreseen: Sequence[Foreseen], item: Item) -> Refusal | None:
    """Returns the refusal if a stored item does not meet what was foreseen."""
    return next((each.refusal for each in foreseen if not holds(each.condition, item)), None)


def _refusal(
    write: WriteContext, record: RecordType, rule: WriteRule, where: InputPath, code: str
) -> Refusal:
    path = (*where, write.maker(record).input_name(rule.names[0])) if len(rule.names) == 1 else where
    return Refusal(code, (rule.message,), path)


# --- Who may write ------------------------------------------------------------------------------------


class Guard(NamedTuple):
    """The conditions on the record that a write changes."""

    conditions: Sequence[Condition]
    refusal: Callable[[Item], Refusal | None]
    """Returns the refusal for an item that does not meet them; None if the write may be tried again."""


UNGUARDED = Guard((), lambda item: None)


class _Requirement(NamedTuple):
    decision: Decision
    refusal: Refusal
    is_after: bool = False
    """Whether it applies to the record after the write."""


def refuse_forbidden(write: WriteContext, requests: Iterable[WriteRequest]) -> None:
    """Raises WriteRefused for what no record of a type allows, or not the one with that key, whether or not it exists."""
    decision, refusals = write.permissions.decision, Refusals()
    for request in requests if write.is_guarded else ():
        record = request.record
        if not isinstance(request, NewRequest):
            required = _required(write, request, hidden=missing(request))
            refused = (each.refusal for each in required if each.decision is False)
            refusals.found += [*islice((each for each in refused if each not in refusals.found), 1)]
            continue
        actions: tuple[Action, ...] = ("create",) if isinstance(request, Create) else ("create", "update")
        if all(decision(record, action) is False for action in actions):
            refusals.found.append(_forbidden(record, actions[0], request.where))
        for name in names_written(request) if isinstance(request, Upsert) else request.values:
            if all(decision(record, action, name) is False for action in actions):
                refusals.found.append(_forbidden_field(write, record, name, request.where))
    refusals.stop()


def refuse_new(
    write: WriteContext,
    request: Create | Put | Change | Move,
    identity: Texts,
    item: Item,
    action: Action,
) -> None:
    """Refuses a completely written record that the viewer may not write."""
    record, allows = request.record, write.permissions.allows
    where, new = place_of(request), KnownRecord(record, identity, item)
    if not write.is_guarded:
        return
    if not allows(new, action):
        write.refusals.found.append(_forbidden(record, action, where))
        return
    for name in names_written(request) if action == "update" else names_given(request):
        if not allows(new, action, name):
            write.refusals.found.append(_forbidden_field(write, record, name, where))


def is_other_guarded(write: WriteContext, record: RecordType) -> bool:
    """Returns whether the viewer may not do everything with the counterparts of edges of the type, or not see all."""
    other, rule = _other(write, record), write.permissions.rule
    if other is None:
        return False
    return any(rule(other, action) is not True for action in ("read", *WRITES)) or any(
        rule(other, action, name) is not True
        for name in (*other.fields, *other.ends)
        for action in ("create", "update")
    )


def _other(write: WriteContext, record: RecordType) -> RecordType | None:
    """Returns the type of an edge's counterpart, which has its own rules. A mirror is the same edge from its other end."""
    pair = write.graph.correspondences.get(record.name) if write.is_guarded else None
    return None if pair is None or pair.is_mirror else pair.other


def guard_other(
    write: WriteContext,
    request: WriteRequest,
    before: Item | None,
    after: Item | None,
    *,
    is_whole: bool = True,
) -> Sequence[Condition]:
    """Refuses what the viewer may not do to an edge's counterpart. Returns the conditions left. `is_whole`: `after` has the
    values that only the counterpart has; nothing is computed from these before it is known that the viewer may change it."""
    record, own, held = _other(write, request.record), write.separate(), UNGUARDED
    if record is None:
        return held.conditions
    asked = _of_other(write, request, before, after)
    action: Action = "create" if isinstance(asked, Create) else _action_of(asked)
    identity, *_ = [record.read_identity(item) or () for item in (before, after) if item]
    if before is not None and not isinstance(asked, Create):
        held = guard(own, asked, before, identity=identity)
    if after is not None and is_whole and not isinstance(asked, Delete):
        refuse_new(own, asked, record.read_identity(after) or (), after, action)
    if own.refusals.found:
        # The counterpart is not named: no rule may let the viewer see its type.
        write.refusals.put(_forbidden(request.record, action, request.where))
    return held.conditions


def _of_other(
    write: WriteContext, request: WriteRequest, before: Item | None, after: Item | None
) -> Create | Put | Change | Move | Delete:
    """Returns what the write of an edge does to its counterpart, as a request for that. The values do not matter."""
    pair, where = write.graph.correspondences[request.record.name], request.where
    record, key_of = pair.other, write.key_of
    identity = record.read_identity(before or after or {}) or ()
    if after is None or isinstance(request, Delete):
        return Delete(record, identity, where=where)
    is_put = isinstance(request, Create | Put)
    names = {name: name for name in pair.fields} | {mine: name for name, mine in pair.ends.items()}
    given = names_given(request) if is_put else names_written(request)
    values = dict.fromkeys(names[name] for name in given if name in names)
    if before is None:
        return Create(record, values, where)
    put = Put(record, values, where)
    if key_of(before) != key_of(after):
        return Move(record, identity, dict.fromkeys(names_written(put)) if is_put else values, where=where)
    return put if is_put else Change(record, identity, values, where=where)


def may_put(write: WriteContext, request: Put) -> bool:
    """Returns whether the viewer may put the record whatever is stored."""
    record, decision = request.record, write.permissions.decision
    names = (None, *names_written(request))
    return decision(record) is True and all(
        decision(record, action, name) is True for action in ("create", "update") for name in names
    )


def must_read(write: WriteContext, request: WriteRequest) -> bool:
    """Returns whether the record must be read first: the store does not see values only in an index's key."""
    record = request.record
    if isinstance(request, Put):
        return not may_put(write, request)
    return not isinstance(request, Create | Upsert) and any(
        not isinstance(each.decision, bool)
        and (not _is_safe(each.decision, record) or _needs_item(write, record, each.decision))
        for each in _required(write, request, hidden=missing(request))
    )


def _needs_item(write: WriteContext, record: RecordType, decision: Decision) -> bool:
    """Returns whether only the record's item determines which other items decide."""
    return any(name.link.needs_item for name in write.permissions.links(record, decision))


def guard(
    write: WriteContext,
    request: Change | Delete | Move | Put,
    old: Item | None,
    *,
    identity: Texts | None = None,
    changes: Sequence[AttributeChange] = (),
) -> Guard:
    """Returns what a write requires of the stored item, `old` if it was read. Refuses what cannot be allowed.

    `identity` is that of a record that an upsert or a put finds; a viewer who does not see it may not write it.
    """
    if not write.is_guarded:
        return UNGUARDED
    record, permissions, found = request.record, write.permissions, list[Foreseen]()
    own: Texts = getattr(request, "identity", identity) or ()
    hidden = missing(request) if identity is None else _forbidden(record, "update", request.where)
    required = [
        each
        for each in _required(write, request, hidden=hidden, identity=identity)
        if each.decision is not True
    ]
    in_keys: list[SetTo | Remove] = []
    whole: Item = {}
    if old is not None and required:
        whole = record.completed(old)
        in_keys = _values_in_keys(record, required, whole)
    for decision, refusal, is_after in required:
        left = decision
        try:
            if permissions.links(record, left):
                there = None if old is None else changed(whole, changes) if is_after else whole
                left = permissions.with_links(KnownRecord(record, own, there), left)
                left = False if permissions.links(record, left) else left  # one is not known
            if not isinstance(left, bool):
                left = simplified(before(left, [*(changes if is_after else ()), *in_keys]))
        except ValueError:
            left = False  # its values cannot be known
        if left is False or (old is not None and not isinstance(left, bool) and not holds(left, whole)):
            write.refusals.put(refusal)
            break
        if not isinstance(left, bool) and all(left != each.condition for each in found):
            found.append(Foreseen(left, refusal))
    conditions = [each.condition for each in found]
    if old is not None:
        paths = {each.path for each in in_keys}
        paths |= _paths_of_ends(write, record, [each.decision for each in required])
        conditions += are_as_read(record, sorted(paths), old)

    def refusal_of(item: Item) -> Refusal | None:
        unmet = [each for each in found if not holds(each.condition, item)]
        return broken(unmet, record.completed(item)) if unmet else None

    return Guard(conditions, refusal_of)


def refused_as_it_is(
    write: WriteContext, request: Change | Move, old: Item, *, identity: Texts | None = None
) -> bool:
    """Refuses to change a stored record that the viewer may not change, and returns whether it did. Then nothing is
    computed from its values: what cannot be computed would tell them."""
    own = write.separate()
    guard(own, request, old, identity=identity)
    write.refusals.found += own.refusals.found
    return bool(own.refusals.found)


def _paths_of_ends(write: WriteContext, record: RecordType, decisions: Iterable[Decision]) -> set[Path]:
    """Returns the paths of the ends whose nodes list the other items that decide."""
    names = (name for each in decisions for name in write.permissions.links(record, each))
    ends = (name.link.end for name in names if name.link.needs_item)
    return {path for end in ends if end is not None for path in end.attributes.values()}


def _is_as_decided(
    write: WriteContext, record: RecordType, decision: Condition, item: Item
) -> list[Condition]:
    """Returns the conditions that the deciding attributes are as read, or that the same other items decide."""
    paths = {path for path in paths_of(decision) if not isinstance(path[0], LinkName)}
    return are_as_read(record, sorted(paths | _paths_of_ends(write, record, [decision])), item)


def _required(
    write: WriteContext, request: WriteRequest, *, hidden: Refusal, identity: Texts | None = None
) -> Iterator[_Requirement]:
    """Yields the conditions on an existing record, in the order in which they are reported."""
    record, decide = request.record, write.permissions.decide
    there = KnownRecord(record, getattr(request, "identity", identity) or ())
    action = _action_of(request)
    yield _Requirement(decide(there), hidden)
    required = [(decide(there, action), _forbidden(record, action, request.where))]
    unread: list[_Requirement] = []
    for name in names_written(request):
        refusal = _forbidden_field(write, record, name, place_of(request, name))
        required.append((decide(there, action, name), refusal))
        if isinstance(request, Change | Upsert) and name in (*request.added, *request.taken):
            # What refuses them would tell of the stored value.
            problem = f" of {record.name}: you may not read this field, so not add to it or remove from it."
            refusal = replace(refusal, parts=(refusal.parts[0], problem))
            unread.append(_Requirement(decide(there, "read", name), refusal))
    for name, given in _changed_with_others(write, request):
        problem = f" of {record.name}: you may not read and write everything that is stored in its attribute."
        field_name = write.maker(record).input_name(given)
        refusal = Refusal(Code.FORBIDDEN, (field_name, problem), (*place_of(request, given), field_name))
        required.append((decide(there, action, name), refusal))
        if name in record.ends:
            # The new node must exist, which would tell of the attributes that stay as they are.
            unread.append(_Requirement(decide(there, "read", name), refusal))
    for each in required:
        yield _Requirement(*each)
        if isinstance(request, Change):
            yield _Requirement(*each, is_after=True)
    yield from unread


def _changed_with_others(write: WriteContext, request: WriteRequest) -> Iterator[tuple[str, str]]:
    """Yields the fields and ends that a change or a move changes, but does not give, each with the given name that is
    stored in the same attribute."""
    if not isinstance(request, Change | Move):
        return
    paths, given = write.maker(request.record).shared.paths, names_written(request)
    if isinstance(request, Move):
        given = [name for name in given if not _is_as_before(request, name)]
    for name in sorted(write.changed_names(request) - {*names_written(request)}):
        shared = {*paths[name]}
        beside = next((each for each in given if not shared.isdisjoint(paths[each])), None)
        if beside is not None:
            yield name, beside


def _is_as_before(request: Move, name: str) -> bool:
    """Returns whether a move gives a part of the key the value that it has."""
    record, value = request.record, request.values[name]
    if name not in record.key_fields:
        return False
    if name in record.ends:
        return bool(record.end_readers[name](request.identity) == value)
    number, value_of = record.places_in_identity[name]
    return bool(value_of(request.identity[number]) == value)


def visible_if(write: WriteContext, record: RecordType, identity: Texts, item: Item | None) -> Decision:
    """Returns the condition under which the viewer sees a node, which may have been read, and so may name it."""
    permissions, by_key = write.permissions, KnownRecord(record, identity)
    decision = permissions.with_links(by_key, permissions.decide(by_key))
    if isinstance(decision, bool):
        return decision
    is_linked = bool(permissions.links(record, decision))
    if not is_linked and (item is None or not _in_keys(record, decision)):
        return decision
    if item is None or permissions.with_item(KnownRecord(record, identity, item), decision) is not True:
        return False
    return all_of(_is_as_decided(write, record, decision, item))


def is_visible_by_item(write: WriteContext, record: RecordType, *, is_whole: bool) -> bool:
    """Returns whether only a node's item shows if the viewer sees it: it determines the deciding items, or the
    store misses a key's values. `is_whole` includes values that the store cannot mistake for the opposite."""
    decision = write.permissions.decision(record)
    if isinstance(decision, bool):
        return False
    is_unseen = _in_keys(record, decision) if is_whole else not _is_safe(decision, record)
    return is_unseen or _needs_item(write, record, decision)


def linked_items(
    write: WriteContext, request: WriteRequest, record: RecordType, identity: Texts, item: Item | None
) -> dict[tuple[Key, LinkName], None]:
    """Returns the keys of other items that decide on writing the record or its counterpart, or on a named node, with what
    they decide."""
    names: list[str | None] = [None]
    actions: tuple[Action, ...] = ("read",)
    if record is request.record:
        names += names_written(request)
        actions += ("create", "update") if isinstance(request, NewRequest) else (_action_of(request),)
    elif not record.is_node:
        names += [*record.fields, *record.ends]
        actions = ("read", *WRITES, "move")
    known, found = KnownRecord(record, identity, item), dict[tuple[Key, LinkName], None]()
    for action in actions:
        for name in names if action != "read" else [None]:
            found |= write.permissions.links_to(known, write.permissions.decision(record, action, name))
    return found


def _action_of(request: WriteRequest) -> Action:
    """Returns what the request does to an existing record."""
    return "delete" if isinstance(request, Delete) else "move" if isinstance(request, Move) else "update"


def names_written(request: WriteRequest) -> list[str]:
    """Returns the fields and ends that a client writes; a put also removes those that it leaves out."""
    if isinstance(request, Delete):
        return []
    given = names_given(request)
    if isinstance(request, Put):
        record = request.record
        key = {slot.path[0] for slot in record.identity}
        kept = {each.name for each in record.fields.values() if each.kept}
        return [*dict.fromkeys((*given, *record.fields.keys() - key - kept, *record.ends.keys() - key))]
    added = [*request.added, *request.taken] if isinstance(request, Change | Upsert) else []
    return [*dict.fromkeys((*given, *added))]


def names_given(request: NewRequest | Change | Move) -> list[str]:
    """Returns the fields and ends that a client gives values, without the ones that the server copies."""
    copied = {each.name for each in request.record.fields.values() if each.kept == "copy"}
    return [name for name in request.values if name not in copied]


def _forbidden(record: RecordType, action: Action, where: InputPath) -> Refusal:
    return Refusal(Code.FORBIDDEN, (f"You may not {action} this {record.name}.",), where)


def _forbidden_field(write: WriteContext, record: RecordType, name: str, where: InputPath) -> Refusal:
    field_name = write.maker(record).input_name(name)
    problem = f" of {record.name}: you may not write this field."
    return Refusal(Code.FORBIDDEN, (field_name, problem), (*where, field_name))


def _values_in_keys(
    record: RecordType, required: Iterable[_Requirement], whole: Item
) -> list[SetTo | Remove]:
    """Returns the deciding attributes that only keys of indexes may hold, as they are."""
    paths = {
        path
        for each in required
        if not isinstance(each.decision, bool)
        for path in paths_of(each.decision)
        if path[0] in record.attributes_in_keys
    }
    return [as_it_is(whole, path) for path in sorted(paths)]


def _in_keys(record: RecordType, condition: Condition) -> bool:
    """Returns whether it uses a value that an item may have only in a key."""
    return any(path[0] in record.attributes_in_keys for path in paths_of(condition))


def _is_safe(condition: Condition, record: RecordType, *, is_positive: bool = True) -> bool:
    """Returns whether the store never sees the condition as met by an item whose key says that it is not."""
    match condition:
        case And(conditions) | Or(conditions):
            return all(_is_safe(each, record, is_positive=is_positive) for each in conditions)
        case Not(inner):
            return _is_safe(inner, record, is_positive=not is_positive)
    if condition.path[0] not in record.attributes_in_keys:
        return True
    return is_positive and not isinstance(condition, Ne)


# --- What a failed condition on the record means ------------------------------------------------------


def taken(write: WriteContext, request: WriteRequest, item: Item | None) -> Refusal:
    """Returns the refusal for a new record whose key is taken."""
    hidden = hidden_at_key(write, request, item or {})
    if hidden is not None:
        return hidden
    of = request.record if item is None else write.graph.recognise(item)
    what = "another item" if of is None else with_article(of.name)
    return Refusal(Code.ALREADY_EXISTS, (f"There is already {what} with this key.",), request.where)


def taken_or_again(
    write: WriteContext, record: RecordType, request: WriteRequest, item: Item | None
) -> Refusal | None:
    """Returns the refusal for a record of this type, the request's or its counterpart, that exists after all; None if
    another try can find it."""
    if item is not None and write.graph.recognise(item) is not record:
        return taken(write, request, item)
    return hidden_at_key(write, request, item)


def hidden_at_key(write: WriteContext, request: WriteRequest, item: Item | None) -> Refusal | None:
    """Returns the refusal for a new record if the viewer does not see the item that has its key: as if they might not
    create it. None if they see it."""
    if not write.is_guarded or item is None:
        return None
    stored = write.graph.recognise(item)
    if stored is not None and write.is_visible(stored, item):
        return None
    return replace(_forbidden(request.record, "create", request.where), is_by_hidden=True)


def conditions_on_record(
    write: WriteContext, request: Change | Delete | Move, guard: Guard
) -> list[Condition]:
    """Returns the conditions that the record exists as the request requires, and that the viewer may write it."""
    version = has_version(request.record, request.version)
    return [write.presence.is_there(request.record), *version, *guard.conditions]


def not_as_required(
    write: WriteContext, request: Change | Delete | Move, guard: Guard, item: Item | None
) -> Refusal | None:
    """Returns the refusal for a record that is not as required; None if another try may succeed."""
    record, version, wanted = request.record, request.record.version, request.version
    is_gone = item is None or write.graph.recognise(item) is not record
    if item is None or is_gone or write.graph.is_expired(item, now()):
        return missing(request)
    refusal = guard.refusal(item)
    if refusal is None and version is not None and wanted is not None:
        current = record.reader(version)(item)
        if current != wanted:
            if not write.is_visible(record, item, version.name):
                return Refusal(Code.CONFLICT, (f"This {record.name} has changed.",), request.where)
            problem = f"This {record.name} has changed: its version is {current}."
            return Refusal(Code.CONFLICT, (problem,), request.where, {"currentVersion": current})
    return refusal
