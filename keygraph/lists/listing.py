"""One list of one node: an access path with its values, as the range of keys that it reads.

A `NeighbourList` is a value. It contains the partitions to read (one for each shard), the range of the sort key, the
filter for the store, and the conditions that are checked here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.dynamo.conditions import Condition, Path, conjunction, disjunction, holds, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Page, Query, Store
from keygraph.dynamo.table import Key, KeyValue, Position
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.lists.checks import checked_names, checks_of, literal, split_condition
from keygraph.lists.placeholders import shown_texts
from keygraph.lists.projection import attributes_of, list_projection
from keygraph.lists.ranges import (
    Narrowing,
    Span,
    beginning_with,
    hull_of,
    said,
    sort_span,
    span_of_whole,
    undecided,
)
from keygraph.lists.siblings import Reading, reading_alone, without_siblings
from keygraph.model.expiry import SHOWN_NOW, Now, is_live
from keygraph.model.paths import SORT_KEY, AccessPath
from keygraph.model.records import RecordType


class Place(NamedTuple):
    """The place of an item in a list: the shard (0 if there is one), and its position there."""

    shard: int
    position: Position


class Located(NamedTuple):
    """An item of a list, and the texts that identify it."""

    item: Item
    identity: tuple[str, ...]
    record: RecordType


_NO_PARTS: Mapping[RecordType, NeighbourList] = MappingProxyType({})


class NeighbourList:
    """A list with its values. Equal ones are the same list."""

    __slots__ = (
        "_identity",
        "_values",
        "condition",
        "filter",
        "filter_with_type",
        "form",
        "graph",
        "has_sort_key",
        "hash",
        "index_name",
        "is_checked",
        "is_filtered",
        "is_searched",
        "looks_on",
        "narrowed",
        "partitions",
        "parts",
        "path",
        "prefix",
        "reading",
        "span",
        "store_filter",
    )

    def __init__(
        self,
        form: ListForm,
        partitions: tuple[KeyValue, ...],
        prefix: str,
        span: Span,
        owner: tuple[str, ...] | None,
        reading: Reading,
        at: Now | None = None,
        parts: Mapping[RecordType, NeighbourList] = _NO_PARTS,
        *,
        values: tuple[tuple[str, str | None], ...] | None = None,
    ) -> None:
        """`partitions` are the partition keys of the shards, `prefix` is the beginning of every sort key of the list,
        and `owner` the owner's identity. `reading` is what is read of the range, and the siblings with it. `at` is the
        time at which expired items are left out; None leaves none out. `parts` are the lists of each type of a list of
        several. `values` are those of a list that is only shown, with placeholders."""
        self.form = form
        self.graph = form.graph
        self.path = form.path
        self.index_name = form.index_name
        self.has_sort_key = form.has_sort_key
        self.filter, self.condition, self.filter_with_type = form.decided(at)
        self.is_searched = form.is_searched
        self.narrowed, self.is_checked = form.narrowed, form.is_checked
        self.partitions = partitions
        self.prefix = prefix
        self.span = span
        self._identity, self._values = owner, values
        self.reading = reading
        self.parts = parts
        self.is_filtered = form.is_searched or bool(reading.others)
        """Whether its range is expected to contain other items: the first request then examines more."""
        self.looks_on = self.is_filtered or form.leaves_out
        """Whether anything in its range may not be in the list, so that a page may take another request."""
        self.store_filter = self.filter_with_type if reading.others else self.filter
        """The whole filter in the store: with the type, if any number of siblings may be read."""
        # Distinguishes most lists of one operation. It is used often.
        self.hash = hash((form.path, partitions, span.low))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, NeighbourList) and self.hash == other.hash and self._compared == other._compared
        )

    def __hash__(self) -> int:
        return self.hash

    @property
    def values(self) -> tuple[tuple[str, str | None], ...]:
        """The values that the list fixes: the texts of the owner's key and of the required arguments, by slot."""
        if self._values is None:
            self._values = tuple(sorted(self.form.texts_of(self._identity).items()))
        return self._values

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.form.told, self.partitions, self.prefix, self.span, self.values

    # --- What is in the list --------------------------------------------------------------------------

    def identified(self, item: Item) -> tuple[str, ...] | None:
        """Returns the identity of an item that was read in the list's range; None if it is not in the list."""
        if self.parts:
            located = self._located(item)
            return None if located is None else located.identity
        identity = self.graph.identifier(self.path.record, self.path.keys)(item)
        return identity if identity is None or self._is_fitting(item) else None

    def _is_fitting(self, item: Item) -> bool:
        """Returns whether an item of the list's type is in the list, apart from what the range decides."""
        path = self.path
        if self.is_checked and not self._fixes(item):
            return False
        return self.condition is None or holds(self.condition, path.record.completed(item))

    def _located(self, item: Item) -> Located | None:
        """Returns an item that was read in the range of a list of several types; None if it is not in the list."""
        told = self.graph.identified(item, self.path.keys)
        part = None if told is None else self.parts.get(told[0])
        if told is None or part is None or not part._is_fitting(item):
            return None
        return Located(item, told[1], told[0])

    def included(self, items: Iterable[Item]) -> list[Located]:
        """Returns the items, which were read in the list's range, that are in the list."""
        if self.parts:
            return [located for item in items if (located := self._located(item)) is not None]
        record = self.path.record
        identify = self.graph.identifier(record, self.path.keys)
        found = [
            tuple.__new__(Located, (item, identity, record))  # which takes half the time of a call
            for item in items
            if (identity := identify(item)) is not None
        ]
        if self.is_checked or self.condition is not None:
            return [located for located in found if self._is_fitting(located.item)]
        return found

    def sort_of(self, item: Item) -> KeyValue:
        """Returns the sort key of an item of the list; empty if there is none. Raises KeyError if the item lacks it."""
        keys = self.path.keys.attributes
        return cast(KeyValue, item[keys[1].name]) if len(keys) == 2 else ""

    def covers(self, item: Item) -> bool:
        """Returns whether an item that was read elsewhere is in this list, by all its conditions."""
        keys = self.path.keys
        values = [item.get(key.name) for key in keys.attributes]
        if values[0] not in self.partitions:
            return False
        if len(values) == 2:
            sort = values[1]
            if not keys.attributes[1].holds(sort) or not self.reads(cast(KeyValue, sort)):
                return False
        record = self.graph.recognise(item)
        own = None if record is None else self.parts.get(record, self if record is self.path.record else None)
        if record is None or own is None:
            return False
        if own.filter is not None and not holds(own.filter, record.completed(item)):
            return False
        return own._is_fitting(item)

    def reads(self, sort: KeyValue) -> bool:
        """Returns whether items with that sort key are read."""
        return any(piece.contains(sort) for piece in self.reading.pieces)

    @property
    def whole_keys(self) -> list[Key] | None:
        """The table keys of all items that it can contain, one for each shard, if its range is one key of the table."""
        if self.path.keys.index is not None or self.parts:
            return None
        if not self.has_sort_key:
            return [(partition,) for partition in self.partitions]
        value = self.span.only
        return None if value is None else [(partition, value) for partition in self.partitions]

    def _fixes(self, item: Item) -> bool:
        """Returns whether the item has the values that the list fixes and its range alone does not guarantee."""
        texts = self.path.texts_of_item(item)
        names = self.path.slot_names
        if texts is None or any(texts.get(name) != text for name, text in self.values if name in names):
            return False
        if self.path.untold and self.path.owner_of(item) != self._owner:
            return False
        return all(check(item, texts) for check in self.form.checks)

    @property
    def _owner(self) -> tuple[str | None, ...]:
        """The texts of the owner's identity."""
        return tuple(map(dict(self.values).get, self.path.owner_slots))

    def place_of(self, item: Item) -> Place:
        """Returns where an item of the list is. Raises KeyError if it lacks a key."""
        position = self.path.position_of(item)
        return Place(self.partitions.index(position[0]), position)

    def sort_value(self, place: Place) -> KeyValue:
        """Returns the sort key at a place; empty if there is no sort key."""
        return place.position[1] if self.has_sort_key else ""

    def order_of(self, place: Place) -> tuple[Any, int]:
        """Returns the order of places along the sort key: equal keys by their shards."""
        return self.sort_value(place), place.shard

    def order_by_key(self, place: Place) -> tuple[Any, int, Position]:
        """Returns an order along the sort key that holds for equal keys too, unlike the store's own: by table key."""
        return *self.order_of(place), place.position

    def place_at(self, sort: KeyValue, *, forward: bool, is_included: bool) -> Place:
        """Returns the place, in the direction of reading, right before all items with a sort key, or right after."""
        is_first = forward == is_included
        return Place(-1 if is_first else len(self.partitions), (self.partitions[0], sort))

    def mark(self, place: Place) -> tuple[int | None, KeyValue | None, tuple[KeyValue, ...]]:
        """Returns what distinguishes a place from the others of the list: the shard, the sort key after what the list
        fixes, and on an index the table's key."""
        shard = place.shard if len(self.partitions) > 1 else None
        if not self.has_sort_key:
            return shard, None, place.position[1:]
        sort = place.position[1]
        return shard, sort[len(self.prefix) :] if isinstance(sort, str) else sort, place.position[2:]

    def place(self, shard: int | None, sort: KeyValue | None, others: tuple[KeyValue, ...]) -> Place:
        """Returns the place of a mark. Raises ValueError if it is not in this list."""
        number = shard or 0
        wanted = len(self.graph.table.position(self.index_name)) - (2 if self.has_sort_key else 1)
        is_whole = (sort is not None) == self.has_sort_key and len(others) == wanted
        if not is_whole or not 0 <= number < len(self.partitions):
            raise ValueError("no mark of this list")
        own = () if sort is None else (self.prefix + sort if isinstance(sort, str) else sort,)
        return Place(number, (self.partitions[number], *own, *others))


_SPANS_KEPT = 64
"""How many ranges of the sort key a form caches."""


class Decided(NamedTuple):
    """The conditions that decide whether an item in the range of a list is in the list."""

    filter: Condition | None
    """The condition that the store decides."""
    condition: Condition | None
    """The condition that is decided here, on whole items."""
    filter_with_type: Condition | None
    """The filter if the store decides the type too, which leaves out items without a type."""


SendPage: TypeAlias = Callable[[Store, Query], Awaitable[Page]]
"""Sends a request, and returns the page with what was found out about its items."""


class ListForm:
    """A path with a client's arguments, which are the same for all owners; bound to an owner it is a list.

    The form of a list of several types has one for each: the types that the list's items are distinguished by, each
    with its own conditions.
    """

    def __init__(
        self,
        graph: Graph,
        path: AccessPath,
        required: Mapping[str, str | None] | None = None,
        ranged: Mapping[str, Narrowing] | None = None,
        where: Condition | None = None,
        send: SendPage | None = None,
        *,
        parts: Sequence[ListForm] | None = None,
        is_decided_here: bool = False,
    ) -> None:
        """`required` are the texts of the arguments by name. `send` reads a page for which other items decide
        something. `parts` are the forms of several types; None for all that the path lists, without a condition.
        `is_decided_here`: the store cannot distinguish the type that a condition applies to."""
        self._is_bare = not required and not ranged and where is None and parts is None
        if parts is None:
            parts = [ListForm(graph, member, required, ranged) for member in path.members]
        self.graph = graph
        self.path = path
        self.send = send
        self.index_name = path.keys.index_name
        self.has_sort_key = len(path.keys.attributes) == 2
        self._is_told = required is not None
        self._required, self._where = required, where
        self._texts = {argument.slot.name: (required or {}).get(argument.name) for argument in path.required}
        self._ranged = ranged or {}
        self.filter, self.condition = (
            (None, where) if is_decided_here else split_condition(where, path, graph)
        )
        """The conditions that the store decides, and that are decided here on whole items, in addition to expiry."""
        self._is_decided_here = is_decided_here
        self._decided: tuple[Now, Decided] | None = None
        self.is_searched: bool = where is not None or any(part.is_searched for part in parts)
        """Whether a client or a rule sets a condition on its items."""
        self.narrowed: tuple[tuple[str, Narrowing], ...] = (
            () if path.members else undecided(path, self._ranged)
        )
        """The arguments on the sort key, by slot, that the order of the keys alone does not decide."""
        self.checks = checks_of(path, self.narrowed)
        checked = checked_names(path, self.narrowed)
        self.checked = (checked and attributes_of(graph, path.record, checked)) or frozenset()
        """The attributes of an item that are checked for these, in addition to the keys that are read."""
        self.is_checked: bool = bool(self.narrowed) or path.reads_others or path.is_uncertain
        """Whether the texts that it fixes are checked in each item, because its range alone does not guarantee them."""
        slots = {slot.name: slot for slot in path.rest.slots}
        self.leaves_out = (
            path.reads_others
            or path.is_uncertain
            or path.expires
            or any(not narrowing.fills(slots[name]) for name, narrowing in self.narrowed)
        )
        """Whether items of its types in its range may not be in the list, even without a client's conditions."""
        self.said = said(path, self._ranged)
        """The texts of the sort key's slots that a client has given, by slot."""
        self.told: Hashable = (path, self.filter, self.condition, self.narrowed, self.said)
        """The values that distinguish lists of two forms."""
        self._shards = path.keys.shard_texts
        own = path.keys.attributes[0]
        self._value = None if own.type == "S" else own.value
        """The function that makes the partition key from its text; None if it is the text."""
        self._write_partition = path.partition_writer(self._texts) if self._value is None else None
        self._plain_length = graph.plain_lengths(path.keys)[0]
        # The slots of the range after the prefix; they are the same for most owners.
        self._in_range = [slot.name for slot in path.rest.slots if slot.name in path.known]
        self._prefix = None if path.prefix.slots else path.prefix.render({}) or ""
        """The beginning of every sort key; None if that depends on the owner, or on the arguments."""
        self._one_place: tuple[str | None, ...] = (self._prefix,)
        self._spans: dict[tuple[str | None, ...], tuple[str, Span, Reading | None]] = {}
        self._projections: dict[frozenset[str] | None, tuple[Path, ...] | None] = {}
        self._siblings = graph.siblings(path)
        self.tells_types = graph.type_condition(path) is not None
        """Whether the store can distinguish the items of its types by their type attributes."""
        self._parts = parts
        if path.members:
            self._join(parts)

    def _join(self, parts: Sequence[ListForm]) -> None:
        """Combines the values of the parts as its own."""
        listed = {part.path.record for part in parts}
        self._siblings += tuple(record for record in self.path.records if record not in listed)
        self.tells_types = all(part.tells_types for part in parts)
        if not self.tells_types and any(part.filter is not None or part.path.expires for part in parts):
            self._parts = parts = [part.decided_here() for part in parts]
        self.condition = disjunction(*(part.condition for part in parts))
        self.narrowed = tuple(each for part in parts for each in part.narrowed)
        self.checked = frozenset[str]().union(*(part.checked for part in parts))
        self.is_checked = any(part.is_checked for part in parts)
        self.leaves_out = any(part.leaves_out for part in parts)
        self.told = (self.path, tuple(part.told for part in parts), self._ranged.get(SORT_KEY))

    def decided_here(self) -> ListForm:
        """Returns the same form without conditions for the store."""
        return ListForm(
            self.graph, self.path, self._required, self._ranged, self._where, is_decided_here=True
        )

    def projection(self, attributes: frozenset[str] | None) -> tuple[Path, ...] | None:
        """Returns the projection of its requests, given the wanted attributes; None for whole items."""
        if attributes not in self._projections:
            wanted = None if attributes is None else attributes | self.checked
            self._projections[attributes] = list_projection(self.graph, self.path, self.condition, wanted)
        return self._projections[attributes]

    def decided(self, at: Now | None) -> Decided:
        """Returns what decides whether an item in its range is in a list, at a time (None: regardless of expiry)."""
        if at is None or not self.path.expires:
            return self._timeless
        if self._decided is None or self._decided[0] != at:
            # The same for all lists of a run, and separate objects only if needed.
            self._decided = at, self._decided_at(at)
        return self._decided[1]

    @cached_property
    def _timeless(self) -> Decided:
        return self._decided_at(None)

    def _decided_at(self, at: Now | None) -> Decided:
        if self._parts:
            return self._decided_of_parts([part.decided(at) for part in self._parts])
        expiry = self.path.record.expiry
        if at is None or expiry is None:
            return self._with_type(self.filter, self.condition)
        live = is_live(expiry, at)
        # DynamoDB's filter may not name a key of the table or index that is read.
        [[name, *_]] = paths_of(live)
        if self._is_decided_here or any(key.name == name for key in self.path.keys.attributes):
            return self._with_type(self.filter, conjunction(live, self.condition))
        return self._with_type(conjunction(live, self.filter), self.condition)

    def _decided_of_parts(self, each: Sequence[Decided]) -> Decided:
        """Returns what decides for all types: different conditions apply to their types, if the store decides them."""
        with_types = (
            disjunction(*(decided.filter_with_type for decided in each)) if self.tells_types else None
        )
        is_same = all(decided.filter == each[0].filter for decided in each)
        filter_ = each[0].filter if is_same else with_types
        return Decided(filter_, disjunction(*(decided.condition for decided in each)), with_types or filter_)

    def _with_type(self, filter_: Condition | None, condition: Condition | None) -> Decided:
        return Decided(filter_, condition, conjunction(self.graph.type_condition(self.path), filter_))

    @cached_property
    def begins(self) -> Condition | None:
        """The condition that the table's keys have the literal text of the type's keys, except those that are keys of
        the index that is read."""
        parts = [(key.name, template) for key, template in self.path.record.table_keys.parts]
        return conjunction(
            *(
                each
                for name, template in parts
                if name not in self.path.keys.names
                for each in literal(name, template)
            )
        )

    def of(self, owner: tuple[str, ...] | None = None, at: Now | None = None) -> NeighbourList:
        """Returns the list of an owner (its identity), without items that have expired at a time; None keeps them.

        Raises BadUserInput if the arguments make no key, or if those of the sort key leave a gap.
        """
        partitions = self._partitions(owner)
        if self._parts:
            parts = {part.path.record: part._part_of(owner, at, partitions) for part in self._parts}
            return self._of_parts(owner, partitions, parts, at)
        prefix, span, reading = self._span_of(owner)
        if reading is None:
            listed = [(self.path, {**self.texts_of(owner), **dict(self.said)})]
            reading = without_siblings(self.graph, self._siblings, listed, partitions[0], span)
        return NeighbourList(self, partitions, prefix, span, owner, reading, at)

    def texts_of(self, owner: tuple[str, ...] | None) -> Mapping[str, str | None]:
        """Returns what the list of an owner fixes, by slot."""
        return self._texts if owner is None else {**self.path.texts_of_owner(owner), **self._texts}

    def _partitions(self, owner: tuple[str, ...] | None) -> tuple[KeyValue, ...]:
        """Returns the partition key of each shard. Raises BadUserInput if the texts make no key."""
        if self._write_partition is not None and owner is not None:
            key = self._write_partition(owner)
            # Most keys are short and plain, so that there is nothing to check.
            if len(key) <= self._plain_length and key.isascii():
                return (key,)
        texts = self.texts_of(owner)
        return tuple([self._partition({**texts, **shard} if shard else texts) for shard in self._shards])

    def _span_of(self, owner: tuple[str, ...] | None) -> tuple[str, Span, Reading | None]:
        """Returns the common beginning of a list's sort keys, its range, and what is read of that without siblings."""
        prefix, place = self._prefix or "", self._one_place
        if self._prefix is None or self._in_range:
            texts = self.texts_of(owner)
            if self._prefix is None:
                prefix = self.path.prefix.render(texts) or ""
            place = (prefix, *[texts.get(name) for name in self._in_range])
        known = self._spans.get(place)
        if known is None:
            span = sort_span(self.path, prefix, self.texts_of(owner), self._ranged)
            # What is read beside siblings depends on the partition too.
            known = prefix, span, None if self._siblings else reading_alone(span)
            if len(self._spans) < _SPANS_KEPT:
                self._spans[place] = known
        return known

    # --- Several types --------------------------------------------------------------------------------

    def _part_of(
        self, owner: tuple[str, ...] | None, at: Now | None, partitions: tuple[KeyValue, ...]
    ) -> NeighbourList:
        """Returns the part of this type in a list of several types. It is not read by itself."""
        prefix, span, _ = self._span_of(owner)
        return NeighbourList(self, partitions, prefix, span, owner, reading_alone(span), at)

    def _of_parts(
        self,
        owner: tuple[str, ...] | None,
        partitions: tuple[KeyValue, ...],
        parts: Mapping[RecordType, NeighbourList],
        at: Now | None,
        *,
        shown: tuple[tuple[str, str | None], ...] | None = None,
    ) -> NeighbourList:
        """Returns the list of several types: everything from the first to the last range is read together."""
        span = hull_of(part.span for part in parts.values())
        whole = self._ranged.get(SORT_KEY)
        if whole is not None:
            span = span.within(span_of_whole(self.path, whole))
        listed = [(part.path, {**dict(part.values), **dict(part.form.said)}) for part in parts.values()]
        reading = without_siblings(
            self.graph, self._siblings, listed, partitions[0], span, is_shown=shown is not None
        )
        # Its cursors are valid for any of the types, so they contain the whole sort key.
        return NeighbourList(self, partitions, "", span, owner, reading, at, parts, values=shown)

    def shown(self, owner: tuple[str, ...] | None = None) -> NeighbourList:
        """Returns the list of an owner that may not be known: with placeholders for its identity, and for required
        arguments that are not given.

        It reads the same as any owner's list, so that its requests can be shown, and counted, before anything is read.
        Raises BadUserInput as `of` does.
        """
        return _any_shown(self.graph, self.path) if owner is None and self._is_bare else self._shown(owner)

    def _shown(self, owner: tuple[str, ...] | None) -> NeighbourList:
        path = self.path
        texts = shown_texts(path)
        texts |= {} if owner is None else path.texts_of_owner(owner)
        texts |= self._texts if self._is_told else {}
        fixed = {slot.name: texts[slot.name] for slot in (*path.keys.partition.slots, *path.prefix.slots)}
        values = tuple(sorted(fixed.items()))
        partition = path.keys.partition.render(texts) or ""
        if self._parts:
            parts = {part.path.record: part._shown(owner) for part in self._parts}
            return self._of_parts(owner, (partition,), parts, SHOWN_NOW, shown=values)
        prefix = path.prefix.render(texts) or ""
        try:
            span = sort_span(path, prefix, fixed, self._ranged)
        except (ValueError, ArithmeticError):
            span = beginning_with(prefix)  # a placeholder is no number
        listed = [(path, {**fixed, **dict(self.said)})]
        reading = without_siblings(self.graph, self._siblings, listed, partition, span, is_shown=True)
        return NeighbourList(self, (partition,), prefix, span, owner, reading, SHOWN_NOW, values=values)

    def _partition(self, texts: Mapping[str, str | None]) -> KeyValue:
        text = self.graph.render(self.path.record, self.path.keys, 0, texts)
        return text if self._value is None else self._value(text)


@kept("lists", 1024, 4_000)
def _any_shown(graph: Graph, path: AccessPath) -> NeighbourList:
    """Returns a path's list without arguments, which most are, cached with what it reads."""
    return ListForm(graph, path)._shown(None)


def form_of(
    graph: Graph,
    path: AccessPath,
    required: Mapping[str, str | None] | None,
    ranged: Mapping[str, Narrowing] | None,
    wheres: Mapping[AccessPath, Condition | None],
    send: SendPage | None = None,
) -> ListForm:
    """Returns a path with a client's arguments: `wheres` are the requested types, by the paths to them, each with a
    condition."""
    if not path.members:
        return ListForm(graph, path, required, ranged, wheres[path], send)
    listed = [(member, wheres[member]) for member in path.members if member in wheres]
    parts = [ListForm(graph, member, required, ranged, where) for member, where in listed]
    return ListForm(graph, path, required, ranged, None, send, parts=parts)


def bind(
    graph: Graph,
    path: AccessPath,
    owner: tuple[str, ...] | None = None,
    required: Mapping[str, str | None] | None = None,
    ranged: Mapping[str, Narrowing] | None = None,
    wheres: Mapping[AccessPath, Condition | None] | None = None,
) -> NeighbourList:
    """Returns the list of an owner (its identity), with the texts of the arguments by name.

    Raises BadUserInput if they make no key, or if the sort key's arguments leave a gap.
    """
    return form_of(graph, path, required, ranged, wheres or dict.fromkeys(path.each)).of(owner)
