"""DynamoDB's prices: what reading and writing cost by size, in capacity units.

Source: "Read and write operations" in the DynamoDB developer guide. A Query adds up the sizes of its page and
rounds the sum up; a BatchGetItem rounds each item up. Attributes that a projection leaves out, items that a filter leaves
out, and items that are only counted cost the same. An index's items are as large as what it projects.
"""

from __future__ import annotations

from keygraph.dynamo.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES


def read_units(size: int, consistent: bool) -> float:
    """The units for reading so many bytes. A missing item, or an empty page, costs one unit too."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def write_units(size: int) -> int:
    """The units for writing so many bytes. Deleting a missing item costs one unit too."""
    return max(1, -(-size // WRITE_UNIT_BYTES))
