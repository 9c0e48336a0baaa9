"""The rights of one viewer: the rules of record types as conditions, decided by a key if it determines enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, cast

from keygraph.access.claims import Claims, roles_of
from keygraph.access.grants import Decision
from keygraph.access.language import Action
from keygraph.dynamo.actions import Action as StoreAction
from keygraph.dynamo.actions import DeleteItem, PutItem, Remove, SetTo
from keygraph.dynamo.conditions import Condition, Path, at_path, holds, paths_of
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key
from keygraph.errors import KeygraphError
from keygraph.kept import kept
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, encode
from keygraph.model.links import LinkName, links_in
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

Texts = Mapping[str, str | None]
Seen: TypeAlias = Mapping[AccessPath, Decision]
"""The items of a list that the viewer sees, for each of its types, by the path to it."""
Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToldAttribute:
    """An attribute whose value the text of a slot determines."""

    path: Path
    source: Slot
    wanted: Slot
    type: FieldType

    def change(self, texts: Texts) -> SetTo | Remove:
        text = texts.get(self.source.name)
        if not text:
            return Remove(self.path)
        value: Value = encode(self.type, self.wanted.text.value(self.source.rewritten(text, self.wanted)))
        return SetTo(self.path, value)


@kept("what keys tell", 2048, 2_000)
def told_by_key(record: RecordType) -> list[ToldAttribute]:
    """Returns the attributes that the table key of a record determines."""
    return [*_told(record, record.identity)]


@kept("what keys tell", 8192, 2_000)
def told_by_path(path: AccessPath) -> list[ToldAttribute]:
    """Returns the attributes that a list determines for all its items: by its owner and by required arguments."""
    record, slots = path.record, [argument.slot for argument in path.required]
    slots += [record.slots[name] for name in path.known]
    if path.end is not None and path.untold:
        slots += [slot.under(path.end) for slot in record.ends[path.end].identity]
    return [*_told(record, slots)]


def _told(record: RecordType, slots: Iterable[Slot]) -> Iterator[ToldAttribute]:
    there = [slot for slot in slots if not slot.is_shard and not slot.lossy]
    for field in record.fields.values():
        for source in there:
            if record.is_same(source.path, (field.name,)):
                yield ToldAttribute(field.attribute, source, source, field.type)
                break
    for end in record.ends.values():
        for slot in end.identity if end.text is None else ():
            wanted = slot.under(end.name)
            found = None if slot.lossy else record.source(wanted, there)
            if found is not None:
                yield ToldAttribute(end.attributes[slot.path], found, wanted, end.attribute_type(slot))


def is_told_by_key(record: RecordType, name: str | None = None) -> bool:
    """Returns whether a record's key decides who may read it, or a field of it, for any viewer."""
    access = record.access
    if access is None:
        return True
    told = {each.path for each in told_by_key(record)}
    return access.paths("read", name) <= told and not access.links("read", name)


def restricted_name(record: RecordType, name: str) -> str | None:
    """Returns the name of a field that not everybody who sees the record may read; None for others."""
    return name if record.access is not None and record.access.is_restricted(name) else None


class Permissions:
    """The rights of one viewer. Made for one operation; each rule is made a condition once."""

    def __init__(
        self, claims: Claims | None = None, is_there: Callable[[Item, RecordType], bool] | None = None
    ) -> None:
        """`claims` are the viewer's; None for the anonymous one. `is_there` says whether an item that was found counts
        as a record of a type: another type's does not, nor does an expired one."""
        self._claims = claims or {}
        self._roles = roles_of(self._claims)
        self._rules: dict[tuple[RecordType, Action, str | None], Rule | bool] = {}
        self._links: dict[tuple[RecordType, Condition], list[LinkName]] = {}
        """Also by type: equal rules of several types apply to different items."""

        self._linked: dict[Key, Item | None] = {}
        """The items found under the keys of other items, which may be of another type; None for nothing."""
        self._is_there = is_there

        self.are_assumed = False
        """Whether other items are assumed to exist, because a write is only explained."""

    def decision(self, record: RecordType, action: Action = "read", name: str | None = None) -> Decision:
        """Returns whether the viewer may do something with a record, or with a field of one that they see."""
        rule = self.rule(record, action, name)
        return rule if isinstance(rule, bool) else rule.decision

    def rule(self, record: RecordType, action: Action = "read", name: str | None = None) -> Rule | bool:
        """Returns the same as a rule if it depends on the record: a key can decide a part of it."""
        key = record, action, name
        found = self._rules.get(key)
        if found is None:
            access = record.access
            decision = access is None or access.decided(action, self._claims, self._roles, name)
            found = decision if isinstance(decision, bool) else Rule(record, decision)
            self._rules[key] = found
        return found

    def is_told(self, record: RecordType, action: Action = "read", name: str | None = None) -> bool:
        """Returns whether a record's key alone decides it."""
        rule = self.rule(record, action, name)
        return isinstance(rule, bool) or rule.is_told

    def is_told_without_item(self, record: RecordType, name: str | None = None) -> bool:
        """Returns whether a record's key, or other items, decide if the viewer reads it, or a field of it."""
        decision = self.decision(record, "read", name)
        return self.is_told(record, "read", name) or self.is_linked(record, decision)

    def is_told_of_list(self, path: AccessPath) -> bool:
        """Returns whether what a list fixes decides, for all its items alike, if the viewer sees them."""
        decision = self.decision(path.record)
        return isinstance(decision, bool) or Rule(path, decision).is_told

    def is_told_whole(self, record: RecordType) -> bool:
        """Returns whether a record's key decides if the viewer sees all of it or nothing."""
        return self.decision(record) is False or (self.is_told(record) and self._shows_fields(record))

    def shows_all(self, record: RecordType) -> bool:
        """Returns whether the viewer sees every record of a type, with everything that it stores."""
        return self.decision(record) is True and self._shows_fields(record)

    def _shows_fields(self, record: RecordType) -> bool:
        stored = (*record.fields, *record.ends)
        return all(self.decision(record, "read", name) is True for name in stored)

    def of_key(
        self, record: RecordType, identity: Identity, action: Action = "read", name: str | None = None
    ) -> Decision:
        """Returns what a record's key decides; the rest is a condition on its item."""
        rule = self.rule(record, action, name)
        if isinstance(rule, bool):
            return rule
        left = rule.of_key(identity)
        if isinstance(left, bool) or not self.is_linked(record, left):
            return left
        # If an attribute may decide it too, the item is read, even if other items are known by then.
        return self.with_links(record, left, identity, None)

    def of_item(
        self,
        record: RecordType,
        identity: tuple[str, ...],
        item: Item,
        action: Action = "read",
        name: str | None = None,
    ) -> bool:
        """Returns whether the viewer may do it with the record of this item."""
        # If a link was not looked up, nothing is allowed.
        return self.of_whole(record, identity, item, action, name) is True

    def of_whole(
        self,
        record: RecordType,
        identity: Identity,
        item: Item,
        action: Action = "read",
        name: str | None = None,
    ) -> Decision:
        """Returns the same if other items may have to be looked up: a condition on them may be left."""
        return self.left(record, self.of_key(record, identity, action, name), identity, item)

    def left(self, record: RecordType, decision: Decision, identity: Identity, item: Item) -> Decision:
        """Returns what is left of a decision on this item's record: conditions on items that were not looked up."""
        if isinstance(decision, bool):
            return decision
        try:
            whole = record.completed(item)
            if not self.links(record, decision):
                return holds(decision, whole)
            told = [as_it_is(whole, path) for path in paths_of(decision) if not isinstance(path[0], LinkName)]
            return self.with_links(record, _said(decision, told), identity, item)
        except (KeygraphError, ValueError):
            return False  # its contents cannot be read

    def with_links_of_list(self, path: AccessPath, left: Decision, owner: Identity) -> Decision:
        """Returns what is left of a decision on the items of an owner's list after applying the known links."""
        known = [
            SetTo((name,), key is not None and self._is_met(name, node, key))
            for name, node in self._links_of_list(path, left, owner)
            if (key := name.key(node)) is None or key in self._linked
        ]
        return _said(left, known)

    # --- Links ----------------------------------------------------------------------------------------

    def links(self, record: RecordType, decision: Decision) -> list[LinkName]:
        """Returns the links that a decision on records of a type uses."""
        if isinstance(decision, bool) or record.access is None or not record.access.has_links:
            return []
        key = record, decision
        found = self._links.get(key)
        if found is None:
            found = self._links[key] = links_in(paths_of(decision))
        return found

    def is_linked(self, record: RecordType, decision: Decision) -> bool:
        """Returns whether other items alone decide it, whose keys the record's key determines."""
        if isinstance(decision, bool) or not self.links(record, decision):
            return False
        names = [path[0] for path in paths_of(decision)]
        return all(isinstance(name, LinkName) and not name.link.needs_item for name in names)

    def unknown(
        self, record: RecordType, decision: Decision, identity: Identity, item: Item | None
    ) -> dict[Key, LinkName]:
        """Returns the keys of other items to look up for a decision on a record, if the record determines them."""
        found = self.link_keys(record, decision, identity, item)
        return {key: name for key, name in found.items() if key not in self._linked}

    def link_keys(
        self, record: RecordType, decision: Decision, identity: Identity, item: Item | None
    ) -> dict[Key, LinkName]:
        """Returns the same, whether or not they were looked up."""
        found = {}
        for name in self.links(record, decision):
            with suppress(LookupError):
                key = name.key(name.link.node(identity, item))
                if key is not None:
                    found[key] = name
        return found

    def unknown_of_list(
        self, path: AccessPath, decision: Decision, owner: Identity | None
    ) -> dict[Key, LinkName]:
        """Returns the keys of other items that decide about a whole list, and were not looked up."""
        found = {name.key(node): name for name, node in self._links_of_list(path, decision, owner)}
        return {key: name for key, name in found.items() if key is not None and key not in self._linked}

    def learn(self, key: Key, item: Item | None) -> None:
        """Records the item under a key, of any type; None for nothing."""
        self._linked[key] = item

    def learn_written(self, written: Mapping[Key, StoreAction], items: Mapping[Key, Item | None]) -> None:
        """Records the actions of a write, and the items it left (None if unknown)."""
        for key in self._linked.keys() & (written.keys() | items.keys()):
            action, item = written.get(key), items.get(key)
            if item is not None or isinstance(action, DeleteItem):
                self._linked[key] = item
            elif isinstance(action, PutItem):
                self._linked[key] = action.item
            else:
                del self._linked[key]  # it is looked up again

    def said(self, record: RecordType, decision: Decision, identity: Identity, item: Item | None) -> Decision:
        """Returns what is left of a decision after applying the known items; nothing is allowed if one is unknown."""
        left = self.with_links(record, decision, identity, item)
        return False if self.links(record, left) else left

    def given(self, record: RecordType, decision: Decision, identity: Identity, item: Item) -> Item:
        """Returns an item of a list with the known values of the links in a condition on it."""
        return {
            **item,
            **{
                change.path[0]: change.value for change in self._known_links(record, decision, identity, item)
            },
        }

    def _links_of_list(
        self, path: AccessPath, decision: Decision, owner: Identity | None
    ) -> Iterator[tuple[LinkName, Identity]]:
        """Yields the links that are the same for all items of a list: through the end that is its owner."""
        for name in self.links(path.record, decision) if owner is not None else ():
            end = name.link.end
            if end is not None and end.name == path.end and owner is not None and not path.untold:
                yield name, owner

    def _known_links(
        self, record: RecordType, decision: Decision, identity: Identity, item: Item | None
    ) -> Iterator[SetTo]:
        for name in self.links(record, decision):
            with suppress(LookupError):
                node = name.link.node(identity, item)
                key = name.key(node)
                if key is None:
                    yield SetTo((name,), False)
                elif self.are_assumed or key in self._linked:
                    yield SetTo((name,), self.are_assumed or self._is_met(name, node, key))

    def _is_met(self, name: LinkName, node: Identity | None, key: Key) -> bool:
        item = self._linked[key]
        if item is None or not (self._is_there is None or self._is_there(item, name.link.record)):
            return False
        return name.is_met(node, item)

    def with_links(
        self, record: RecordType, decision: Decision, identity: Identity, item: Item | None
    ) -> Decision:
        """Returns what is left of a decision after applying its known links."""
        return _said(decision, [*self._known_links(record, decision, identity, item)])


class Rule:
    """A condition on records of a type, or on the items of a list, and what is left of it, by the texts that determine
    a part of it: for most records of an operation that is the same."""

    def __init__(self, of: RecordType | AccessPath, decision: Condition) -> None:
        self.decision = decision
        paths = {*paths_of(decision)}
        if isinstance(of, AccessPath):
            told, names = told_by_path(of), list[str]()
        else:
            told, names = told_by_key(of), [slot.name for slot in of.identity]
        self._told = [each for each in told if each.path in paths]
        self.is_told = paths <= {each.path for each in self._told}
        """Whether a key of the type, or what a list fixes, decides it alone."""
        self._names = [*dict.fromkeys(each.source.name for each in self._told)]
        self._numbers = [names.index(name) for name in self._names] if names else []
        self._left: dict[tuple[str | None, ...], Decision] = {} if self._names else {(): decision}

    def of_key(self, identity: Identity) -> Decision:
        """Returns what is left of it for a record with this identity."""
        texts = tuple([identity[number] or None for number in self._numbers])
        found = self._left.get(texts)
        return self.left(texts) if found is None else found

    def texts_of(self, texts: Texts) -> tuple[str | None, ...]:
        """Returns those of a list's texts, by slot, that determine a part of it."""
        return tuple([texts.get(name) for name in self._names])

    def left(self, texts: tuple[str | None, ...]) -> Decision:
        """Returns what is left of it for these texts of the slots that determine a part of it."""
        found = self._left.get(texts)
        if found is None:
            by_name = dict(zip(self._names, texts, strict=True))
            changes = [each.change(by_name) for each in self._told]
            found = self._left[texts] = simplified(before(self.decision, changes))
        return found


def as_it_is(item: Item, path: Path) -> SetTo | Remove:
    """Returns an item's value at a path, as a change that sets it."""
    missing = object()
    value = at_path(item, path, missing)
    return Remove(path) if value is missing else SetTo(path, cast(Value, value))


def _said(decision: Decision, changes: Sequence[SetTo | Remove]) -> Decision:
    """Returns what is left of a decision on a record with these attributes."""
    return decision if isinstance(decision, bool) or not changes else simplified(before(decision, changes))
