"""Who may do what with each type, field and list, and the cost of each rule, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from keygraph.access.grants import Grant
from keygraph.access.language import WRITES, Action, Claim
from keygraph.dynamo.conditions import Path
from keygraph.graph import Graph
from keygraph.model.comparisons import OPERATORS
from keygraph.model.permissions import fixed_by_key, fixed_by_list
from keygraph.model.records import RecordType

_ACTIONS: tuple[Action, ...] = ("read", *WRITES)
_ALL_OPERATORS = {"exists", *(each for several in OPERATORS.values() for each in several)}
_OPERATORS = {"eq": "=", "ne": "≠", "lt": "<", "lte": "≤", "gt": ">", "gte": "≥"}


ANYBODY = "anybody"
"""The column of viewers without a role."""


def described_access(graph: Graph) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Returns the columns, one for each role, and a row for each action that someone may do.

    A cell has the rules for viewers with that role, and the cost of each; one of them is enough. One of those in a row
    of "and" is needed too.
    """
    every = [each for record in graph.types.values() for each in _rows(graph, record)]
    roles = sorted({role for *_, grants, _ in every for grant in grants for role in grant.roles or ()})
    rows = [(what, action, *_cells(grants, paths, roles)) for what, action, grants, paths in every]
    return ("what", "may", ANYBODY, *roles), rows


_Row: TypeAlias = tuple[str, Action, Sequence[Grant], set[Path]]
"""An action, its rules, and the attributes that a key contains there."""


def _rows(graph: Graph, record: RecordType) -> Iterator[_Row]:
    access, fixed = record.access, {each.path for each in fixed_by_key(record)}
    if access is None:
        return
    for action in _ACTIONS:
        if action == "read" or record.writes:
            yield record.name, action, access.rules.get(action, ()), fixed
            walls = access.walls.get(action)
            if walls is not None and walls is not access.rules.get(action):
                yield "  and", action, walls, fixed
    for path in graph.paths:
        for member in path.each if access.paths("read") else ():
            if member.record is record:
                name = f"  in {f'{path.owner.name}.' if path.owner else ''}{path.name}"
                by_list = {each.path for each in fixed_by_list(member)}
                yield name, "read", access.rules.get("read", ()), by_list
    for name in record.order:
        for action, grants in access.own.get(name, {}).items():
            if action != "delete":  # `write()` is all three, and nobody deletes a field
                yield f"{record.name}.{name}", action, grants, fixed


def _cells(grants: Sequence[Grant], fixed: set[Path], roles: Sequence[str]) -> Iterator[str]:
    """Yields what the rules allow to anybody, and to each role."""
    of_anybody = [_rule(grant, fixed) for grant in grants if grant.roles is None]
    yield "\nor ".join(of_anybody) or "nobody"
    for role in roles:
        own = [grant for grant in grants if role in (grant.roles or ())]
        is_all = any(grant.condition is None and grant.fields is None for grant in own)
        rest = ["as anybody"] if of_anybody and not is_all else []
        yield "\nor ".join([*(_rule(grant, fixed) for grant in own), *rest]) or "nobody"


def _rule(grant: Grant, fixed: set[Path]) -> str:
    return f"{_condition(grant) or 'all'} ({_cost(grant, fixed)})"


def _condition(grant: Grant) -> str:
    parts = [] if grant.rule.where is None else [where_text(grant.rule.where)]
    parts += [] if grant.fields is None else [f"fields: {', '.join(sorted(grant.fields))}"]
    return "; ".join(parts)


def _cost(grant: Grant, fixed: set[Path]) -> str:
    if grant.condition is None:
        return "nothing"
    if grant.links:
        return "a read"
    return "a key" if grant.paths <= fixed else "an attribute"


def where_text(where: Mapping[str, Any]) -> str:
    """Returns a condition as it was declared, in one line."""
    return " and ".join(_part(name, value) for name, value in where.items())


def _part(name: str, operand: Any) -> str:
    if name == "not":
        return f"not ({where_text(operand)})"
    if name in ("and", "or"):
        return f" {name} ".join(f"({where_text(each)})" for each in operand)
    compared = operand if isinstance(operand, Mapping) else {"eq": operand}
    return " and ".join(
        f"{name}.{_part(inner, value)}"
        if inner not in _ALL_OPERATORS
        else f"{name} {_OPERATORS.get(inner, inner)} {_value(value)}"
        for inner, value in compared.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " and ".join(f"{name} {_value(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return f"viewer {value.name}" if isinstance(value, Claim) else str(getattr(value, "value", value))
