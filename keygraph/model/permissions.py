"""The rights of one viewer: the rules of record types as conditions, decided by a key if it determines enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias, cast

from keygraph.access.claims import Claims, roles_of
from keygraph.access.grants import Decision
from keygraph.access.language import Action
from keygraph.dynamo.actions import Action as StoreAction
from keygraph.dynamo.actions import CheckItem, Remove, SetTo, key_of, outcome
from keygraph.dynamo.conditions import Condition, Path, at_path, holds, paths_of
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key, Table
from keygraph.errors import BadUserInput, KeygraphError
from keygraph.kept import kept
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, encode
from keygraph.model.links import LinkName, links_in
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

Texts = Mapping[str, str | None]
ListConditions: TypeAlias = Mapping[AccessPath, Decision]
"""The condition for the viewer to see an item of a list, for each of its types, by the path to it."""
Identity = tuple[str, ...]


class Subject(Protocol):
    """A record about which something is decided, as far as it is known."""

    @property
    def record(self) -> RecordType: ...
    @property
    def identity(self) -> Identity: ...
    @property
    def item(self) -> Item | None:
        """None if it was not read."""


class KnownRecord(NamedTuple):
    record: RecordType
    identity: Identity
    item: Item | None = None


class ListOwner(NamedTuple):
    """The owner of a list; None for the root's, or if it is not known."""

    path: AccessPath
    identity: Identity | None


@dataclass(frozen=True, slots=True)
class FixedAttribute:
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


@kept("what keys fix", 2048, 2_000)
def fixed_by_key(record: RecordType) -> list[FixedAttribute]:
    """Returns the attributes that the table key of a record determines."""
    return [*_fixed(record, record.identity)]


@kept("what keys fix", 8192, 2_000)
def fixed_by_list(path: AccessPath) -> list[FixedAttribute]:
    """Returns the attributes that a list determines for all its items: by its owner and by required arguments."""
    record, slots = path.record, [argument.slot for argument in path.required]
    slots += [record.slots[name] for name in path.known]
    if path.end is not None and path.undetermined:
        slots += [slot.under(path.end) for slot in record.ends[path.end].identity]
    return [*_fixed(record, slots)]


def _fixed(record: RecordType, slots: Iterable[Slot]) -> Iterator[FixedAttribute]:
    there = [slot for slot in slots if not slot.is_shard and not slot.lossy]
    for field in record.fields.values():
        for source in there:
            if record.is_same(source.path, (field.name,)):
                yield FixedAttribute(field.attribute, source, source, field.type)
                break
    for end in record.ends.values():
        for slot in end.identity if end.text is None else ():
            wanted = slot.under(end.name)
            found = None if slot.lossy else record.source(wanted, there)
            if found is not None:
                yield FixedAttribute(end.attributes[slot.path], found, wanted, end.attribute_type(slot))


def is_decided_by_key(record: RecordType, name: str | None = None) -> bool:
    """Returns whether a record's key decides who may read it, or a field of it, for any viewer."""
    access = record.access
    if access is None:
        return True
    fixed = {each.path for each in fixed_by_key(record)}
    return access.paths("read", name) <= fixed and not access.links("read", name)


def names_by_order(path: AccessPath) -> set[str]:
    """Returns the fields and ends that the order of a list tells. What is a part of the table's key, such as the day of
    a time, everybody knows who sees an item."""
    access, names = path.record.access, {slot.path[0] for slot in path.keys.slots if not slot.is_shard}
    return names if path.keys.index or access is None else names - access.parts


def restricted_name(record: RecordType, name: str) -> str | None:
    """Returns the name of a field that not everybody who sees the record may read; None for others."""
    return name if record.access is not None and record.access.is_restricted(name) else None


class Permissions:
    """The rights of one viewer. Made for one operation; each rule is made a condition once.

    Most functions return a decision: yes, no, or the condition that is left on what is not known yet. A condition uses
    *links*, other items that decide, like attributes of the record (`keygraph.model.links`).
    """

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
        self.are_links_assumed = False
        """Whether other items are assumed to exist, because a write is only explained."""

    # --- What is decided ------------------------------------------------------------------------------------

    def rule(self, record: RecordType, action: Action = "read", name: str | None = None) -> Rule | bool:
        """Returns whether the viewer may do something with a record, or with a field of one that they see; a rule if
        that depends on the record."""
        key = record, action, name
        found = self._rules.get(key)
        if found is None:
            access = record.access
            decision = access is None or access.decided(action, self._claims, self._roles, name)
            found = decision if isinstance(decision, bool) else Rule(record, decision)
            self._rules[key] = found
        return found

    def decision(self, record: RecordType, action: Action = "read", name: str | None = None) -> Decision:
        """Returns the same as a decision on any record of the type."""
        rule = self.rule(record, action, name)
        return rule if isinstance(rule, bool) else rule.condition

    def is_decided_by_key(self, of: RecordType | AccessPath, name: str | None = None) -> bool:
        """Returns whether a record's key alone decides if the viewer reads it, or a field of it; for a list, whether what
        it fixes decides for all its items alike."""
        if isinstance(of, AccessPath):
            decision = self.decision(of.record)
            return isinstance(decision, bool) or Rule(of, decision).is_fixed
        rule = self.rule(of, "read", name)
        return isinstance(rule, bool) or rule.is_fixed

    def decide(self, of: Subject, action: Action = "read", name: str | None = None) -> Decision:
        """Returns what is decided by what is known of a record: its key, its item, and other items."""
        rule = self.rule(of.record, action, name)
        if isinstance(rule, bool):
            return rule
        left = rule.of_key(of.identity)
        if self.is_linked(of.record, left):
            # If an attribute may decide it too, the item is read, even if other items are known by then.
            left = self.with_links(of, left)
        return left if of.item is None else self.with_item(of, left)

    def allows(self, of: Subject, action: Action = "read", name: str | None = None) -> bool:
        """Returns whether the viewer may do it: nothing is allowed before all that decides is known."""
        return self.decide(of, action, name) is True

    def with_item(self, of: Subject, decision: Decision) -> Decision:
        """Returns what is left of a decision on a record whose item is known: a condition on other items that are not."""
        if isinstance(decision, bool):
            return decision
        try:
            whole = of.record.completed(of.item or {})
            if not self.links(of.record, decision):
                return holds(decision, whole)
            values = [
                as_it_is(whole, path) for path in paths_of(decision) if not isinstance(path[0], LinkName)
            ]
            return self.with_links(of, _reduced(decision, values))
        except (KeygraphError, ValueError):
            return False  # its contents cannot be read

    def with_links(self, of: Subject | ListOwner, decision: Decision) -> Decision:
        """Returns what is left of a decision after applying the known links."""
        values = self.link_values(of, decision)
        return _reduced(decision, [SetTo((name,), is_met) for name, is_met in values.items()])

    # --- Links ----------------------------------------------------------------------------------------------

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

    def links_to(self, of: Subject | ListOwner, decision: Decision) -> dict[tuple[Key, LinkName], None]:
        """Returns the keys of the other items that a decision uses, as far as they follow from what is known. Several links
        may lead to one item."""
        found = [(name.key(node), name) for name, node in self._linked_nodes(of, decision)]
        return {(key, name): None for key, name in found if key is not None}

    def unknown_keys(self, of: Subject | ListOwner, decision: Decision) -> dict[Key, None]:
        """Returns the keys of those of them that were not looked up."""
        return {key: None for key, _ in self.links_to(of, decision) if key not in self._linked}

    def link_values(self, of: Subject | ListOwner, decision: Decision) -> dict[LinkName, bool]:
        """Returns whether the links of a decision are met, for those that are known."""
        found = dict[LinkName, bool]()
        for name, node in self._linked_nodes(of, decision):
            key = name.key(node)
            if key is None or self.are_links_assumed:
                found[name] = key is not None
            elif key in self._linked:
                item, is_there = self._linked[key], self._is_there
                is_of_type = item is not None and (is_there is None or is_there(item, name.link.record))
                found[name] = is_of_type and name.is_met(node, item)
        return found

    def learn(self, key: Key, item: Item | None) -> None:
        """Records the item under a key, of any type; None for nothing."""
        self._linked[key] = item

    def learn_written(self, actions: Iterable[StoreAction], table: Table) -> None:
        """Records what a transaction has made of the other items."""
        for action in actions:
            key = key_of(action, table)
            if key in self._linked and not isinstance(action, CheckItem):
                old = self._linked.pop(key)
                with suppress(BadUserInput):  # another item was there by then: it is looked up again
                    self._linked[key] = outcome(replace(action, condition=None), old, table)

    def forget_links(self) -> None:
        """Forgets the other items: they are looked up again."""
        self._linked.clear()

    def _linked_nodes(
        self, of: Subject | ListOwner, decision: Decision
    ) -> Iterator[tuple[LinkName, Identity | None]]:
        """Yields the links of a decision with the nodes that have their lists, as far as they are known; for a list, only
        the links that are the same for all its items: through the end that is its owner."""
        if not isinstance(of, ListOwner):
            for name in self.links(of.record, decision):
                with suppress(LookupError):
                    yield name, name.link.node(of.identity, of.item)
        elif of.identity is not None and not of.path.undetermined:
            for name in self.links(of.path.record, decision):
                if name.link.end is not None and name.link.end.name == of.path.end:
                    yield name, of.identity


class Rule:
    """A condition on records of a type, or on the items of a list, and what is left of it, by the texts that determine
    a part of it: for most records of an operation that is the same."""

    def __init__(self, of: RecordType | AccessPath, condition: Condition) -> None:
        self.condition = condition
        paths = {*paths_of(condition)}
        if isinstance(of, AccessPath):
            fixed, names = fixed_by_list(of), list[str]()
        else:
            fixed, names = fixed_by_key(of), [slot.name for slot in of.identity]
        self._fixed = [each for each in fixed if each.path in paths]
        self.is_fixed = paths <= {each.path for each in self._fixed}
        """Whether a key of the type, or what a list fixes, decides it alone."""
        self.names = [*dict.fromkeys(each.source.name for each in self._fixed)]
        """The slots whose texts determine a part of it."""
        self._numbers = [names.index(name) for name in self.names] if names else []
        self._left: dict[tuple[str | None, ...], Decision] = {}

    def of_key(self, identity: Identity) -> Decision:
        """Returns what is left of it for a record with this identity."""
        return self.left(tuple([identity[number] for number in self._numbers]))

    def left(self, texts: tuple[str | None, ...]) -> Decision:
        """Returns what is left of it for these texts, in the order of its names."""
        found = self._left.get(texts)
        if found is None:
            by_name = dict(zip(self.names, texts, strict=True))
            found = self._left[texts] = _reduced(
                self.condition, [each.change(by_name) for each in self._fixed]
            )
        return found


def as_it_is(item: Item, path: Path) -> SetTo | Remove:
    """Returns an item's value at a path, as a change that sets it."""
    missing = object()
    value = at_path(item, path, missing)
    return Remove(path) if value is missing else SetTo(path, cast(Value, value))


def _reduced(decision: Decision, changes: Sequence[SetTo | Remove]) -> Decision:
    """Returns what is left of a decision on a record with these attributes."""
    return decision if isinstance(decision, bool) or not changes else simplified(before(decision, changes))
