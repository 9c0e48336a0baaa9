"""What one viewer may do: the rules of record types as conditions, decided by a key where it tells enough."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from keygraph.access.claims import Claims, roles_of
from keygraph.access.grants import Decision
from keygraph.access.language import Action
from keygraph.dynamo.actions import Remove, SetTo
from keygraph.dynamo.conditions import Condition, Path, holds, paths_of
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item, Value
from keygraph.errors import KeygraphError
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, encode
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

_OF_A_TOKEN = frozenset({"exp", "iat", "nbf", "jti", "auth_time"})
"""The claims that another token of the same viewer has otherwise."""
Texts = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ToldAttribute:
    """An attribute whose value the text of a slot tells."""

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


def told_by_key(record: RecordType) -> list[ToldAttribute]:
    """The attributes that the table key of a record tells."""
    return [*_told(record, record.identity)]


def told_by_path(path: AccessPath) -> list[ToldAttribute]:
    """The attributes that a list tells of all its items: by its owner, and by what a reader must say."""
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
                yield ToldAttribute(end.attributes[slot.path], found, wanted, slot.text.type)


def is_told_by_key(record: RecordType, name: str | None = None) -> bool:
    """Whether a record's key decides who may read it, or a field of it, whoever asks."""
    access = record.access
    return access is None or access.paths("read", name) <= {each.path for each in told_by_key(record)}


def restricted_name(record: RecordType, name: str) -> str | None:
    """The name of a field that not everybody may read who sees the record; None for others."""
    return name if record.access is not None and record.access.is_restricted(name) else None


class Permissions:
    """What one viewer may do. Made for one operation; each rule is made a condition once."""

    def __init__(self, claims: Claims | None = None) -> None:
        """`claims` are what is known of the viewer; None of the anonymous one."""
        self._claims = claims or {}
        self._roles = roles_of(self._claims)
        self._decisions: dict[tuple[RecordType, Action, str | None], Decision] = {}
        self._told: dict[tuple[RecordType | AccessPath, Condition], list[ToldAttribute] | None] = {}

    @cached_property
    def name(self) -> str:
        """Who the viewer is: their claims but for those that say how long they hold."""
        claims = {name: each for name, each in self._claims.items() if name not in _OF_A_TOKEN}
        return hashlib.sha256(json.dumps(claims, sort_keys=True, default=repr).encode()).hexdigest()

    def decision(self, record: RecordType, action: Action = "read", name: str | None = None) -> Decision:
        """Whether the viewer may do something with a record, or with a field of one that they see."""
        key = record, action, name
        found = self._decisions.get(key)
        if found is None:
            access = record.access
            found = access is None or access.decided(action, self._claims, self._roles, name)
            self._decisions[key] = found
        return found

    def of_key(
        self, record: RecordType, identity: tuple[str, ...], action: Action = "read", name: str | None = None
    ) -> Decision:
        """What a record's key decides of that: the condition that is left, for its item."""
        decision = self.decision(record, action, name)
        if isinstance(decision, bool):
            return decision
        told = self._relevant(record, decision, partial(told_by_key, record))
        return _left(decision, told, record.texts(identity)) if told else decision

    def of_item(
        self,
        record: RecordType,
        identity: tuple[str, ...],
        item: Item,
        action: Action = "read",
        name: str | None = None,
    ) -> bool:
        """Whether the viewer may do it with the record whose item this is."""
        decision = self.of_key(record, identity, action, name)
        if isinstance(decision, bool):
            return decision
        try:
            return holds(decision, record.completed(item))
        except (KeygraphError, ValueError):
            return False  # nobody can say what is in it

    def of_list(self, path: AccessPath, texts: Texts, decision: Decision) -> Decision:
        """What is left of a condition on the items of a list which fixes these texts, by slot."""
        if isinstance(decision, bool):
            return decision
        told = self._relevant(path, decision, partial(told_by_path, path))
        return _left(decision, told, texts) if told else decision

    def is_told(self, of: RecordType | AccessPath, decision: Decision) -> bool:
        """Whether a key of the type, or what a list fixes, decides it alone."""
        if isinstance(decision, bool):
            return True
        tell = partial(told_by_key, of) if isinstance(of, RecordType) else partial(told_by_path, of)
        told = self._relevant(of, decision, tell) or []
        return set(paths_of(decision)) <= {each.path for each in told}

    def _relevant(
        self, of: RecordType | AccessPath, decision: Condition, tell: Callable[[], list[ToldAttribute]]
    ) -> list[ToldAttribute]:
        key = of, decision
        found = self._told.get(key)
        if found is None:
            paths = {*paths_of(decision)}
            found = self._told[key] = [each for each in tell() if each.path in paths]
        return found


def _left(decision: Condition, told: Iterable[ToldAttribute], texts: Texts) -> Decision:
    return simplified(before(decision, [each.change(texts) for each in told]))
