"""Items: the values that DynamoDB holds, their typed JSON form, and their size by DynamoDB's rules.

In Python an item is a dict from attribute name to one of the types of `Value`. Numbers are always `Decimal`, so that no
digit is lost; sets are frozensets of one kind of value.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import reduce
from itertools import chain
from typing import Any, Self, TypeAlias

from keygraph.dynamo.limits import (
    HIGHEST_EXPONENT,
    ITEM_BYTES,
    LOWEST_EXPONENT,
    NESTED_LEVELS,
    NUMBER_BYTES,
    NUMBER_DIGITS,
)
from keygraph.kept import kept

Scalar: TypeAlias = str | Decimal | bytes
Value: TypeAlias = "Scalar | bool | list[Value] | dict[str, Value] | frozenset[Scalar] | None"
Item: TypeAlias = dict[str, Value]
TypedValue: TypeAlias = dict[str, Any]
"""A value as DynamoDB writes it: `{"S": "text"}`, `{"N": "199.99"}`, `{"M": {…}}`."""

_PLAIN = re.compile(r"0|-?(?:[1-9][0-9]{0,17}|0(?=\.))(?:\.[0-9]{0,17}[1-9])?")
"""Text of numbers within all limits, as DynamoDB writes them."""
_EXACT = Context(
    prec=NUMBER_DIGITS,
    Emin=LOWEST_EXPONENT,
    Emax=HIGHEST_EXPONENT + 1,
    traps=[Inexact, InvalidOperation, Overflow],
)

CONTAINERS = frozenset({list, dict, frozenset})
MANY_NESTED = 1_000
"""To measure items with more values in lists, maps and sets takes about a millisecond."""

_SUMS = Context(prec=300)
"""Any sum of numbers that DynamoDB holds has fewer digits."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_CHARACTERS = 200
"""DynamoDB writes no number with more: 38 digits, and 130 zeros after the point."""
_ROUGH = Context(prec=1, traps=[])
_OUTSIDE = (
    f"a number outside the range that DynamoDB holds (1E{LOWEST_EXPONENT} up to 1E{HIGHEST_EXPONENT + 1})"
)


def number(value: str | int | Decimal) -> Decimal:
    """Returns the exact number, with trailing zeros removed as DynamoDB does.

    Raises ValueError for a number that DynamoDB does not hold: more than 38 digits, a magnitude of 1E126 or more or
    below 1E-130, infinity, not a number.
    """
    if isinstance(value, str):
        if len(value) > _NUMBER_CHARACTERS:
            raise ValueError(f"a number of more than {NUMBER_DIGITS} digits")
        if not _NUMBER.fullmatch(value):
            raise ValueError("not a number")
    try:
        exact = _EXACT.create_decimal(value)
    except InvalidOperation:
        raise ValueError("not a number") from None
    except Overflow:
        raise ValueError(_OUTSIDE) from None
    except Inexact:
        is_small = _ROUGH.create_decimal(value).adjusted() < LOWEST_EXPONENT
        raise ValueError(_OUTSIDE if is_small else f"a number of more than {NUMBER_DIGITS} digits") from None
    if not exact.is_finite():
        raise ValueError("a number that is not finite")
    if not exact:
        return Decimal(0)
    if not LOWEST_EXPONENT <= exact.adjusted() <= HIGHEST_EXPONENT:
        raise ValueError(_OUTSIDE)
    return exact.normalize(_EXACT)


def exact_sum(numbers: Iterable[Decimal]) -> Decimal:
    """Returns a sum with all its digits; Python's own addition keeps 28."""
    return reduce(_SUMS.add, numbers, Decimal(0))


class ExactFloat(float):
    """A number of JSON with all the digits that it is written with, which `repr` gives."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def stable_text(value: object) -> str:
    """Returns a text of data, to be hashed: the same in every process, and another one for other data. Numbers have all
    their digits, and the names in a map no order."""
    match value:
        case Mapping():
            parts = sorted(f"{name!r}: {stable_text(inner)}" for name, inner in value.items())
            return f"{{{', '.join(parts)}}}"
        case list() | tuple():
            return f"[{', '.join(map(stable_text, value))}]"
        case set() | frozenset():
            return f"({', '.join(sorted(map(stable_text, value)))})"
    return repr(value)


@kept("numbers", 4096, 700)
def number_text(value: Decimal) -> str:
    """Returns the number as DynamoDB writes it: plain digits if they are short, else with an exponent."""
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    exact = number(value)
    text = format(exact, "f")
    return text if len(text) <= NUMBER_DIGITS + 3 else str(exact)


def to_typed(value: Value) -> TypedValue:
    """Returns the value in DynamoDB's typed form; binary stays `bytes`. Raises ValueError for an unsupported value."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case Decimal():
            return {"N": number_text(value)}
        case None:
            return {"NULL": True}
        case bytes():
            return {"B": value}
        case dict():
            return {"M": {name: to_typed(inner) for name, inner in value.items()}}
        case list():
            return {"L": [to_typed(inner) for inner in value]}
        case frozenset():
            return _typed_set(value)
    raise ValueError(f"a value of type {type(value).__name__}")


def _typed_set(value: frozenset[Scalar]) -> TypedValue:
    for kind, type_ in (("SS", str), ("NS", Decimal), ("BS", bytes)):
        if value and all(isinstance(member, type_) for member in value):
            members: list[Any] = sorted(value)
            return {kind: list(map(number_text, members)) if kind == "NS" else members}
    raise ValueError("a set that is empty or of more than one type")


def from_typed(typed: Mapping[str, Any], levels: int = NESTED_LEVELS) -> Value:
    """Returns the value of DynamoDB's typed form; binary may be `bytes` or base64 text. Raises ValueError or TypeError.

    `levels` is how deep lists and maps may be nested, with one for what is not in them.
    """
    if len(typed) != 1:
        raise ValueError("a typed value has exactly one type")
    [(kind, content)] = typed.items()
    type_, read = _READERS.get(kind, _NO_READER)
    if not isinstance(content, type_):
        raise ValueError(f"no value of a type {kind!r} of DynamoDB")
    if not isinstance(content, dict | list) or kind not in ("M", "L"):
        return read(content)
    if levels <= 1:
        raise ValueError(f"lists and maps in more than {NESTED_LEVELS} levels")
    if isinstance(content, dict):
        return {name: from_typed(inner, levels - 1) for name, inner in content.items()}
    return [from_typed(inner, levels - 1) for inner in content]


def base64_text(value: object) -> str:
    """Returns binary as base64 text, for JSON encoders. Raises TypeError for anything else."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a value of type {type(value).__name__}")


def _binary(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else base64.b64decode(content, validate=True)


def _text(content: str) -> str:
    if type(content) is not str:
        raise TypeError("not a text")
    return content


@kept("numbers", 4096, 700)
def known_number(text: str) -> Decimal:
    """Returns `number` of a text that DynamoDB wrote: most are plain, and quantities, prices and versions repeat."""
    if not _PLAIN.fullmatch(text):
        if len(text) > _NUMBER_CHARACTERS:
            raise ValueError("a number longer than DynamoDB writes any")
        return number(text)
    return Decimal(text) if text[-1] != "0" else Decimal(text).normalize(_EXACT)


_READERS: dict[str, tuple[type | tuple[type, ...], Callable[[Any], Value]]] = {
    "S": (str, str),
    "N": (str, known_number),
    "BOOL": (bool, bool),
    "NULL": (bool, lambda _: None),
    "B": ((str, bytes), _binary),
    "M": (dict, dict),
    "L": (list, list),
    "SS": (list, lambda content: frozenset(map(_text, content))),
    "NS": (list, lambda content: frozenset(map(known_number, content))),
    "BS": (list, lambda content: frozenset(map(_binary, content))),
}
"""The Python type of a value's content in each of DynamoDB's types, and how it is read."""
_NO_READER: tuple[tuple[()], Callable[[Any], Value]] = ((), bool)


def typed_item(item: Mapping[str, Value]) -> dict[str, TypedValue]:
    """Returns the item in DynamoDB's typed form."""
    return {
        name: {"S": value}
        if type(value) is str
        else {"N": number_text(value)}
        if type(value) is Decimal
        else to_typed(value)
        for name, value in item.items()
    }


def untyped_item(typed: Mapping[str, Mapping[str, Any]]) -> Item:
    """Returns the item of DynamoDB's typed form."""
    return {name: from_typed(value) for name, value in typed.items()}


def answered_items(typed_items: list[Any], keys: Collection[str]) -> list[Item]:
    """Returns the items of an answer of DynamoDB, in place of the typed ones. Raises an error for what is no list of
    them in typed form, or has something else than text, a number or bytes in one of the keys.

    100 items of 7 attributes take 0.38 of the time of `untyped_item` (by timeit).
    """
    if type(typed_items) is not list:
        raise TypeError("not a list")
    for item in typed_items:
        for name, value in item.items():
            if "S" in value:
                # It raises TypeError for anything but text, faster than its type is asked for.
                item[name] = value["S"] + ""
            elif "N" in value:
                item[name] = known_number(value["N"])
            elif "B" not in value and name in keys:
                raise TypeError("a key of a type that keys do not have")
            else:
                item[name] = from_typed(value)
    return typed_items


# --- Large texts --------------------------------------------------------------------------------------

BYTES_AT_ONCE, _VALUES_AT_ONCE = 64 * 1024, 4_000
"""The longest JSON that is read in the event loop, and the most commas, lists and maps in it: about a millisecond."""
_LISTS_BESIDE_MAPS = 10
"""Items have so many more lists than maps at most: each is in a map of its type."""
_LOOKED_AT_ONCE = 64 * 1024


def is_large(body: bytes) -> bool:
    """Returns whether reading a JSON text takes milliseconds."""
    size = len(body)
    return size > BYTES_AT_ONCE or (size > _VALUES_AT_ONCE and separators(body) > _VALUES_AT_ONCE)


def separators(body: bytes) -> int:
    """Returns the number of commas, lists and maps in a JSON text, with those in its strings."""
    return sum(map(body.count, b",[{"))


def parsed_in_turns(body: bytes) -> Any:
    """Returns the content of a large JSON text. Raises ValueError, or RecursionError.

    orjson lets no other thread run meanwhile. Here others run at each map, of which DynamoDB makes one for each value, and
    at each number, of which it makes few.
    """
    if body.count(b"[") > body.count(b"{") + _LISTS_BESIDE_MAPS:
        text = b"".join(_outside_strings(body))
        if text.count(b"[") > text.count(b"{") + _LISTS_BESIDE_MAPS:
            raise ValueError("lists that are not in maps")
    may_be_halves = b"\\ud" in body or b"\\uD" in body
    each_map = _with_whole_characters if may_be_halves else _unchanged
    return json.loads(body.decode(), object_hook=each_map, parse_int=_number, parse_float=_number)


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """Yields the parts of a JSON text that are not in its strings."""
    start, first = 0, 0
    while start < len(body):
        end = start + _LOOKED_AT_ONCE
        while body[end - 1 : end] == b"\\":
            end += 1
        parts = body[start:end].replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield from parts[first::2]
        start, first = end, (first + len(parts) - 1) % 2


def _unchanged(part: dict[str, Any]) -> dict[str, Any]:
    return part


def _number(text: str) -> float:
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _with_whole_characters(part: dict[str, Any]) -> dict[str, Any]:
    """Returns a map. Raises UnicodeEncodeError for half of a surrogate pair in it."""
    for name, value in part.items():
        values = value if isinstance(value, list) else [value]
        "".join([name, *[each for each in values if isinstance(each, str)]]).encode()
    return part


# --- Sizes --------------------------------------------------------------------------------------------


def text_size(text: str) -> int:
    """Returns the size of text in UTF-8. Raises UnicodeEncodeError for text that is not valid Unicode."""
    return len(text) if text.isascii() else len(text.encode())


def item_size(item: Mapping[str, Value]) -> int:
    """Returns the item's size in bytes by DynamoDB's rules: attribute names and values in UTF-8.

    The rules: "DynamoDB item sizes and formats" in the DynamoDB developer guide.
    """
    # Most values are short text, which is faster to measure together.
    size = text_size("".join(item)) + text_size("".join([v for v in item.values() if type(v) is str]))
    return size + sum([value_size(value) for value in item.values() if type(value) is not str])


def value_size(value: Value) -> int:
    """Returns the size of one value in bytes by DynamoDB's rules."""
    match value:
        case None | bool():
            return 1
        case str():
            return text_size(value)
        case bytes():
            return len(value)
        case Decimal():
            return number_size(value)
        case dict():
            return 3 + sum(1 + text_size(name) + value_size(inner) for name, inner in value.items())
        case list():
            return 3 + sum(1 + value_size(inner) for inner in value)
    return sum(value_size(member) for member in value)


def nested_values(items: Iterable[Item | None], most: float = math.inf) -> int:
    """Returns how many values there are in the lists, maps and sets of items: they take much more memory than in the
    table. Those beyond `most` may not be counted."""
    count, level = 0, _containers(chain.from_iterable(map(dict.values, filter(None, items))))
    while level:
        count += sum(map(len, level))
        if count > most:
            break
        inner = [each.values() if type(each) is dict else each for each in level]
        level = _containers(chain.from_iterable(inner))
    return count


def greatest_size(item: Item) -> int:
    """Returns an item's size; the greatest that an item may have, where it has so many values that measuring takes long."""
    return ITEM_BYTES if nested_values([item], MANY_NESTED) > MANY_NESTED else item_size(item)


def _containers(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if type(each) in CONTAINERS]


def number_size(value: Decimal) -> int:
    """Returns the size of a number. Raises ValueError for one that DynamoDB does not hold.

    One byte for each pair of significant digits, one more, and one for a minus sign; never more than 21. Pairs are
    counted from the decimal point: 11 is one, 110 is two (1 and 10). The guide says "approximately one byte for two
    digits"; DynamoDB Local charges by this rule.
    """
    return _number_text_size(str(value))


@kept("numbers", 4096, 700)
def _number_text_size(text: str) -> int:
    value = Decimal(text)
    if value.is_zero():
        return 1
    sign, digits, exponent = (value if _PLAIN.fullmatch(text) else number(value)).as_tuple()
    while digits[-1] == 0:
        digits, exponent = digits[:-1], int(exponent) + 1
    first = len(digits) + int(exponent) - 1
    pairs = (len(digits) + (first + 1) % 2 + 1) // 2
    return min(pairs + 1 + sign, NUMBER_BYTES)
