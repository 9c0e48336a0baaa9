"""Items as they are stored in a row of a SQLite file, and back; no more of them is decoded than is asked for.

An item is a JSON object. Text, whole numbers of up to 18 digits, true, false and null are stored as JSON's own; every other
value is in DynamoDB's typed form, which is an object with one name. Layout 1 of the file had the typed form for all values,
so its rows can be read as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import orjson

from keygraph.dynamo.conditions import Path, outermost
from keygraph.dynamo.items import Item, TypedValue, Value, base64_text, from_typed, number, to_typed
from keygraph.dynamo.rules import refuse_deep_path
from keygraph.kept import kept

_WHOLE_DIGITS = 18
"""Numbers of so many digits fit an integer of 64 bits in every JSON reader."""

Stored: TypeAlias = dict[str, Any]
"""An item as JSON."""
Decoder: TypeAlias = Callable[[Stored], Item]

# --- Writing ------------------------------------------------------------------------------------------


def content_of(item: Item) -> bytes:
    """The item's bytes.

    Raises ValueError for a value that DynamoDB cannot hold, orjson.JSONEncodeError for invalid Unicode.
    """
    stored = {name: value if type(value) is str else _stored(value) for name, value in item.items()}
    return orjson.dumps(stored, default=base64_text)


def _stored(value: Value) -> object:
    if type(value) is Decimal:
        return _stored_number(str(value))
    return value if value is None or value is True or value is False else to_typed(value)


@kept("numbers", 4096, 700)
def _stored_number(text: str) -> object:
    """The JSON of a number. It is cached and must not be changed: quantities, prices and versions repeat."""
    if len(text) <= _WHOLE_DIGITS and text.removeprefix("-").isdecimal():
        return int(text)
    return to_typed(Decimal(text))


# --- Reading ------------------------------------------------------------------------------------------

stored_item: Callable[[bytes], Stored] = orjson.loads
"""Reads what `content_of` wrote, and decodes no value."""


def value_of(stored: object) -> Value:
    """The value of its JSON, for all but text."""
    if isinstance(stored, dict):
        return from_typed(stored)
    if type(stored) is int:
        # DynamoDB's numbers have no trailing zeros: 50 is 5E+1.
        return Decimal(stored) if stored % 10 or not stored else number(stored)
    return stored  # type: ignore[return-value]  # a text, a bool or None


def whole(stored: Stored) -> Item:
    """Every attribute of the item."""
    return {name: value if type(value) is str else value_of(value) for name, value in stored.items()}


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two rows have the same item, whatever layout and order they were written in."""
    return one == other or _ordered(one) == _ordered(other)


def _ordered(content: bytes) -> bytes:
    # As bytes, since true and 1 are equal to Python.
    return orjson.dumps(orjson.loads(content_of(whole(stored_item(content)))), option=orjson.OPT_SORT_KEYS)


@kept("projections", 256, 16_000)
def decoder(paths: tuple[Path, ...] | None) -> Decoder:
    """A function that decodes these paths of a stored item and nothing else; the whole item for None.

    Raises BadUserInput for a path that is too deep.
    """
    if paths is None:
        return whole
    for path in paths:
        refuse_deep_path(path)
    tree = _tree(paths)
    if any(tree.values()):
        return lambda stored: _part(stored, tree)
    names = tuple(tree)
    return lambda stored: {
        name: value if type(value := stored[name]) is str else value_of(value)
        for name in names
        if name in stored
    }


_Tree: TypeAlias = "dict[str, _Tree]"
"""Paths by their first names; an empty one stands for the whole value."""


def _tree(paths: Iterable[Path]) -> _Tree:
    tree: _Tree = {}
    for path in outermost(paths):
        level = tree
        for name in path:
            level = level.setdefault(name, {})
    return tree


def _part(stored: Mapping[str, Any], tree: _Tree) -> Item:
    found: Item = {}
    for name, inner in tree.items():
        if name not in stored:
            continue
        value: TypedValue | str | int | None = stored[name]
        if not inner:
            found[name] = value if isinstance(value, str) else value_of(value)
        elif isinstance(value, dict) and "M" in value and (part := _part(value["M"], inner)):
            found[name] = part
    return found
