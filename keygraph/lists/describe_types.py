"""What a graph's types are in the table, as text: their keys, and the request of each access path."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from keygraph.graph import Graph
from keygraph.lists.describe import DescribedRequest, key_request, path_request
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType


@dataclass(frozen=True, slots=True)
class DescribedKeys:
    """The keys of a type in the table or in an index."""

    index: str | None
    """None for the table itself."""
    partition: str
    """`PK = USER#{user_id}`."""
    sort: str
    """Empty where there is none."""
    shards: int
    """How many partitions one is spread over; 0 where it is not."""


@dataclass(frozen=True, slots=True)
class DescribedPath:
    """How a list, or an item that an index finds, is read."""

    path: AccessPath
    found: str
    """What it finds: an edge with the node at its far end, or an item."""
    request: DescribedRequest
    needs: tuple[str, ...]
    """The arguments that have to be given."""
    narrowed_by: tuple[str, ...]
    """The arguments that narrow the range of the sort key."""


@dataclass(frozen=True, slots=True)
class DescribedType:
    """One type of a graph."""

    record: RecordType
    kind: str
    summary: str
    """The first paragraph of its description."""
    keys: tuple[DescribedKeys, ...]
    by_key: DescribedRequest | None
    """How an item is read by its key; None where the table holds none."""
    paths: tuple[DescribedPath, ...]


def described_types(graph: Graph) -> list[DescribedType]:
    """Every type of the graph with its keys and its lists."""
    return [
        DescribedType(
            record,
            _kind(graph, record),
            inspect.cleandoc(record.description or "").partition("\n\n")[0],
            tuple(_keys(record)),
            None if record.is_virtual else key_request(graph, record),
            tuple(_described(graph, path) for path in graph.paths if path.owner is record),
        )
        for record in graph.types.values()
    ]


def described_root(graph: Graph) -> list[DescribedPath]:
    """The lists at the root, and what an index finds there."""
    return [_described(graph, path) for path in graph.paths if path.owner is None]


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
    nodes = " or ".join(node.name for node in path.nodes)
    found = f"{path.record.name} to {nodes}" if path.far_end else nodes
    return DescribedPath(
        path,
        f"one {found}" if path.is_one else found,
        path_request(graph, path),
        tuple(argument.name for argument in path.required),
        tuple(argument.name for argument in path.ranged),
    )
