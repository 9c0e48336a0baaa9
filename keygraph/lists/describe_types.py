"""A graph's types as text: their keys, the request of each access path, and the lists of each walk; and who may do what with
each type, field and list, with the cost of each rule."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from keygraph.access.grants import Grant
from keygraph.access.language import WRITES, Action, Claim
from keygraph.dynamo.conditions import Path
from keygraph.graph import Graph
from keygraph.lists.describe import key_request, path_request
from keygraph.model.comparisons import OPERATORS
from keygraph.model.paths import AccessPath, WalkedPath
from keygraph.model.permissions import fixed_by_key, fixed_by_list
from keygraph.model.records import RecordType
from keygraph.names import plural, snake
from keygraph.resolve.walks import NodeWalk


@dataclass(frozen=True, slots=True)
class DescribedKeys:
    """The keys of a type in the table or in an index."""

    index: str | None
    """None for the table itself."""
    partition: str
    """`PK = USER#{user_id}`."""
    sort: str
    """Empty if there is none."""
    shards: int
    """How many partitions one is spread over; 0 if it is not."""


@dataclass(frozen=True, slots=True)
class DescribedPath:
    """How a list, an item found by an index, or the nodes of a walk are read."""

    name: str
    found: str
    """The result: an edge with the node at its far end, an item, or the nodes of a walk."""
    nodes: tuple[str, ...]
    """The types that it leads to."""
    request: str
    """`Query GSI1: GSI1PK = USER`; for a walk, the lists that it follows."""
    is_one: bool = False
    filter: str | None = None
    """The filter in the store."""
    needs: tuple[str, ...] = ()
    """The required arguments."""
    narrowed_by: tuple[str, ...] = ()
    """The arguments that narrow the range of the sort key."""
    edge: str | None = None
    """The type of the edge between; None if it leads to its nodes directly."""


@dataclass(frozen=True, slots=True)
class DescribedType:
    """One type of a graph."""

    record: RecordType
    kind: str
    summary: str
    """The first paragraph of its description."""
    keys: tuple[DescribedKeys, ...]
    by_key: str | None
    """How an item is read by its key; None if the table holds none."""
    paths: tuple[DescribedPath, ...]


def described_types(graph: Graph) -> list[DescribedType]:
    """Returns every type of the graph with its keys, its lists and its walks."""
    return [
        DescribedType(
            record,
            _kind(graph, record),
            inspect.cleandoc(record.description or "").partition("\n\n")[0],
            tuple(_keys(record)),
            None if record.is_virtual else key_request(graph, record).line,
            (
                *(_described(graph, path) for path in graph.paths if path.owner is record),
                *(_walked(walk) for walk in graph.walks.values() if walk.owner is record),
            ),
        )
        for record in graph.types.values()
    ]


def described_root(graph: Graph) -> list[DescribedPath]:
    """Returns the lists at the root, the items found by an index there, and the paths from node to node."""
    return [*(_described(graph, path) for path in graph.paths if path.owner is None), *_paths_between(graph)]


def advice(graph: Graph) -> list[str]:
    """Returns what lists clients may miss: nodes that no list at the root has, and types that no list has."""
    at_root = {record for path in graph.paths if path.owner is None for record in path.records}
    listed = {record for path in graph.paths for record in path.records}
    found = []
    for record in graph.types.values():
        name = snake(record.name)
        if record.is_node and not record.is_virtual and record not in at_root:
            indexes = (each.name for each in graph.table.indexes)
            index = next((each for each in indexes if each not in record.keys), "An index")
            keys = f'"{name.upper()}" and "{{{record.identity[-1].name}}}"'
            found.append(
                f"{record.name} has no list at the root. {index} can give it one, with the keys {keys}."
            )
        elif not record.is_node and record not in listed and not graph.options.get("explore"):
            owners = " or ".join(node.name for end in record.ends.values() for node in end.members)
            found.append(
                f"Nothing reads {record.name}. Give a node a list of it: {plural(name)}: Many[{record.name}]"
                + (f" in {owners}." if owners else ", or give it a list at the root.")
            )
    return found


def _kind(graph: Graph, record: RecordType) -> str:
    if record.is_virtual:
        return "virtual node"
    found = graph.correspondences.get(record.name)
    if found is None:
        return record.kind
    return "mirrored edge" if found.is_mirror else f"edge, counterpart of {found.other.name}"


def _keys(record: RecordType) -> list[DescribedKeys]:
    found = []
    for name, keys in record.keys.items():
        partition, *sort = [
            f"{key.name} = {template}" for key, template in zip(keys.attributes, keys.templates, strict=False)
        ]
        found.append(DescribedKeys(name, partition, sort[0] if sort else "", len(keys.shards)))
    return found


def _described(graph: Graph, path: AccessPath) -> DescribedPath:
    nodes = tuple(node.name for node in path.nodes)
    found = f"{path.record.name} to {' or '.join(nodes)}" if path.far_end else " or ".join(nodes)
    request = path_request(graph, path)
    return DescribedPath(
        path.name,
        f"one {found}" if path.is_one else found,
        nodes,
        request.line,
        path.is_one,
        request.filter,
        tuple(argument.name for argument in path.required),
        tuple(argument.name for argument in path.ranged),
        path.record.name if path.far_end else None,
    )


def _walked(walk: NodeWalk) -> DescribedPath:
    depth, nodes = walk.options.depth, tuple(node.name for node in walk.nodes)
    if depth is None:
        found, request = "ranked", ", then ".join(map(_names, walk.levels))
    else:
        found, request = (
            "reached",
            f"{_names(walk.paths)}, up to {depth} {'level' if depth == 1 else 'levels'}",
        )
    what = f"{' or '.join(nodes)}, {found}"
    if walk.options.is_kept:
        return DescribedPath(
            walk.name, f"{what} and kept", nodes, f"the {walk.options.keeper} follows {request}"
        )
    return DescribedPath(walk.name, what, nodes, f"follows {request}")


def _paths_between(graph: Graph) -> list[DescribedPath]:
    paths = [each.path for each in graph.followed]
    if not paths:
        return []
    nodes = tuple(dict.fromkeys(node.name for path in paths for node in path.nodes))
    found = "shortest, from node to node"
    return [
        DescribedPath("path", found, nodes, f"follows any of {_names(paths)}", needs=("from", "to", "via"))
    ]


def _names(paths: Iterable[WalkedPath]) -> str:
    return ", ".join(f"{path.owner.name if path.owner else ''}.{path.name}" for path in paths)


# --- Access -------------------------------------------------------------------------------------------

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
