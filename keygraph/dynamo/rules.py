"""DynamoDB's rules: the reads, keys and items that it refuses, and the places where a read can continue.

Every function that refuses raises BadUserInput. All engines use these functions, so that all refuse the same. One pass
checks an item, and finds its keys as ordered bytes and its size; a load checks each item while its line is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple, cast

from keygraph.dynamo import limits, store
from keygraph.dynamo.actions import key_of
from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item, Value, item_size, number_size, text_size, to_typed, value_size
from keygraph.dynamo.order import after_prefix, key_bytes
from keygraph.dynamo.table import Index, KeyAttribute, KeyValue, Position, Table
from keygraph.errors import BadUserInput, ItemTooLarge, TransactionTooLarge
from keygraph.kept import kept

# --- Reads --------------------------------------------------------------------------------------------


class KeyBounds(NamedTuple):
    """The part of a table or an index that a Query or a Count reads, in ordered bytes (`keygraph.dynamo.order`)."""

    partition: bytes
    low: bytes | None
    """The first sort key of the range; None if nothing is before it."""
    end: bytes | None
    """The first sort key above the range; None if there is none."""


class ReadRules:
    """DynamoDB's rules for reads of a table, or of one of its indexes, and for keys and positions there."""

    def __init__(self, table: Table, index: str | None) -> None:
        """None is the table itself. Raises KeyError if the table lacks the index."""
        self.keyed = keyed = table.keyed(index)
        sort_keys = (table.sort, keyed.sort)
        self.limits = {
            key: limits.SORT_KEY_BYTES if key in sort_keys else limits.PARTITION_KEY_BYTES
            for key in table.position(index)
        }
        """The attributes of a position, with the limits of their values in bytes."""
        # A local index fetches from the table what it does not project.
        self._is_global = isinstance(keyed, Index) and not keyed.local
        self._held = table.projected(keyed) if isinstance(keyed, Index) and self._is_global else None

    def check(self, request: store.Query | store.Count) -> None:
        """Refuses a consistent read of a global index, the projection of an attribute that a global index lacks, a
        range without a sort key, and a prefix of a number."""
        keyed = self.keyed
        if self._is_global and request.consistent:
            raise BadUserInput(f"The global index {keyed.name} cannot be read consistently.")
        if self._held is not None and isinstance(request, store.Query) and request.projection:
            missing = sorted({path[0] for path in request.projection} - self._held)
            if missing:
                raise BadUserInput(f"The global index {keyed.name} does not project {', '.join(missing)}.")
        if request.range is not None:
            if keyed.sort is None:
                raise BadUserInput(f"{keyed.name} has no sort key, so it has no ranges.")
            if isinstance(request.range, store.Prefix) and keyed.sort.type == "N":
                raise BadUserInput("A number has no prefix.")

    def bounds(self, request: store.Query | store.Count) -> KeyBounds:
        """Returns the bounds of a checked request. The smallest key above a key is that key and a zero byte."""
        self.check(request)
        refuse_limit(request)
        partition, sort, range_ = self.keyed.partition, self.keyed.sort, request.range
        stored = checked_key_bytes(partition, request.partition, limits.PARTITION_KEY_BYTES)
        if range_ is None or sort is None:
            return KeyBounds(stored, None, None)
        if isinstance(range_, store.Within):
            refuse_crossed_bounds(range_.low, range_.high)
            low = checked_key_bytes(sort, range_.low, limits.SORT_KEY_BYTES)
            return KeyBounds(stored, low, checked_key_bytes(sort, range_.high, limits.SORT_KEY_BYTES) + b"\0")
        key = checked_key_bytes(sort, range_.value, limits.SORT_KEY_BYTES)
        match range_:
            case store.Equals():
                return KeyBounds(stored, key, key + b"\0")
            case store.AtLeast():
                return KeyBounds(stored, key, None)
            case store.AtMost():
                return KeyBounds(stored, None, key + b"\0")
            case store.Above():
                return KeyBounds(stored, key + b"\0", None)
            case store.Below():
                return KeyBounds(stored, None, key)
            case store.Prefix():
                # No byte of UTF-8 is 0xFF.
                return KeyBounds(stored, key, key + b"\xff" if sort.type == "S" else after_prefix(key))

    def position_bytes(self, position: Position) -> tuple[bytes, ...]:
        """Returns the values of a position as ordered bytes. Refuses one that does not fit."""
        return self.positions_bytes((position,))[0]

    def positions_bytes(self, positions: Sequence[Position]) -> list[tuple[bytes, ...]]:
        """Returns the ordered bytes of several positions."""
        refuse_positions(positions, self.limits)
        columns = zip(self.limits.items(), zip(*positions, strict=True), strict=False)
        stored = [
            [checked_key_bytes(key, each, limit) for each in column] for (key, limit), column in columns
        ]
        return [*zip(*stored, strict=True)]


def no_such_index(table: Table, index: str | None) -> BadUserInput:
    """Returns the refusal of a read of an index that the table lacks."""
    return BadUserInput(f"The table {table.name} has no index {index}.")


def refuse_limit(request: store.Query | store.Count | store.Scan) -> None:
    """Refuses a page of no items."""
    if request.limit is not None and request.limit < 1:
        raise BadUserInput("The limit of a page is at least 1.")


def refuse_segment(request: store.Scan) -> None:
    """Refuses a segment number that the scan does not have."""
    if not 0 <= request.segment < request.segments <= limits.SCAN_SEGMENTS:
        raise BadUserInput(
            f"Segments are numbered from 0 to one less than their count, which is at most {limits.SCAN_SEGMENTS:,}."
        )


def refuse_crossed_bounds(low: KeyValue, high: KeyValue) -> None:
    """Refuses bounds that are crossed or have two types."""
    if type(low) is not type(high):
        raise BadUserInput("The two bounds of a range must be of one type.")
    if low > high:  # type: ignore[operator]  # both are of one type, which is ordered
        raise BadUserInput("The upper bound of a range is below its lower bound.")


def refuse_positions(positions: Iterable[Position], attributes: Collection[KeyAttribute]) -> None:
    """Refuses positions that do not have one value for each of the attributes."""
    if set(map(len, positions)) - {len(attributes)}:
        names = ", ".join(attribute.name for attribute in attributes)
        raise BadUserInput(f"A position here has one value for each of {names}.")


# --- Filters ------------------------------------------------------------------------------------------


def refuse_unordered(value: object) -> None:
    """Refuses a value that has no order, so that nothing is below or above it."""
    if not isinstance(value, str | Decimal | bytes):
        raise BadUserInput("A filter can only order text, numbers and bytes.")


def refuse_prefix(value: object) -> None:
    """Refuses a value that cannot be a prefix."""
    if not isinstance(value, str | bytes):
        raise BadUserInput("A filter can only look for a prefix that is text or bytes.")


def refuse_deep_path(path: Path) -> None:
    """Refuses a path with more levels than an item can have."""
    if len(path) > limits.NESTED_LEVELS:
        raise BadUserInput(f"A path has more than {limits.NESTED_LEVELS} levels.")


def refuse_filtered(paths: Iterable[Path], keyed: Table | Index, table: Table) -> None:
    """Refuses a filter on a key of the table or index that is read, or on a path that it does not project."""
    keys = {key.name for key in keyed.keys}
    for name in sorted({path[0] for path in paths}):
        if name in keys:
            raise BadUserInput(f"A filter cannot use {name}, which is a key of {keyed.name}.")
        # A local index fetches selected attributes from the table, but not those of a filter.
        if isinstance(keyed, Index) and not table.has(keyed.name, name):
            raise BadUserInput(f"A filter cannot use {name}, which the index {keyed.name} does not project.")


# --- Pages --------------------------------------------------------------------------------------------


def can_go_on(request: store.Query | store.Count, position: Position) -> bool:
    """Returns whether an item of the range can follow a position in it, where a page ends or begins.

    In an index one always can, because many items may have the same sort key. In a table none can follow a bound:
    DynamoDB never answers with that position, and refuses to start there.
    """
    if request.index is not None or position[0] != request.partition:
        return True
    if len(position) == 1:
        return False
    forward = isinstance(request, store.Count) or request.forward
    match request.range:
        case store.Equals(value):
            return position[1] != value
        case store.Within(low, high):
            return position[1] != (high if forward else low)
        case store.AtMost(high):
            return not forward or position[1] != high
        case store.AtLeast(low):
            return forward or position[1] != low
    return True


# --- Keys and items -----------------------------------------------------------------------------------


def checked_key_bytes(attribute: KeyAttribute, value: object, limit: int) -> bytes:
    """Returns the key value as ordered bytes.

    Raises BadUserInput for a value that has another type, is empty, not Unicode, not a number that DynamoDB holds, or
    larger than `limit` bytes.
    """
    try:
        # Most keys are text.
        if type(value) is str and attribute.type == "S":
            stored = value.encode()
        elif attribute.holds(value):
            stored = key_bytes(value)  # type: ignore[arg-type]  # holds() has checked that it is a KeyValue
        else:
            raise BadUserInput(f"The key {attribute.name} is of type {attribute.type}.")
    except UnicodeEncodeError:
        raise BadUserInput(f"The key {attribute.name} is not valid Unicode text.") from None
    except ValueError as error:
        raise BadUserInput(f"The key {attribute.name} is {error}.") from None
    if not stored:
        raise BadUserInput(f"The key {attribute.name} is empty.")
    if len(stored) > limit:
        raise BadUserInput(f"The key {attribute.name} has more than {limit:,} bytes.")
    return stored


def check_keys(attribute: KeyAttribute, values: Sequence[object], limit: int) -> None:
    """Raises BadUserInput for the first value that `checked_key_bytes` refuses.

    Plain texts are checked together, which halves the time of rendering a BatchGet.
    """
    if len(values) > 1 and attribute.type == "S" and set(map(type, values)) == {str}:
        texts = cast("Sequence[str]", values)
        if "".join(texts).isascii() and "" not in texts and max(map(len, texts)) <= limit:
            return
    for value in values:
        checked_key_bytes(attribute, value, limit)


class WriteRules:
    """DynamoDB's rules for an item that is written into one table."""

    def __init__(self, table: Table) -> None:
        most: dict[str, int] = {}
        for keys in (table.keys, *(index.keys for index in table.indexes)):
            for key, limit in zip(keys, limits.KEY_BYTES, strict=False):
                most[key.name] = min(limit, most.get(key.name, limit))
        self._keys = [
            (key, key.name, key.type == "S", most[key.name], key in table.keys)
            for key in table.key_attributes()
        ]
        self._local = [index for index in table.indexes if index.local]

    def keys_of(self, item: Item) -> dict[str, bytes]:
        """Returns the ordered bytes of the item's keys, of the table and its indexes.

        An item that is older than an index may have a value of another type, and is not in the index.
        """
        return {
            name: key_bytes(cast(KeyValue, item[name]))
            for key, name, *_ in self._keys
            if name in item and key.holds(item[name])
        }

    def check(self, item: Item) -> int:
        """Returns the size of the item. Raises BadUserInput for an item that DynamoDB refuses.

        An item that lacks a key of an index is not in the index, but the keys that it has must fit.
        """
        text = "".join([value for value in item.values() if type(value) is str])
        is_ascii = text.isascii()
        for key, name, is_text, limit, is_own in self._keys:
            value = item.get(name)
            # Most keys are plain text.
            if is_ascii and is_text and type(value) is str and 0 < len(value) <= limit:
                continue
            if name in item:
                checked_key_bytes(key, value, limit)
            elif is_own:
                raise BadUserInput(f"The item lacks the key {name}.")
        try:
            size = _names_size(tuple(item)) + text_size(text)
            for value in item.values():
                if type(value) is not str:
                    size += number_size(value) if type(value) is Decimal else _checked_size(value)
        except UnicodeEncodeError:
            raise BadUserInput("The item holds text that is not valid Unicode.") from None
        except ValueError as error:
            raise BadUserInput(f"The item holds {error}.") from None
        if size > limits.ITEM_BYTES:
            raise ItemTooLarge(f"The item is larger than {limits.ITEM_BYTES // 1024} KB.")
        if self._local and size + sum(_entry_size(item, index) for index in self._local) > limits.ITEM_BYTES:
            raise ItemTooLarge(
                f"The item is larger than {limits.ITEM_BYTES // 1024} KB, with its entries in local indexes."
            )
        return size


def refuse_transaction(request: store.Transaction, table: Table) -> None:
    """Refuses an empty transaction, too many actions, two on one item, and a token that DynamoDB refuses."""
    actions = request.actions
    if not actions:
        raise BadUserInput("A transaction has at least one action.")
    refuse_many_actions(len(actions), "with those that it only checks")
    if len({key_of(action, table) for action in actions}) < len(actions):
        raise BadUserInput("Two actions of a transaction are of the same item.")
    if not 1 <= len(request.token.encode()) <= limits.TOKEN_BYTES:
        raise BadUserInput(f"A token has 1 to {limits.TOKEN_BYTES} bytes.")


def refuse_many_actions(count: int, which: str) -> None:
    """Refuses so many actions of a transaction; `which` are counted."""
    if count > limits.TRANSACTION_ACTIONS:
        raise TransactionTooLarge(
            f"The transaction is of {count} items, {which}; DynamoDB allows {limits.TRANSACTION_ACTIONS}.",
            count=count,
            limit=limits.TRANSACTION_ACTIONS,
        )


def refuse_transaction_size(size: int) -> None:
    """Refuses a transaction that puts items of too many bytes."""
    if size > limits.TRANSACTION_BYTES:
        raise TransactionTooLarge(
            f"The transaction is larger than the {limits.TRANSACTION_BYTES // 1024**2} MB that DynamoDB allows.",
            bytes=size,
            limit=limits.TRANSACTION_BYTES,
        )


@kept("names of attributes", 256, 16_000)
def _names_size(names: tuple[str, ...]) -> int:
    """Returns the size of an item's names, which many items share. Raises ValueError for a name that is refused."""
    for name in names:
        _refuse_name(name)
    return sum(map(text_size, names))


def _checked_size(value: Value) -> int:
    """Returns the size of a value. Raises ValueError for one that DynamoDB refuses."""
    refuse_nesting(value, 1)
    to_typed(value)
    return value_size(value)


def refuse_nesting(value: Value, level: int) -> None:
    """Raises ValueError for lists and maps that are nested too deeply, or a name in them that DynamoDB refuses."""
    if not isinstance(value, dict | list):
        return
    if level >= limits.NESTED_LEVELS:
        raise ValueError(f"lists and maps in more than {limits.NESTED_LEVELS} levels")
    if isinstance(value, dict):
        for name in value:
            _refuse_name(name)
    for inner in value.values() if isinstance(value, dict) else value:
        refuse_nesting(inner, level + 1)


def _refuse_name(name: str) -> None:
    if not name:
        raise ValueError("a value without a name")
    # A character has at most four bytes, so most names need not be encoded.
    if (
        len(name) * 4 > limits.ATTRIBUTE_NAME_BYTES
        and len(name.encode(errors="replace")) > limits.ATTRIBUTE_NAME_BYTES
    ):
        raise ValueError(f"a name of more than {limits.ATTRIBUTE_NAME_BYTES:,} bytes")


def _entry_size(item: Item, index: Index) -> int:
    """Returns the size of an item's entry in the index: without the table's sort key, unless the index projects all.

    0 if the item lacks a key of the index, which is sparse.
    """
    keys = [key.name for key in index.keys]
    if any(name not in item for name in keys):
        return 0
    if index.projection == "ALL":
        return item_size(item)
    held = index.named.union(keys)
    return item_size({name: value for name, value in item.items() if name in held})
