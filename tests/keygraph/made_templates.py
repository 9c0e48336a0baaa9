"""Hypothesis strategies: templates over a small alphabet, so that keys of different templates often meet."""

from __future__ import annotations

import re
from enum import Enum
from itertools import product

from hypothesis import strategies as st

from keygraph.keys.template import Maybe, Slot, Template, Token
from keygraph.keys.text import key_text
from keygraph.keys.types import ID, AttributeStyle, FieldType, field_type

ALPHABET = "A10-"


class Letter(Enum):
    A = "A"
    AA = "AA"
    DASH = "A-"


class Digit(Enum):
    ONE = 1
    ELEVEN = 11


TYPES: dict[str, type] = {"x": ID, "y": str, "n": int, "m": int, "letter": Letter, "digit": Digit}
"""The fields of every made template, so that a name has one type."""

KEYS = ["".join(characters) for length in range(1, 6) for characters in product(ALPHABET, repeat=length)]
"""Every text over the alphabet that is short enough to try them all."""

names = st.sampled_from(["x", "x", "y", "y", "n", "m", "letter", "digit"])
literals = st.text(ALPHABET, min_size=1, max_size=2)
texts = st.text(ALPHABET, min_size=1, max_size=3)


def type_of(name: str) -> FieldType:
    return field_type(TYPES[name], AttributeStyle("snake"))


def slot(name: str) -> Slot:
    return Slot((name,), key_text(type_of(name)))


@st.composite
def templates(draw: st.DrawFn, *, optional: bool = True) -> Template:
    """Literal text and slots in turn, some of which repeat, some of which may be absent."""
    tokens: list[Token] = []
    for name in draw(st.lists(names, min_size=0, max_size=3)):
        if tokens or draw(st.booleans()):
            tokens.append(draw(literals))
        is_optional = optional and draw(st.integers(0, 4)) == 0
        tokens.append(Maybe((draw(literals), slot(name))) if is_optional else slot(name))
    if not tokens or draw(st.booleans()):
        tokens.append(draw(literals))
    return Template(tuple(tokens))


@st.composite
def sources(draw: st.DrawFn) -> str:
    parts: list[str] = []
    for name in draw(st.lists(names, min_size=1, max_size=3)):
        if parts or draw(st.booleans()):
            parts.append(draw(literals))
        parts.append("{" + name + "}")
    if draw(st.booleans()):
        parts.append(draw(literals))
    return "".join(parts)


@st.composite
def variants(draw: st.DrawFn, source: str) -> str:
    """A template as it is, or with something else in the place of one placeholder: often a special case of it."""
    found = re.findall(r"{(\w+)}", source)
    if not found or draw(st.integers(0, 3)) == 0:
        return source
    name, other = draw(st.sampled_from(found)), draw(names)
    made = draw(
        st.sampled_from(
            [draw(texts), "{" + other + "}", "{" + name + "}" + draw(literals) + "{" + other + "}"]
        )
    )
    return source.replace("{" + name + "}", made)
