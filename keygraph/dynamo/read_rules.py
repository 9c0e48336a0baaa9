"""What DynamoDB refuses in a read, and where a read can go on.

Every function that refuses raises BadUserInput. All engines ask these, so that all refuse the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import Decimal

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.limits import NESTED_LEVELS, SCAN_SEGMENTS
from keygraph.dynamo.store import AtLeast, AtMost, Count, Equals, Prefix, Query, Range, Scan, Within
from keygraph.dynamo.table import Index, KeyAttribute, KeyValue, Position, Table
from keygraph.errors import BadUserInput


def read_from(request: Query | Count, table: Table) -> Table | Index:
    """The table or the index that the request reads.

    Refuses an index that the table lacks, a consistent read of a global index, and the projection of an attribute that a
    global index lacks.
    """
    if request.index is None:
        return table
    try:
        index = table.index(request.index)
    except KeyError:
        raise BadUserInput(f"The table {table.name} has no index {request.index}.") from None
    # A local index fetches from the table what it does not project.
    if not index.local:
        if request.consistent:
            raise BadUserInput(f"The global index {index.name} cannot be read consistently.")
        projection = (request.projection if isinstance(request, Query) else None) or ()
        missing = sorted({path[0] for path in projection if not table.has(index.name, path[0])})
        if missing:
            raise BadUserInput(f"The global index {index.name} does not project {', '.join(missing)}.")
    return index


def refuse_limit(request: Query | Count | Scan) -> None:
    """Refuses a page of no items."""
    if request.limit is not None and request.limit < 1:
        raise BadUserInput("The limit of a page is at least 1.")


def refuse_segment(request: Scan) -> None:
    """Refuses a segment that the scan does not have."""
    if not 0 <= request.segment < request.segments <= SCAN_SEGMENTS:
        raise BadUserInput(
            f"Segments are numbered from 0 to one less than their count, which is at most {SCAN_SEGMENTS:,}."
        )


def sort_key_of(range_: Range, keyed: Table | Index) -> KeyAttribute:
    """The sort key that the range is of. Refuses a range where there is none, and a prefix of a number."""
    if keyed.sort is None:
        raise BadUserInput(f"{keyed.name} has no sort key, so it has no ranges.")
    if isinstance(range_, Prefix) and keyed.sort.type == "N":
        raise BadUserInput("A number has no prefix.")
    return keyed.sort


def refuse_crossed_bounds(low: KeyValue, high: KeyValue) -> None:
    """Refuses bounds that are crossed or of two types."""
    if type(low) is not type(high):
        raise BadUserInput("The two bounds of a range must be of one type.")
    if low > high:  # type: ignore[operator]  # both are of one type, which is ordered
        raise BadUserInput("The upper bound of a range is below its lower bound.")


def refuse_position(position: Position, attributes: Collection[KeyAttribute]) -> None:
    """Refuses a position that does not have one value for each of the attributes."""
    if len(position) != len(attributes):
        names = ", ".join(attribute.name for attribute in attributes)
        raise BadUserInput(f"A position here has one value for each of {names}.")


# --- Filters ------------------------------------------------------------------------------------------


def refuse_unordered(value: object) -> None:
    """Refuses a value without an order, which nothing is below or above."""
    if not isinstance(value, str | Decimal | bytes):
        raise BadUserInput("A filter can only order text, numbers and bytes.")


def refuse_prefix(value: object) -> None:
    """Refuses a value that nothing begins with."""
    if not isinstance(value, str | bytes):
        raise BadUserInput("A filter can only look for a prefix that is text or bytes.")


def refuse_deep_path(path: Path) -> None:
    """Refuses a path with more levels than an item can have."""
    if len(path) > NESTED_LEVELS:
        raise BadUserInput(f"A path has more than {NESTED_LEVELS} levels.")


def refuse_filtered(paths: Iterable[Path], keyed: Table | Index, table: Table) -> None:
    """Refuses a filter on these paths where one is of a key of the table or index that is read, or is not projected."""
    keys = {key.name for key in keyed.keys}
    for name in sorted({path[0] for path in paths}):
        if name in keys:
            raise BadUserInput(f"A filter cannot use {name}, which is a key of {keyed.name}.")
        # A local index fetches from the table what is selected, but nothing for a filter.
        if isinstance(keyed, Index) and not table.has(keyed.name, name):
            raise BadUserInput(f"A filter cannot use {name}, which the index {keyed.name} does not project.")


# --- Pages --------------------------------------------------------------------------------------------


def can_go_on(request: Query | Count, position: Position) -> bool:
    """Whether an item of the range can follow a position in it: where a page has ended, or where one begins.

    In an index one always can, since many items may have one sort key there. In a table none can follow a bound: DynamoDB
    never answers with that position, and refuses to start there.
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
