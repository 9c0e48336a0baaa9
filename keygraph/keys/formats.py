"""Declared formats: how values are written in keys and attributes if not in the usual way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from keygraph.dynamo.items import exact_sum

BELOW_ALL, ABOVE_ALL = "\0", "\U0010ffff"
"""The bounds of a range before the first possible text, and after the last one."""

TimeUnit: TypeAlias = Literal["s", "ms", "us"]

_TICKS: dict[TimeUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000}
"""How many of a unit are in a second."""
_SECOND_DIGITS = 10
"""How many digits the seconds since 1970 have, from 2001 to 2286."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_INTEGERS = frozenset({"int", "long"})


@dataclass(frozen=True)
class Format:
    """A way to write values as texts.

    `render` makes the text, `parse` the value again; without `parse` the text loses something, as lower case does, and
    the field is read from its attribute. `ordered`: the texts sort as the values do, so that the smaller of two values
    never has the later text. `prefixes`, for formats of text: the text of a value's beginning is the beginning of the
    value's text, as in lower case. `pattern` describes the texts, as in `{id:[^#]+}`, and distinguishes keys. Without
    it, `parse` decides, which raises an exception for other texts. `number`: attributes hold the text as a number.

    `Format.reversed` and `Format.base` are formats of numbers, `Epoch` is one of times.
    """

    render: Callable[[Any], str]
    parse: Callable[[str], Any] | None = None
    ordered: bool = False
    pattern: str | None = None
    number: bool = False
    is_descending: bool = False
    """Whether the order of the texts is the opposite of that of the values."""
    digits: int | None = None
    """How many digits a text has, if it is a whole number with a fixed number of digits."""
    kinds: frozenset[str] | None = None
    """The kinds of fields that it writes; None for all."""
    prefixes: bool = False
    """Whether the text of a value's beginning is the beginning of the value's text."""
    time_bound: Callable[[datetime, bool], str] | None = None
    """The first text of a time (True) or the last one, if a text begins with a time."""

    @staticmethod
    def reversed(most: int, of: Format | None = None) -> Format:
        """Returns a format that writes what is left up to `most`: 3 is `96` with `most=99`, so the largest comes first.

        The texts have as many digits as `most`. `of` makes the numbers: `Format.reversed(9999999999, of=Epoch("s"))` is
        for times. Raises ValueError if `most` is not positive.
        """
        if most < 1:
            raise ValueError(f"most={most} is not positive")
        width = len(str(most))
        return Format(
            Applied(_reversed, (most, width, of)),
            None if of is not None and of.parse is None else Applied(_unreversed, (most, of)),
            ordered=of is None or of.ordered,
            pattern=rf"\d{{{width}}}",
            number=True,
            is_descending=of is None or not of.is_descending,
            digits=width,
            kinds=_INTEGERS if of is None else of.kinds,
        )

    @staticmethod
    def base(
        radix: int, width: int | None = None, *, upper: bool = False, of: Format | None = None
    ) -> Format:
        """Returns a format of whole numbers in another base, 2 to 36: `Format.base(36, width=4)` writes 1295 as `00zz`.

        The texts sort as the numbers do only with a `width`, to which zeros pad. `of` makes the numbers, as for
        `reversed`. Raises ValueError for another base or width.
        """
        if not 2 <= radix <= len(_DIGITS) or (width is not None and width < 1):
            raise ValueError(
                f"base({radix}, width={width}): a base is 2 to {len(_DIGITS)}, a width at least 1"
            )
        alphabet = _DIGITS[:radix].upper() if upper else _DIGITS[:radix]
        return Format(
            Applied(_in_base, (alphabet, width or 1, of)),
            None if of is not None and of.parse is None else Applied(_of_base, (radix, of)),
            ordered=width is not None and (of is None or of.ordered),
            pattern=f"[{alphabet}]" + ("+" if width is None else f"{{{width}}}"),
            is_descending=of is not None and of.is_descending,
            digits=width,
            kinds=_INTEGERS if of is None else of.kinds,
        )

    def bound(self, text: str) -> str:
        """Returns the text of a range's first or last value, which need not be one that a key can hold."""
        if self.digits is None or not text:
            return text
        if text.startswith("-"):
            return BELOW_ALL
        return ABOVE_ALL if len(text.partition(".")[0]) > self.digits else text

    def text(self, value: Any) -> str:
        """Returns the text of a value. Raises ValueError if it has none."""
        try:
            text = self.render(value)
        except Exception as error:
            raise ValueError(f"it cannot be written: {error}") from None
        if not isinstance(text, str):
            raise ValueError(f"its format gives a {type(text).__name__}, not a text")
        return text

    def value(self, text: str) -> Any:
        """Returns the value of a text. Raises ValueError if it has none."""
        if self.parse is None:
            raise ValueError("its format cannot be read back")
        try:
            return self.parse(text)
        except Exception as error:
            raise ValueError(f"it cannot be read: {error}") from None


def Epoch(unit: TimeUnit = "s", *, text: bool = False) -> Format:  # noqa: N802  # it reads as a kind of format
    """Returns a format of times as the seconds, milliseconds ("ms") or microseconds ("us") since 1970, in UTC.

    Attributes hold them as numbers, with `text=True` as texts. In keys that are text they have 10 digits (13, 16), so
    that they sort by time. Raises ValueError for another unit.
    """
    if unit not in _TICKS:
        raise ValueError(f"Epoch({unit!r}): the units are {', '.join(_TICKS)}")
    ticks = _TICKS[unit]
    width = _SECOND_DIGITS + len(str(ticks)) - 1
    return Format(
        Applied(_to_epoch, (ticks, width)),
        Applied(_of_epoch, (ticks,)),
        ordered=True,
        pattern=rf"\d{{{width}}}",
        number=not text,
        digits=width,
        kinds=frozenset({"datetime"}),
    )


# --- What renders and parses: equal formats are equal -------------------------------------------------


def _padded(number: Decimal, width: int) -> str:
    """Returns the digits of a number, padded before the decimal point."""
    whole, point, fraction = format(number, "f").partition(".")
    fraction = fraction.rstrip("0")
    return whole.zfill(width) + (point + fraction if fraction else "")


def _number(of: Format | None, value: Any) -> Decimal:
    if of is None:
        return Decimal(value)
    return Decimal(of.text(value))


def _value(of: Format | None, number: Decimal) -> Any:
    if of is None:
        if number != number.to_integral_value():
            raise ValueError("a fraction")
        return int(number)
    return of.value(_padded(number, of.digits or 1))


@dataclass(frozen=True)
class Applied:
    """A function with its first arguments: unlike partials, equal ones are equal."""

    function: Callable[..., Any]
    given: tuple[Any, ...]

    def __call__(self, value: Any) -> Any:
        return self.function(*self.given, value)


def _to_epoch(ticks: int, width: int, at: datetime) -> str:
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    microseconds = (at - _EPOCH) // _MICROSECOND
    return _padded(Decimal(microseconds * ticks).scaleb(-6), width)


def _of_epoch(ticks: int, text: str) -> datetime:
    return _EPOCH + _MICROSECOND * int(Decimal(text) * (1_000_000 // ticks))


def _reversed(most: int, width: int, of: Format | None, value: Any) -> str:
    return _padded(exact_sum((Decimal(most), _number(of, value).copy_negate())), width)


def _unreversed(most: int, of: Format | None, text: str) -> Any:
    return _value(of, exact_sum((Decimal(most), Decimal(text).copy_negate())))


def _in_base(alphabet: str, width: int, of: Format | None, value: Any) -> str:
    # A fraction is left out: a range bound with one is between two keys.
    number, digits = int(_number(of, value).to_integral_value("ROUND_FLOOR")), ""
    sign, number = "-" if number < 0 else "", abs(number)
    while number:
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return (sign + digits).zfill(width) if digits else "0" * width


def _of_base(radix: int, of: Format | None, text: str) -> Any:
    return _value(of, Decimal(int(text, radix)))
