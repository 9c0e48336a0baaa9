"""Who may do what with each type, field and list, and what each rule costs, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keygraph.access.grants import Grant, Grants
from keygraph.access.language import WRITES, Action, Claim
from keygraph.graph import Graph
from keygraph.model.comparisons import OPERATORS
from keygraph.model.permissions import ToldAttribute, told_by_key, told_by_path
from keygraph.model.records import RecordType

_ACTIONS: tuple[Action, ...] = ("read", *WRITES)
_ALL_OPERATORS = {"exists", *(each for several in OPERATORS.values() for each in several)}
_OPERATORS = {"eq": "=", "ne": "≠", "lt": "<", "lte": "≤", "gt": ">", "gte": "≥"}


COLUMNS = ("what", "may", "role", "where", "costs")


def described_access(graph: Graph) -> Iterator[Sequence[str]]:
    """A row for each rule and role. Of several rules one is enough; one of those of "and" is needed besides."""
    for record in graph.types.values():
        yield from _rows(graph, record)


def _rows(graph: Graph, record: RecordType) -> Iterator[Sequence[str]]:
    access, told = record.access, told_by_key(record)
    if access is None:
        return
    for action in _ACTIONS:
        if action == "read" or record.writes:
            yield from _of(record.name, action, access.rules.get(action, ()), told)
            walls = access.walls.get(action)
            if walls is not None and walls is not access.rules.get(action):
                yield from _of("  and", action, walls, told)
    for path in graph.paths:
        for member in path.each if access.paths("read") else ():
            if member.record is record:
                name = f"  in {f'{path.owner.name}.' if path.owner else ''}{path.name}"
                yield from _of(name, "read", access.rules.get("read", ()), told_by_path(member), is_list=True)
    for name in record.order:
        for action, grants in access.own.get(name, {}).items():
            yield from _of(f"{record.name}.{name}", action, grants, told)


def _of(
    what: str, action: str, grants: Grants, told: Iterable[ToldAttribute], *, is_list: bool = False
) -> Iterator[Sequence[str]]:
    if not grants:
        yield what, action, "nobody", "", ""
    paths = {each.path for each in told}
    for grant in grants:
        if grant.condition is not None or not is_list:
            for role in ["anybody"] if grant.roles is None else sorted(grant.roles):
                yield what, action, role, _condition(grant), _cost(grant, paths)


def _condition(grant: Grant) -> str:
    said = "" if grant.rule.where is None else where_text(grant.rule.where)
    return (
        said
        if grant.fields is None
        else f"{said}{'; ' if said else ''}fields: {', '.join(sorted(grant.fields))}"
    )


def _cost(grant: Grant, told: set[tuple[str, ...]]) -> str:
    if grant.condition is None:
        return "nothing"
    if grant.links:
        return "a read"
    return "a key" if grant.paths <= told else "an attribute"


def where_text(where: Mapping[str, Any]) -> str:
    """A condition as it was said, in one line."""
    return " and ".join(_part(name, said) for name, said in where.items())


def _part(name: str, said: Any) -> str:
    if name == "not":
        return f"not ({where_text(said)})"
    if name in ("and", "or"):
        return f" {name} ".join(f"({where_text(each)})" for each in said)
    compared = said if isinstance(said, Mapping) else {"eq": said}
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
