"""A graph's types in the table, as text: their keys, the request of each access path, and the lists of each walk."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass

from keygraph.graph import Graph
from keygraph.lists.describe import key_request, path_request
from keygraph.model.paths import AccessPath, WalkedPath
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
