"""The edges that walks follow, as items give them, and what a node keeps of a walk along them.

An item gives edges to the lists that have it, and a node's item those of its lists of ids. Whoever has the edges of a list
sorted by their places can walk along it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from keygraph.dynamo.items import Item, Value, base64_text, typed_item, untyped_item
from keygraph.dynamo.order import key_bytes
from keygraph.dynamo.table import KeyValue
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.kept import SizedCache
from keygraph.model.paths import AccessPath, ListOfIds, WalkedPath, with_edges
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Tally
from keygraph.resolve.walks import NodeWalk
from keygraph.tables.totals import is_listed
from keygraph.walks.keeping import walk_to_keep
from keygraph.walks.levels import LARGEST_PART
from keygraph.walks.ranking import Weights
from keygraph.walks.walk import Hop, Part, Vertex

_PART_CACHE_BYTES = 2**25
_PART_BYTES, _HOP_BYTES = 1_000, 500
"""The memory that a part of a list takes, without and for each of its edges."""


class FollowedEdge(NamedTuple):
    """An edge of a list."""

    owner: Vertex
    list: str
    place: bytes
    content: bytes
    """The node that it leads to, and what weighs it."""


Edges: TypeAlias = Callable[[str, bytes, int], Sequence[tuple[bytes, bytes]]]
"""Returns the places and contents of the first edges of a list after a place, at most a number of them."""


@dataclass(frozen=True, eq=False)
class WalkSource:
    """What walks are computed from."""

    graph: Graph
    edges: Edges
    at: Decimal
    """The time for which they are right, in seconds since 1970."""
    _parts: SizedCache[tuple[WalkedPath, Vertex, Any], Part] = field(
        default_factory=lambda: SizedCache(_PART_CACHE_BYTES)
    )
    """Parts of lists: many walks follow the same ones."""

    def found(self, walk: NodeWalk, start: Vertex) -> Value:
        """Returns what a node keeps; None if its walk fails as that of a query would."""
        weights, answers = Weights(walk.options), None

        def weigh(hop: Hop) -> Any:
            if hop.edge is None:
                return 1
            record, item = hop.edge
            return weights.of(record, item, float(self.at))

        walking = walk_to_keep(walk, start, weigh)
        try:
            while True:
                wanted = walking.send(cast(Any, answers))
                answers = [self._part(each.path, each.owner, each.most, each.after) for each in wanted]
        except StopIteration as end:
            return cast(Value, end.value)
        except (CorruptItem, ValueError, OverflowError):
            return None

    def _part(self, path: WalkedPath, owner: Vertex, most: int, after: bytes | None) -> Part:
        found = self._parts.get((path, owner, after))
        if found is None:
            found = self._read(path, owner, after)
            self._parts.keep((path, owner, after), found, _PART_BYTES + _HOP_BYTES * len(found.hops))
        else:
            self._parts.used[path, owner, after] = monotonic()
        if len(found.hops) <= most:
            return found
        return Part(found.hops[:most], found.hops[most - 1].place, most)

    def _read(self, path: WalkedPath, owner: Vertex, after: bytes | None) -> Part:
        """Returns the largest part that a walk wants."""
        types = self.graph.types
        is_one = isinstance(path, AccessPath) and path.is_one
        most = 1 if is_one else LARGEST_PART
        edges = self.edges(_list_key(owner, path.name), after or b"", most)
        hops = []
        for place, content in edges:
            (name, *identity), edge = orjson.loads(content)
            node = Vertex(types[name], tuple(identity))
            hops.append(Hop(node, edge and (types[edge[0]], untyped_item(edge[1])), place))
        return Part(hops, hops[-1].place if len(hops) == most and not is_one else None, len(hops))


@dataclass(frozen=True, eq=False)
class WalkedEdges:
    """The edges of the lists that some walks follow."""

    graph: Graph
    walks: Sequence[NodeWalk]

    def of(self, record: RecordType, item: Item) -> Iterator[FollowedEdge]:
        """Yields the edges of an item."""
        for tally, names in self._tallies.get(record, ()):
            owner, far = tally.node(item), far_node(tally.path, item)
            if owner is None or far is None or not is_listed(self.graph, tally, item):
                continue
            part = {name: item[name] for name in names if name in item}
            edge = [record.name, typed_item(part)] if names else None
            yield _edge(Vertex(tally.owner, owner), tally.path.name, _place(tally, item), far, edge)
        for path in self._ids.get(record, ()):
            yield from _edges_of_ids(path, item)

    @cached_property
    def _paths(self) -> dict[WalkedPath, frozenset[str]]:
        """The lists, each with the fields by which its edges are weighed."""
        found = dict.fromkeys((path for walk in self.walks for path in walk.paths), frozenset[str]())
        for walk in self.walks:
            for path in walk.levels[-1]:
                found[path] |= walk.options.weighing
        return found

    @cached_property
    def tallies(self) -> Mapping[RecordType, Sequence[Tally]]:
        """The lists whose edges are items, by the type of their nodes."""
        found = defaultdict[RecordType, list[Tally]](list)
        for several in self._tallies.values():
            for tally, _ in several:
                found[tally.owner].append(tally)
        return found

    @cached_property
    def _tallies(self) -> Mapping[RecordType, Sequence[tuple[Tally, Set[str]]]]:
        """The lists that have items of each type, each with the attributes that are kept of them."""
        found = defaultdict[RecordType, list[tuple[Tally, Set[str]]]](list)
        for path in with_edges(self._paths):
            names, of = self._paths[path], self.walks[0].owner.fields[self.walks[0].name]
            for each in path.each:
                record = each.record
                attributes = {part[0] for name in names for part in record.fields[name].attributes}
                kept = attributes | record.key_attributes if names else attributes
                tally = Tally(cast(RecordType, each.owner), of, each, None, None, frozenset())
                found[record].append((tally, kept))
        return found

    @cached_property
    def _ids(self) -> Mapping[RecordType, Sequence[ListOfIds]]:
        found = defaultdict[RecordType, list[ListOfIds]](list)
        for path in self._paths:
            if isinstance(path, ListOfIds):
                found[path.owner].append(path)
        return found


def _edges_of_ids(path: ListOfIds, item: Item) -> Iterator[FollowedEdge]:
    own = path.owner.read_identity(item)
    for number, identity in path.owner.readable_members(item, path.end) if own is not None else ():
        members, texts = path.end.nodes(identity)
        yield _edge(Vertex(path.owner, own or ()), path.name, number.to_bytes(4), (members[0], texts), None)


def _edge(owner: Vertex, name: str, place: bytes, far: tuple[RecordType, Texts], edge: Any) -> FollowedEdge:
    content = orjson.dumps([[far[0].name, *far[1]], edge], default=base64_text)
    return FollowedEdge(owner, _list_key(owner, name), place, content)


def _list_key(owner: Vertex, name: str) -> str:
    return orjson.dumps((owner.record.name, *owner.identity, name)).decode()


def _place(tally: Tally, item: Item) -> bytes:
    """Returns the place of an item in a list: by the list's sort key, then by the item's key."""
    keys = (*tally.path.keys.attributes[1:], *tally.path.keys.attributes[:1], *tally.record.table.keys)
    parts = (key_bytes(cast(KeyValue, item[key.name])) for key in keys)
    # What is shorter comes first, whatever follows it.
    return b"".join(part.replace(b"\0", b"\0\xff") + b"\0\0" for part in parts)


def far_node(path: AccessPath, item: Item) -> tuple[RecordType, Texts] | None:
    """Returns the node at the other end of an edge, or the node itself that a list has."""
    record = path.record
    if path.far_end is None:
        identity = record.read_identity(item)
        return None if identity is None else (record, identity)
    end = record.ends[path.far_end]
    identity = record.readable_end(item, end)
    if identity is None:
        return None
    members, own = end.nodes(identity)
    return members[0], own
