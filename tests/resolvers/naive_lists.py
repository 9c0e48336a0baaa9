"""What a naive reader finds in the lists of a graph: plain Python over all items of a table, sorted and sliced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from keygraph.dynamo.conditions import holds
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput, CorruptItem
from keygraph.graph import Graph
from keygraph.limits import Limits
from keygraph.lists.extent import Place
from keygraph.lists.query import ListForm, ListQuery
from keygraph.lists.ranges import KeyArguments
from keygraph.model.paths import SORT_KEY, AccessPath, Argument
from keygraph.model.record_keys import Keys
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.global_ids import read_id_or_key
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.schema.inputs import SortDirection, conditions, narrowings, required_texts
from tests.engine_order import order_among_equals

DEFAULT_SIZE = 20
LARGEST_SIZE = 100
MOST_TERMS = Limits().max_where_terms


@dataclass(eq=False)
class Thing:
    """A node, an edge or a record: its type, the texts of its key, and its item where it was looked up."""

    record: RecordType
    identity: tuple[str, ...]
    item: Item | None = None
    others: tuple[RecordType, ...] = ()
    """Of which other types a node with this key can be."""


@dataclass(eq=False)
class Entry:
    """An edge of a connection, or of an only neighbour."""

    thing: Thing
    cursor: str


@dataclass(eq=False)
class Info:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(eq=False)
class List:
    """A connection: the whole list, and what of it was asked for."""

    path: AccessPath
    neighbours: ListQuery
    whole: list[tuple[tuple[Any, ...], Item, RecordType]]
    """Where each item stands (sort key, shard, the table's key), with its type, in the client's direction."""
    given: Mapping[str, Any]
    page: list[Entry]
    info: Info


class NaiveLists:
    """The lists of a table that has these items."""

    def __init__(self, graph: Graph, items: Sequence[Item], secret: bytes) -> None:
        self._graph = graph
        self._cursors = Cursors(secret)
        self._by_keys: dict[Keys, list[Item]] = {}
        """The items of each record type as each of its keys shows them: an index may not say what type they are."""
        for record in graph.types.values():
            for keys in record.keys.values():
                self._by_keys[keys] = [
                    item
                    for item in items
                    if (match := graph.identified(item, keys)) is not None and match[0] is record
                ]

    def item_of(self, record: RecordType, identity: tuple[str, ...]) -> Item | None:
        items = self._by_keys[record.table_keys]
        return next((item for item in items if record.read_identity(item) == identity), None)

    def list_of(self, path: AccessPath, owner: Thing | None, given: Mapping[str, Any]) -> List:
        graph = self._graph
        identity = owner.identity if owner else None
        required = required_texts(graph, path, given)
        size, from_end = (1, False) if path.is_one else size_of(given)
        to = None if path.is_one else self._named(path, given.get("to"))
        others = [] if path.is_one else self._others(path, given.get("alsoOf") or ())
        # This refuses what makes no key, and is what cursors are sealed for; it decides nothing here.
        wheres = conditions(graph, path, given, MOST_TERMS)
        keys = KeyArguments(required, narrowings(graph, path, given))
        neighbours = ListForm(graph, path, keys, wheres).of(identity)
        cursors = self._cursors.of(neighbours)
        places = {
            name: cursors.place(neighbours, name, given[name])
            for name in ("after", "before")
            if given.get(name) is not None
        }
        found = [
            (item, each.record)
            for each, where in wheres.items()
            for item in self._of_type(path, each, identity, required, given)
            if where is None or holds(where, each.record.completed(item))
            if to is None or path.record.end_identity(item, path.record.ends[path.far_end or ""]) in to
        ]
        others = [other for other in others if owner is None or other != owner.identity]
        if not self.shows_lists_of(path, others):
            found = []
        for other in others:
            theirs = self._far_of(path, other, given, required)
            found = [each for each in found if self._far(path, each[0]) in theirs]
        descending = given.get("direction") is SortDirection.DESC
        position = _position_by_key if to is not None else _position
        whole = [(position(neighbours, neighbours.place_of(item)), item, record) for item, record in found]
        whole.sort(key=lambda placed: placed[0], reverse=descending)
        cursors_at = {name: position(neighbours, place) for name, place in places.items()}
        low, high = _between(whole, cursors_at, descending)
        inside = whole[low:high]
        kept = inside[max(0, len(inside) - size) :] if from_end else inside[:size]
        page = [
            Entry(
                Thing(record, record.read_identity(item) or (), item),
                cursors.cursor(neighbours, neighbours.place_of(item)),
            )
            for _, item, record in kept
        ]
        is_more = len(inside) > size
        # Whoever asks for nothing behind a cursor, or between crossed ones, is told of the cursor's own edge.
        is_nothing = size == 0 or (not inside and _may_be_crossed(neighbours, places, descending))
        is_before = "after" in places and (low > 0 or is_nothing)
        is_behind = "before" in places and (high < len(whole) or is_nothing)
        info = Info(
            is_behind if from_end else is_more,
            is_more if from_end else is_before,
            page[0].cursor if page else None,
            page[-1].cursor if page else None,
        )
        return List(path, neighbours, whole, given, page, info)

    def _named(self, path: AccessPath, ids: Sequence[str] | None) -> set[tuple[str, ...]] | None:
        if ids is None:
            return None
        if len(ids) > 100:
            raise BadUserInput("to: too many")
        named = [read_id_or_key(self._graph, "to", path.nodes, text) for text in ids]
        if path.far_end is None:
            return {identity for _, identity in named}
        end = path.record.ends[path.far_end]
        return {end.identity_of(record, identity) for record, identity in named}

    def _others(self, path: AccessPath, ids: Sequence[str]) -> list[tuple[str, ...]]:
        """The nodes that `alsoOf` names."""
        if len(ids) > 10:
            raise BadUserInput("alsoOf: too many")
        owners = [] if path.owner is None else [path.owner]
        named = [read_id_or_key(self._graph, "alsoOf", owners, text) for text in ids]
        return [identity for _, identity in named]

    def _far_of(
        self,
        path: AccessPath,
        owner: tuple[str, ...],
        given: Mapping[str, Any],
        required: Mapping[str, str | None],
    ) -> set[tuple[str, ...] | None]:
        """The nodes to which a node has edges in such a list."""
        said = {camel(argument.name): given.get(camel(argument.name)) for argument in path.required}
        there = self._of_type(path, path, owner, required, said)
        return {self._far(path, item) for item in there} - {None}

    def _far(self, path: AccessPath, item: Item) -> tuple[str, ...] | None:
        try:
            return path.record.end_identity(item, path.record.ends[path.far_end or ""])
        except CorruptItem:
            return None

    def shows_lists_of(self, path: AccessPath, owners: Sequence[tuple[str, ...]]) -> bool:
        """Whether these nodes are there for whoever asks. Raises Forbidden where they are, and a list of one is not."""
        return True

    def _of_type(
        self,
        path: AccessPath,
        each: AccessPath,
        identity: tuple[str, ...] | None,
        required: Mapping[str, str | None],
        given: Mapping[str, Any],
    ) -> Iterator[Item]:
        """The items of one type in a list of an owner, whatever their attributes."""
        fixed = dict(each.texts_of_owner(identity)) if identity is not None else {}
        fixed |= {argument.slot.name: required.get(argument.name) for argument in each.required}
        for item in self._by_keys[each.keys]:
            if not self._is_in(each, fixed, item):
                continue
            texts = each.keys.parse(item) or {}
            said = {argument.name: texts.get(argument.slot.name) for argument in each.ranged}
            said[SORT_KEY] = str(item[each.keys.attributes[-1].name])
            if all(self._is_said(path, argument, said[argument.name], given) for argument in path.ranged):
                yield item

    def _is_in(self, path: AccessPath, fixed: Mapping[str, str | None], item: Item) -> bool:
        texts = path.keys.parse(item)
        attributes = path.keys.attributes
        if texts is None or not all(key.holds(item.get(key.name)) for key in attributes):
            return False
        own = {slot.name for slot in path.keys.slots}
        return all(texts.get(name) == text for name, text in fixed.items() if name in own)

    def _is_said(
        self, path: AccessPath, argument: Argument, text: str | None, given: Mapping[str, Any]
    ) -> bool:
        """Whether what the client says of an argument of the sort key is so."""
        asked = given.get(camel(argument.name))
        # A field that finds one item takes the value itself.
        operators = asked if isinstance(asked, Mapping) else {"eq": asked}
        said = {
            name: self._graph.text_of(path.record, argument.slot, value)
            for name, value in operators.items()
            if value is not None
        }
        if not said or text is None:
            return not said
        numeric = ("int", "long", "decimal", "float")
        kind = argument.type.kind
        comparable = Decimal if kind in numeric else _moment if kind == "datetime" else str
        value: Any = comparable(text)
        return (
            ("eq" not in said or text == said["eq"])
            and ("from" not in said or comparable(said["from"]) <= value)
            and ("to" not in said or value <= comparable(said["to"]))
            and ("beginsWith" not in said or text.startswith(said["beginsWith"]))
        )


def _moment(text: str) -> datetime | str:
    """What a time is compared by: without an offset it is in UTC. A text of another format is compared as it is."""
    try:
        read = datetime.fromisoformat(text)
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    except ValueError:
        return text


def size_of(given: Mapping[str, Any]) -> tuple[int, bool]:
    first, last = given.get("first"), given.get("last")
    if first is not None and last is not None:
        raise BadUserInput("first and last")
    size = first if last is None else last
    size = DEFAULT_SIZE if size is None else size
    if not 0 <= size <= LARGEST_SIZE:
        raise BadUserInput("too many")
    return size, last is not None


def _position(neighbours: ListQuery, place: Place) -> tuple[Any, ...]:
    """Returns where a place is: its sort key, its shard, and its order among equal keys of an index."""
    key = dict(zip(neighbours.path.position, place.position, strict=True))
    table_key = [key[each.name] for each in neighbours.form.graph.table.keys]
    return (*neighbours.order_of(place), *order_among_equals(table_key))


def _position_by_key(neighbours: ListQuery, place: Place) -> tuple[Any, ...]:
    """Returns the same for items that are read by their keys, so that their order in the index is not known."""
    return (*neighbours.order_of(place), *place.position)


def _may_be_crossed(neighbours: ListQuery, places: Mapping[str, Place], descending: bool) -> bool:
    if len(places) < 2:
        return False
    after, before = neighbours.order_of(places["after"]), neighbours.order_of(places["before"])
    return after <= before if descending else after >= before


def _between(
    whole: Sequence[tuple[tuple[Any, ...], Item, RecordType]],
    cursors: Mapping[str, tuple[Any, ...]],
    descending: bool,
) -> tuple[int, int]:
    """Returns the numbers of the first item behind `after` and of the first one not before `before`.

    A cursor whose own item is not in the list stands where the item stood.
    """
    low, high = 0, len(whole)
    if "after" in cursors:
        there = cursors["after"]
        low = sum(here >= there if descending else here <= there for here, *_ in whole)
    if "before" in cursors:
        there = cursors["before"]
        high = sum(here > there if descending else here < there for here, *_ in whole)
    return low, high
