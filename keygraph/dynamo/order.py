"""Keys as bytes whose order is DynamoDB's order of the keys, and the texts next to a key in that order.

Text becomes its UTF-8 bytes, binary stays as it is. A number is written so that comparing bytes compares numbers and all 38
digits come back:

    zero       80
    positive   C0, exponent + 130, the digits in pairs, each pair + 1
    negative   40, 125 − exponent, the digits in pairs, each 100 − pair, FF

where the exponent is that of the first digit, −130 to 125, and a last lone digit is followed by 0. Trailing zeros do
not count as digits, so a shorter row of digits is the smaller magnitude; the FF makes it the larger number below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from keygraph.dynamo.items import number
from keygraph.dynamo.limits import HIGHEST_EXPONENT, LOWEST_EXPONENT, SORT_KEY_BYTES
from keygraph.dynamo.table import KeyAttribute, KeyValue

LAST = "\U0010ffff"
"""The last character of Unicode: no text with a prefix comes after the prefix with this character."""
EXTENSIBLE_BYTES = SORT_KEY_BYTES - len(LAST.encode())
"""The largest size of a sort key that stays within DynamoDB's limit when `LAST` is appended."""
LAST_BYTE = b"\xff"
"""The largest byte: no bytes with a prefix come after the prefix with these up to the limit of a sort key."""

_NEGATIVE, _ZERO, _POSITIVE = 0x40, 0x80, 0xC0


def key_bytes(value: KeyValue) -> bytes:
    """Returns the bytes of a key value. Raises ValueError for invalid Unicode or an unsupported number."""
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case _:
            return number_bytes(value)


def key_reader(attribute: KeyAttribute) -> Callable[[bytes], KeyValue]:
    """Returns the function that reads what `key_bytes` wrote, for an attribute of that type."""
    return _READERS[attribute.type]


def number_bytes(value: Decimal) -> bytes:
    """Returns the number's bytes, at most 22. Raises ValueError for a number that DynamoDB does not hold."""
    sign, digits, exponent = number(value).as_tuple()
    if digits == (0,):
        return bytes((_ZERO,))
    first = len(digits) + int(exponent) - 1
    if len(digits) % 2:
        digits = (*digits, 0)
    pairs = [10 * tens + ones for tens, ones in zip(digits[::2], digits[1::2], strict=True)]
    if sign:
        return bytes((_NEGATIVE, HIGHEST_EXPONENT - first, *(100 - pair for pair in pairs), 0xFF))
    return bytes((_POSITIVE, first - LOWEST_EXPONENT, *(pair + 1 for pair in pairs)))


def number_of(stored: bytes) -> Decimal:
    """Returns the number that `number_bytes` wrote."""
    kind = stored[0]
    if kind == _ZERO:
        return Decimal(0)
    if kind == _NEGATIVE:
        first, pairs = HIGHEST_EXPONENT - stored[1], [100 - byte for byte in stored[2:-1]]
    else:
        first, pairs = stored[1] + LOWEST_EXPONENT, [byte - 1 for byte in stored[2:]]
    digits = tuple(digit for pair in pairs for digit in divmod(pair, 10))
    return number(Decimal((int(kind == _NEGATIVE), digits, first - len(digits) + 1)))


_READERS: dict[str, Callable[[bytes], KeyValue]] = {"S": bytes.decode, "B": bytes, "N": number_of}


def after_prefix(prefix: bytes) -> bytes | None:
    """Returns the smallest bytes above everything that begins with the prefix; None if nothing is above."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


# --- Text, whose bytes are in the order of its characters ---------------------------------------------


def text_after_all(prefix: str) -> str | None:
    """Returns the smallest text above everything that begins with the prefix; None if nothing is above."""
    stripped = prefix.rstrip(LAST)
    if not stripped:
        return None
    # There is no character between U+D7FF and U+E000.
    last = ord(stripped[-1])
    return stripped[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)


def last_below(text: str) -> str:
    """Returns the largest text below this one that can be a bound: no key has the last character of Unicode."""
    before, last = text[:-1], ord(text[-1])
    if last == 0:
        return before
    return before + chr(0xD7FF if last == 0xE000 else last - 1) + LAST
