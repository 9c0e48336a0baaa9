"""Names for the declarations of a draft, valid in Python and in GraphQL, all different and none taken already."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping

from keygraph.names import RESERVED_TYPES, camel, pascal, snake, words

_DECLARATION = frozenset(
    [
        *("many", "one", "stored", "field", "fields", "node", "edge", "record", "graph"),
        *("date", "datetime", "str", "int", "float", "bool", "bytes", "list", "set"),
    ]
)
"""Names that have a meaning in a model file."""
_CLASSES = frozenset(["Graph", "Index", "Table", "Many", "One", "Ref", "Enum", "Format"])
TAKEN_FIELDS = frozenset(
    [
        "id",
        "shard",
        "first",
        "after",
        "last",
        "before",
        "direction",
        "where",
        "to",
        "also_of",
        "cursor",
        "node",
    ]
)
"""Names of a server's own fields and arguments."""
_FIELD_LETTERS, _TYPE_LETTERS = 30, 36
"""Longer names are cut, so that a list of such a type fits on one line."""
_ENDINGS = ("Connection", "Condition", "Edge", "Where", "Range", "Equals", "Changed", "ChangedPayload")


def _ascii(name: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", name))


def _cut(name: str, letters: int) -> str:
    """Returns the name, without its last words if it is too long."""
    if len(name) <= letters:
        return name
    return re.sub("_[^_]*$|(?<=[a-z0-9])[A-Z][^A-Z]*$", "", name[: letters + 1])[:letters].rstrip("_")


def field_name(name: str, owner: str) -> str:
    """Returns a field name for a type of that name, made from the name of an attribute or a key."""
    found = _cut(snake(_ascii(name)), _FIELD_LETTERS) or "field"
    if is_generic(name):
        found = re.sub("_(?=[0-9])", "", found)
    if found[0].isdigit():
        found = f"field_{found}"
    if found == "id":
        found = f"{snake(owner)}_id"
    if found in TAKEN_FIELDS:
        found = f"{found}_value"
    return f"{found}_" if _means_something(found) or found == "l" else found


def variable_name(name: str) -> str:
    """Returns a name for a variable of the module."""
    found = _cut(re.sub("_(?=[0-9])", "", snake(_ascii(name))), _FIELD_LETTERS) or "index"
    if found[0].isdigit():
        found = f"index_{found}"
    return f"{found}_index" if _means_something(found) or found == "l" else found


def _means_something(name: str) -> bool:
    return keyword.iskeyword(name) or name in _DECLARATION


def type_name(name: str) -> str:
    """Returns a name for a type, made from a word of a key or a value of the type attribute."""
    found = _cut(pascal(_ascii(name)), _TYPE_LETTERS) or "Item"
    if found.isupper():
        found = found.capitalize()
    if found[0].isdigit():
        found = f"Item{found}"
    is_taken = found in RESERVED_TYPES | _CLASSES or keyword.iskeyword(found)
    return f"{found}Item" if is_taken or found.endswith(_ENDINGS) else found


def without_id(name: str) -> str:
    """Returns an attribute's name in snake case, without the word that says it is an id: `sellerId` as `seller`."""
    found = words(_ascii(name))
    return "_".join(found[:-1] if found[-1:] == ["id"] else found)


_GENERIC = frozenset(
    [
        *("pk", "sk", "hk", "rk", "p", "s", "id", "key", "partition", "sort", "range", "hash"),
        *("gsi", "lsi", "index"),
    ]
)


def is_generic(name: str) -> bool:
    """Returns whether the name of a key attribute says only that it is a key: `PK`, `gsi1sk`, `g1h`."""
    return all(
        re.sub("[0-9]+", "", word) in _GENERIC | {""}
        or re.fullmatch("(gsi|lsi|g|l)[0-9]*[hprs]k?[0-9]*", word)
        for word in words(_ascii(name))
    )


def is_id(name: str) -> bool:
    """Returns whether an attribute's name says that it is an id."""
    return words(_ascii(name))[-1:] == ["id"]


class ScopeNames:
    """Names in one scope that also differ in GraphQL."""

    def __init__(self, separator: str = "_") -> None:
        """`separator` is put before a number."""
        self._separator = separator
        self._taken: set[str] = set()

    def is_free(self, *names: str) -> bool:
        """Returns whether all of the names can be taken."""
        return not any(camel(name) in self._taken for name in names)

    def take(self, *wanted: str, beside: Callable[[str], Mapping[str, str]] = lambda name: {}) -> str:
        """Takes and returns the first of the wanted names that is free, else the first with a number.

        The names that `beside` makes from it are taken too.
        """
        tries = [*wanted, *(f"{wanted[0].rstrip('_')}{self._separator}{number}" for number in range(2, 1000))]
        chosen = next(name for name in tries if self.is_free(name, *beside(name).values()))
        self._taken.update(camel(name) for name in (chosen, *beside(chosen).values()))
        return chosen
