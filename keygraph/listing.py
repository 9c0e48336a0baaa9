"""One list of one node: an access path with its values, as the range of keys that it reads.

A `NeighbourList` is a value. It says which partitions are read (one for each shard), which part of the sort key,
and what is decided by a filter in the store or by a condition here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from keygraph.conditions import And, Condition, attributes_of_condition, holds
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.items import Item
from keygraph.names import camel
from keygraph.paths import AccessPath, Argument
from keygraph.store import AtLeast, AtMost, Equals, Prefix, Range, Within
from keygraph.table import KeyValue, Position
from keygraph.templates import Maybe, Slot, Token

LAST = "\U0010ffff"
"""The last character of Unicode: what begins with a text is not after that text and this."""

_SORT_KEY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a reader says about one argument of the sort key, in texts."""

    eq: str | None = None
    low: str | None = None
    high: str | None = None
    prefix: str | None = None

    def contains(self, text: str | None) -> bool:
        """Whether a value's text is in the range; one that is absent is in none."""
        if text is None:
            return False
        return (self.low is None or self.low <= text) and (self.high is None or text <= self.high)

    def fitted(self, slot: Slot) -> Narrowing:
        """The range without a bound that has more digits than the key's format, which all keys are below."""
        low, high = self.low, self.high
        if high is not None and slot.text.is_wider(high):
            high = None
        if low is not None and slot.text.is_wider(low):
            return Narrowing(low=LAST, high=high)
        return Narrowing(self.eq, low, high, self.prefix)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a sort key: every value from `low` to `high`, both included; None is no bound.

    The values of one key are all texts, all numbers or all bytes.
    """

    low: Any = None
    high: Any = None

    def contains(self, value: KeyValue) -> bool:
        return bool((self.low is None or self.low <= value) and (self.high is None or value <= self.high))

    def within(self, other: Span) -> Span:
        """What both contain."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Span(max(lows, default=None), min(highs, default=None))

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and bool(self.low > self.high)

    @property
    def range(self) -> Range | None:
        """The condition on the sort key that DynamoDB takes."""
        if self.low is None or self.high is None:
            if self.low is not None:
                return AtLeast(self.low)
            return None if self.high is None else AtMost(self.high)
        if self.low == self.high:
            return Equals(self.low)
        if isinstance(self.low, str) and self.high == self.low + LAST:
            return Prefix(self.low)
        return Within(self.low, self.high)


def beginning_with(text: str) -> Span:
    """Every text that begins so."""
    return Span(text, text + LAST) if text else Span()


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item stands in a list: the shard (0 where there is one), and its position there."""

    shard: int
    position: Position


@dataclass(frozen=True)
class NeighbourList:
    """A list with its values."""

    graph: Graph
    path: AccessPath
    partitions: tuple[KeyValue, ...]
    """The partition key of each shard."""
    prefix: str
    """What every sort key of the list begins with."""
    span: Span
    values: tuple[tuple[str, str | None], ...]
    """What the list itself fixes: the texts of the owner's key and of the required arguments, by slot."""
    filter: Condition | None = None
    """What the store decides."""
    narrowed: tuple[tuple[str, Narrowing], ...] = ()
    """The ranges, by slot, that the order of the keys does not decide alone: a separator follows the value there."""
    condition: Condition | None = None
    """What is decided here, on whole items."""

    @property
    def index_name(self) -> str | None:
        return self.path.keys.index_name

    @property
    def has_sort_key(self) -> bool:
        return len(self.path.keys.attributes) == 2

    @cached_property
    def siblings_filter(self) -> Condition | None:
        """The filter that leaves siblings out, where there can be any and it can."""
        return self.graph.type_condition(self.path) if self.graph.siblings(self.path) else None

    @cached_property
    def is_exact(self) -> bool:
        """Whether the store's filter alone decides what is in the list, so that it can count."""
        if self.condition is not None or self.path.reads_others or self.narrowed:
            return False
        siblings = self.graph.siblings(self.path)
        if not siblings:
            return True
        own = self.graph.type_value(self.path.record)
        return self.siblings_filter is not None and all(
            self.graph.type_value(sibling) != own for sibling in siblings
        )

    def includes(self, item: Item) -> bool:
        """Whether an item that was read in the list's range is in the list."""
        if self.graph.recognise(item, self.path.keys) is not self.path.record or not self._fixes(item):
            return False
        return self.condition is None or holds(self.condition, self.path.record.completed(item))

    def covers(self, item: Item) -> bool:
        """Whether an item that was read elsewhere stands in this list, every condition counted."""
        keys = self.path.keys
        values = [item.get(key.name) for key in keys.attributes]
        if values[0] not in self.partitions:
            return False
        if len(values) == 2:
            sort = values[1]
            if not keys.attributes[1].holds(sort) or not self.span.contains(cast(KeyValue, sort)):
                return False
        if self.filter is not None and not holds(self.filter, self.path.record.completed(item)):
            return False
        if self.graph.recognise(item) is not self.path.record or not self._fixes(item):
            return False
        return self.condition is None or holds(self.condition, self.path.record.completed(item))

    def _fixes(self, item: Item) -> bool:
        """Whether the item's keys hold what the list fixes, where its range alone does not say so."""
        if not self.path.reads_others and not self.narrowed:
            return True
        texts = self.path.keys.parse(item)
        if texts is None or any(texts.get(name, text) != text for name, text in self.values):
            return False
        return all(narrowing.contains(texts.get(name)) for name, narrowing in self.narrowed)

    def place_of(self, item: Item) -> Place:
        """Where an item of the list stands. KeyError where it lacks a key."""
        position = self.graph.table.position_of(item, self.index_name)
        return Place(self.partitions.index(position[0]), position)

    def sort_value(self, place: Place) -> KeyValue:
        """The sort key at a place; empty where there is no sort key."""
        return place.position[1] if self.has_sort_key else ""

    def order_of(self, place: Place) -> tuple[Any, int]:
        """By what places are ordered along the sort key: equal keys by their shards."""
        return self.sort_value(place), place.shard

    def mark(self, place: Place) -> tuple[int | None, KeyValue | None, tuple[KeyValue, ...]]:
        """What tells a place from the others of the list: the shard, the sort key after what the list fixes, and
        on an index the table's key."""
        shard = place.shard if len(self.partitions) > 1 else None
        if not self.has_sort_key:
            return shard, None, place.position[1:]
        sort = place.position[1]
        return shard, sort[len(self.prefix) :] if isinstance(sort, str) else sort, place.position[2:]

    def place(self, shard: int | None, sort: KeyValue | None, others: tuple[KeyValue, ...]) -> Place:
        """The place that a mark tells. ValueError where it is none of this list."""
        number = shard or 0
        wanted = len(self.graph.table.position(self.index_name)) - (2 if self.has_sort_key else 1)
        is_whole = (sort is not None) == self.has_sort_key and len(others) == wanted
        if not is_whole or not 0 <= number < len(self.partitions):
            raise ValueError("no mark of this list")
        own = () if sort is None else (self.prefix + sort if isinstance(sort, str) else sort,)
        return Place(number, (self.partitions[number], *own, *others))


def bind(
    graph: Graph,
    path: AccessPath,
    owner: tuple[str, ...] | None = None,
    required: Mapping[str, str | None] | None = None,
    ranged: Mapping[str, Narrowing] | None = None,
    where: Condition | None = None,
) -> NeighbourList:
    """The list of an owner (its identity), with the texts of the arguments by name.

    Raises BadUserInput where they make no key, or where the sort key's arguments leave a gap.
    """
    texts: dict[str, str | None] = dict(path.texts_of_owner(owner)) if owner is not None else {}
    for argument in path.required:
        texts[argument.slot.name] = (required or {}).get(argument.name)
    shards = [slot for slot in path.keys.partition.slots if slot.is_shard]
    partitions = tuple(
        path.keys.attributes[0].value(
            graph.render(
                path.record,
                path.keys,
                0,
                {**texts, **{slot.name: slot.text.render(shard) for slot in shards}},
            )
        )
        for shard in range(path.keys.shards or 1)
    )
    prefix = path.prefix.render(texts) or ""
    filter_, condition = _split(where, path, graph)
    return NeighbourList(
        graph,
        path,
        partitions,
        prefix,
        _span(path, prefix, texts, ranged or {}),
        tuple(sorted(texts.items())),
        filter_,
        _undecided(path, ranged or {}),
        condition,
    )


# --- The sort key's range -----------------------------------------------------------------------------


def _span(
    path: AccessPath, prefix: str, texts: Mapping[str, str | None], ranged: Mapping[str, Narrowing]
) -> Span:
    """The range that the arguments leave of the sort key: all but the last one given must be `eq`."""
    arguments = {argument.slot.name: argument for argument in path.ranged}
    given = {argument.slot.name: ranged[argument.name] for argument in path.ranged if argument.name in ranged}
    if len(path.keys.attributes) == 2 and path.keys.attributes[1].type != "S":
        return _value_span(path, texts, arguments, given)
    tokens = _flat(path.rest.tokens, given)
    exact = prefix
    for number, token in enumerate(tokens):
        if isinstance(token, str):
            exact += token
            continue
        if not isinstance(token, Slot):
            break
        text = texts.get(token.name)
        narrowing = Narrowing(eq=text) if text is not None else given.pop(token.name, None)
        if narrowing is None:
            break
        _refuse_unusable(arguments.get(token.name), token, narrowing)
        if narrowing.eq is None:
            following = tokens[number + 1 :]
            _refuse_later(given, arguments, token)
            return _checked(_ranged_span(exact, narrowing.fitted(token), following))
        exact += narrowing.eq
    else:
        if path.keys.sort is not None:
            return _checked(Span(exact, exact))
    _refuse_gap(given, arguments)
    return _checked(beginning_with(exact))


def _undecided(path: AccessPath, ranged: Mapping[str, Narrowing]) -> tuple[tuple[str, Narrowing], ...]:
    """The ranges over values behind which more of the key stands: 1.5 sorts before 1 where `_` follows."""
    last = path.rest.tokens[-1:]
    return tuple(
        (argument.slot.name, said)
        for argument in path.ranged
        if (said := ranged.get(argument.name)) is not None and (said.low is not None or said.high is not None)
        if (argument.slot,) != last
    )


def _value_span(
    path: AccessPath,
    texts: Mapping[str, str | None],
    arguments: Mapping[str, Argument],
    given: Mapping[str, Narrowing],
) -> Span:
    """The range of a sort key that is a number or bytes, and so one slot and nothing else."""
    slots = path.keys.sort.slots if path.keys.sort else ()
    for slot in slots:
        text = texts.get(slot.name)
        narrowing = Narrowing(eq=text) if text is not None else given.get(slot.name)
        if narrowing is None:
            continue
        _refuse_unusable(arguments.get(slot.name), slot, narrowing)
        value = path.keys.attributes[1].value
        low, high = narrowing.eq or narrowing.low, narrowing.eq or narrowing.high
        return Span(None if low is None else value(low), None if high is None else value(high))
    return Span()


def _flat(tokens: tuple[Token, ...], given: Mapping[str, Narrowing]) -> tuple[Token, ...]:
    """The tokens with an optional part written out where an argument speaks of it."""
    flat: list[Token] = []
    for token in tokens:
        if isinstance(token, Maybe) and any(isinstance(t, Slot) and t.name in given for t in token.tokens):
            flat.extend(token.tokens)
        else:
            flat.append(token)
    return tuple(flat)


def _ranged_span(exact: str, narrowing: Narrowing, following: tuple[Token, ...]) -> Span:
    if narrowing.prefix is not None:
        return beginning_with(exact + narrowing.prefix)
    whole = beginning_with(exact)
    low = whole.low if narrowing.low is None else exact + narrowing.low
    if narrowing.high is None:
        return Span(low, whole.high)
    if not following:
        return Span(low, exact + narrowing.high)
    # What follows the value in the key is covered. A value that is shorter may come later there, since its separator
    # is compared with a character of the longer one.
    literal = following[0] if isinstance(following[0], str) else ""
    ends = (narrowing.high[:length] for length in range(1, len(narrowing.high) + 1))
    return Span(low, exact + max(end + literal + LAST for end in ends))


def _refuse_unusable(argument: Argument | None, slot: Slot, narrowing: Narrowing) -> None:
    if argument is None:
        return
    name = camel(argument.name)
    is_range = narrowing.low is not None or narrowing.high is not None
    said = (narrowing.eq is not None) + is_range + (narrowing.prefix is not None)
    if said != 1:
        raise BadUserInput(f"{name}: say eq, or from and to, or beginsWith")
    for text in (narrowing.eq, narrowing.low, narrowing.high, narrowing.prefix):
        if text == "":
            raise BadUserInput(f"{name}: it is empty")


def _refuse_later(given: Mapping[str, Narrowing], arguments: Mapping[str, Argument], slot: Slot) -> None:
    for name in given:
        before, later = camel(arguments[slot.name].name), camel(arguments[name].name)
        raise BadUserInput(f"{later}: {before} stands before it in the key and must be eq")


def _refuse_gap(given: Mapping[str, Narrowing], arguments: Mapping[str, Argument]) -> None:
    for name in given:
        before = [camel(argument.name) for argument in arguments.values()]
        later = camel(arguments[name].name)
        raise BadUserInput(
            f"{later}: {before[before.index(later) - 1]} stands before it in the key: say its eq"
        )


def _checked(span: Span) -> Span:
    for text in (span.low, span.high):
        if text is None:
            continue
        try:
            size = len(text.removesuffix(LAST).encode())
        except UnicodeEncodeError:
            raise BadUserInput("an argument of the list is no text that can be stored") from None
        if size > _SORT_KEY_BYTES - len(LAST.encode()):
            raise BadUserInput(f"an argument of the list makes a key of more than {_SORT_KEY_BYTES} bytes")
    return span


# --- Conditions ---------------------------------------------------------------------------------------


def _split(
    where: Condition | None, path: AccessPath, graph: Graph
) -> tuple[Condition | None, Condition | None]:
    """What of a condition the store can decide, and what is decided here.

    DynamoDB's filter may not name a key of what is read, and does not see what stands in a key alone.
    """
    if where is None:
        return None, None
    undecidable = path.record.attributes_in_keys | {key.name for key in path.keys.attributes}
    parts = where.conditions if isinstance(where, And) else (where,)

    def is_decidable(part: Condition) -> bool:
        return all(
            name not in undecidable and graph.table.has(path.keys.index_name, name)
            for name in attributes_of_condition(part)
        )

    return (
        _joined([part for part in parts if is_decidable(part)]),
        _joined([part for part in parts if not is_decidable(part)]),
    )


def _joined(parts: list[Condition]) -> Condition | None:
    return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))
