"""How the value of one placeholder stands in a key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.keys.text import KeyText, UnusableFormat, key_text
from keygraph.keys.types import ID, JSON, AttributeStyle, Long, Moment, field_type


class Size(Enum):
    SMALL = "S"
    EXTRA = "XL"
    LARGE = "L"


class Step(Enum):
    FIRST = 1
    SECOND = 2


def text(annotation: object, format_: str = "") -> KeyText:
    return key_text(field_type(annotation, AttributeStyle("snake")), format_)


# --- Without a format ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value", "written"),
    [
        (ID, "12345", "12345"),
        (str, "a#b\n", "a#b\n"),
        (int, -7, "-7"),
        (Long, 10**20, "100000000000000000000"),
        (bool, True, "true"),
        (Decimal, Decimal("1.50"), "1.50"),
        (float, 0.1, "0.1"),
        (date, date(2024, 2, 29), "2024-02-29"),
        (datetime, datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00Z"),
        (datetime, datetime(2024, 2, 29, 1, tzinfo=timezone(timedelta(hours=2))), "2024-02-28T23:00:00Z"),
        (datetime, Moment.of_text("2024-02-29T12:00:00+02:00"), "2024-02-29T12:00:00+02:00"),
        (Size, Size.EXTRA, "XL"),
        (Step, Step.SECOND, "2"),
    ],
)
def test_a_value_is_written_and_read_back(annotation: object, value: object, written: str) -> None:
    key_text = text(annotation)
    assert key_text.render(value) == written
    assert key_text.accepts(written)
    assert key_text.value(written) == value


@pytest.mark.parametrize(
    ("annotation", "refused"),
    [
        (str, ""),
        (int, "1.5"),
        (int, "x"),
        (int, "007"),
        (int, "-0"),
        (int, "+1"),
        (int, " 1"),
        (int, "1_000"),
        (int, "١"),
        (int, "9" * 39),
        (int, "9" * 5000),
        (bool, "True"),
        (bool, "1"),
        (Decimal, "NaN"),
        (Decimal, "1_0"),
        (Decimal, "1..0"),
        (float, "1"),
        (float, "inf"),
        (date, "2024-02-30"),
        (date, "2024-2-3"),
        (date, "2024-02-01T00:00:00Z"),
        (date, "٢٠٢٤-02-01"),
        (datetime, "2024-02-30T00:00:00Z"),
        (datetime, "2024-02-01T00:00:00Z "),
        (datetime, "now"),
        (Size, "M"),
        (Size, "SMALL"),
        (Step, "01"),
    ],
)
def test_a_placeholder_parses_only_what_its_type_can_be(annotation: object, refused: str) -> None:
    assert not text(annotation).accepts(refused)


@pytest.mark.parametrize(
    ("annotation", "format_"), [(str, ""), (ID, ""), (int, ""), (int, "05d"), (date, ""), (date, "%Y-%m")]
)
def test_none_has_no_text(annotation: object, format_: str) -> None:
    key_text = text(annotation, format_)
    with pytest.raises((ValueError, AttributeError, TypeError)):
        key_text.render(None)


@pytest.mark.parametrize(
    ("annotation", "none"),
    [(int, "x"), (bool, "maybe"), (Decimal, "x"), (float, "x"), (Size, "M"), (date, "x"), (datetime, "x")],
)
def test_a_text_that_says_no_value_is_refused(annotation: object, none: str) -> None:
    key_text = text(annotation)
    with pytest.raises(ValueError, match=r"\w"):
        key_text.value(none)


@pytest.mark.parametrize("annotation", [JSON, list[str], set[int]])
def test_a_type_that_cannot_stand_in_a_key_is_refused(annotation: object) -> None:
    with pytest.raises(UnusableFormat, match="cannot be part of a key"):
        text(annotation)


# --- Formats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "format_", "value", "written"),
    [
        (int, "05d", 42, "00042"),
        (int, "05", 42, "00042"),
        (int, "0>5", 42, "00042"),
        (int, "d", 42, "42"),
        (int, "03d", 12345, "12345"),
        (int, "05d", -42, "-0042"),
        (Decimal, "09.2f", Decimal("19.9"), "000019.90"),
        (Decimal, ".2f", Decimal(10), "10.00"),
        (Decimal, "09.2f", Decimal("-19.99"), "-00019.99"),
        (Long, "013d", 1574948879000, "1574948879000"),
        (date, "%Y/%m/%d", date(2024, 2, 29), "2024/02/29"),
        (date, "%Y%j", date(2024, 2, 29), "2024060"),
        (
            datetime,
            "%Y-%m-%dT%H:%M:%S%z",
            datetime(2024, 2, 29, 12, tzinfo=UTC),
            "2024-02-29T12:00:00+0000",
        ),
        (datetime, "%Y%m%d%H%M%S", datetime(2024, 2, 29, 12, tzinfo=UTC), "20240229120000"),
    ],
)
def test_a_format_that_loses_nothing_is_read_back(
    annotation: object, format_: str, value: object, written: str
) -> None:
    key_text = text(annotation, format_)
    assert not key_text.lossy
    assert key_text.render(value) == written
    assert key_text.accepts(written)
    assert key_text.value(written) == value


def test_a_format_writes_a_datetime_in_utc() -> None:
    moment = datetime(2024, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert text(datetime, "%Y-%m").render(moment) == "2024-02"


@pytest.mark.parametrize(
    ("annotation", "format_"),
    [
        (date, "%Y-%m"),
        (date, "%m-%d"),
        (date, "%y%m%d %Y week %W"),
        (datetime, "%Y-%m-%d"),
        (datetime, "%H:%M"),
    ],
)
def test_a_format_that_loses_something_is_known(annotation: object, format_: str) -> None:
    key_text = text(annotation, format_)
    assert key_text.lossy == (format_ != "%y%m%d %Y week %W")
    assert key_text.ordered == (format_ in ("%Y-%m", "%Y-%m-%d"))


@pytest.mark.parametrize(
    ("annotation", "format_", "said"),
    [
        (str, "10", "a format cannot be used with a field of type string"),
        (Size, "x", "a format cannot be used with a field of type Size"),
        (Decimal, "010f", "{:010f} is not a format for decimals; {:.2f} and {:012.2f} are"),
        (Decimal, "e", "{:e} is not a format for decimals"),
        (float, ".2f", "a format cannot be used with a field of type float"),
        (date, "%H", "{:%H} writes every date the same way"),
        (datetime, "at%%", "{:at%%} writes every datetime the same way"),
        (int, "x", "{:x} is not a format for int"),
        (int, ",", "{:,} is not a format for int"),
        (int, "+d", "{:+d} writes integers that cannot be read back"),
        (int, "5d", "{:5d} writes integers that cannot be read back"),
        (int, "_", "{:_} writes integers that cannot be read back"),
        (int, "e", "{:e} is not a format for int"),
        (int, "%Y", "{:%Y} is not a format for int"),
        (date, "05d", "{:05d} is not a format for date: it has no %"),
        (datetime, "date", "{:date} is not a format for datetime: it has no %"),
    ],
)
def test_a_format_that_makes_no_key_is_refused(annotation: object, format_: str, said: str) -> None:
    with pytest.raises(UnusableFormat) as refused:
        text(annotation, format_)
    assert str(refused.value).startswith(said)


# --- Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "format_", "ordered"),
    [
        (str, "", True),
        (date, "", True),
        (datetime, "", True),
        (int, "010d", True),
        (Decimal, "012.2f", True),
        (Decimal, ".2f", False),
        (date, "%Y%m%d", True),
        (datetime, "%Y-%m-%dT%H:%M:%SZ", True),
        (int, "", False),
        (int, "d", False),
        (Decimal, "", False),
        (Size, "", False),
        (bool, "", False),
        (date, "%d.%m.%Y", False),
        (date, "%Y-%b-%d", False),
        (date, "%Y-%m", True),
    ],
)
def test_the_order_of_texts_is_known(annotation: object, format_: str, ordered: bool) -> None:
    assert text(annotation, format_).ordered is ordered


FORMATTED: list[tuple[KeyText, st.SearchStrategy[object]]] = [
    (text(str), st.text()),
    (text(str), st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE100, categories=None))),
    (text(int), st.integers()),
    (text(int, "010d"), st.integers()),
    (text(float), st.floats()),
    (text(Decimal), st.decimals()),
    (text(Decimal, "012.2f"), st.decimals(places=2)),
    (text(bool), st.booleans()),
    (text(Size), st.sampled_from(Size)),
    (text(date), st.dates()),
    (text(date, "%d.%m.%Y"), st.dates()),
    (text(datetime), st.datetimes() | st.datetimes(timezones=st.timezones())),
    (text(datetime, "%Y%m%dT%H%M%S.%f"), st.datetimes(timezones=st.just(UTC))),
]


@given(st.data())
def test_what_is_written_is_read_back_or_refused(data: st.DataObject) -> None:
    key_text, values = data.draw(st.sampled_from(FORMATTED))
    value = data.draw(values)
    try:
        written = key_text.render(value)
    except (ValueError, OverflowError):
        return
    if isinstance(value, datetime) and value.tzinfo is not None:
        # In an hour that a zone's clocks go through twice, Python calls no time of another zone equal (PEP 495).
        value = value.astimezone(UTC)
    if key_text.accepts(written):
        assert key_text.value(written) == value


@given(st.data())
def test_what_is_read_is_written_again(data: st.DataObject) -> None:
    key_text, _ = data.draw(st.sampled_from(FORMATTED))
    written = data.draw(st.from_regex(f"(?:{key_text.pattern})", fullmatch=True) | st.text())
    if key_text.accepts(written):
        assert key_text.render(key_text.value(written)) == written


@pytest.mark.parametrize(
    ("annotation", "format_", "make"),
    [
        (date, "", lambda days: date.min + timedelta(days)),
        (date, "%Y%m%d", lambda days: date(1000, 1, 1) + timedelta(days)),
        (int, "010d", lambda number: number),
        (Decimal, "012.2f", lambda number: Decimal(number) / 100),
    ],
)
@given(numbers=st.tuples(st.integers(0, 3_000_000), st.integers(0, 3_000_000)))
def test_ordered_texts_have_the_order_of_their_values(
    annotation: object, format_: str, make: Callable[[int], object], numbers: tuple[int, int]
) -> None:
    one, other = (text(annotation, format_).render(make(number)) for number in numbers)
    assert (one < other) == (numbers[0] < numbers[1])
