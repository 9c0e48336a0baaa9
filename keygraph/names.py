"""How names are written: attribute cases and plurals."""

from __future__ import annotations

import re
from collections.abc import Callable

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+|[^\W_]+")


def words(name: str) -> list[str]:
    """The words of a name in any case: `user_id`, `userId` and `UserId` are `user`, `id`."""
    return [word.lower() for word in _WORD.findall(name)]


def snake(name: str) -> str:
    """`OrderItem` as `order_item`."""
    return "_".join(words(name))


def camel(name: str) -> str:
    """`user_id` as `userId`."""
    first, *rest = words(name) or [name]
    return first + "".join(word.capitalize() for word in rest)


def pascal(name: str) -> str:
    """`order_items` as `OrderItems`."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


_CASES: dict[str, Callable[[str], str]] = {"snake": str, "camel": camel, "pascal": pascal}
CASES = tuple(_CASES)
"""The attribute cases that a graph can have."""


def cased(name: str, case: str) -> str:
    """A Python name in an attribute case."""
    return _CASES[case](name)


_IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women"}


def plural(name: str) -> str:
    """The plural of a snake-case name: `order_item` as `order_items`, `category` as `categories`.

    English's regular forms and a few others; a list whose plural is another is named by `lists=`.
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
