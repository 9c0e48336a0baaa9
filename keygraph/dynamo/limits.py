"""DynamoDB's limits, for an engine that answers as DynamoDB would.

Sizes are in bytes. Sources: "Quotas", "Read and write operations" and "Local secondary indexes" in the DynamoDB
developer guide; where it is not exact, what DynamoDB Local does (tests/keygraph/test_limits_agree.py and test_sizes_agree.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from keygraph.dynamo.items import Item, Value, item_size
from keygraph.dynamo.order import key_bytes
from keygraph.dynamo.store import AtLeast, AtMost, Count, Equals, Query, Within
from keygraph.dynamo.table import Index, KeyAttribute, KeyValue, Position, Table
from keygraph.errors import BadUserInput

ITEM_BYTES = 400 * 1024
PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
BATCH_GET_KEYS = 100
BATCH_GET_BYTES = 16 * 1024 * 1024
"""What more one BatchGetItem finds is left for another one."""
BATCH_WRITE_ITEMS = 25
_SEGMENTS = 1_000_000
_NESTED_LEVELS = 32
"""Of lists and maps with what is in them: a scalar is a level too."""
_NAME_BYTES = 65_535
LOCAL_ENTRY_BYTES = 100
"""What an entry of a local index takes beside its attributes, when it is written."""


def checked_key_bytes(attribute: KeyAttribute, value: object, limit: int) -> bytes:
    """The stored form of a key.

    Raises BadUserInput for a value that is of another type, empty, no Unicode, no number that DynamoDB holds, or
    larger than `limit` bytes.
    """
    if not attribute.holds(value):
        raise BadUserInput(f"The key {attribute.name} is of type {attribute.type}.")
    try:
        # Most keys are text, and several are checked of every item that is written.
        stored = value.encode() if type(value) is str else key_bytes(value)  # type: ignore[arg-type]  # holds() has said that it is a KeyValue
    except UnicodeEncodeError:
        raise BadUserInput(f"The key {attribute.name} is no valid Unicode text.") from None
    except ValueError as error:
        raise BadUserInput(f"The key {attribute.name} is {error}.") from None
    if not stored:
        raise BadUserInput(f"The key {attribute.name} is empty.")
    if len(stored) > limit:
        raise BadUserInput(f"The key {attribute.name} has more than {limit:,} bytes.")
    return stored


def refuse_index_keys(item: Item, index: Index) -> None:
    """Raises BadUserInput for an index key that the index cannot hold, even where the item lacks the other one.

    An item that lacks a key of the index is not in it, but what it has of them must fit.
    """
    for key, limit in zip(index.keys, (PARTITION_KEY_BYTES, SORT_KEY_BYTES), strict=False):
        if key.name in item:
            checked_key_bytes(key, item[key.name], limit)


def refuse_unstorable(value: Value, level: int = 0) -> None:
    """Raises BadUserInput for an item with lists and maps nested too deep, or with a name that DynamoDB refuses."""
    if level >= _NESTED_LEVELS:
        raise BadUserInput(f"The item is nested more than {_NESTED_LEVELS} levels deep.")
    if isinstance(value, dict):
        for name in value:
            refuse_name(name)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in inner:
        if isinstance(member, dict | list):
            refuse_unstorable(member, level + 1)


def refuse_name(name: str) -> None:
    """Raises BadUserInput for an attribute's name that DynamoDB refuses."""
    if not name:
        raise BadUserInput("The item has a value without a name.")
    # A character is four bytes at most, so most names need not be encoded.
    if len(name) * 4 > _NAME_BYTES and len(name.encode(errors="replace")) > _NAME_BYTES:
        raise BadUserInput(f"The item has a name of more than {_NAME_BYTES:,} bytes.")


def refuse_large(item: Item, size: int, table: Table) -> None:
    """Raises BadUserInput where the item, of that size, takes more than 400 KB with its entries in local indexes."""
    entries = (_entry_size(item, index) for index in table.indexes if index.local)
    if size > ITEM_BYTES or size + sum(entries) > ITEM_BYTES:
        counted = ", its entries in local indexes included" if size <= ITEM_BYTES else ""
        raise BadUserInput(f"The item is larger than 400 KB{counted}.")


def _entry_size(item: Item, index: Index) -> int:
    """What counts of the item's entry in the index: not the table's sort key, unless the index has everything.

    Nothing where the item lacks a key of the index, which is sparse.
    """
    keys = [key.name for key in index.keys]
    if any(name not in item for name in keys):
        return 0
    if index.projection == "ALL":
        return item_size(item)
    held = {*keys, *(() if index.projection == "KEYS_ONLY" else index.projection)}
    return item_size({name: value for name, value in item.items() if name in held})


def refuse_segment(segment: int, segments: int) -> None:
    """Raises BadUserInput for a part of a scan that there is not."""
    if not 0 <= segment < segments <= _SEGMENTS:
        raise BadUserInput(
            f"A segment is numbered from 0, below the number of segments, at most {_SEGMENTS:,}."
        )


def refuse_crossed_bounds(low: KeyValue, high: KeyValue) -> None:
    """Raises BadUserInput where the bounds of a range between two values are crossed or of two types."""
    if type(low) is not type(high):
        raise BadUserInput("The two bounds of a range must be of one type.")
    if low > high:  # type: ignore[operator]  # both are of one type, which is ordered
        raise BadUserInput("The upper bound of a range is below its lower bound.")


def refuse_unordered(value: object) -> None:
    """Raises BadUserInput for what has no order: a filter cannot ask whether something is below or above it."""
    if not isinstance(value, str | Decimal | bytes):
        raise BadUserInput("A filter can order texts, numbers and bytes alone.")


def refuse_prefix(value: object) -> None:
    """Raises BadUserInput for what nothing begins with."""
    if not isinstance(value, str | bytes):
        raise BadUserInput("A filter can look for a prefix that is a text or bytes alone.")


def refuse_deep_path(path: tuple[str, ...]) -> None:
    """Raises BadUserInput for a path further inward than DynamoDB looks."""
    if len(path) > _NESTED_LEVELS:
        raise BadUserInput(f"A path has more than {_NESTED_LEVELS} levels.")


def refuse_filtered(names: Iterable[str], keyed: Table | Index, table: Table) -> None:
    """Raises BadUserInput where a filter of what is read may not look at one of these attributes."""
    keys = {key.name for key in keyed.keys}
    for name in sorted(names):
        if name in keys:
            raise BadUserInput(f"{name} is a key of what is read, which a filter cannot look at.")
        # A local index fetches from the table what is asked for and not projected, but nothing for a filter.
        if isinstance(keyed, Index) and not table.has(keyed.name, name):
            raise BadUserInput(f"The index {keyed.name} does not project {name}, which a filter looks at.")


def can_go_on(request: Query | Count, position: Position) -> bool:
    """Whether anything of the range can stand behind a position in it: where a page has ended, or where one begins.

    Of an index always, since many items may have one sort key there. DynamoDB gives no such position of a table's
    range, and refuses to begin there where it is a bound.
    """
    if request.index is not None or position[0] != request.partition:
        return True
    if len(position) == 1:
        return False
    forward = isinstance(request, Count) or request.forward
    match request.range:
        case Equals(value):
            return position[1] != value
        case Within(low, high):
            return position[1] != (high if forward else low)
        case AtMost(high):
            return not forward or position[1] != high
        case AtLeast(low):
            return forward or position[1] != low
    return True
