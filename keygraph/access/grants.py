"""The rules of one record type as they were resolved, and the condition that they are for one viewer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from keygraph.access.claims import Claims
from keygraph.access.language import AccessRule, Action
from keygraph.dynamo.conditions import And, Condition, Not, Or, Path
from keygraph.dynamo.expressions import simplified

Decision: TypeAlias = Condition | bool
"""Whether something is allowed: yes, no, or where a condition on the record holds."""
ConditionOf: TypeAlias = Callable[[Claims, bool], Decision]
"""Makes a condition of a viewer's claims. The second argument says whether it is in the scope of an even number of NOTs: a
comparison with a claim that is missing is decided so that less is allowed."""


def all_of(parts: Iterable[Decision]) -> Decision:
    """Whether all of these allow it."""
    return _joined(parts, And, neutral=True)


def any_of(parts: Iterable[Decision]) -> Decision:
    """Whether one of these allows it."""
    return _joined(parts, Or, neutral=False)


def _joined(parts: Iterable[Decision], join: type[And] | type[Or], *, neutral: bool) -> Decision:
    # Most rules are decided by roles, or are one condition alone: this is done in every operation.
    left: list[Condition] = []
    for part in parts:
        if isinstance(part, bool):
            if part is not neutral:
                return part
        else:
            left.append(part)
    if len(left) > 1:
        return simplified(join(tuple(left)))
    return left[0] if left else neutral


def none_of(part: Decision) -> Decision:
    """Whether this does not hold."""
    return not part if isinstance(part, bool) else simplified(Not(part))


def _once_known(part: Decision) -> Decision:
    """What always holds, but is left open until this is decided: what decides it is asked for, then."""
    return True if isinstance(part, bool) else Or((part, Not(part)))


@dataclass(frozen=True, eq=False)
class Grant:
    """One rule, as it is of one record type."""

    rule: AccessRule
    """What was said."""
    roles: frozenset[str] | None
    """One of them is needed; None for whoever asks."""
    condition: ConditionOf | None
    """What has to hold of the record; None for any record."""
    names: frozenset[str]
    """The fields and ends that the condition is about."""
    paths: frozenset[Path]
    """The attributes that it is about."""
    fields: frozenset[str] | None
    """What it allows of the record; None for all of it."""
    links: Sequence[Any] = ()
    """The other items that it asks for (`keygraph.model.links`)."""

    @property
    def is_open(self) -> bool:
        """Whether it allows something to everybody."""
        return self.roles is None and self.condition is None

    def decided(self, claims: Claims, roles: frozenset[str]) -> Decision:
        """Whether it allows something to a viewer."""
        if self.roles is not None and self.roles.isdisjoint(roles):
            return False
        return True if self.condition is None else self.condition(claims, True)

    def has(self, name: str) -> bool:
        """Whether it allows something of a field."""
        return self.fields is None or name in self.fields


Grants: TypeAlias = Sequence[Grant]


@dataclass(eq=False)
class TypeAccess:
    """The rules of one record type."""

    walls: Mapping[Action, Grants] = field(default_factory=dict)
    """The graph's own rules, of which one has to allow it besides; nothing for what stands before none."""
    rules: Mapping[Action, Grants] = field(default_factory=dict)
    """Those of the type; where it has none for an action, those of the graph."""
    own: Mapping[str, Mapping[Action, Grants]] = field(default_factory=dict)
    """The rules that fields, ends, lists and methods have themselves."""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields and ends that decide whether a method may be read, which has no rule itself."""
    key: frozenset[str] = frozenset()
    """The fields and ends in the record's key, which everybody who sees the record knows."""

    _restricted: dict[str, bool] = field(default_factory=dict, init=False, repr=False)

    def grants(self, action: Action, name: str | None = None) -> list[Grants]:
        """What has to allow an action on a record, or on a field of one that is allowed: one of each of these."""
        is_move = action == "move"
        said: Action = "update" if is_move else action
        rules = self.rules.get(said, ())
        if name is None:
            walls = self.walls.get(said)
            return [rules] if walls is None else [walls, rules]
        if name in self.key and not is_move:
            return []
        if name in self.needs:
            return [each for need in self.needs[name] for each in self.grants(action, need)]
        found = [] if all(rule.fields is None for rule in rules) else [[r for r in rules if r.has(name)]]
        own = self.own.get(name, {}).get(said)
        return [*found, *([] if own is None else [own])]

    @property
    def is_open_behind_walls(self) -> bool:
        """Whether whoever the graph's own rules let in sees every record of the type."""
        rules = self.rules.get("read", ())
        return rules is self.walls.get("read") or any(rule.is_open for rule in rules)

    def is_restricted(self, name: str) -> bool:
        """Whether somebody may see the record and not this field."""
        found = self._restricted.get(name)
        if found is None:
            grants = self.grants("read", name)
            found = any(not any(rule.is_open for rule in each) for each in grants)
            self._restricted[name] = found
        return found

    def decided(
        self, action: Action, claims: Claims, roles: frozenset[str], name: str | None = None
    ) -> Decision:
        """Whether a viewer may do it: with the record, or with a field of a record with which it may be done."""
        said = [
            [(rule, rule.decided(claims, roles)) for rule in grants] for grants in self.grants(action, name)
        ]
        found = all_of([any_of([part for _, part in grants]) for grants in said])
        if name is None and action == "read" and self._is_partly_linked:
            # Other items that decide about fields alone are asked for with the record.
            asked = any_of([part for grants in said for rule, part in grants if rule.links])
            found = all_of([found, _once_known(asked)])
        return found

    @cached_property
    def _is_partly_linked(self) -> bool:
        """Whether other items may decide who reads some fields, and not who sees the record."""
        rules = self.rules.get("read", ())
        return any(rule.links for rule in rules) and any(rule.fields is not None for rule in rules)

    def names(self, action: Action, name: str | None = None) -> frozenset[str]:
        """The fields and ends that decide it, for any viewer."""
        return frozenset(n for grants in self.grants(action, name) for rule in grants for n in rule.names)

    @cached_property
    def has_links(self) -> bool:
        """Whether other items decide anything."""
        said = [self.walls, self.rules, *self.own.values()]
        return any(rule.links for each in said for grants in each.values() for rule in grants)

    def links(self, action: Action, name: str | None = None) -> list[Any]:
        """The links that decide it, for any viewer."""
        return [link for grants in self.grants(action, name) for rule in grants for link in rule.links]

    def paths(self, action: Action, name: str | None = None) -> frozenset[Path]:
        """The attributes that decide it, for any viewer."""
        return frozenset(p for grants in self.grants(action, name) for rule in grants for p in rule.paths)
