"""How names are written: attribute cases and plurals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from keygraph.errors import FieldName, InputPath
from keygraph.kept import kept

NOTE = "_keygraph"
"""The beginning of the keys of the server's own items, and the attribute that holds their contents."""
RESERVED_TYPES = frozenset(
    [
        *(
            "Query",
            "Mutation",
            "Subscription",
            "Node",
            "PageInfo",
            "WalkPageInfo",
            "SortDirection",
            "ChangeKind",
        ),
        *("String", "Int", "Float", "Boolean", "ID", "Long", "Decimal", "DateTime", "Date", "Base64", "JSON"),
    ]
)
"""The names of the types that every schema may have, which no type of a model can have."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+|[^\W_]+")


def words(name: str) -> list[str]:
    """Returns the words of a name in any case: `user_id`, `userId` and `UserId` are `user`, `id`."""
    return [word.lower() for word in _WORD.findall(name)]


def snake(name: str) -> str:
    """Returns `OrderItem` as `order_item`."""
    return "_".join(words(name))


@kept("names", 4096, 500)
def camel(name: str) -> str:
    """Returns `user_id` as `userId`."""
    first, *rest = words(name) or [name]
    return first + "".join(word.capitalize() for word in rest)


def public_path(path: InputPath) -> InputPath:
    """Returns a place in an input, with fields named as in the schema."""
    return tuple([camel(step) if isinstance(step, FieldName) else step for step in path])


def constant(name: str) -> str:
    """Returns `user_id` as `USER_ID`."""
    return snake(name).upper()


def pascal(name: str) -> str:
    """Returns `order_items` as `OrderItems`."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


def end_names(end: str, node: str, fields: Iterable[str]) -> dict[str, str]:
    """Returns the names of a node's key fields at an end that refers to it, by field: the end and the field, in camel
    case if one of them is, else in snake case.

    The node's own name is left out of the field, and a word that ends one and begins the other is written once:
    `customer` and User's `user_id` are `customer_id`, `page` and `page_name` are `page_name`. If two would get the same
    name, nothing is left out.
    """
    whole = [*fields]
    short = {field: _end_name(words(end), words(node), words(field)) for field in whole}
    if len({*short.values()}) < len(short):
        short = {field: snake(f"{end}_{field}") for field in whole}
    is_snake = all(name == snake(name) for name in (end, *whole))
    return short if is_snake else {field: camel(name) for field, name in short.items()}


def _end_name(end: list[str], node: list[str], field: list[str]) -> str:
    rest = field[_shared(node, field) :] or field
    return "_".join([*end, *rest[_shared(end, rest) :]])


def _shared(before: list[str], after: list[str]) -> int:
    """Returns how many words end the one and begin the other."""
    numbers = range(min(len(before), len(after)), 0, -1)
    return next((number for number in numbers if before[-number:] == after[:number]), 0)


_VOWEL = re.compile(r"(?!Eu|One|U[nst][aeio])[AEIOU]")


def with_article(name: str) -> str:
    """Returns the name of a type after its article: `an Order`, `a User`."""
    return f"{'an' if _VOWEL.match(name) else 'a'} {name}"


_CASES: dict[str, Callable[[str], str]] = {"snake": str, "camel": camel, "pascal": pascal}
CASES = tuple(_CASES)
"""The attribute cases that a graph can have."""


def cased(name: str, case: str) -> str:
    """Returns a Python name in an attribute case."""
    return _CASES[case](name)


_IRREGULAR = {
    "person": "people", "child": "children", "man": "men", "woman": "women", "movie": "movies", "cookie": "cookies",
}  # fmt: skip


def plural(name: str) -> str:
    """Returns the plural of a snake-case name: `order_item` as `order_items`, `category` as `categories`.

    Knows English's regular forms and a few others; `lists=` names a list with any other plural.
    """
    *before, last = name.split("_")
    if last in _IRREGULAR:
        ending = _IRREGULAR[last]
    elif last.endswith(("s", "x", "z", "ch", "sh")):
        ending = last + "es"
    elif re.search("[^aeiou]y$", last):
        ending = last[:-1] + "ies"
    else:
        ending = last + "s"
    return "_".join([*before, ending])


def singular(name: str) -> str:
    """Returns the name of which this is the plural; the name itself if it is none."""
    *before, last = name.split("_")
    regular = [last.removesuffix(ending) + end for ending, end in (("ies", "y"), ("es", ""), ("s", ""))]
    found = (each for each in (*_IRREGULAR, *regular) if each and plural(each) == last)
    return "_".join([*before, next(found, last)])
