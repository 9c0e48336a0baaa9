"""Reads the access rules of record types: conditions written like filters, with claims in the place of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from keygraph.access.claims import Claims, attribute_of_claim, members
from keygraph.access.contradictions import is_contradiction
from keygraph.access.grants import (
    ConditionOf,
    Decision,
    Grant,
    Grants,
    TypeAccess,
    all_of,
    any_of,
    none_of,
)
from keygraph.access.language import WRITES, AccessRule, Action, Claim
from keygraph.declare.declaration import access_of
from keygraph.dynamo.conditions import Eq, Path
from keygraph.dynamo.expressions import simplified
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, decode, encode
from keygraph.model.candidates import best, candidates
from keygraph.model.comparisons import OPERATORS, comparison, declared_comparison, equal_to_any
from keygraph.model.links import Link, LinkName
from keygraph.model.mistakes import Mistakes
from keygraph.model.records import End, RecordType
from keygraph.resolve.write_rules import with_default_in_rule

_MEND = 'Write access=[read(where={"owner": viewer("sub")}), read(role="support")], for example.'
_ANYTHING = Claim("")
"""Stands for any claim when checking whether a rule can be met at all."""
_WRITTEN_BY: Mapping[Action, frozenset[str]] = {
    "create": frozenset({"create", "put", "upsert"}),
    "update": frozenset({"update", "put", "upsert", "move"}),
    "delete": frozenset({"delete", "move"}),
}


def resolve_access(
    types: Mapping[str, RecordType],
    graph_rules: object,
    shared: Sequence[object],
    mistakes: Mistakes,
) -> None:
    """Gives each record type its rules; none at all if no rule exists."""
    readers = {name: _TypeReader(record, mistakes) for name, record in types.items()}
    has_rules = bool(graph_rules) or any(reader.has_rules for reader in readers.values())
    listed = {record.cls for record in types.values()}
    for each in shared:
        if each not in listed:
            shown = getattr(each, "__name__", repr(each))
            mistakes.add("access", "the graph", f"shared={shown} is not one of its types.", "List its types.")
    if has_rules:
        for name, record in types.items():
            if _has_keys(record):
                record.access = readers[name].read(graph_rules, is_shared=record.cls in shared)
            else:
                record.access = TypeAccess()
        for record in types.values():
            _refuse_open_copies(record, mistakes)


def _refuse_open_copies(record: RecordType, mistakes: Mistakes) -> None:
    """Refuses a copy without rules of a restricted field: whoever may write the end could read the field through it."""
    access = record.access
    if access is None:
        return
    for copied in record.fields.values():
        end, _, name = copied.kept_of.partition(".") if copied.kept == "copy" else ("", "", "")
        members = record.ends[end].members if end in record.ends else ()
        guarded = [each for each in members if each.access is not None and each.access.is_restricted(name)]
        has_rules = "read" in access.own.get(copied.name, ()) or access.is_restricted(copied.name)
        if guarded and not has_rules:
            problem = f"it copies {guarded[0].name}.{name}, which has access rules, and has none itself."
            mend = "Give it access=[…]; access=[read()] if everybody who sees the record may read it."
            mistakes.add("access", f"{record.name}.{copied.name}", problem, mend)


def _has_keys(record: RecordType) -> bool:
    """Returns whether a type's keys could be resolved. If not, that is reported, and its rules mean nothing yet."""
    return None in record.keys


def _keys_of(end: End) -> Sequence[Slot]:
    """Returns the slots that identify the node at an end. Raises _UnresolvedError if its keys could not be resolved."""
    if not all(map(_has_keys, end.members)):
        raise _UnresolvedError
    return end.identity


class _UnresolvedError(Exception):
    """A rule uses a type or an end that could not be resolved; that mistake is reported there."""


@dataclass
class _Where:
    """The fields, attributes and links that a condition uses."""

    names: set[str] = field(default_factory=set)
    paths: set[Path] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)


class _TypeReader:
    """The rules of one record type."""

    def __init__(self, record: RecordType, mistakes: Mistakes) -> None:
        self.record = record
        self._mistakes = mistakes
        self._rules: object = ()
        self._own: dict[str, object] = {}
        for cls in reversed(record.cls.__mro__):
            rules, own = access_of(cls)
            self._rules = rules or self._rules
            self._own |= own

    @property
    def has_rules(self) -> bool:
        return bool(self._rules or any(self._own.values()))

    def read(self, graph_rules: object, *, is_shared: bool) -> TypeAccess:
        record = self.record
        of_graph = {} if is_shared else self._by_action(self._grants(graph_rules, None, is_wall=True))
        walls = dict(of_graph)
        if "read" in walls:
            # The graph's read rules also apply to writes that it has no rules for.
            walls = {action: walls.get(action, walls["read"]) for action in ("read", *WRITES)}
        own_rules = self._by_action(self._grants(self._rules, None))
        if own_rules:
            self._refuse_unsaid([action for action in of_graph if action not in own_rules])
        if is_shared and not own_rules:
            problem = "it is shared, and has no rules of its own: nobody may see it."
            self._tell(record.name, problem, "Write access=[read()], for example.")
        own = {name: self._by_action(self._grants(said, name)) for name, said in self._own.items() if said}
        for rules, said, where in (
            (own_rules, self._rules, None),
            *((own[name], self._own[name], name) for name in own),
        ):
            before = walls if where is None else {**of_graph, **own_rules}
            self._refuse_excluded(rules, before, said, where)
        listed = {name for rules in own_rules.values() for rule in rules for name in rule.fields or ()}
        needs = {
            name: (*record.fields, *record.ends) if method.needs is None else method.needs
            for name, method in record.methods.items()
            if name not in own and name not in listed
        }
        key = frozenset(slot.path[0] for slot in record.identity)
        return TypeAccess(walls, {**of_graph, **own_rules}, own, needs, key)

    def _refuse_unsaid(self, actions: Iterable[Action]) -> None:
        """Refuses rules of a type that leave out an action which the graph's own rules allow."""
        possible = {*self.record.writes}
        there = [each for each in actions if each == "read" or possible & _WRITTEN_BY[each]]
        if there:
            said = " and ".join(there)
            problem = f"its access rules do not mention {said}: everybody whom the graph's own rules let in may do it."
            mend = f"Write {there[0]}() if that is meant, or {there[0]}(role=…)."
            self._tell(self.record.name, problem, mend)

    def _refuse_excluded(
        self, rules: Mapping[Action, Grants], before: Mapping[Action, Grants], said: Any, name: str | None
    ) -> None:
        """Refuses rules that allow nothing because everybody they admit is refused before: by the graph's rules, or by
        the record's for a field."""
        record = self.record
        told: set[int] = set()
        for action, grants in rules.items():
            others = before.get(action, ())
            for grant in grants:
                number = [*said].index(grant.rule) + 1
                if others and number not in told and all(_exclude(grant, other, action) for other in others):
                    told.add(number)
                    what = "the graph's own rules" if name is None else f"the rules of {record.name}"
                    problem = f"its access rule {number} allows nothing: {what} let nobody {action} what it is about."
                    mend = "Remove it, or let them have that too, with the same role or where."
                    self._tell(record.name if name is None else f"{record.name}.{name}", problem, mend)

    @staticmethod
    def _by_action(grants: Iterable[Grant]) -> dict[Action, Grants]:
        found: dict[Action, list[Grant]] = {}
        for grant in grants:
            for action in grant.rule.actions:
                found.setdefault(action, []).append(grant)
        return dict(found)

    def _tell(self, where: str, problem: str, mend: str = _MEND) -> None:
        self._mistakes.add("access", where, problem, mend)

    def _grants(self, rules: object, name: str | None, *, is_wall: bool = False) -> list[Grant]:
        """Returns the rules of the type, of one of its fields, or of the graph."""
        record = self.record
        where = record.name if name is None else f"{record.name}.{name}"
        if not isinstance(rules, list | tuple) or not all(isinstance(each, AccessRule) for each in rules):
            self._tell("the graph" if is_wall else where, f"access={rules!r} is not a list of rules.")
            return []
        found = []
        for number, rule in enumerate(rules, 1):
            try:
                found.append(self._grant(rule, name, is_wall=is_wall))
            except _UnresolvedError:
                continue
            except ValueError as error:
                if is_wall:
                    mend = (
                        f"Add the field, or write Graph(shared=[{record.name}]) and give it rules of its own."
                    )
                    self._tell(record.name, f"the graph's access rule {number} cannot be met: {error}.", mend)
                else:
                    self._tell(where, f"its access rule {number} cannot be used: {error}.")
        return found

    def _grant(self, rule: AccessRule, name: str | None, *, is_wall: bool) -> Grant:
        """One rule. Raises ValueError where it means nothing, or nobody can satisfy it."""
        record = self.record
        roles = None if rule.role is None else _names(rule.role, "role")
        fields = None if rule.fields is None else _names(rule.fields, "fields")
        if fields is not None and (name is not None or is_wall):
            raise ValueError("fields= is for the rules of a type")
        known = {*record.fields, *record.ends, *record.lists, *record.walks, *record.methods}
        unknown = sorted((fields or frozenset()) - known)
        if unknown:
            raise ValueError(f"{record.name} has no field {' or '.join(unknown)}")
        if name is not None:
            self._refuse_field(rule, name)
        elif not is_wall:
            actions = [each for each in rule.actions if each != "read"]
            if actions and len(actions) == len(rule.actions):
                possible = {*record.writes}
                if all(possible.isdisjoint(_WRITTEN_BY[each]) for each in actions):
                    raise ValueError(f"nobody can satisfy it: there is no mutation of {record.name} for it")
        about = _Where()
        condition = None if rule.where is None else _Reader(record, about, is_wall=is_wall).where(rule.where)
        if condition is not None and is_contradiction(condition(_AnyClaims(), True)):
            raise ValueError("nobody can satisfy it")
        if about.links and "read" in rule.actions and name is not None:
            told = f"{about.links[0].name} is asked of other items, which only rules of a type do"
            raise ValueError(f"{told}: write it there, with fields=[{name!r}]")
        names, paths = frozenset(about.names), frozenset(about.paths)
        return Grant(rule, roles, condition, names, paths, fields, tuple(about.links))

    def _refuse_field(self, rule: AccessRule, name: str) -> None:
        record = self.record
        if name not in record.fields and name not in record.ends and rule.actions != ("read",):
            raise ValueError("only a stored field is written: use read()")
        if "delete" in rule.actions and len(rule.actions) == 1:
            raise ValueError("a field is not deleted: use update()")
        if any(slot.path[0] == name for slot in record.identity):
            raise ValueError(
                f"it is part of the key of {record.name}, which everybody who sees the record knows"
            )


def _names(given: object, what: str) -> frozenset[str]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set | frozenset) or not all(
        isinstance(each, str) and each for each in names
    ):
        raise ValueError(f"{what}={given!r} is not a list of names")
    if not names:
        raise ValueError(f"nobody can satisfy it: {what}= is empty")
    return frozenset(names)


class _AnyClaims(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        return _ANYTHING


def _at_most(grant: Grant) -> Decision:
    """Returns the condition of a rule on records, whatever the viewer claims."""
    return True if grant.condition is None else grant.condition(_AnyClaims(), True)


def _exclude(one: Grant, other: Grant, action: Action) -> bool:
    """Returns whether nobody meets both rules with one record; to read, nobody who needs two roles for it."""
    if action == "read" and one.roles and other.roles and one.roles.isdisjoint(other.roles):
        return True
    return is_contradiction(_at_most(one), _at_most(other))


class _Reader:
    """The conditions of one rule on records of one type."""

    def __init__(self, record: RecordType, about: _Where, *, is_wall: bool) -> None:
        self._record = record
        self._about = about
        self._is_wall = is_wall

    def where(self, where: object) -> ConditionOf:
        """Returns the condition of a rule. Raises ValueError if there is none."""
        if not isinstance(where, Mapping) or not where:
            raise ValueError(f"where={where!r} is not a mapping of fields to comparisons")
        return _joined(all_of, [self._part(name, said) for name, said in where.items()])

    def _part(self, name: str, said: Any) -> ConditionOf:
        record = self._record
        if name in record.fields:
            return self._of_field(name, said)
        if name in record.ends:
            return self._of_end(record.ends[name], said)
        if name in record.lists:
            return self._of_list(record, None, name, said)
        if name == "not":
            inner = self.where(said)
            return lambda claims, is_positive: none_of(inner(claims, not is_positive))
        if name in ("and", "or"):
            if not isinstance(said, list | tuple) or not said:
                raise ValueError(f"{name} is not a list of conditions")
            return _joined(all_of if name == "and" else any_of, [self.where(each) for each in said])
        if self._is_wall:
            found = self._of_wall(name, said)
            if found is not None:
                return found
        raise ValueError(f"{record.name} has no field {name}")

    def _of_wall(self, name: str, said: Any) -> ConditionOf | None:
        """Returns the condition on a key field of an end in the record's key that has the name in the graph's rule."""
        for end_name in self._record.key_ends:
            end = self._record.ends[end_name]
            for slot in _keys_of(end) if end.text is None else ():
                if slot.path and slot.path[-1] == name and not slot.lossy:
                    return self._of_slot(end, slot.path, said)
        return None

    def _of_field(self, name: str, said: Any) -> ConditionOf:
        record = self._record
        field = record.fields[name]
        if any(slot.lossy and slot.path == (name,) for slot in record.identity):
            raise ValueError(f"{name} is in the key in a lossy form")
        self._about.names.add(name)
        compared = self._comparisons(name, field.type, field.attribute, said)

        def made(claims: Claims, is_positive: bool) -> Decision:
            decision = compared(claims, is_positive)
            return decision if isinstance(decision, bool) else with_default_in_rule(field, decision)

        return made

    def _of_end(self, end: End, said: Any) -> ConditionOf:
        if end.text is not None:
            raise ValueError(f"{end.name} is stored as a whole key, of several types or of several fields")
        own = {slot.path for slot in _keys_of(end)}
        if isinstance(said, Mapping) and not {*said} <= {"eq", "ne", "in", "exists"}:
            return self._inside(end, (), said)
        if len(own) != 1:
            raise ValueError(
                f"{end.name} has several key fields: write {{{end.name!r}: {{…}}}} with their names"
            )
        [path] = own
        return self._of_slot(end, path, said)

    def _inside(self, end: End, path: tuple[str, ...], said: Mapping[str, Any]) -> ConditionOf:
        """Returns the conditions on key fields of the node at an end."""
        parts = []
        for name, each in said.items():
            inner = (*path, name)
            if not path and len(end.members) == 1 and name in end.members[0].lists:
                self._about.names.add(end.name)
                parts.append(self._of_list(end.members[0], end, name, each))
                continue
            if any(slot.path == inner for slot in end.identity):
                parts.append(self._of_slot(end, inner, each))
            elif isinstance(each, Mapping) and any(slot.path[: len(inner)] == inner for slot in end.identity):
                parts.append(self._inside(end, inner, each))
            else:
                raise ValueError(f"{end.name}.{'.'.join(inner)} is no key field of {end.type_name}")
        return _joined(all_of, parts)

    # --- Other items ----------------------------------------------------------------------------------

    def _of_list(self, node: RecordType, through: End | None, name: str, said: Any) -> ConditionOf:
        """Returns the condition that an item is in a list of the node. The rule gives the rest of the item's key."""
        record, *others = node.lists[name].of
        if not _has_keys(node) or not _has_keys(record):
            raise _UnresolvedError
        shown = name if through is None else f"{through.name}.{name}"
        if others:
            raise ValueError(f"{shown} is no key lookup: it lists several types")
        if not isinstance(said, Mapping) or not said:
            raise ValueError(f"{shown}={said!r} is not a mapping of fields of {record.name} to comparisons")
        paths = best(candidates(name, node, record, node.lists[name].options))
        end = record.ends[paths[0].end or ""] if paths else None
        if end is None or end.text is not None or record.table_keys.shards:
            why = "is spread over shards" if record.table_keys.shards else f"does not contain its {node.name}"
            raise ValueError(f"{shown} is not a key lookup: the key of {record.name} {why}")
        sources = {slot.path: (number, slot) for number, slot in enumerate(node.identity)}
        told, left = dict[str, tuple[int, Slot, Slot]](), list[Slot]()
        for slot in record.identity:
            source = sources.get(slot.path[1:]) if slot.path[0] == end.name else None
            if source is None or (source[1].lossy and source[1].text != slot.text):
                left.append(slot)
            else:
                told[slot.name] = *source, slot
        if len(told) < len(sources):
            raise ValueError(
                f"{shown} is not a key lookup: the key of {record.name} does not contain its {node.name}"
            )
        rest = dict(said)
        makers = {slot.name: self._text_of(record, slot, rest, shown) for slot in left}
        for used in {slot.path[0] for slot in left}:
            rest.pop(used)
        about = _Where()
        reader = _Reader(record, about, is_wall=False)
        condition = reader.where(rest) if rest else None
        if about.links:
            raise ValueError(
                f"{shown} asks for an item that others decide: one step is all that a rule takes"
            )
        if through is not None:
            self._about.paths.update(through.attributes.values())
        link = Link(self._record, through, shown, record, told, frozenset(about.names))
        self._about.links.append(link)

        def made(claims: Claims, is_positive: bool) -> Decision:
            decided = True if condition is None else condition(claims, is_positive)
            texts = {name: make(claims) for name, make in makers.items()}
            if None in texts.values():
                return is_positive
            if isinstance(decided, bool) and not decided:
                return False
            held = None if isinstance(decided, bool) else decided
            names = [*texts]
            several = product(*(texts[name] or () for name in names))
            found = [LinkName(link, dict(zip(names, each, strict=True)), held) for each in several]
            return any_of(Eq((each,), True) for each in found) if found else not is_positive

        return made

    def _text_of(
        self, record: RecordType, slot: Slot, said: Mapping[str, Any], shown: str
    ) -> Callable[[Claims], list[str] | None]:
        """Returns a rule's texts for a part of a key, by claims; None if claims can be anything."""
        compared: Any = said.get(slot.path[0])
        for step in slot.path[1:]:
            if isinstance(compared, Mapping) and not {*compared} <= {"eq", "in"}:
                compared = compared.get(step)
            elif len(record.ends[slot.path[0]].identity) != 1:
                compared = None  # the name of a single key field may be left out
        if isinstance(compared, Mapping):
            compared = compared.get("eq", compared.get("in")) if len(compared) == 1 else None
        if compared is None:
            name = record.leaf_name(slot.path)
            written = '"…"'
            for step in reversed(slot.path):
                written = f'{{"{step}": {written}}}'
            raise ValueError(
                f"{shown} is no key lookup: it does not say which {name} of {record.name}, "
                f"by eq or in, such as {written}; it is in the key"
            )
        values = compared if isinstance(compared, list | tuple) else (compared,)

        def texts(claims: Claims) -> list[str] | None:
            found = []
            for value in values:
                claim = claims.get(value.name) if isinstance(value, Claim) else None
                if claim is _ANYTHING:
                    return None
                for each in members(claim) if isinstance(value, Claim) else (value,):
                    with suppress(ValueError, TypeError, AttributeError, OverflowError):
                        text = _key_text(slot, each, is_claim=isinstance(value, Claim))
                        if text and slot.text.accepts(text):
                            found.append(text)
            return [*dict.fromkeys(found)]

        fixed = [value for value in values if not isinstance(value, Claim)]
        if any(
            not (text := _key_text(slot, each, is_claim=False)) or not slot.text.accepts(text)
            for each in fixed
        ):
            raise ValueError(f"{shown}: no key of {record.name} has {fixed[0]!r} in it")
        return texts

    def _of_slot(self, end: End, path: tuple[str, ...], said: Any) -> ConditionOf:
        [slot] = [each for each in end.identity if each.path == path]
        if slot.lossy:
            raise ValueError(f"{end.name} is in its key in a lossy form")
        self._about.names.add(end.name)
        name = ".".join((end.name, *path))
        attribute = end.attributes.get(path)
        if attribute is None:
            raise _UnresolvedError
        return self._comparisons(name, end.attribute_type(slot), attribute, said)

    def _comparisons(self, name: str, type_: FieldType, path: Path, said: Any) -> ConditionOf:
        self._about.paths.add(path)
        compared = said if isinstance(said, Mapping) else {"eq": said}
        offered = (*OPERATORS[type_.kind], "exists")
        if not compared:
            raise ValueError(f"{name} is not compared")
        parts = []
        for operator, value in compared.items():
            if operator not in offered:
                raise ValueError(f"{name} has no {operator}; it has {', '.join(offered)}")
            is_claimed = _has_claim(value)
            if is_claimed and operator in ("exists", "between"):
                raise ValueError(f"{name}.{operator} takes no claim")
            make = _of_claim if is_claimed else _of_value
            try:
                parts.append(make(type_, path, operator, value))
            except (ValueError, TypeError, AttributeError, LookupError):
                raise ValueError(f"{name}.{operator}={value!r} is not a value of type {type_.name}") from None
        return _joined(all_of, parts)


def _key_text(slot: Slot, value: Any, *, is_claim: bool) -> str:
    """Returns a value as the text of a slot."""
    type_ = slot.text.type
    return slot.text.render(decode(type_, attribute_of_claim(type_, value)) if is_claim else value)


def _has_claim(value: object) -> bool:
    inside = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    )
    return any(isinstance(each, Claim) for each in (value, *inside))


def _joined(join: Callable[[Iterable[Decision]], Decision], parts: Sequence[ConditionOf]) -> ConditionOf:
    if len(parts) == 1:
        return parts[0]
    return lambda claims, is_positive: join(part(claims, is_positive) for part in parts)


def _of_value(type_: FieldType, path: Path, operator: str, value: Any) -> ConditionOf:
    """Returns a comparison with a value of the model."""
    made = simplified(declared_comparison(type_, path, operator, value))
    return lambda claims, is_positive: made


def _of_claim(type_: FieldType, path: Path, operator: str, value: Any) -> ConditionOf:
    """Returns a comparison with claims, or with any member of a list claim. A claim that is not a value of the field
    counts as missing; if all are missing, nothing is allowed."""
    said = value if isinstance(value, list | tuple) else (value,)
    element = type_.of or type_
    fixed = [encode(element, each) for each in said if not isinstance(each, Claim)]
    names = [each.name for each in said if isinstance(each, Claim)]

    def made(claims: Claims, is_positive: bool) -> Decision:
        values = [*fixed]
        for name in names:
            claim = claims.get(name)
            if claim is _ANYTHING:
                return is_positive
            for each in members(claim):
                with suppress(ValueError, TypeError, OverflowError):
                    values.append(attribute_of_claim(element, each))
        if not values:
            return not is_positive
        match operator:
            case "eq" | "in":
                return equal_to_any(element, path, values)
            case "ne":
                return none_of(equal_to_any(element, path, values))
        decoded = [decode(element, each) for each in values]
        return any_of(comparison(type_, path, operator, each) for each in decoded)

    return made
