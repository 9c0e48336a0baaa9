"""DynamoDB's limits. Sizes are in bytes.

Sources: "Quotas", "Read and write operations" and "Local secondary indexes" in the DynamoDB developer guide. Where the
guide is not exact, the number is what DynamoDB Local does (tests/keygraph/test_limits_agree.py and test_sizes_agree.py).
"""

from __future__ import annotations

# --- Items and keys -----------------------------------------------------------------------------------

ITEM_BYTES = 400 * 1024
PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
KEY_BYTES = (PARTITION_KEY_BYTES, SORT_KEY_BYTES)
"""The limits of the keys of a table or an index, in the order of its keys."""
ATTRIBUTE_NAME_BYTES = 65_535
NESTED_LEVELS = 32
"""Levels of an item or a path. A scalar inside a list or a map is a level too."""
LOCAL_ENTRY_BYTES = 100
"""The bytes that an item's entry in a local index takes in a write, in addition to its attributes."""
NUMBER_DIGITS = 38
NUMBER_BYTES = 21
LOWEST_EXPONENT, HIGHEST_EXPONENT = -130, 125
"""The exponent of a number's first digit."""

# --- Requests -----------------------------------------------------------------------------------------

PAGE_BYTES = 1024 * 1024
"""A page of a Query or a Scan ends with the item that reaches this size."""
BATCH_GET_KEYS = 100
BATCH_GET_BYTES = 16 * 1024 * 1024
"""A BatchGetItem returns items beyond this size as unprocessed."""
BATCH_WRITE_ITEMS = 25
TRANSACTION_ACTIONS = 100
TRANSACTION_BYTES = 4 * 1024 * 1024
TOKEN_BYTES = 36
TOKEN_SECONDS = 600
"""How long DynamoDB remembers the token of a transaction."""
SCAN_SEGMENTS = 1_000_000
IN_VALUES = 100
EXPRESSION_BYTES = 4096
EXPRESSION_OPERATORS = 300
"""Comparisons, functions, and the operators that join them in one expression."""

# --- Capacity units -----------------------------------------------------------------------------------

READ_UNIT_BYTES = 4096
WRITE_UNIT_BYTES = 1024

# --- Tables -------------------------------------------------------------------------------------------

KEY_NAME_BYTES = 255
LOCAL_INDEXES = 5
PROJECTED_ATTRIBUTES = 100
"""The attributes that the indexes of one table may name, all indexes together."""
