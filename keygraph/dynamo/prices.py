"""DynamoDB's prices: what reading and writing so many bytes costs, in capacity units.

Source: "Read and write operations" in the DynamoDB developer guide. A Query adds up what its page holds before it is
rounded up, a BatchGetItem rounds each item up; what a projection leaves out, and what a filter leaves out, is paid for
all the same, and so is what is only counted. An index's items are as large as what it projects.
"""

from __future__ import annotations

from keygraph.dynamo.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES


def read_units(size: int, consistent: bool) -> float:
    """What reading that many bytes costs; what is empty or missing costs one unit as well."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def write_units(size: int) -> int:
    """What writing that many bytes costs; deleting what is not there costs one unit as well."""
    return max(1, -(-size // WRITE_UNIT_BYTES))
