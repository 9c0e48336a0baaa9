"""DynamoDB's limits and prices, for an engine that answers as DynamoDB would.

Sizes are in bytes. Sources: "Quotas" and "Read and write operations" in the DynamoDB developer guide.
"""

from __future__ import annotations

from keygraph.errors import BadUserInput
from keygraph.items import Value
from keygraph.ordering import key_bytes
from keygraph.table import KeyAttribute, KeyValue

PAGE_BYTES = 1024 * 1024
"""A page of a Query or a Scan ends with the item that brings it to this size."""
ITEM_BYTES = 400 * 1024
PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
BATCH_GET_KEYS = 100
BATCH_WRITE_ITEMS = 25
_NESTED_LEVELS = 32
_READ_UNIT_BYTES = 4096
_WRITE_UNIT_BYTES = 1024


def read_units(size: int, consistent: bool) -> float:
    """What reading that many bytes costs; what is empty or missing costs one unit as well."""
    units = max(1, -(-size // _READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def write_units(size: int) -> int:
    """What writing that many bytes costs; deleting what is not there costs one unit as well."""
    return max(1, -(-size // _WRITE_UNIT_BYTES))


def checked_key_bytes(attribute: KeyAttribute, value: object, limit: int) -> bytes:
    """The stored form of a key.

    Raises BadUserInput for a value that is of another type, empty, no Unicode, no number that DynamoDB holds, or
    larger than `limit` bytes.
    """
    if not attribute.holds(value):
        raise BadUserInput(f"The key {attribute.name} is of type {attribute.type}.")
    try:
        stored = key_bytes(value)  # type: ignore[arg-type]  # holds() has said that it is a KeyValue
    except UnicodeEncodeError:
        raise BadUserInput(f"The key {attribute.name} is no valid Unicode text.") from None
    except ValueError as error:
        raise BadUserInput(f"The key {attribute.name} is {error}.") from None
    if not stored:
        raise BadUserInput(f"The key {attribute.name} is empty.")
    if len(stored) > limit:
        raise BadUserInput(f"The key {attribute.name} has more than {limit:,} bytes.")
    return stored


def refuse_deep_nesting(value: Value, level: int = 0) -> None:
    """Raises BadUserInput for lists and maps that are nested more than 32 levels deep."""
    if level > _NESTED_LEVELS:
        raise BadUserInput(f"The item is nested more than {_NESTED_LEVELS} levels deep.")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in inner:
        if isinstance(member, dict | list):
            refuse_deep_nesting(member, level + 1)


def refuse_crossed_bounds(low: KeyValue, high: KeyValue) -> None:
    """Raises BadUserInput where the bounds of a range between two values are crossed or of two types."""
    if type(low) is not type(high):
        raise BadUserInput("The two bounds of a range must be of one type.")
    if low > high:  # type: ignore[operator]  # both are of one type, which is ordered
        raise BadUserInput("The upper bound of a range is below its lower bound.")
