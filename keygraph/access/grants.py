"""The resolved rules of one record type, and the condition that they become for one viewer."""

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
"""Whether something is allowed: yes, no, or only if a condition on the record holds."""
ConditionOf: TypeAlias = Callable[[Claims, bool], Decision]
"""Makes a condition from a viewer's claims. The second argument says whether the condition is inside an even number of
NOTs: a comparison with a missing claim is decided so that less is allowed."""


def all_of(parts: Iterable[Decision]) -> Decision:
    """Returns the decision that holds if all of these hold."""
    return _joined(parts, And, neutral=True)


def any_of(parts: Iterable[Decision]) -> Decision:
    """Returns the decision that holds if at least one of these holds."""
    return _joined(parts, Or, neutral=False)


def _joined(parts: Iterable[Decision], join: type[And] | type[Or], *, neutral: bool) -> Decision:
    # Runs in every operation. Most rules are decided by roles or are a single condition.
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
    """Returns the opposite of a decision."""
    return not part if isinstance(part, bool) else simplified(Not(part))


@dataclass(frozen=True, eq=False)
class Grant:
    """One rule, resolved for one record type."""

    rule: AccessRule
    roles: frozenset[str] | None
    """The viewer needs one of these; None allows everybody."""
    condition: ConditionOf | None
    """The condition on the record; None for any record."""
    names: frozenset[str]
    """The fields and ends that the condition uses."""
    paths: frozenset[Path]
    """The attributes that the condition uses."""
    fields: frozenset[str] | None
    """The fields that the rule covers; None for all."""
    links: Sequence[Any] = ()
    """The other items that the rule reads (`keygraph.model.links`)."""

    @property
    def is_open(self) -> bool:
        """Whether the rule allows its fields to everybody."""
        return self.roles is None and self.condition is None

    def decided(self, claims: Claims, roles: frozenset[str]) -> Decision:
        """Returns whether the rule allows its fields to a viewer."""
        if self.roles is not None and self.roles.isdisjoint(roles):
            return False
        return True if self.condition is None else self.condition(claims, True)

    def has(self, name: str) -> bool:
        """Returns whether the rule covers a field."""
        return self.fields is None or name in self.fields


Grants: TypeAlias = Sequence[Grant]


@dataclass(eq=False)
class TypeAccess:
    """The access rules of one record type."""

    walls: Mapping[Action, Grants] = field(default_factory=dict)
    """The graph's own rules, one of which must also allow the action; no entry if the graph has none for it."""
    rules: Mapping[Action, Grants] = field(default_factory=dict)
    """The type's rules; for an action without any, the graph's."""
    own: Mapping[str, Mapping[Action, Grants]] = field(default_factory=dict)
    """The rules of individual fields, ends, lists and methods."""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each method without a rule of its own, the fields and ends that decide whether it may be read."""
    key: frozenset[str] = frozenset()
    """The fields and ends in the record's key, which everybody who sees the record knows."""
    parts: frozenset[str] = frozenset()
    """Those of them of which the key holds only a part: who may read them is decided as of others."""

    _restricted: dict[str, bool] = field(default_factory=dict, init=False, repr=False)

    def grants(self, action: Action, name: str | None = None) -> list[Grants]:
        """Returns groups of rules for an action on a record or a field of an allowed one. Each group must allow it."""
        is_move = action == "move"
        own_action: Action = "update" if is_move else action
        rules = self.rules.get(own_action, ())
        if name is None:
            walls = self.walls.get(own_action)
            return [rules] if walls is None else [walls, rules]
        if name in self.key and not is_move and not (action == "read" and name in self.parts):
            return []
        if name in self.needs:
            needed = [each for need in self.needs[name] for each in self.grants(action, need)]
            naming = [rule for rule in rules if rule.fields is not None and name in rule.fields]
            if not naming:
                return needed
            # A rule without fields= covers a method only as far as its needs; one that names it allows it alone.
            return [[rule for rule in rules if rule.has(name)], *([*naming, *each] for each in needed)]
        found = [] if all(rule.fields is None for rule in rules) else [[r for r in rules if r.has(name)]]
        own = self.own.get(name, {}).get(own_action)
        return [*found, *([] if own is None else [own])]

    def is_restricted(self, name: str) -> bool:
        """Returns whether some viewer may see the record but not this field."""
        found = self._restricted.get(name)
        if found is None:
            grants, records = self.grants("read", name), {*self.rules.get("read", ())}
            # Who sees a record by a rule that covers the field may read it.
            found = any(
                not any(rule.is_open for rule in each) and not (records and records <= {*each})
                for each in grants
            )
            self._restricted[name] = found
        return found

    def guards(self, name: str) -> bool:
        """Returns whether rules decide who reads a field, even if they allow everybody."""
        return "read" in self.own.get(name, ()) or self.is_restricted(name)

    def decided(
        self, action: Action, claims: Claims, roles: frozenset[str], name: str | None = None
    ) -> Decision:
        """Returns whether a viewer may do this with the record, or with a field of an allowed record."""
        decisions = [
            [(rule, rule.decided(claims, roles)) for rule in grants] for grants in self.grants(action, name)
        ]
        found = all_of([any_of([part for _, part in grants]) for grants in decisions])
        if name is None and action == "read" and self._is_partly_linked:
            # Items that decide only about fields are read with the record.
            linked = any_of([part for grants in decisions for rule, part in grants if rule.links])
            if not isinstance(linked, bool):
                found = all_of([found, Or((linked, Not(linked)))])  # it holds, once that is decided
        return found

    @cached_property
    def _is_partly_linked(self) -> bool:
        """Whether other items may decide who reads some fields but not who sees the record."""
        rules = self.rules.get("read", ())
        return any(rule.links for rule in rules) and any(rule.fields is not None for rule in rules)

    def names(self, action: Action, name: str | None = None) -> frozenset[str]:
        """Returns the fields and ends that the decision uses, for any viewer."""
        return frozenset(n for grants in self.grants(action, name) for rule in grants for n in rule.names)

    @cached_property
    def every(self) -> Grants:
        """All rules, for whatever they are."""
        found = [self.walls, self.rules, *self.own.values()]
        return [rule for each in found for grants in each.values() for rule in grants]

    @cached_property
    def has_links(self) -> bool:
        """Whether any rule reads other items."""
        return any(rule.links for rule in self.every)

    def links(self, action: Action, name: str | None = None) -> list[Any]:
        """Returns the links that the decision uses, for any viewer."""
        return [link for grants in self.grants(action, name) for rule in grants for link in rule.links]

    def paths(self, action: Action, name: str | None = None) -> frozenset[Path]:
        """Returns the attributes that the decision uses, for any viewer."""
        return frozenset(p for grants in self.grants(action, name) for rule in grants for p in rule.paths)
