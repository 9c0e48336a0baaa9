"""The types of fields, and how each is stored in an attribute.

A `FieldType` is the meaning of an annotation. `decode` turns an attribute's value into the Python value that a model's
methods see, `encode` does the reverse; both raise ValueError for a value that does not fit. A datetime keeps the text
that it was written as: `Moment`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, NewType, TypeAlias

from keygraph.dynamo.items import Value, number, number_text
from keygraph.dynamo.limits import NESTED_LEVELS
from keygraph.kept import kept
from keygraph.keys.formats import Format
from keygraph.keys.timed_ids import TimedId, id_format
from keygraph.names import cased

ID = NewType("ID", str)
"""A text that identifies something."""

Long = NewType("Long", int)
"""An integer that may be larger than 32 bits."""

JSON = Annotated[Any, "JSON"]
"""Any value that an attribute can hold, unchanged."""

Kind: TypeAlias = Literal[
    "id", "string", "int", "long", "float", "boolean", "decimal", "datetime", "date",
    "bytes", "json", "enum", "list", "set", "object", "average",
]  # fmt: skip

WHOLE_NUMBERS = frozenset[Kind]({"int", "long"})
NUMBERS = WHOLE_NUMBERS | frozenset[Kind]({"float", "decimal"})

PLAIN: dict[object, Kind] = {
    ID: "id",
    Long: "long",
    str: "string",
    bool: "boolean",
    int: "int",
    float: "float",
    Decimal: "decimal",
    datetime: "datetime",
    date: "date",
    bytes: "bytes",
    JSON: "json",
    Any: "json",
}
"""The kinds of the annotations that are a single type."""

AVERAGE_PARTS = ("sum", "count")
"""The names in the map in which an average is stored."""

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
"""The bounds of GraphQL's Int, and so of a field annotated `int`."""

ISO_DATETIME = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
ISO_DATE = r"\d{4}-\d\d-\d\d"
_ISO_DATETIME = re.compile(ISO_DATETIME, re.ASCII)
_ISO_DATE = re.compile(ISO_DATE, re.ASCII)
_LONGEST_MOMENT = 64
"""A fraction of a second may have any number of digits, and moments are cached with their texts."""


class Moment(datetime):
    """A datetime with the ISO 8601 text that it was written as."""

    text: str
    original: str | None = None
    """The text that a client wrote with an offset, or with a space for `T`, if `text` is the same time as keys have it."""

    @staticmethod
    @kept("times", 4096, 700)
    def of_text(text: str) -> Moment:
        """Returns the moment of the text, which it keeps. Raises ValueError if it is not ISO 8601."""
        # The same moments are checked and read again and again: whether a key contains one, and which.
        if len(text) > _LONGEST_MOMENT or not _ISO_DATETIME.fullmatch(text):
            raise ValueError("not an ISO 8601 date and time")
        moment = Moment.fromisoformat(text)
        moment.text = text
        return moment

    def __repr__(self) -> str:
        return f"Moment({moment_text(self)!r})"


def moment_text(value: datetime) -> str:
    """Returns how a datetime is written: its own text, else in UTC with seconds and `Z`.

    A datetime without a time zone is written without one.
    """
    text = getattr(value, "text", None)
    if isinstance(text, str):
        return text
    if value.tzinfo is None:
        return value.isoformat(timespec="auto")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="auto") + "Z"


def in_utc(value: datetime) -> datetime:
    """Returns a time with a zone: one without is in UTC."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def first_text(value: datetime, *, is_after: bool = False) -> tuple[str, tuple[str, ...]]:
    """Returns the text from which on times in UTC are not before this one (or are after it), and the earlier ones that
    still sort after that text: `.` comes before `Z`, so a time without a fraction sorts after those of its second that
    have one. Raises OverflowError if no time is after it.

    A text that leaves out what is zero begins all texts of the time.
    """
    # A time has six digits after the point: what is after this one is not before the next.
    at = in_utc(value).astimezone(UTC).replace(tzinfo=None) + timedelta(microseconds=is_after)
    whole, _, fraction = at.isoformat(timespec="microseconds").partition(".")
    digits = fraction.rstrip("0")
    if not digits:
        return whole.removesuffix(":00").removesuffix("T00:00"), ()
    shorter = (f"{whole}.{digits[:length]}Z" for length in range(1, len(digits)))
    return f"{whole}.{digits}", (f"{whole}Z", *shorter)


def last_text(value: datetime) -> str:
    """Returns the last text of the second in which a time is."""
    at = in_utc(value).astimezone(UTC).replace(tzinfo=None)
    return f"{at.isoformat(timespec='seconds')}Z"


@dataclass(frozen=True)
class NestedField:
    """A field of a nested dataclass."""

    name: str
    type: FieldType
    optional: bool
    attribute: str
    default: Any = dataclasses.field(compare=False)
    """Its value if an object has none; dataclasses.MISSING for no default."""

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(frozen=True)
class FieldType:
    """The meaning of an annotation: a kind, and for some kinds a Python class, an element type, members."""

    kind: Kind
    python: type | None = None
    of: FieldType | None = None
    of_optional: bool = False
    members: tuple[NestedField, ...] = ()
    written: Format | None = None
    """The format of its values in keys and attributes, if the graph declares one."""

    @property
    def element(self) -> FieldType:
        """The type of a list's or set's members; TypeError for other types."""
        if self.of is None:
            raise TypeError(f"{self.name} has no members")
        return self.of

    @property
    def cls(self) -> type[Any]:
        """The class of an enum or a nested dataclass; TypeError for other types."""
        if self.python is None:
            raise TypeError(f"{self.kind} has no class")
        return self.python

    @property
    def is_text(self) -> bool:
        """Whether its values are free text."""
        return self.kind in ("id", "string")

    @property
    def name(self) -> str:
        """The type in words, for messages."""
        if self.python is not None:
            return self.python.__name__
        return f"{self.kind} of {self.of.name}" if self.of else self.kind


IN_MAP = "keygraph.in_map"
"""What the metadata of a nested dataclass's field says of its attribute: its name, empty for the usual one. None: more than a
name and a default was given."""


class UnknownType(Exception):
    """The annotation is not a field type; the message says which part is wrong, and `fix` how to fix it."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.fix = fix or (
            "Use str, int, Long, float, bool, Decimal, datetime, date, bytes, an enum, a list, a set, a dataclass "
            "or JSON, or list the type in the graph."
        )


def is_optional(annotation: object) -> tuple[object, bool]:
    """Returns the annotation without `| None`, and whether it had that."""
    parts: tuple[Any, ...] = union_parts(annotation)
    inner = [part for part in parts if part is not type(None)]
    if not inner or len(inner) == len(parts):
        return annotation, False
    return reduce(or_, inner), True


def is_list(annotation: object) -> tuple[object, bool]:
    """Returns the annotation of a list's element, and whether it is a list, which may be None too."""
    inner, _ = is_optional(annotation)
    elements = typing.get_args(inner) if typing.get_origin(inner) is list else ()
    return (is_optional(elements[0])[0], True) if elements else (inner, False)


def union_parts(annotation: object) -> tuple[object, ...]:
    """Returns the parts of a union; the annotation itself if it is none."""
    is_union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    return typing.get_args(annotation) if is_union else (annotation,)


_SET_ELEMENTS: tuple[Kind, ...] = (
    "id", "string", "int", "long", "float", "decimal", "datetime", "date", "bytes", "enum",
)  # fmt: skip
"""The element types of a DynamoDB set: texts, numbers and bytes."""


@dataclass(frozen=True)
class AttributeStyle:
    """How a graph writes attributes and keys: the case of names, formats by name and Python type, and the separator of
    a key's parts, which no text in it then contains."""

    case: str = "snake"
    formats: Mapping[object, Format] = dataclasses.field(default_factory=dict)
    separator: str | None = None

    @property
    def alphabet(self) -> str:
        """The pattern of free text in keys; empty if every text is allowed."""
        return f"[^{re.escape(self.separator)}]+" if self.separator else ""


def field_type(annotation: object, style: AttributeStyle, inside: tuple[type, ...] = ()) -> FieldType:
    """Returns the type of the (resolved) annotation in a graph with this style.

    `inside` are the dataclasses that hold the field. Raises UnknownType.
    """
    if isinstance(annotation, type) and issubclass(annotation, TimedId):
        return FieldType("id", written=id_format(annotation))
    for plain_annotation, kind in PLAIN.items():
        if annotation == plain_annotation:
            return FieldType(kind, written=style.formats.get(plain_annotation))
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, set, frozenset) and len(args) == 1:
        element, optional = is_optional(args[0])
        of = field_type(element, style, inside)
        if origin is not list and (optional or of.kind not in _SET_ELEMENTS):
            raise UnknownType(f"a set cannot hold values of type {of.name}{' or None' if optional else ''}")
        return FieldType("list" if origin is list else "set", of=of, of_optional=optional)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        if not all(isinstance(member.value, str | int) for member in annotation):
            raise UnknownType(f"the values of {annotation.__name__} are neither text nor integers")
        return FieldType("enum", python=annotation)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        if annotation in inside:
            raise UnknownType(f"{annotation.__name__} contains itself")
        members = _members(annotation, style, (*inside, annotation))
        if not members:
            raise UnknownType(f"{annotation.__name__} has no fields")
        return FieldType("object", python=annotation, members=members)
    name = getattr(annotation, "__name__", None) or str(annotation)
    raise UnknownType(f"{name} is not a field type")


def written_as(type_: FieldType, format_: Format) -> FieldType:
    """Returns the type with its values, or the members of its list or set, written in a format."""
    if type_.of is not None:
        return dataclasses.replace(type_, of=written_as(type_.of, format_))
    return dataclasses.replace(type_, written=format_)


def _members(cls: type, style: AttributeStyle, inside: tuple[type, ...]) -> tuple[NestedField, ...]:
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise UnknownType(f"{cls.__name__} cannot be read: {error}") from None
    members: list[NestedField] = []
    for declared in dataclasses.fields(cls):
        own = declared.metadata.get(IN_MAP, "")
        attribute = own or cased(declared.name, style.case)
        same = [each.name for each in members if each.attribute == attribute]
        if own is None or same:
            place = f"{cls.__name__}.{declared.name}"
            problem = f"{place} is in a map" if own is None else f"{place} is in the attribute of {same[0]}"
            raise UnknownType(
                problem, 'In a dataclass, write stored("name") with another name for each field.'
            )
        annotation, optional = is_optional(hints[declared.name])
        type_ = field_type(annotation, style, inside)
        factory = declared.default_factory
        default = declared.default if factory is MISSING else factory()
        members.append(NestedField(declared.name, type_, optional, attribute, default))
    return tuple(members)


def written_value(written: Format, text: str) -> Any:
    """Returns the value of a text in a format. A time keeps the text if ISO 8601 reads it as the same time, else the one
    that the format writes, if it does. Raises ValueError if it has none."""
    value = written.value(text)
    if isinstance(value, datetime):
        for form in (text, written.text(value)):
            # A text without a zone is not the time that a format reads in one.
            is_time = _ISO_DATETIME.fullmatch(form) and not _ISO_DATE.fullmatch(form)
            if is_time and (moment := Moment.of_text(form)) == value:
                return moment
    return value


# --- Attribute values ---------------------------------------------------------------------------------


def decode(type_: FieldType, value: Value) -> Any:
    """Returns the Python value of an attribute. Raises ValueError if it does not fit the type."""
    written = type_.written
    if written is not None and written.parse is not None:
        is_number = written.number and isinstance(value, Decimal)
        text = number_text(value) if is_number and isinstance(value, Decimal) else value
        if isinstance(text, str):
            # Values that another program wrote in the usual way can still be read; texts have no usual way.
            with contextlib.suppress(ValueError):
                return written_value(written, text)
            if type_.is_text:
                pattern = f", {written.pattern}" if written.pattern else ""
                raise ValueError(f"not written in its format{pattern}")
    return _DECODERS[type_.kind](type_, value)


def stored_forms(type_: FieldType, value: Value) -> tuple[Any, ...]:
    """Returns the attributes that are read as this one: of an ID also the number that is written as its text."""
    if type_.kind != "id" or not isinstance(value, str) or not value[-1:].isdecimal():
        return (value,)
    with contextlib.suppress(ValueError):
        exact = number(value)
        if number_text(exact) == value:
            return value, exact
    return (value,)


def decoder(type_: FieldType) -> Callable[[Value], Any]:
    """Returns a function that decodes the values of one type, as `decode` does."""
    return partial(decode if type_.written is not None else _DECODERS[type_.kind], type_)


def encode(type_: FieldType, value: Any) -> Value:
    """Returns the attribute of a Python value, the reverse of `decode`. Raises ValueError."""
    if type_.written is not None:
        text = type_.written.text(value)
        return number(text) if type_.written.number else text
    made = _MADE.get(type_.kind)
    return _ENCODERS[type_.kind](type_, value) if made is None else made(value)


def encoder(type_: FieldType) -> Callable[[Any], Value]:
    """Returns a function that encodes one type's values, as `encode` does, and raises for any that `decode` refuses."""
    made = _MADE.get(type_.kind) if type_.written is None else None
    encoded = partial(encode, type_) if made is None else made
    if type_.written is None and type_.kind in _SURE:
        return encoded

    def checked(value: Any) -> Value:
        stored = encoded(value)
        decode(type_, stored)
        return stored

    return checked


_SURE: tuple[Kind, ...] = ("id", "string", "boolean", "decimal", "bytes")
"""The kinds whose encoded values can always be decoded."""
_Decode: TypeAlias = "Callable[[FieldType, Any], Any]"


def _expect(value: object, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"a {type(value).__name__}")
    return value


def _decode_integer(type_: FieldType, value: Value) -> int:
    return _integer(_expect(value, Decimal), is_short=type_.kind == "int")


@kept("numbers", 4096, 700)
def _integer(exact: Decimal, *, is_short: bool) -> int:
    # Quantities, versions and counts often repeat.
    if exact != exact.to_integral_value():
        raise ValueError("a fraction")
    if is_short and not INT_MIN <= exact <= INT_MAX:
        raise ValueError("an integer of more than 32 bits: declare the field as Long")
    return int(exact)


def _decode_enum(type_: FieldType, value: Value) -> Enum:
    plain = int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
    members = _enum_members(typing.cast(Any, type_.cls))
    found = members.get(plain) if isinstance(plain, str | int) else None
    if found is None or type(found.value) is not type(plain):
        raise ValueError("none of the enum's values")
    return found


@cache
def _enum_members(cls: Any) -> dict[object, Enum]:
    return {member.value: member for member in cls}


def _decode_list(type_: FieldType, value: Value) -> list[Any]:
    if isinstance(value, frozenset):
        members: list[Any] = sorted(value)
    else:
        members = _expect(value, list)
    if type_.of_optional:
        return [None if member is None else decode(type_.element, member) for member in members]
    return [decode(type_.element, member) for member in members]


def _decode_object(type_: FieldType, value: Value) -> Any:
    content: Mapping[str, Value] = _expect(value, dict)
    values: dict[str, Any] = {}
    for member in type_.members:
        found = content.get(member.attribute)
        if member.attribute not in content and member.has_default:
            continue
        if found is None and not member.optional:
            raise ValueError(f"a map without {member.attribute}")
        try:
            values[member.name] = None if found is None else decode(member.type, found)
        except ValueError as error:
            raise ValueError(f"a map whose {member.attribute} is {error}") from None
    return type_.cls(**values)


def _decode_average(type_: FieldType, value: Value) -> float | None:
    # Stored as exact numbers, to which others can be added.
    content: Mapping[str, Value] = _expect(value, dict)
    total, count = (_expect(content.get(name), Decimal) for name in AVERAGE_PARTS)
    return float(total / count) if count else None


def _decode_date(type_: FieldType, value: Value) -> date:
    text = _expect(value, str)
    if not _ISO_DATE.fullmatch(text):
        raise ValueError("not an ISO 8601 date")
    return date.fromisoformat(text)


def _expected(kind: type) -> _Decode:
    return lambda type_, value: _expect(value, kind)


_DECODERS: dict[Kind, _Decode] = {
    "id": lambda type_, value: number_text(value) if isinstance(value, Decimal) else _expect(value, str),
    "string": _expected(str),
    "int": _decode_integer,
    "long": _decode_integer,
    "float": lambda type_, value: float(_expect(value, Decimal)),
    "boolean": _expected(bool),
    "decimal": _expected(Decimal),
    "datetime": lambda type_, value: Moment.of_text(_expect(value, str)),
    "date": _decode_date,
    "bytes": _expected(bytes),
    "json": lambda type_, value: value,
    "enum": _decode_enum,
    "list": _decode_list,
    "set": lambda type_, value: set(_decode_list(type_, value)),
    "object": _decode_object,
    "average": _decode_average,
}
_ENCODERS: dict[Kind, Callable[[FieldType, Any], Value]] = {
    "enum": lambda type_, value: number(value.value) if isinstance(value.value, int) else str(value.value),
    "list": lambda type_, value: [each if each is None else encode(type_.element, each) for each in value],
    "set": lambda type_, value: frozenset(typing.cast(Any, encode(type_.element, each)) for each in value),
    "object": lambda type_, value: {
        each.attribute: encode(each.type, inner)
        for each in type_.members
        if (inner := getattr(value, each.name)) is not None
    },
}
"""The encoders of kinds that have several types."""


def plain(value: Any, level: int = 0) -> Value:
    """Returns JSON-like Python data as an attribute's value: numbers exact, sequences as lists. Raises ValueError."""
    if level > NESTED_LEVELS:
        raise ValueError(f"an object with lists and maps in more than {NESTED_LEVELS} levels")
    match value:
        case None | bool() | str() | bytes() | frozenset():
            return value
        case int() | Decimal():
            return number(value)
        case float():
            return number(repr(value))
        case Mapping():
            return {str(name): plain(inner, level + 1) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner, level + 1) for inner in value]
    raise ValueError(f"a value of type {type(value).__name__}")


_MADE: dict[Kind, Callable[[Any], Value]] = {
    "id": str,
    "string": str,
    "int": number,
    "long": number,
    "float": lambda value: number(repr(value)),
    "boolean": bool,
    "decimal": number,
    "datetime": moment_text,
    "date": lambda value: value.isoformat(),
    "bytes": bytes,
    "json": plain,
}
"""The encoders of all other kinds."""
