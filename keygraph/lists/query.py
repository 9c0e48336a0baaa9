"""A list as a value: `ListQuery` says whose list is read, which range of keys, by which filter, and which page of it.

`ListForm` is what the lists of all owners have in common: an access path with a client's arguments. `ListForm.of` makes
the query for one owner: its partition keys, one for each shard, and the range of sort keys, as it is read around
siblings, which are items of other types in it. `ListQuery.included` selects the list's items of those that were read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import permutations
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from keygraph.dynamo.conditions import Condition, Path, conjunction, disjunction, holds, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Page, Query, Store
from keygraph.dynamo.table import Key, KeyValue, Position
from keygraph.errors import CorruptItem
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.keys.text import IsoDatetime
from keygraph.lists import ranges
from keygraph.lists.checks import checked_names, checks_of, split_condition
from keygraph.lists.extent import NO_PAGE, Extent, Located, Place
from keygraph.lists.placeholders import placeholder_texts
from keygraph.lists.projection import attributes_of, list_projection
from keygraph.lists.siblings import ReadRange, reading_alone, without_siblings
from keygraph.model.expiry import NOW_PLACEHOLDER, Now, is_live
from keygraph.model.paths import SORT_KEY, AccessPath
from keygraph.model.records import RecordType

_NO_PARTS: Mapping[RecordType, ListQuery] = MappingProxyType({})


class ListQuery:
    """A part of one list: whose it is, the range of keys, what is left out of that, and the page. It never changes.

    Queries are equal if they read the same part of the same list.
    """

    __slots__ = (
        "_prefix",
        "_values",
        "decided",
        "extent",
        "form",
        "hash",
        "is_filtered",
        "owner",
        "partitions",
        "parts",
        "path",
        "reading",
        "store_filter",
    )

    def __init__(
        self,
        form: ListForm,
        owner: tuple[str, ...] | None,
        partitions: tuple[KeyValue, ...],
        reading: ReadRange,
        decided: Decided,
        extent: Extent,
        parts: Mapping[RecordType, ListQuery] = _NO_PARTS,
    ) -> None:
        """`owner` is the owner's identity, `partitions` are the partition keys of the shards, `reading` is what is read
        of the range, and the siblings with it. `parts` are the lists of each type of a list of several."""
        self.form = form
        self.path = form.path
        self.owner = owner
        self.partitions = partitions
        self.reading = reading
        self.decided = decided
        self.extent = extent
        self.parts = parts
        self.is_filtered = form.is_searched or bool(reading.others)
        """Whether its range is expected to contain other items: the first request then examines more."""
        self.store_filter = decided.filter_with_type if reading.others else decided.filter
        """The whole filter in the store: with the type, if any number of siblings may be read."""
        self._values: tuple[tuple[str, str | None], ...] | None = None
        self._prefix = form.prefix
        # Distinguishes most lists of one operation, by where they begin. It is used often.
        self.hash = hash(
            (form.path, partitions, reading.span.low, extent.forward, extent.after, extent.until)
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ListQuery)
            and self.hash == other.hash
            and self.extent == other.extent
            and self.is_list_of(other)
        )

    def __hash__(self) -> int:
        return self.hash

    def part(self, extent: Extent) -> ListQuery:
        """Returns the query for another part of the same list."""
        made = ListQuery(
            self.form, self.owner, self.partitions, self.reading, self.decided, extent, self.parts
        )
        made._values, made._prefix = self._values, self._prefix
        return made

    def is_list_of(self, other: ListQuery) -> bool:
        """Returns whether both are parts of the same list."""
        return (
            self.form.compared == other.form.compared
            and self.partitions == other.partitions
            and self.reading.span == other.reading.span
            and self.values == other.values
        )

    def begins_with(self, other: ListQuery) -> bool:
        """Returns whether it begins where another part of the same list does, in the same direction."""
        mine, theirs = self.extent, other.extent
        return (
            mine.forward == theirs.forward
            and (mine.after, mine.until) == (theirs.after, theirs.until)
            and self.is_list_of(other)
        )

    def has(self, other: Extent) -> bool:
        """Returns whether a part that begins at the same place, in the same direction, is in this one."""
        mine = self.extent
        if other.count > mine.count or not mine.has_attributes(other):
            return False
        return not other.look_ahead or other.count < mine.count or mine.look_ahead

    @property
    def values(self) -> tuple[tuple[str, str | None], ...]:
        """The values that the list fixes: the texts of the owner's key and of the required arguments, by slot."""
        if self._values is None:
            self._values = tuple(sorted(self.form.texts_of(self.owner).items()))
        return self._values

    @property
    def prefix(self) -> str:
        """The beginning of every sort key of the list. The cursors of several types are valid for any of the types, so
        they contain the whole sort key."""
        if self._prefix is None:
            self._prefix = self.path.prefix.render(dict(self.values)) or ""
        return self._prefix

    @property
    def looks_on(self) -> bool:
        """Whether anything in its range may not be in the list, so that a page may take another request."""
        return self.is_filtered or self.form.leaves_out

    # --- What is in the list --------------------------------------------------------------------------

    def _is_fitting(self, item: Item) -> bool:
        """Returns whether an item of the list's type is in the list, apart from what the range decides."""
        path = self.path
        if self.form.is_checked and not self._fixes(item):
            return False
        return self.decided.condition is None or holds(self.decided.condition, path.record.completed(item))

    def _located(self, item: Item) -> Located | None:
        """Returns an item that was read in the range of a list of several types; None if it is not in the list."""
        record, identity = self.form.graph.identified(item, self.path.keys) or (None, ())
        part = None if record is None else self.parts.get(record)
        if record is None or part is None or not part._is_fitting(item):
            return None
        return Located(item, identity, record)

    def included(self, items: Iterable[Item]) -> list[Located]:
        """Returns the items, which were read in the list's range, that are in the list."""
        if self.parts:
            return [located for item in items if (located := self._located(item)) is not None]
        record = self.path.record
        identify = self.form.graph.identifier(record, self.path.keys)
        found = [
            tuple.__new__(Located, (item, identity, record))  # which takes half the time of a call
            for item in items
            if (identity := identify(item)) is not None
        ]
        if self.form.is_checked or self.decided.condition is not None:
            return [located for located in found if self._is_fitting(located.item)]
        return found

    def sort_of(self, item: Item) -> KeyValue:
        """Returns the sort key of an item of the list; empty if there is none. Raises CorruptItem if the item lacks it."""
        keys = self.path.keys.attributes
        try:
            return cast(KeyValue, item[keys[1].name]) if len(keys) == 2 else ""
        except KeyError:
            raise self._keyless from None

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
        record = self.form.graph.recognise(item)
        own = None if record is None else self.parts.get(record, self if record is self.path.record else None)
        if record is None or own is None:
            return False
        if own.decided.filter is not None and not holds(own.decided.filter, record.completed(item)):
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
        if not self.form.has_sort_key:
            return [(partition,) for partition in self.partitions]
        value = self.reading.span.only
        return None if value is None else [(partition, value) for partition in self.partitions]

    def _fixes(self, item: Item) -> bool:
        """Returns whether the item has the values that the list fixes and its range alone does not guarantee."""
        texts = self.path.texts_of_item(item)
        names = self.path.slot_names
        if texts is None or any(texts.get(name) != text for name, text in self.values if name in names):
            return False
        owner = tuple(map(dict(self.values).get, self.path.owner_slots)) if self.path.undetermined else None
        if owner is not None and self.path.owner_of(item) != owner:
            return False
        return all(check(item, texts) for check in self.form.checks)

    def place_of(self, item: Item) -> Place:
        """Returns where an item of the list is. Raises CorruptItem if it lacks a key, or if one has another type."""
        try:
            position = self.path.position_of(item)
            shard = self.partitions.index(position[0])
        except (KeyError, ValueError):
            raise self._keyless from None
        if self.form.has_sort_key and not self.path.keys.attributes[1].holds(position[1]):
            raise self._keyless
        return Place(shard, position)

    @property
    def _keyless(self) -> CorruptItem:
        return CorruptItem(
            f"an item of the type {self.path.record.name} was read by a key that it does not have"
        )

    def sort_value(self, place: Place) -> KeyValue:
        """Returns the sort key at a place; empty if there is no sort key."""
        return place.position[1] if self.form.has_sort_key else ""

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
        if not self.form.has_sort_key:
            return shard, None, place.position[1:]
        sort = place.position[1]
        rest = sort if isinstance(sort, Decimal) else sort[len(self.prefix) :]
        return shard, rest, place.position[2:]

    def sort_key(self, rest: KeyValue) -> KeyValue:
        """Returns the sort key with what is after the part that the list fixes."""
        if isinstance(rest, str):
            return self.prefix + rest
        encoding = self.path.keys.attributes[1].encoding
        return rest if isinstance(rest, Decimal) else self.prefix.encode(encoding) + rest

    def place(self, shard: int | None, sort: KeyValue | None, others: tuple[KeyValue, ...]) -> Place:
        """Returns the place of a mark. Raises ValueError if it is not in this list."""
        number = shard or 0
        wanted = len(self.path.position) - (2 if self.form.has_sort_key else 1)
        is_whole = (sort is not None) == self.form.has_sort_key and len(others) == wanted
        if not is_whole or not 0 <= number < len(self.partitions):
            raise ValueError("no mark of this list")
        own = () if sort is None else (self.sort_key(sort),)
        return Place(number, (self.partitions[number], *own, *others))


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
_RANGES_KEPT = 64
"""How many ranges of the sort key a form caches."""


class ListForm:
    """A path with a client's arguments: what the lists of all owners have in common.

    A list of several types has a form for each: the types that its items are distinguished by, each with its own
    conditions.
    """

    def __init__(
        self,
        graph: Graph,
        path: AccessPath,
        keys: ranges.KeyArguments = ranges.NO_ARGUMENTS,
        wheres: Mapping[AccessPath, Condition | None] | None = None,
        extent: Extent = NO_PAGE,
        send: SendPage | None = None,
        *,
        is_decided_here: bool = False,
    ) -> None:
        """`wheres` are the requested types, by the paths to them, each with a condition; None for all that the path
        lists. `send` reads a page for which other items decide something. `is_decided_here`: the store cannot
        distinguish the type that a condition applies to from the others of the list."""
        listed = [each for each in path.members if wheres is None or each in wheres]
        self.graph = graph
        self.path = path
        self.extent = extent
        self.send = send
        self._keys, self._is_decided_here = keys, is_decided_here
        is_whole = wheres is None or (len(wheres) == len(path.each) and not any(wheres.values()))
        self._is_bare = is_whole and not keys.required and not keys.ranged
        self._texts = {each.slot.name: (keys.required or {}).get(each.name) for each in path.required}
        self.has_sort_key = len(path.keys.attributes) == 2
        self.has_types = all(graph.type_condition(each) is not None for each in listed or [path])
        """Whether the store can distinguish the items of its types from others by their type attributes."""
        where = None if wheres is None or path.members else wheres[path]
        self.filter, self.condition = (
            (None, where) if is_decided_here else split_condition(where, path, graph)
        )
        """The conditions that the store decides, and that are decided here on whole items, in addition to expiry."""
        self.is_searched: bool = where is not None
        """Whether a client or a rule sets a condition on its items."""
        self._take_arguments(keys)
        self._siblings = graph.siblings(path)
        excludes = graph.type_values.condition_excludes
        is_distinguished = self.has_types and all(
            excludes(one.record, other.record) for one, other in permutations(listed, 2)
        )
        self._parts = [
            ListForm(
                graph,
                each,
                keys,
                None if wheres is None else {each: wheres[each]},
                is_decided_here=not is_distinguished,
            )
            for each in listed
        ]
        if path.members:
            self._join(self._parts)
        is_text = path.keys.attributes[0].type == "S"
        self._write_partition = path.partition_writer(self._texts) if is_text else None
        self._plain_length = graph.plain_lengths(path.keys)[0]
        self._unowned: tuple[KeyValue, ...] | None = None
        """The partition keys of a list without an owner: the same in every query."""
        # The slots of the range after the prefix; they are the same for most owners.
        self._in_range = [slot.name for slot in path.rest.slots if slot.name in path.known]
        self._prefix = None if path.prefix.slots else path.prefix.render({}) or ""
        self.prefix = "" if path.members else self._prefix
        """The beginning of every sort key; None if that depends on the owner, or on the arguments."""
        self._one_place: tuple[str | None, ...] = (self._prefix,)
        self._readings: dict[tuple[str | None, ...], ReadRange] = {}
        self._projections: dict[frozenset[str] | None, tuple[Path, ...] | None] = {}
        self._decided: tuple[Now | None, Decided] | None = None

    def _take_arguments(self, keys: ranges.KeyArguments) -> None:
        """Sets what the arguments on the sort key leave to be decided for each item."""
        path = self.path
        self.narrowed = () if path.members else ranges.undecided(path, keys.ranged)
        """The arguments on the sort key, by slot, that the order of the keys alone does not decide."""
        self.checks = checks_of(path, self.narrowed)
        checked = checked_names(path, self.narrowed)
        if self._is_decided_here and path.record.expiry is not None:
            checked |= {path.record.expiry.name}
        self.checked = (checked and attributes_of(self.graph, path.record, checked)) or frozenset()
        """The attributes of an item that are checked for these and for expiry, in addition to the keys that are read."""
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
        self.leaves_some: bool = not self.leaves_out and any(
            isinstance(slots[name].text, IsoDatetime) for name, _ in self.narrowed
        )
        """Whether only times in the outer seconds of its range may not be: a page looks at twice as many more items."""
        self.fixed = ranges.fixed_texts(path, keys.ranged)
        """The texts of the sort key's slots that a client has given, by slot."""
        self.compared: Hashable = (path, self.filter, self.condition, self.narrowed, self.fixed)
        """The values that distinguish lists of two forms."""

    def _join(self, parts: Sequence[ListForm]) -> None:
        """Combines the values of the parts as its own."""
        listed = {part.path.record for part in parts}
        self._siblings += tuple(record for record in self.path.records if record not in listed)
        self.is_searched = any(part.is_searched for part in parts)
        self.condition = disjunction(*(part.condition for part in parts))
        self.narrowed = tuple(each for part in parts for each in part.narrowed)
        self.checked = frozenset[str]().union(*(part.checked for part in parts))
        self.is_checked = any(part.is_checked for part in parts)
        self.leaves_out = any(part.leaves_out for part in parts)
        self.leaves_some = any(part.leaves_some for part in parts)
        self.compared = self.path, tuple(part.compared for part in parts), self._keys.ranged.get(SORT_KEY)

    def projection(self, attributes: frozenset[str] | None) -> tuple[Path, ...] | None:
        """Returns the projection of its requests, given the wanted attributes; None for whole items."""
        if attributes not in self._projections:
            wanted = None if attributes is None else attributes | self.checked
            self._projections[attributes] = list_projection(self.graph, self.path, self.condition, wanted)
        return self._projections[attributes]

    @cached_property
    def page_projection(self) -> tuple[Path, ...] | None:
        return self.projection(self.extent.attributes)

    def decided(self, at: Now | None) -> Decided:
        """Returns what decides whether an item in its range is in a list, at a time (None: regardless of expiry)."""
        at = at if self.path.expires else None
        if self._decided is None or self._decided[0] != at:
            # The same for all lists of a run, and separate objects only if needed.
            self._decided = at, self._decided_at(at)
        return self._decided[1]

    def _decided_at(self, at: Now | None) -> Decided:
        if self._parts:
            return self._decided_of_parts([part.decided(at) for part in self._parts])
        expiry = self.path.record.expiry
        filter_, condition = self.filter, self.condition
        if at is not None and expiry is not None:
            live = is_live(expiry, at)
            # DynamoDB's filter may not name a key of the table or index that is read.
            [[name, *_]] = paths_of(live)
            if self._is_decided_here or any(key.name == name for key in self.path.keys.attributes):
                condition = conjunction(live, condition)
            else:
                filter_ = conjunction(live, filter_)
        return Decided(filter_, condition, conjunction(self.graph.type_condition(self.path), filter_))

    def _decided_of_parts(self, each: Sequence[Decided]) -> Decided:
        """Returns what decides for all types: different conditions apply to their types, if the store decides them."""
        with_types = disjunction(*(decided.filter_with_type for decided in each)) if self.has_types else None
        is_same = all(decided.filter == each[0].filter for decided in each)
        filter_ = each[0].filter if is_same else with_types
        return Decided(filter_, disjunction(*(decided.condition for decided in each)), with_types or filter_)

    def of(self, owner: tuple[str, ...] | None = None, at: Now | None = None) -> ListQuery:
        """Returns the list of an owner (its identity), without items that have expired at a time; None keeps them.

        Raises BadUserInput if the arguments make no key, or if those of the sort key leave a gap.
        """
        partitions = self._partitions(owner)
        if self._parts:
            parts = {
                part.path.record: ListQuery(
                    part, owner, partitions, part._whole_range(owner), part.decided(at), part.extent
                )
                for part in self._parts
            }
            reading = self._reading_of_parts(parts.values(), partitions[0])
            return ListQuery(self, owner, partitions, reading, self.decided(at), self.extent, parts)
        reading = self._whole_range(owner)
        if self._siblings:
            listed = [(self.path, {**self.texts_of(owner), **dict(self.fixed)})]
            reading = without_siblings(self.graph, self._siblings, listed, partitions[0], reading.span)
        return ListQuery(self, owner, partitions, reading, self.decided(at), self.extent)

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
        if owner is None and self._unowned is not None:
            return self._unowned
        texts = self.texts_of(owner)
        found = tuple(
            [self._partition({**texts, **shard} if shard else texts) for shard in self.path.keys.shard_texts]
        )
        if owner is None:
            self._unowned = found
        return found

    def _partition(self, texts: Mapping[str, str | None]) -> KeyValue:
        keys = self.path.keys
        return keys.attributes[0].value(self.graph.render(self.path.record, keys, 0, texts))

    def _whole_range(self, owner: tuple[str, ...] | None) -> ReadRange:
        """Returns the range of an owner's list, as it is read if there are no siblings."""
        prefix, place = self._prefix or "", self._one_place
        if self._prefix is None or self._in_range:
            texts = self.texts_of(owner)
            if self._prefix is None:
                prefix = self.path.prefix.render(texts) or ""
            place = (prefix, *[texts.get(name) for name in self._in_range])
        known = self._readings.get(place)
        if known is None:
            known = reading_alone(
                ranges.sort_span(self.path, prefix, self.texts_of(owner), self._keys.ranged)
            )
            if len(self._readings) < _RANGES_KEPT:
                self._readings[place] = known
        return known

    def _reading_of_parts(
        self, parts: Iterable[ListQuery], partition: KeyValue, *, is_described: bool = False
    ) -> ReadRange:
        """Returns what a list of several types reads: everything from the first to the last range, together."""
        span = ranges.hull_of(part.reading.span for part in parts)
        whole = self._keys.ranged.get(SORT_KEY)
        if whole is not None:
            span = span.within(ranges.span_of_whole(self.path, whole))
        listed = [(part.path, {**dict(part.values), **dict(part.form.fixed)}) for part in parts]
        return without_siblings(
            self.graph, self._siblings, listed, partition, span, is_described=is_described
        )

    def described(self, owner: tuple[str, ...] | None = None) -> ListQuery:
        """Returns the list of an owner that may not be known: with placeholders for its identity, and for required
        arguments that are not given.

        It reads the same as any owner's list, so that its requests can be described, and counted, before anything is
        read. Raises BadUserInput as `of` does.
        """
        if owner is None and self._is_bare:
            return _any_described(self.graph, self.path).part(self.extent)
        return self._described(owner)

    def _described(self, owner: tuple[str, ...] | None) -> ListQuery:
        path, parts = self.path, dict[RecordType, ListQuery]()
        texts = placeholder_texts(path)
        texts |= {} if owner is None else path.texts_of_owner(owner)
        texts |= {} if self._keys.required is None else self._texts
        fixed = {slot.name: texts[slot.name] for slot in (*path.keys.partition.slots, *path.prefix.slots)}
        partition = path.keys.partition.render(texts) or ""
        if self._parts:
            parts = {part.path.record: part._described(owner) for part in self._parts}
            reading = self._reading_of_parts(parts.values(), partition, is_described=True)
        else:
            prefix = path.prefix.render(texts) or ""
            try:
                span = ranges.sort_span(path, prefix, fixed, self._keys.ranged)
            except (ValueError, ArithmeticError):
                span = ranges.beginning_with(prefix)  # a placeholder is no number
            listed = [(path, {**fixed, **dict(self.fixed)})]
            reading = without_siblings(self.graph, self._siblings, listed, partition, span, is_described=True)
        made = ListQuery(
            self, owner, (partition,), reading, self.decided(NOW_PLACEHOLDER), self.extent, parts
        )
        made._values = tuple(sorted(fixed.items()))
        return made


@kept("lists", 1024, 4_000)
def _any_described(graph: Graph, path: AccessPath) -> ListQuery:
    """Returns a path's list without arguments, which most are, cached with what it reads."""
    return ListForm(graph, path)._described(None)
