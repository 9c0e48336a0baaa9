"""Names for what a draft declares: of Python and of GraphQL, none twice, none that something else has already."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping

from keygraph.names import camel, pascal, snake, words

_DECLARATION = frozenset(
    [
        *("many", "one", "stored", "field", "fields", "node", "edge", "record", "graph"),
        *("date", "datetime", "str", "int", "float", "bool", "bytes", "list", "set"),
    ]
)
"""What a model file means by these names."""
_CLASSES = frozenset(["Graph", "Index", "Table", "Many", "One", "Enum", "Format"])
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
"""What a server may call fields and arguments of its own."""
TAKEN_TYPES = frozenset(
    [
        *("Query", "Mutation", "Subscription", "Node", "PageInfo", "WalkPageInfo", "SortDirection"),
        *("String", "Int", "Float", "Boolean", "ID", "Long", "Decimal", "DateTime", "Date", "Base64", "JSON"),
    ]
)
"""What a server may call types of its own."""
_FIELD_LETTERS, _TYPE_LETTERS = 30, 36
"""Longer names are cut, so that a list of such a type is one line."""
_ENDINGS = ("Connection", "Condition", "Edge", "Where", "Range", "Equals")


def _ascii(name: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", name))


def _cut(name: str, letters: int) -> str:
    """The name, without its last words where it is too long."""
    if len(name) <= letters:
        return name
    return re.sub("_[^_]*$|(?<=[a-z0-9])[A-Z][^A-Z]*$", "", name[: letters + 1])[:letters].rstrip("_")


def field_name(name: str, owner: str) -> str:
    """A name for a field of a type of that name, made of an attribute's or a key's."""
    found = _cut(snake(_ascii(name)), _FIELD_LETTERS) or "field"
    if says_nothing(name):
        found = re.sub("_(?=[0-9])", "", found)
    if found[0].isdigit():
        found = f"field_{found}"
    if found == "id":
        found = f"{snake(owner)}_id"
    if found in TAKEN_FIELDS:
        found = f"{found}_value"
    return f"{found}_" if _means_something(found) or found == "l" else found


def variable_name(name: str) -> str:
    """A name for a variable of the module."""
    found = _cut(re.sub("_(?=[0-9])", "", snake(_ascii(name))), _FIELD_LETTERS) or "index"
    if found[0].isdigit():
        found = f"index_{found}"
    return f"{found}_index" if _means_something(found) or found == "l" else found


def _means_something(name: str) -> bool:
    return keyword.iskeyword(name) or name in _DECLARATION


def type_name(name: str) -> str:
    """A name for a type, made of a word of a key or a value of the type attribute."""
    found = _cut(pascal(_ascii(name)), _TYPE_LETTERS) or "Item"
    if found.isupper():
        found = found.capitalize()
    if found[0].isdigit():
        found = f"Item{found}"
    is_taken = found in TAKEN_TYPES | _CLASSES or keyword.iskeyword(found)
    return f"{found}Item" if is_taken or found.endswith(_ENDINGS) else found


def without_id(name: str) -> str:
    """An attribute's name in snake case, without the word that says it is an id: `sellerId` as `seller`."""
    found = words(_ascii(name))
    return "_".join(found[:-1] if found[-1:] == ["id"] else found)


_GENERIC = frozenset(
    [
        *("pk", "sk", "hk", "rk", "p", "s", "id", "key", "partition", "sort", "range", "hash"),
        *("gsi", "lsi", "index"),
    ]
)


def says_nothing(name: str) -> bool:
    """Whether the name of a key attribute says no more than that it is a key: `PK`, `gsi1sk`."""
    return all(
        re.sub("[0-9]+", "", word) in _GENERIC | {""} or re.fullmatch("(gsi|lsi)[0-9]*[ps]k[0-9]*", word)
        for word in words(_ascii(name))
    )


def is_id(name: str) -> bool:
    """Whether an attribute's name says that it is an id."""
    return words(_ascii(name))[-1:] == ["id"]


class Names:
    """Names of one place that differ in GraphQL too."""

    def __init__(self, separator: str = "_") -> None:
        """The separator stands before a number."""
        self._separator = separator
        self._taken: set[str] = set()

    def is_free(self, *names: str) -> bool:
        """Whether all of the names can be taken."""
        return not any(camel(name) in self._taken for name in names)

    def take(self, *wanted: str, beside: Callable[[str], Mapping[str, str]] = lambda name: {}) -> str:
        """The first of the wanted names that is free, else the first with a number.

        The names that `beside` makes of it are taken too.
        """
        tries = [*wanted, *(f"{wanted[0].rstrip('_')}{self._separator}{number}" for number in range(2, 1000))]
        chosen = next(name for name in tries if self.is_free(name, *beside(name).values()))
        self._taken.update(camel(name) for name in (chosen, *beside(chosen).values()))
        return chosen
