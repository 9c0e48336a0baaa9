"""Reads the access rules of record types: conditions written like filters, with claims in the place of values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
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
from keygraph.access.language import WRITES, AccessRule, Action, Claim, claims_in
from keygraph.declare.declaration import access_of
from keygraph.dynamo.conditions import Condition, Eq, Path
from keygraph.dynamo.expressions import simplified
from keygraph.kept import kept
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, decode, encode
from keygraph.model.candidates import best, candidates
from keygraph.model.comparisons import OPERATORS, comparison, declared_comparison, equal_to_any
from keygraph.model.links import Link, LinkName
from keygraph.model.records import End, RecordType
from keygraph.resolve.resolution import Resolution
from keygraph.resolve.write_rules import as_read_in_rule

_log = logging.getLogger(__name__)

_FIX = 'Write access=[read(where={"owner": viewer("sub")}), read(role="support")], for example.'
MOST_LOOKUPS = 50
"""How many items of a list a rule looks up for one record. If claims have values for more, that is as if they had none."""
_ANYTHING = Claim("")
"""Stands for any claim when checking whether a rule can be met at all."""
WRITTEN_BY: Mapping[Action, frozenset[str]] = {
    "create": frozenset({"create", "put", "upsert"}),
    "update": frozenset({"update", "put", "upsert", "move"}),
    "delete": frozenset({"delete", "move"}),
}
"""The mutations that do an action."""


def resolve_access(resolution: Resolution, graph_rules: object, shared: Sequence[object]) -> None:
    """Gives each record type its rules; none at all if no rule exists."""
    records = resolution.types.values()
    declared: dict[RecordType, tuple[object, dict[str, object]]] = {}
    for record in records:
        rules: object = ()
        of_fields: dict[str, object] = {}
        for cls in reversed(record.cls.__mro__):
            of_class, own = access_of(cls)
            rules, of_fields = of_class or rules, {**of_fields, **own}
        ages = {name: field.kept_of for name, field in record.fields.items() if field.kept == "as_of"}
        of_fields |= {name: of_fields[of] for name, of in ages.items() if of in of_fields}
        declared[record] = rules, {name: each for name, each in of_fields.items() if each}
    listed = {record.cls for record in records}
    for each in shared:
        if each not in listed:
            problem = f"shared={getattr(each, '__name__', repr(each))} is not one of its types."
            resolution.add("access", "the graph", problem, "List its types.")
    if not graph_rules and not any(rules or own for rules, own in declared.values()):
        return
    for record, (rules, own_rules) in declared.items():
        record.access = TypeAccess()
        if _has_keys(record):
            walls = None if record.cls in shared else graph_rules
            record.access = _type_access(resolution, record, walls, rules, own_rules)


class _NoViewer(dict[str, Any]):
    """The claims for a condition that is the same for all viewers."""

    def get(self, key: str, default: Any = None) -> Any:
        raise ValueError("it is the same for all viewers, so nothing is compared with a viewer's claims")


def fixed_condition(record: RecordType, where: object) -> tuple[Condition, frozenset[str]] | None:
    """Returns the condition of a filter in the model, and its fields and ends; None if a type in it has a mistake.

    Raises ValueError for a filter that has no meaning, or that all records or none meet.
    """
    reader = _RuleReader(record)
    try:
        decision = reader.condition(where)(_NoViewer(), True)
    except _UnresolvedError:
        return None
    if reader.links:
        raise ValueError(f"{reader.links[0].name} is about other items")
    if isinstance(decision, bool) or is_contradiction(decision):
        raise ValueError("all items meet it" if decision is True else "no item meets it")
    return decision, frozenset(reader.names)


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


# --- The rules of one type ----------------------------------------------------------------------------


def _type_access(
    resolution: Resolution, record: RecordType, graph_rules: object, rules: object, own: Mapping[str, object]
) -> TypeAccess:
    """Returns the rules of a type. `graph_rules` are None if it is shared, `own` are those of its fields."""
    is_shared = graph_rules is None
    of_graph = {} if is_shared else _by_action(_grants(resolution, record, graph_rules, None, is_wall=True))
    walls = dict(of_graph)
    if "read" in walls:
        # The graph's read rules also apply to writes that it has no rules for.
        walls = {action: walls.get(action, walls["read"]) for action in ("read", *WRITES)}
    of_type = _by_action(_grants(resolution, record, rules, None))
    possible = {*record.writes}
    omitted = [action for action in of_graph if of_type and action not in of_type]
    omitted = [each for each in omitted if each == "read" or possible & WRITTEN_BY[each]]
    if omitted:
        problem = f"its access rules do not mention {' and '.join(omitted)}: everybody whom the graph's own rules let in may do it."
        fix = f"Write {omitted[0]}() if that is meant, or {omitted[0]}(role=…)."
        resolution.add("access", record.name, problem, fix)
    if is_shared and not of_type:
        problem = "it is shared, and has no rules of its own: nobody may see it."
        resolution.add("access", record.name, problem, "Write access=[read()], for example.")
    of_fields = {name: _by_action(_grants(resolution, record, each, name)) for name, each in own.items()}
    _refuse_excluded(resolution, record, of_type, walls, rules)
    for name, each in of_fields.items():
        _refuse_excluded(resolution, record, each, {**of_graph, **of_type}, own[name], name)
    needs = {
        name: (*record.fields, *record.ends) if method.needs is None else method.needs
        for name, method in record.methods.items()
        if name not in of_fields
    }
    key = frozenset(slot.path[0] for slot in record.identity)
    return TypeAccess(walls, {**of_graph, **of_type}, of_fields, needs, key, _parts_in_key(record))


def _parts_in_key(record: RecordType) -> frozenset[str]:
    """Returns the fields of which a record's key holds only a part: a day of a time."""
    whole = {slot.path[0] for slot in record.identity if not slot.lossy} | {*record.methods}
    return frozenset(slot.path[0] for slot in record.identity if not record.is_virtual) - whole


def _by_action(grants: Iterable[Grant]) -> dict[Action, Grants]:
    found: dict[Action, list[Grant]] = {}
    for grant in grants:
        for action in grant.rule.actions:
            found.setdefault(action, []).append(grant)
    return dict(found)


def _refuse_excluded(
    resolution: Resolution,
    record: RecordType,
    rules: Mapping[Action, Grants],
    before: Mapping[Action, Grants],
    declared: Any,
    name: str | None = None,
) -> None:
    """Refuses rules that allow nothing because everybody they admit is refused before: by the graph's rules, or by
    the record's for a field."""
    reported: set[int] = set()
    where, by = (
        (record.name, "the graph's own rules")
        if name is None
        else (f"{record.name}.{name}", f"the rules of {record.name}")
    )
    for action, grants in rules.items():
        others = before.get(action, ())
        for grant in grants:
            number = [*declared].index(grant.rule) + 1
            if others and number not in reported and all(_exclude(grant, other, action) for other in others):
                reported.add(number)
                problem = (
                    f"its access rule {number} allows nothing: {by} let nobody {action} what it is about."
                )
                fix = "Remove it, or let them have that too, with the same role or where."
                resolution.add("access", where, problem, fix)


def _exclude(one: Grant, other: Grant, action: Action) -> bool:
    """Returns whether nobody meets both rules with one record; to read, nobody who needs two roles for it."""
    if action == "read" and one.roles and other.roles and one.roles.isdisjoint(other.roles):
        return True
    return is_contradiction(
        *(True if each.condition is None else each.condition(_AnyClaims(), True) for each in (one, other))
    )


class _AnyClaims(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        return _ANYTHING


def _grants(
    resolution: Resolution, record: RecordType, rules: object, name: str | None, *, is_wall: bool = False
) -> list[Grant]:
    """Returns the rules of the type, of one of its fields, or of the graph."""
    where = record.name if name is None else f"{record.name}.{name}"
    if not isinstance(rules, list | tuple) or not all(isinstance(each, AccessRule) for each in rules):
        problem = f"access={rules!r} is not a list of rules."
        resolution.add("access", "the graph" if is_wall else where, problem, _FIX)
        return []
    found = []
    for number, rule in enumerate(rules, 1):
        try:
            found.append(_grant(record, rule, name, is_wall=is_wall))
        except _UnresolvedError:
            continue
        except ValueError as error:
            problem, fix = f"its access rule {number} cannot be used: {error}.", _FIX
            if is_wall:
                problem = f"the graph's access rule {number} cannot be met: {error}."
                fix = f"Add the field, or write Graph(shared=[{record.name}]) and give it rules of its own."
            resolution.add("access", where, problem, fix)
    return found


def _grant(record: RecordType, rule: AccessRule, name: str | None, *, is_wall: bool) -> Grant:
    """One rule. Raises ValueError where it means nothing, or nobody can satisfy it."""
    roles = None if rule.role is None else _names(rule.role, "role")
    fields = None if rule.fields is None else _names(rule.fields, "fields")
    if fields is not None and (name is not None or is_wall):
        raise ValueError("fields= is for the rules of a type")
    known = {*record.fields, *record.ends, *record.lists, *record.walks, *record.methods}
    unknown = sorted((fields or frozenset()) - known)
    if unknown:
        raise ValueError(f"{record.name} has no field {' or '.join(unknown)}")
    if name is not None:
        if name not in record.fields and name not in record.ends and rule.actions != ("read",):
            raise ValueError("only a stored field is written: use read()")
        if "delete" in rule.actions and len(rule.actions) == 1:
            raise ValueError("a field is not deleted: use update()")
        in_key = any(slot.path[0] == name for slot in record.identity)
        if in_key and (rule.actions != ("read",) or name not in _parts_in_key(record)):
            raise ValueError(
                f"it is part of the key of {record.name}, which everybody who sees the record knows"
            )
    elif not is_wall and rule.actions and "read" not in rule.actions:
        possible = {*record.writes}
        if all(possible.isdisjoint(WRITTEN_BY[each]) for each in rule.actions):
            raise ValueError(
                f"nobody can satisfy it: there is no mutation of {record.name} for it in its writes="
            )
    reader = _RuleReader(record, is_wall=is_wall)
    condition = None if rule.where is None else reader.condition(rule.where)
    if condition is not None and is_contradiction(condition(_AnyClaims(), True)):
        raise ValueError("nobody can satisfy it")
    if reader.links and "read" in rule.actions and name is not None:
        problem = f"{reader.links[0].name} is asked of other items, which only rules of a type do"
        raise ValueError(f"{problem}: write it there, with fields=[{name!r}]")
    names, paths = frozenset(reader.names), frozenset(reader.paths)
    return Grant(rule, roles, condition, names, paths, fields, tuple(reader.links))


def _names(given: object, what: str) -> frozenset[str]:
    names: object = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set | frozenset) or not all(
        isinstance(each, str) and each for each in names
    ):
        raise ValueError(f"{what}={given!r} is not a list of names")
    if not names:
        raise ValueError(f"nobody can satisfy it: {what}= is empty")
    return frozenset(names)


# --- The condition of one rule ------------------------------------------------------------------------


@dataclass
class _RuleReader:
    """Reads the condition of one rule on records of one type, and collects the fields, attributes and links in it."""

    record: RecordType
    names: set[str] = field(default_factory=set)
    paths: set[Path] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)
    is_wall: bool = field(default=False, kw_only=True)

    def condition(self, where: object) -> ConditionOf:
        """Returns the condition of a rule. Raises ValueError if there is none."""
        if not isinstance(where, Mapping) or not where:
            raise ValueError(f"where={where!r} is not a mapping of fields to comparisons")
        return _joined(all_of, [self._part(name, operand) for name, operand in where.items()])

    def _part(self, name: str, operand: Any) -> ConditionOf:
        record = self.record
        if name in record.fields:
            return self._of_field(name, operand)
        if name in record.ends:
            return self._of_end(record.ends[name], operand)
        if name in record.lists:
            return self._of_list(record, None, name, operand)
        if name == "not":
            inner = self.condition(operand)
            return lambda claims, is_positive: none_of(inner(claims, not is_positive))
        if name in ("and", "or"):
            if not isinstance(operand, list | tuple) or not operand:
                raise ValueError(f"{name} is not a list of conditions")
            return _joined(all_of if name == "and" else any_of, [self.condition(each) for each in operand])
        if self.is_wall:
            found = self._of_wall(name, operand)
            if found is not None:
                return found
        raise ValueError(f"{record.name} has no field {name}")

    def _of_wall(self, name: str, operand: Any) -> ConditionOf | None:
        """Returns the condition on a key field of an end in the record's key that has the name in the graph's rule."""
        for end_name in self.record.key_ends:
            end = self.record.ends[end_name]
            for slot in _keys_of(end) if end.text is None else ():
                if slot.path and slot.path[-1] == name and not slot.lossy:
                    return self._of_slot(end, slot.path, operand)
        return None

    def _of_field(self, name: str, operand: Any) -> ConditionOf:
        record = self.record
        field = record.fields[name]
        if any(slot.lossy and slot.path == (name,) for slot in record.identity):
            raise ValueError(f"{name} is in the key in a lossy form")
        if name in record.list_ends and record.list_ends[name].text is not None:
            raise ValueError(f"{name} is stored as whole keys, of several types or of several fields")
        if field.type.kind == "average":
            raise ValueError(f"{name} is an average, which DynamoDB does not compute")
        if field.shards:
            raise ValueError(f"{name} is spread over shards, and no item has the whole number")
        if field.is_external:
            raise ValueError(f"nobody can satisfy it: another server has {name}")
        self.names.add(name)
        self.paths.update(field.attributes)
        as_read = partial(as_read_in_rule, record, field)
        return self._comparisons(name, field.type, field.attribute, operand, as_read)

    def _of_end(self, end: End, operand: Any) -> ConditionOf:
        if end.text is not None:
            raise ValueError(f"{end.name} is stored as a whole key, of several types or of several fields")
        own = {slot.path for slot in _keys_of(end)}
        if isinstance(operand, Mapping) and not {*operand} <= {"eq", "ne", "in", "exists"}:
            return self._inside(end, (), operand)
        if len(own) != 1:
            raise ValueError(
                f"{end.name} has several key fields: write {{{end.name!r}: {{…}}}} with their names"
            )
        [path] = own
        return self._of_slot(end, path, operand)

    def _inside(self, end: End, path: tuple[str, ...], operand: Mapping[str, Any]) -> ConditionOf:
        """Returns the conditions on key fields of the node at an end."""
        parts = []
        for name, each in operand.items():
            inner = (*path, name)
            if not path and len(end.members) == 1 and name in end.members[0].lists:
                self.names.add(end.name)
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

    def _of_list(self, node: RecordType, through: End | None, name: str, operand: Any) -> ConditionOf:
        """Returns the condition that an item is in a list of the node. The rule gives the rest of the item's key."""
        record, *others = node.lists[name].of
        if not _has_keys(node) or not _has_keys(record):
            raise _UnresolvedError
        label = name if through is None else f"{through.name}.{name}"
        if others:
            raise ValueError(f"{label} is no key lookup: it lists several types")
        if not isinstance(operand, Mapping) or not operand:
            raise ValueError(
                f"{label}={operand!r} is not a mapping of fields of {record.name} to comparisons"
            )
        determined, left = _split_key(node, name, record, label)
        rest = dict(operand)
        makers = {slot.name: self._text_of(record, slot, rest, label) for slot in left}
        for used in {slot.path[0] for slot in left}:
            rest.pop(used)
        reader = _RuleReader(record)
        condition = reader.condition(rest) if rest else None
        if reader.links:
            raise ValueError(
                f"{label} asks for an item that others decide: one step is all that a rule takes"
            )
        if through is not None:
            self.paths.update(through.attributes.values())
        link = Link(self.record, through, label, record, determined, frozenset(reader.names))
        self.links.append(link)
        return partial(_decide_link, link, makers, condition)

    def _text_of(
        self, record: RecordType, slot: Slot, operand: Mapping[str, Any], label: str
    ) -> Callable[[Claims], list[str] | None]:
        """Returns a rule's texts for a part of a key, by claims; None if claims can be anything."""
        compared = _compared(record, slot, operand)
        if compared is None:
            name = record.leaf_name(slot.path)
            written = '"…"'
            for step in reversed(slot.path):
                written = f'{{"{step}": {written}}}'
            raise ValueError(
                f"{label} is no key lookup: it does not say which {name} of {record.name}, "
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
            raise ValueError(f"{label}: no key of {record.name} has {fixed[0]!r} in it")
        return texts

    def _of_slot(self, end: End, path: tuple[str, ...], operand: Any) -> ConditionOf:
        [slot] = [each for each in end.identity if each.path == path]
        if slot.lossy:
            raise ValueError(f"{end.name} is in its key in a lossy form")
        self.names.add(end.name)
        name = ".".join((end.name, *path))
        attribute = end.attributes.get(path)
        if attribute is None:
            raise _UnresolvedError
        as_read = partial(self.record.as_read, attribute=attribute)
        return self._comparisons(name, end.attribute_type(slot), attribute, operand, as_read)

    def _comparisons(
        self,
        name: str,
        type_: FieldType,
        path: Path,
        operand: Any,
        as_read: Callable[[Condition], Condition],
    ) -> ConditionOf:
        """Returns the comparisons of one attribute, as values are read from it."""
        self.paths.add(path)
        compared = operand if isinstance(operand, Mapping) else {"eq": operand}
        offered = (*OPERATORS[type_.kind], "exists")
        if not compared:
            raise ValueError(f"{name} is not compared")
        parts = []
        for operator, value in compared.items():
            if operator not in offered:
                raise ValueError(f"{name} has no {operator}; it has {', '.join(offered)}")
            is_claimed = any(claims_in(value))
            if is_claimed and operator in ("exists", "between"):
                raise ValueError(f"{name}.{operator} takes no claim")
            make = _of_claim if is_claimed else _of_value
            try:
                parts.append(make(type_, path, operator, value))
            except (ValueError, TypeError, AttributeError, LookupError):
                raise ValueError(f"{name}.{operator}={value!r} is not a value of type {type_.name}") from None
        joined = _joined(all_of, parts)

        def made(claims: Claims, is_positive: bool) -> Decision:
            decision = joined(claims, is_positive)
            return decision if isinstance(decision, bool) else as_read(decision)

        return made


def _compared(record: RecordType, slot: Slot, operand: Mapping[str, Any]) -> Any:
    """Returns the values that a rule has for a part of a key, or one of them; None if it does not say which."""
    compared: Any = operand.get(slot.path[0])
    for step in slot.path[1:]:
        if isinstance(compared, Mapping) and not {*compared} <= {"eq", "in"}:
            compared = compared.get(step)
        elif len(record.ends[slot.path[0]].identity) != 1:
            compared = None  # the name of a single key field may be left out
    if isinstance(compared, Mapping):
        return compared.get("eq", compared.get("in")) if len(compared) == 1 else None
    return compared


def _split_key(
    node: RecordType, name: str, record: RecordType, label: str
) -> tuple[dict[str, tuple[int, Slot, Slot]], list[Slot]]:
    """Returns the slots of the listed record's key that its node determines, each with the place in the node's key, and
    the slots that the rule must give. Raises ValueError if that is no key lookup."""
    paths = best(candidates(name, node, record, node.lists[name].options))
    end = record.ends[paths[0].end or ""] if paths else None
    sources = {slot.path: (number, slot) for number, slot in enumerate(node.identity)}
    determined, left = dict[str, tuple[int, Slot, Slot]](), list[Slot]()
    if end is not None and end.text is None and not record.table_keys.shards:
        for slot in record.identity:
            source = sources.get(slot.path[1:]) if slot.path[0] == end.name else None
            if source is None or (source[1].lossy and source[1].text != slot.text):
                left.append(slot)
            else:
                determined[slot.name] = *source, slot
    if len(determined) < len(sources):
        why = "is spread over shards" if record.table_keys.shards else f"does not contain its {node.name}"
        raise ValueError(f"{label} is not a key lookup: the key of {record.name} {why}")
    return determined, left


def _decide_link(
    link: Link,
    makers: Mapping[str, Callable[[Claims], list[str] | None]],
    condition: ConditionOf | None,
    claims: Claims,
    is_positive: bool,
) -> Decision:
    """Returns the condition that a viewer's item of a link exists and meets a condition. `makers` make the texts of the
    slots that the rule gives."""
    decided = True if condition is None else condition(claims, is_positive)
    texts = {name: make(claims) for name, make in makers.items()}
    if None in texts.values():
        return is_positive
    if isinstance(decided, bool) and not decided:
        return False
    held = None if isinstance(decided, bool) else decided
    several = [each or [] for each in texts.values()]
    number = prod(map(len, several))
    if number > MOST_LOOKUPS:
        _log_too_many(link)
    if not 0 < number <= MOST_LOOKUPS:
        return not is_positive
    found = [LinkName(link, dict(zip(texts, each, strict=True)), held) for each in product(*several)]
    return any_of(Eq((each,), True) for each in found)


@kept("logged rules", 256, 200)
def _log_too_many(link: Link) -> None:
    """Logs once that a rule allows nothing because a viewer's claims have too many values."""
    of = link.owner.name
    problem = (
        f"a viewer has claims of more values than the {MOST_LOOKUPS} that a rule looks up in {link.name}"
    )
    _log.warning("Access to %s: %s: it allows them nothing", of, problem)


def _key_text(slot: Slot, value: Any, *, is_claim: bool) -> str:
    """Returns a value as the text of a slot."""
    type_ = slot.text.type
    return slot.text.render(decode(type_, attribute_of_claim(type_, value)) if is_claim else value)


def _joined(join: Callable[[Iterable[Decision]], Decision], parts: Sequence[ConditionOf]) -> ConditionOf:
    if len(parts) == 1:
        return parts[0]
    return lambda claims, is_positive: join(part(claims, is_positive) for part in parts)


def _of_value(type_: FieldType, path: Path, operator: str, value: Any) -> ConditionOf:
    """Returns a comparison with a value of the model."""
    made, opposed = (
        simplified(declared_comparison(type_, path, operator, value, is_positive=is_positive))
        for is_positive in (True, False)
    )
    return lambda claims, is_positive: made if is_positive else opposed


def _of_claim(type_: FieldType, path: Path, operator: str, value: Any) -> ConditionOf:
    """Returns a comparison with claims, or with any member of a list claim. A claim that is not a value of the field
    counts as missing; if all are missing, nothing is allowed."""
    operands = value if isinstance(value, list | tuple) else (value,)
    element = type_.of or type_
    fixed = [encode(element, each) for each in operands if not isinstance(each, Claim)]
    names = [each.name for each in operands if isinstance(each, Claim)]

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
        return any_of(comparison(type_, path, operator, each, is_positive=is_positive) for each in decoded)

    return made
