"""The bound: the least number of requests and of round trips in which an operation can be answered.

It is computed from the keys alone. A naive reader walks the GraphQL document over a dictionary of the table's items and
reads each thing by the graph's access paths. It notes which key or range it had to read, and in which round trip that
key was known: keys from arguments and ids in the first, keys that follow from a parent's key when that is known, keys
that an item holds one round trip after the item was requested. It uses neither the plan nor the execution.

- Each partition of a list and each range of it is one request, and so is each that is counted.
- Items that must be read by key take one request per hundred in a round trip, whatever their type and whatever requests
  them. So do lists of the table whose key is whole (`One` under a fixed sort key, `eq` on every part of it) and that no
  client filters, and their counts.
- For a node that the model gathers (`gather=True`), the item and the lists that no argument narrows, if wanted in one
  round trip, take one request for each run of adjacent items, and one more if lists are cut off at both ends of a run,
  because a run is read in one direction.
- A range that has no key is not read.
- Of a node, an edge or a record is known to have the fields that it has copies of which follow it (`follows=True`).
- Nothing is read twice, and nothing is read that follows from a key or an item already known. A list that was read
  answers every page of the same range in the same direction that goes no further, and edges to named nodes that it has.
  A list that was read to its end answers every part of it, its count, and every edge to a named node.
- A filtered list is read until its page is filled, one request after the other: the first looks at three items for each
  that is wanted, and at least 32; each further one looks at twice as many as the one before, up to 1,024. Only what its
  own items lead to waits for it.
- The round trips are the longest chain of keys in which each key is found by reading the one before.

The bound assumes that these cost nothing, or counts a cost that could be avoided:

- A page ends at 1 MB, which takes more requests.
- Two ranges of one partition may be one Query even if the model does not gather the node.
- A count is requested at the same time as a page, although the page may reach the end of its list and give the count.
- What is read ahead under a node that turns out not to exist is counted, although nobody needed it.
- Keys are fetched in the round trip in which they are known. Some could join a later batch without delaying anything.
- Everything in a round trip arrives before the next one begins. If answers arrive one by one, an item may be requested
  that a slower list is about to bring.

It refuses what it cannot walk: cursors, methods that return nodes, indexes that project a part of the items, filtered
lists over shards, and questions about more than one list (`alsoOf`, `aggregate`, walks and paths).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLObjectType,
    SelectionSetNode,
    get_named_type,
)

from bench.bound.document import WalkedDocument
from bench.bound.items import Items
from bench.bound.requests import Requests, RoundTrip
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyValue
from keygraph.keys.template import Template
from keygraph.lists.query import ListForm, ListQuery
from keygraph.lists.ranges import KeyArguments, Span, beginning_with
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.global_ids import read_global_id
from keygraph_resolvers.schema.field_kinds import (
    Aggregate,
    Called,
    Edges,
    FarNode,
    FieldKind,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    Nodes,
    NodesByIds,
    PageInfo,
    PathsBetween,
    Stored,
    TotalCount,
    WalkOf,
)
from keygraph_resolvers.schema.inputs import (
    DEFAULT_PAGE_SIZE,
    SortDirection,
    conditions,
    key_value,
    narrowings,
    required_texts,
)
from keygraph_resolvers.schema.types import GraphSchema


@dataclass(frozen=True, slots=True)
class Bound:
    """The least that an operation costs."""

    levels: tuple[RoundTrip, ...]

    @property
    def requests(self) -> int:
        return sum(level.requests for level in self.levels)

    @property
    def round_trips(self) -> int:
        return len(self.levels)


def bound(
    schema: GraphSchema, items: Items, document: str, variables: Mapping[str, Any] | None = None
) -> Bound:
    """Returns the least cost of the only query of a valid document, if the table has these items.

    Raises ValueError for what the bound cannot walk.
    """
    return _Walk(schema, items, document, variables or {}).bound()


# --- The walk -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Object:
    """A node, an edge or a record with selected fields."""

    type: GraphQLObjectType
    record: RecordType
    identity: tuple[str, ...]


class _Walk:
    """A naive reading of one operation, round trip by round trip."""

    def __init__(
        self, schema: GraphSchema, items: Items, document: str, variables: Mapping[str, Any]
    ) -> None:
        self._graph = schema.graph
        self._document = WalkedDocument(schema, document, variables)
        self._items = items
        self._requests = Requests(schema.graph, items)

    def bound(self) -> Bound:
        return Bound(self._requests.round_trips(self._root))

    # --- Objects --------------------------------------------------------------------------------------

    def _root(self) -> None:
        for node, definition, kind in self._document.root_fields():
            given = self._document.given(node, definition)
            match kind:
                case NodeByKey(record):
                    values = {}
                    for slot in record.identity:
                        name = record.leaf_name(slot.path)
                        values[name] = key_value(self._graph, record, slot, given.get(camel(name)))
                    self._node((record,), self._graph.identity(record, values), node, must_exist=True)
                case NodeById():
                    record, identity = read_global_id(self._graph, given["id"])
                    self._node((record,), identity, node, must_exist=True)
                case NodesByIds():
                    for text in given["ids"]:
                        record, identity = read_global_id(self._graph, text)
                        self._node((record,), identity, node, must_exist=True)
                case ListOf(path):
                    self._list(path, None, node, definition)
                case PathsBetween():
                    raise ValueError("the bound finds no paths")

    def _node(
        self,
        records: Sequence[RecordType],
        identity: tuple[str, ...],
        node: FieldNode,
        *,
        must_exist: bool = False,
        copied: frozenset[str] = frozenset(),
    ) -> None:
        """Visits a node whose key has become known; it has several possible types if the key does not identify one.
        `copied` are the fields of which what names it has copies."""
        record = records[0]
        keys = self._graph.table_keys(record, identity)
        if len(records) > 1:
            self._requests.get(keys, partial(self._recognised, records, identity, node))
            return
        selected = node.selection_set
        found = _Object(self._document.type(record.name), record, identity)
        if record.is_virtual:
            self._told_by_key(found, selected)
            return
        if self._requests.has_come(keys):
            items = self._of_type(keys, records)
            if items:
                self._told_by_key(found, selected)
                self._told_by_item(found, items[0], selected)
            return
        self._told_by_key(found, selected)
        if must_exist or self._needs_item(found, selected, copied):
            get = self._requests.get_with_lists if record.gathers else self._requests.get
            get(keys, partial(self._arrived, found, keys, selected))

    def _arrived(self, found: _Object, keys: Sequence[Key], selected: SelectionSetNode | None) -> None:
        for item in self._of_type(keys, [found.record])[:1]:
            self._told_by_item(found, item, selected)

    def _recognised(self, records: Sequence[RecordType], identity: tuple[str, ...], node: FieldNode) -> None:
        for item in self._of_type(self._graph.table_keys(records[0], identity), records)[:1]:
            record = cast(RecordType, self._graph.recognise(item))
            found = _Object(self._document.type(record.name), record, identity)
            self._told_by_key(found, node.selection_set)
            self._told_by_item(found, item, node.selection_set)

    def _of_type(self, keys: Sequence[Key], records: Sequence[RecordType]) -> list[Item]:
        items = (self._items.get(key) for key in keys)
        return [item for item in items if item is not None and self._graph.recognise(item) in records]

    def _needs_item(
        self, found: _Object, selected: SelectionSetNode | None, copied: frozenset[str] = frozenset()
    ) -> bool:
        """Whether a field is selected that the key does not hold, and no copy."""
        told = found.record.key_fields | copied
        for _, _, kind in self._document.fields(found.type, selected):
            match kind:
                case Stored(stored) if stored.name not in told:
                    return True
                case NodeAt(end) if end.name not in told:
                    return True
                case Called(method) if method.needs is None or not told.issuperset(method.needs):
                    return True
        return False

    def _told_by_key(self, found: _Object, selected: SelectionSetNode | None) -> None:
        """Continues with what the object's key holds: its lists, and the ends that are in the key."""
        record = found.record
        for node, definition, kind in self._document.fields(found.type, selected):
            match kind:
                case ListOf(path):
                    self._list(path, found.identity, node, definition)
                case WalkOf(walk):
                    raise ValueError(f"the bound does not walk {record.name}.{walk.name}")
                case NodeAt(end) if end.name in record.key_fields:
                    # The item is there in time only if it is needed for something else.
                    of = record if self._needs_item(found, selected) else None
                    self._end(end, record.end_readers[end.name](found.identity), node, of)
                case FarNode(path) if path.far_end in record.key_fields:
                    end = record.ends[path.far_end]
                    self._end(end, record.end_readers[end.name](found.identity), node, record)

    def _told_by_item(self, found: _Object, item: Item, selected: SelectionSetNode | None) -> None:
        """Continues with what only the object's item holds: ends that are attributes."""
        record = found.record
        for node, _, kind in self._document.fields(found.type, selected):
            match kind:
                case NodeAt(end) if end.name not in record.key_fields:
                    self._end(end, record.end_identity(item, end), node, record)
                case FarNode(path) if path.far_end is not None and path.far_end not in record.key_fields:
                    end = record.ends[path.far_end]
                    self._end(end, record.end_identity(item, end), node, record)
                case FarNode(path) if path.far_end is None:
                    # The node is the item itself.
                    own = _Object(self._document.type(record.name), record, found.identity)
                    self._whole(own, item, node.selection_set)
                case Called(method) if method.nodes:
                    raise ValueError(f"the bound does not call {record.name}.{method.name}")

    def _whole(self, found: _Object, item: Item, selected: SelectionSetNode | None) -> None:
        self._told_by_key(found, selected)
        self._told_by_item(found, item, selected)

    def _end(
        self, end: End, identity: tuple[str, ...] | None, node: FieldNode, of: RecordType | None
    ) -> None:
        """Visits the node at an end of an item of the type; None if nothing but its key is known."""
        if identity is not None:
            records, own = end.nodes(identity)
            copies = self._graph.copies.get(of.name, ()) if of is not None else ()
            copied = frozenset(
                each.sources[records[0]].name
                for each in copies
                if each.field.follows and each.end is end and records[0] in each.sources
            )
            self._node(records, own, node, copied=copied)

    # --- Lists ----------------------------------------------------------------------------------------

    def _list(
        self,
        path: AccessPath,
        owner: tuple[str, ...] | None,
        node: FieldNode,
        definition: GraphQLField,
    ) -> None:
        given = self._document.given(node, definition)
        if given.get("after") is not None or given.get("before") is not None:
            raise ValueError("the bound knows no cursors")
        if given.get("alsoOf"):
            raise ValueError("the bound does not know what several lists have in common")
        if not path.keys.reads_whole_items:
            raise ValueError(f"the bound knows whole items alone, and {path.keys.index_name} has parts")
        narrowed = narrowings(self._graph, path, given)
        keys = KeyArguments(required_texts(self._graph, path, given), narrowed)
        wheres = conditions(self._graph, path, given, sys.maxsize)
        neighbours = ListForm(self._graph, path, keys, wheres).of(owner)
        # Items that the narrowed list leaves out may be between it and its owner, which is not known beforehand.
        beside = None if narrowed else owner
        type_ = cast(GraphQLObjectType, get_named_type(definition.type))
        if path.is_one:
            self._requests.page(
                neighbours, 1, True, beside, partial(self._each, path, type_, node.selection_set)
            )
            return
        from_end = given.get("last") is not None
        size = given["last"] if from_end else given.get("first")
        size = DEFAULT_PAGE_SIZE if size is None else size
        forward = from_end == (given.get("direction") is SortDirection.DESC)
        shown, has_page, has_total, looks_on = [], False, False, False
        for inner, inner_definition, kind in self._document.fields(type_, node.selection_set):
            match kind:
                case Edges() | Nodes():
                    has_page = True
                    shown.append((inner, inner_definition, kind))
                case PageInfo():
                    has_page = True
                    info = self._document.type("PageInfo")
                    names = {
                        each.name.value for each, _, _ in self._document.fields(info, inner.selection_set)
                    }
                    looks_on |= ("hasPreviousPage" if from_end else "hasNextPage") in names
                case TotalCount():
                    has_total = True
                case Aggregate():
                    raise ValueError("the bound aggregates nothing")
        go_on = partial(self._shown, path, shown)
        if given.get("to") is not None:
            self._edges_to(neighbours, owner or (), given["to"], size, forward, go_on)
            return
        if has_page and size + looks_on:
            self._requests.page(
                neighbours, size + looks_on, forward, beside, lambda items: go_on(items[:size])
            )
        if has_total:
            self._requests.count(neighbours)

    def _edges_to(
        self,
        neighbours: ListQuery,
        owner: tuple[str, ...],
        ids: Sequence[str],
        size: int,
        forward: bool,
        go_on: Callable[[list[Item]], None],
    ) -> None:
        """Reads the edges to some nodes: by key if the two ends make up the keys, else one range for each node."""
        path = neighbours.path
        ends = []
        for text in ids:
            record, identity = read_global_id(self._graph, text)
            ends.append(
                path.edge_texts(
                    owner, path.record.ends[cast(str, path.far_end)].identity_of(record, identity)
                )
            )

        def arrived(items: list[Item]) -> None:
            items.sort(key=lambda item: neighbours.order_of(neighbours.place_of(item)), reverse=not forward)
            go_on(items[:size])

        if not path.finds_by_node:
            ranges = dict.fromkeys(each for texts in ends for each in _ranges_between(path, texts))
            self._requests.edges_between(neighbours, ranges, arrived)
            return
        identities = [tuple(texts[slot.name] or "" for slot in path.record.identity) for texts in ends]
        keys = list(
            dict.fromkeys(key for each in identities for key in self._graph.table_keys(path.record, each))
        )
        there = [item for key in keys if (item := self._items.get(key)) and neighbours.covers(item)]
        self._requests.edges(neighbours, keys, partial(arrived, there))

    def _shown(
        self,
        path: AccessPath,
        shown: Sequence[tuple[FieldNode, GraphQLField, FieldKind]],
        items: list[Item],
    ) -> None:
        """Continues with the edges and nodes of a page."""
        for node, definition, kind in shown:
            if isinstance(kind, Edges) or path.far_end is None:
                edge = get_named_type(definition.type) if isinstance(kind, Edges) else None
                self._each(path, cast("GraphQLObjectType | None", edge), node.selection_set, items)
                continue
            end = path.record.ends[path.far_end]
            for item in items:
                self._end(end, path.record.end_identity(item, end), node, path.record)

    def _each(
        self,
        path: AccessPath,
        type_: GraphQLObjectType | None,
        selected: SelectionSetNode | None,
        items: list[Item],
    ) -> None:
        """Continues with the items of a list as objects of the type; None means each item's own type."""
        for item in items:
            record = cast(RecordType, self._graph.recognise(item)) if path.members else path.record
            shown = type_ or self._document.type(record.name)
            self._whole(_Object(shown, record, record.read_identity(item) or ()), item, selected)


def _ranges_between(
    path: AccessPath, texts: Mapping[str, str | None]
) -> Iterator[tuple[str | None, KeyValue, Span]]:
    """Returns where the edges between two nodes are: an index, one of its partitions, and a span there."""
    keys = path.keys_of_both_ends
    if keys is None:
        raise ValueError(f"no key of {path.record.name} tells both its ends")
    head, rest = (keys.sort or Template(())).head(texts)
    prefix = head.render(texts) or ""
    for shard in keys.shard_texts:
        partition = keys.partition.render({**texts, **shard})
        if partition:
            span = beginning_with(prefix) if rest.tokens or not prefix else Span(prefix, prefix)
            yield keys.index_name, partition, span
