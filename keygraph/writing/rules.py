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
from keygraph.model.links import LinkName
from keygraph.model.permissions import Permissions, as_it_is
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.names import public_path, with_article
from keygraph.writing.items import ItemMaker, Refusals
from keygraph.writing.presence import is_unchanged
from keygraph.writing.requests import Change, Create, Delete, Move, Put, Upsert, WriteRequest, place_of

# --- Rules on values ---------------------------------------------------------------------------------


class Foreseen(NamedTuple):
    """A condition on the stored item, and the refusal if it does not hold."""

    condition: Condition
    refusal: Refusal


def rules_of(record: RecordType, names: Iterable[str]) -> list[WriteRule]:
    """Returns the rules that use one of these fields."""
    changed = {*names}
    return [rule for rule in record.rules if not changed.isdisjoint(rule.names)]


def told_in_keys(record: RecordType, names: Iterable[str]) -> list[str]:
    """Returns the other fields that the rules on these fields use and that an item may have only in a key."""
    changed = {*names}
    others = dict.fromkeys(name for rule in rules_of(record, changed) for name in rule.names)
    in_keys = record.attributes_in_keys
    return [name for name in others if name not in changed and record.fields[name].attribute[0] in in_keys]


def check_rules(maker: ItemMaker, item: Item, where: InputPath, refusals: Refusals) -> None:
    """Refuses an item that breaks a rule on fields that are not refused already."""
    if maker.record.rules:
        whole, refused = maker.record.completed(item), refusals.places
        for rule in maker.record.rules:
            is_known = refused.isdisjoint(public_path((*where, maker.shown(name))) for name in rule.names)
            if is_known and not holds(rule.condition, whole):
                refusals.found.append(_refusal(maker, rule, where, Code.BAD_USER_INPUT))


def foreseen_rules(
    maker: ItemMaker,
    names: Iterable[str],
    changes: Sequence[AttributeChange],
    request: Change,
    refusals: Refusals,
) -> list[Foreseen]:
    """Returns what the item must meet so that the rules hold after the change. Refuses certain violations."""
    found = []
    for rule in rules_of(maker.record, names):
        where = place_of(request, rule.names[0]) if len(rule.names) == 1 else request.where
        condition = simplified(before(rule.condition, changes))
        if condition is False:
            refusals.found.append(_refusal(maker, rule, where, Code.BAD_USER_INPUT))
        elif not isinstance(condition, bool):
            found.append(Foreseen(condition, _refusal(maker, rule, where, Code.CONFLICT)))
    return found


def readable_after(
    maker: ItemMaker,
    request: Change,
    changes: Sequence[AttributeChange],
    old: Item | None,
    refusals: Refusals,
) -> list[Foreseen]:
    """Returns what the item must meet so that an integer that is added to has 32 bits, and a required set that is taken
    from keeps a member. Refuses certain violations."""
    found = []
    for name in (*request.added, *request.taken):
        field = maker.record.fields[name]
        if field.type.kind == "int":
            wanted: Condition = Between(field.attribute, Decimal(INT_MIN), Decimal(INT_MAX))
            problem = " would be an integer of more than 32 bits."
        elif name in request.taken and field.is_required:
            wanted, problem = Exists(field.attribute), f" of {maker.record.name} needs a member."
        else:
            continue
        shown = maker.shown(name)
        refusal = Refusal(Code.BAD_USER_INPUT, (shown, problem), (*place_of(request, name), shown))
        try:
            left = simplified(before(wanted, changes))
        except ValueError:  # several members are removed, from a set that stays as it was read
            left = holds(wanted, changed(old or {}, changes))
        if left is False:
            refusals.found.append(refusal)
        elif not isinstance(left, bool):
            found.append(Foreseen(left, refusal))
    return found


def broken_rule(foreseen: Sequence[Foreseen]) -> Callable[[Item | None], Refusal | None]:
    """Returns a function from a stored item to its refusal if a rule would be broken, else None."""

    def refusal(item: Item | None) -> Refusal | None:
        there = item or {}
        return next((each.refusal for each in foreseen if not holds(each.condition, there)), None)

    return refusal


def _refusal(maker: ItemMaker, rule: WriteRule, where: InputPath, code: str) -> Refusal:
    path = (*where, maker.shown(rule.names[0])) if len(rule.names) == 1 else where
    return Refusal(code, (rule.message,), path)


# --- Who may write ------------------------------------------------------------------------------------


class Guard(NamedTuple):
    """The conditions on the record that a write changes."""

    conditions: Sequence[Condition]
    refusal: Callable[[Item], Refusal | None]
    """Returns the refusal for an item that does not meet them; None if the write may be tried again."""


UNGUARDED = Guard((), lambda item: None)


class _Asked(NamedTuple):
    decision: Decision
    refusal: Refusal
    is_after: bool = False
    """Whether it applies to the record after the write."""


class WriteAccess:
    """The rights of one viewer to write."""

    def __init__(self, permissions: Permissions) -> None:
        self.permissions = permissions

    def refuse(self, maker: ItemMaker, request: WriteRequest, refusals: Refusals) -> None:
        """Refuses what no record of the type allows, or not the one with that key, whether or not it exists."""
        record, decision = request.record, self.permissions.decision
        if isinstance(request, Create | Put | Upsert):
            actions: tuple[Action, ...] = ("create",) if isinstance(request, Create) else ("create", "update")
            if all(decision(record, action) is False for action in actions):
                refusals.found.append(_forbidden(record, actions[0], request.where))
            for name in names_written(request) if isinstance(request, Upsert) else request.values:
                if all(decision(record, action, name) is False for action in actions):
                    refusals.found.append(_forbidden_field(maker, name, request.where))
            return
        for each in self._asked(maker, request, hidden=missing(request)):
            if each.decision is False and each.refusal not in refusals.found:
                refusals.found.append(each.refusal)
                return

    def check_new(
        self,
        maker: ItemMaker,
        identity: Texts,
        item: Item,
        action: Action,
        names: Iterable[str],
        where: InputPath,
        refusals: Refusals,
    ) -> None:
        """Refuses a completely written record that the viewer may not write."""
        record, is_allowed = maker.record, self.permissions.of_item
        if not is_allowed(record, identity, item, action):
            refusals.found.append(_forbidden(record, action, where))
            return
        for name in names:
            if not is_allowed(record, identity, item, action, name):
                refusals.found.append(_forbidden_field(maker, name, where))

    def held_partner(
        self,
        record: RecordType,
        before: Item | None,
        after: Item | None,
        where: InputPath,
        refusals: Refusals,
    ) -> list[Condition]:
        """Refuses what the viewer may not do to an edge's other item, before or after. Returns the conditions left."""
        identity = record.read_identity(before or after or {}) or ()
        action: Action = "create" if before is None else "delete" if after is None else "update"
        if not all(
            self.permissions.of_item(record, identity, each, action) for each in (before, after) if each
        ):
            refusals.found.append(_forbidden(record, action, where))
        decision = self.permissions.of_key(record, identity, action)
        if before is None or isinstance(decision, bool):
            return []
        is_read = self.permissions.links(record, decision) or _in_keys(record, decision)
        return self._is_as_decided(record, decision, before) if is_read else [decision]

    def may_put(self, request: Put) -> bool:
        """Returns whether the viewer may put the record whatever is stored."""
        record, decision = request.record, self.permissions.decision
        names = (None, *names_written(request))
        return decision(record) is True and all(
            decision(record, action, name) is True for action in ("create", "update") for name in names
        )

    def must_read(self, maker: ItemMaker, request: WriteRequest) -> bool:
        """Returns whether the record must be read first: the store does not see values only in an index's key."""
        if isinstance(request, Put):
            return not self.may_put(request)
        if isinstance(request, Create | Upsert):
            return False
        record = request.record
        return any(
            not isinstance(each.decision, bool)
            and (not _is_safe(each.decision, record) or self._needs_item(record, each.decision))
            for each in self._asked(maker, request, hidden=missing(request))
        )

    def _needs_item(self, record: RecordType, decision: Decision) -> bool:
        """Returns whether only the record's item determines which other items decide."""
        return any(name.link.needs_item for name in self.permissions.links(record, decision))

    def guard(
        self,
        maker: ItemMaker,
        request: WriteRequest,
        old: Item | None,
        refusals: Refusals,
        *,
        identity: Texts | None = None,
        changes: Sequence[AttributeChange] = (),
    ) -> Guard:
        """Returns what a write requires of the stored item, `old` if it was read. Refuses what cannot be allowed.

        `identity` is that of a record that an upsert or a put finds; a viewer who does not see it may not write it.
        """
        record, found = request.record, list[Foreseen]()
        own: Texts = getattr(request, "identity", identity) or ()
        hidden = missing(request) if identity is None else _forbidden(record, "update", request.where)
        asked = [
            each
            for each in self._asked(maker, request, hidden=hidden, identity=identity)
            if each.decision is not True
        ]
        told: list[SetTo | Remove] = []
        whole: Item = {}
        if old is not None and asked:
            whole = record.completed(old)
            told = _told_in_keys(record, asked, whole)
        for decision, refusal, is_after in asked:
            left = decision
            try:
                if not isinstance(left, bool) and self.permissions.links(record, left):
                    there = changed(whole, changes) if is_after and old is not None else whole
                    left = self.permissions.said(record, left, own, there if old is not None else None)
                if not isinstance(left, bool):
                    left = simplified(before(left, [*(changes if is_after else ()), *told]))
            except ValueError:
                left = False  # its values cannot be known
            if left is False or (old is not None and not isinstance(left, bool) and not holds(left, whole)):
                if refusal not in refusals.found:
                    refusals.found.append(refusal)
                break
            if not isinstance(left, bool) and all(left != each.condition for each in found):
                found.append(Foreseen(left, refusal))
        conditions = [each.condition for each in found]
        if old is not None:
            paths = {each.path for each in told}
            paths |= self._paths_of_ends(record, [each.decision for each in asked])
            conditions += are_unchanged(record, paths, old)

        def refusal_of(item: Item) -> Refusal | None:
            broken = [each for each in found if not holds(each.condition, item)]
            if not broken:
                return None
            there = record.completed(item)
            return next((each.refusal for each in broken if not holds(each.condition, there)), None)

        return Guard(conditions, refusal_of)

    def _paths_of_ends(self, record: RecordType, decisions: Iterable[Decision]) -> set[Path]:
        """Returns the paths of the ends whose nodes list the other items that decide."""
        names = (name for each in decisions for name in self.permissions.links(record, each))
        ends = (name.link.end for name in names if name.link.needs_item)
        return {path for end in ends if end is not None for path in end.attributes.values()}

    def _is_as_decided(self, record: RecordType, decision: Condition, item: Item) -> list[Condition]:
        """Returns the conditions that the deciding attributes are as read, or that the same other items decide."""
        paths = {path for path in paths_of(decision) if not isinstance(path[0], LinkName)}
        return are_unchanged(record, paths | self._paths_of_ends(record, [decision]), item)

    def _asked(
        self, maker: ItemMaker, request: WriteRequest, *, hidden: Refusal, identity: Texts | None = None
    ) -> Iterator[_Asked]:
        """Yields the conditions on an existing record, in the order in which they are reported."""
        record, where = request.record, request.where
        own = getattr(request, "identity", identity) or ()
        action = _action_of(request)
        yield _Asked(self.permissions.of_key(record, own), hidden)
        decision, refusal = self.permissions.of_key(record, own, action), _forbidden(record, action, where)
        yield _Asked(decision, refusal)
        is_change = isinstance(request, Change)
        if is_change:
            yield _Asked(decision, refusal, is_after=True)
        for name in () if isinstance(request, Delete) else names_written(request):
            decision = self.permissions.of_key(record, own, action, name)
            refusal = _forbidden_field(maker, name, place_of(request, name))
            yield _Asked(decision, refusal)
            if is_change:
                yield _Asked(decision, refusal, is_after=True)

    def seen(self, record: RecordType, identity: Texts, item: Item | None) -> Decision:
        """Returns the condition under which the viewer sees a node, which may have been read, and so may name it."""
        decision = self.permissions.with_links(
            record, self.permissions.of_key(record, identity), identity, None
        )
        if isinstance(decision, bool):
            return decision
        is_linked = bool(self.permissions.links(record, decision))
        if not is_linked and (item is None or not _in_keys(record, decision)):
            return decision
        if item is None or self.permissions.left(record, decision, identity, item) is not True:
            return False
        return all_of(self._is_as_decided(record, decision, item))

    def hidden(
        self, record: RecordType, where: InputPath, item: Item | None, stored: RecordType | None
    ) -> Refusal | None:
        """Returns the refusal for a new record if the viewer does not see the item of the type `stored` that has its
        key: as if they might not create it. None if they see it."""
        identity = None if item is None or stored is None else stored.read_identity(item)
        if item is None or (
            stored is not None and identity is not None and self.sees(stored, identity, item)
        ):
            return None
        return replace(_forbidden(record, "create", where), is_by_hidden=True)

    def sees(self, record: RecordType, identity: Texts, item: Item) -> bool:
        """Returns whether the viewer sees the record of this item, once the other items that decide are known."""
        return self.permissions.of_item(record, identity, item)

    def sees_by_item(self, record: RecordType, *, is_whole: bool) -> bool:
        """Returns whether only a node's item shows if the viewer sees it: it determines the deciding items, or the
        store misses a key's values. `is_whole` includes values that the store cannot mistake for the opposite."""
        decision = self.permissions.decision(record)
        if isinstance(decision, bool):
            return False
        is_unseen = _in_keys(record, decision) if is_whole else not _is_safe(decision, record)
        return is_unseen or self._needs_item(record, decision)

    def linked(
        self, request: WriteRequest, record: RecordType, identity: Texts, item: Item | None
    ) -> dict[Key, LinkName]:
        """Returns the keys of other items that decide on writing the record or its counterpart, or on a named node."""
        names: list[str | None] = [None]
        actions: tuple[Action, ...] = ("read",)
        if record is request.record:
            names += names_written(request)
            is_new = isinstance(request, Create | Put | Upsert)
            actions += ("create", "update") if is_new else (_action_of(request),)
        elif not record.is_node:
            actions = WRITES
        found: dict[Key, LinkName] = {}
        for action in actions:
            for name in names if action != "read" else [None]:
                decision = self.permissions.decision(record, action, name)
                found |= self.permissions.link_keys(record, decision, identity, item)
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


def names_given(request: Create | Put | Upsert | Change | Move) -> list[str]:
    """Returns the fields and ends that a client gives values, without the ones that the server copies."""
    copied = {each.name for each in request.record.fields.values() if each.kept == "copy"}
    return [name for name in request.values if name not in copied]


def exists_already(record: RecordType | None, where: InputPath) -> Refusal:
    """Returns the refusal for a new record whose key an item of this type has, or of none."""
    what = "another item" if record is None else with_article(record.name)
    return Refusal(Code.ALREADY_EXISTS, (f"There is already {what} with this key.",), where)


def missing(request: WriteRequest) -> Refusal:
    """Returns the refusal for a missing record."""
    return Refusal(Code.NOT_FOUND, (f"There is no {request.record.name} with this key.",), request.where)


def _forbidden(record: RecordType, action: Action, where: InputPath) -> Refusal:
    return Refusal(Code.FORBIDDEN, (f"You may not {action} this {record.name}.",), where)


def _forbidden_field(maker: ItemMaker, name: str, where: InputPath) -> Refusal:
    shown = maker.shown(name)
    return Refusal(
        Code.FORBIDDEN, (shown, f" of {maker.record.name}: you may not write this field."), (*where, shown)
    )


def _told_in_keys(record: RecordType, asked: Iterable[_Asked], whole: Item) -> list[SetTo | Remove]:
    """Returns the deciding attributes that only keys of indexes may hold, as they are."""
    paths = {
        path
        for each in asked
        if not isinstance(each.decision, bool)
        for path in paths_of(each.decision)
        if path[0] in record.attributes_in_keys
    }
    return [as_it_is(whole, path) for path in sorted(paths)]


def are_unchanged(record: RecordType, paths: Iterable[Path], old: Item) -> list[Condition]:
    """Returns the conditions that attributes are as read, and also index keys if only these may hold one of them."""
    found = {*paths}
    if any(path[0] in record.attributes_in_keys for path in found):
        found |= {(key.name,) for keys in record.keys.values() if keys.index for key in keys.attributes}
    return [is_unchanged(path, old) for path in sorted(found)]


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
