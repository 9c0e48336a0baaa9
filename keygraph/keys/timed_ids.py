"""Ids that begin with their time of creation: ULID and KSUID.

Each is a text, and knows its time. They sort by their times.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self

from keygraph.keys.formats import ABOVE_ALL, BELOW_ALL, Format

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimedId(str):
    """An id that begins with a time. The constructor raises ValueError for an invalid text."""

    __slots__ = ()
    digits: ClassVar[str]
    """The digits of the number that the id represents."""
    length: ClassVar[int]
    bits: ClassVar[int]
    """How many bits follow the bits of the time."""
    begin: ClassVar[datetime]
    tick: ClassVar[timedelta]
    pattern: ClassVar[str]
    """The pattern of an id, as in `{id:[^#]+}`."""

    def __new__(cls, text: str) -> Self:
        if not re.fullmatch(cls.pattern, text):
            raise ValueError(f"no {cls.__name__}")
        return super().__new__(cls, text)

    @property
    def time(self) -> datetime:
        """The time of creation, in UTC. Raises ValueError if that is after the year 9999."""
        number = 0
        for char in self:
            number = number * len(self.digits) + self.digits.index(char)
        try:
            return self.begin + self.tick * (number >> self.bits)
        except OverflowError:
            raise ValueError("its time is after the year 9999") from None

    @classmethod
    def bound(cls, at: datetime, is_low: bool) -> str:
        """Returns the first of all ids made at a time or later, or the last one made then or before."""
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        ticks = -((cls.begin - at) // cls.tick) if is_low else (at - cls.begin) // cls.tick
        least = ticks << cls.bits
        number = least if is_low else least + (1 << cls.bits) - 1
        if number < 0:
            return BELOW_ALL
        text = ""
        while number:
            number, digit = divmod(number, len(cls.digits))
            text = cls.digits[digit] + text
        text = text.rjust(cls.length, cls.digits[0])
        return text if len(text) == cls.length else ABOVE_ALL


class ULID(TimedId):
    """26 characters of Crockford's base 32: the milliseconds since 1970 in 48 bits, then 80 random ones."""

    __slots__ = ()
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    length = 26
    bits = 80
    begin = _EPOCH
    tick = timedelta(milliseconds=1)
    pattern = "[0-7][0-9A-HJKMNP-TV-Z]{25}"


class KSUID(TimedId):
    """27 characters of base 62: the seconds since 13 May 2014 in 32 bits, then 128 random ones."""

    __slots__ = ()
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    length = 27
    bits = 128
    begin = _EPOCH + timedelta(seconds=1_400_000_000)
    tick = timedelta(seconds=1)
    pattern = "[0-9A-Za-z]{27}"


def id_format(cls: type[TimedId]) -> Format:
    """Returns the format of these ids, which writes them unchanged."""
    return Format(str, cls, ordered=True, pattern=cls.pattern, time_bound=cls.bound)
