"""Items as lines of JSON, and back: one item per line, plain or in DynamoDB's typed form.

A typed line has the form of an export to S3: `{"Item": {"PK": {"S": "…"}}}`, or only the item. It can hold every item.
In a plain line (`{"PK": "…", "price": 199.99}`) the model decides which lists are sets and which strings are bytes in
base64. A set or bytes that the model does not declare is refused, not changed. Numbers keep every digit in both forms.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import IO, Any, Literal, NoReturn, TypeAlias, cast

import orjson

from keygraph.dynamo.conditions import Path
from keygraph.dynamo.items import Item, Value, base64_text, known_number, number, number_text, typed_item
from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.model.records import RecordType

LineFormat: TypeAlias = Literal["plain", "typed"]


LINE_BYTES = 2**23
"""More than a line of an item can have: an item has 400 KB, of which typed JSON makes 7 times as much at most (a list of
nulls), and an incremental export may have an item before and after a change."""


def lines_of(file: IO[bytes] | gzip.GzipFile, most: int = LINE_BYTES) -> Iterator[bytes]:
    """Yields the lines of a file. Raises ValueError for one of more bytes than these, before it reads more of it."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise ValueError(f"a line of more than {most:,} bytes")
        yield line


class Interchange:
    """Reads and writes the lines of a graph's items."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        keys = graph.table.key_attributes()
        names = {key.name for key in keys}
        self._key_forms = {key.name: FieldType("bytes") for key in keys if key.type == "B"}
        self._forms = {
            name: {attribute: form for attribute, form in _forms(record).items() if attribute not in names}
            for name, record in graph.types.items()
        }
        """For each type, the forms of its attributes except keys: the table declares those."""

    # --- Reading --------------------------------------------------------------------------------------

    def read(self, line: str | bytes, format_: LineFormat | None = None) -> Item:
        """Returns the item in a line. Without `format_`, the form is detected from the line.

        Raises ValueError if the line holds no item; the message names the attribute that cannot be read.
        """
        found = _parsed(line)
        typed = None if format_ == "plain" else self._typed_part(found)
        if typed is not None:
            return {name: _untyped(value, (name,)) for name, value in typed.items()}
        if format_ == "typed":
            raise ValueError("it is not an item in DynamoDB's typed form")
        # Keys first: together with the type attribute they decide which type's fields the rest are.
        item = _restored_members(found, self._key_forms, ()) if self._key_forms else found
        forms = self._forms_of(item)
        return _restored_members(item, forms, ()) if forms else item

    def _typed_part(self, found: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the typed item in an object; None for a plain item, whose key is never a map."""
        partition = self._graph.table.partition.name
        inner = found.get("Item")
        if partition not in found and isinstance(inner, dict):
            return inner
        return found if isinstance(found.get(partition), dict) else None

    # --- Writing --------------------------------------------------------------------------------------

    def write(self, item: Mapping[str, Value], format_: LineFormat = "plain") -> bytes:
        """Returns the item's line, without a line break: the table's keys, the type, then the rest by name.

        Raises ValueError, which names the attribute, if a plain line would be read back as another item.
        """
        ordered = self._ordered(item)
        if format_ == "typed":
            return orjson.dumps({"Item": typed_item(ordered)}, default=base64_text)
        forms = {**self._forms_of(item), **self._key_forms}
        return _plain_members(ordered, forms, ()).encode()

    def _ordered(self, item: Mapping[str, Value]) -> Item:
        names = [key.name for key in self._graph.table.keys]
        names += self._graph.type_values.attributes
        first = [name for name in dict.fromkeys(names) if name in item]
        return {name: _sorted(item[name]) for name in (*first, *sorted(item.keys() - set(first)))}

    def _forms_of(self, item: Mapping[str, Value]) -> dict[str, _Form]:
        if not any(self._forms.values()):
            return {}
        record = self._graph.recognise(item)
        return {} if record is None else self._forms[record.name]


# --- Forms --------------------------------------------------------------------------------------------


_Form: TypeAlias = "FieldType | dict[str, _Form]"
"""The form of a value that JSON does not have: the type of bytes, of a set or of a list; for a map, its members."""


def _forms(record: RecordType) -> dict[str, _Form]:
    forms: dict[str, _Form] = {}
    for declared in record.fields.values():
        form = _form(declared.type)
        if form is not None:
            for path in declared.attributes:
                _place(forms, path, form)
    return forms


def _form(type_: FieldType | None) -> _Form | None:
    """Returns the form of a type; None if JSON holds its values as they are."""
    if type_ is None or type_.kind in ("bytes", "set"):
        return type_
    if type_.kind == "list" and _form(type_.of) is not None:
        return type_
    members = {member.attribute: _form(member.type) for member in type_.members}
    return {name: form for name, form in members.items() if form is not None} or None


def _place(forms: dict[str, _Form], path: Path, form: _Form) -> None:
    """Puts the form at its path. Fields may share the maps in which they are stored."""
    name, *inner = path
    there = forms.setdefault(name, {} if inner else form)
    if isinstance(there, dict) and inner:
        _place(there, tuple(inner), form)
    elif isinstance(there, dict) and isinstance(form, dict):
        for member, its_form in form.items():
            _place(there, (member,), its_form)


# --- Lines to items -----------------------------------------------------------------------------------


def _parsed(line: str | bytes) -> dict[str, Any]:
    try:
        text = line if isinstance(line, str) else line.decode()
        # Without line breaks, the column of a missing end is inside the line.
        found = _DECODER.decode(text.rstrip("\r\n"))
        if "\\u" in text:
            # An escape can be half of a surrogate pair, which is not valid Unicode.
            json.dumps(found, ensure_ascii=False, default=str).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeError:
        raise ValueError("it is not valid Unicode") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object: each line must hold one item")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"it has {twice} twice")
    return found


_DECODER = json.JSONDecoder(
    parse_float=known_number,
    parse_int=known_number,
    parse_constant=_refuse_constant,
    object_pairs_hook=_unique,
)


def _restored_members(content: Mapping[str, Any], forms: Mapping[str, _Form], path: Path) -> dict[str, Any]:
    found = dict(content)
    for name in forms.keys() & content.keys():
        found[name] = _restored(content[name], forms[name], (*path, name))
    return found


def _restored(value: Any, form: _Form, path: Path) -> Value:
    of = None if isinstance(form, dict) else _form(form.of)
    match form if isinstance(form, dict) else form.kind, value:
        case "bytes", str():
            return _bytes(value, path)
        case "set", list() if value:
            return _restored_set(value, of, path)
        case "list", list() if of is not None:
            return [_restored(member, of, path) for member in value]
        case dict() as members, dict():
            return _restored_members(value, members, path)
    return cast(Value, value)


def _restored_set(members: list[Any], of: _Form | None, path: Path) -> Value:
    found = members if of is None else [_restored(member, of, path) for member in members]
    if len({type(member) for member in found}) != 1 or not isinstance(found[0], str | Decimal | bytes):
        raise ValueError(
            f"{_dotted(path)} is a set: its members must be all strings, all numbers or all bytes"
        )
    as_set = frozenset(found)
    if len(as_set) < len(found):
        raise ValueError(f"{_dotted(path)} is a set with a repeated member")
    return as_set


def _bytes(text: str, path: Path) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{_dotted(path)} is bytes, but is not valid base64") from None


# --- DynamoDB's typed form ----------------------------------------------------------------------------


def _untyped(typed: object, path: Path) -> Value:
    """Returns a typed value's plain value. Raises ValueError for invalid ones such as `{"BOOL": "false"}`."""
    kind, content = next(iter(typed.items())) if isinstance(typed, dict) and len(typed) == 1 else ("", None)
    match kind, content:
        case ("S", str()) | ("BOOL", bool()):
            return cast(Value, content)
        case "N", str() | Decimal():
            try:
                return number(content)
            except ValueError as error:
                raise ValueError(f"{_dotted(path)} is {error}") from None
        case "B", str():
            return _bytes(content, path)
        case "NULL", bool():
            return None
        case "M", dict():
            return {name: _untyped(inner, (*path, name)) for name, inner in content.items()}
        case "L", list():
            return [_untyped(inner, path) for inner in content]
        case "SS" | "NS" | "BS", list():
            return _restored_set([_untyped({kind[0]: member}, path) for member in content], None, path)
    raise ValueError(f'{_dotted(path)} is not a value in DynamoDB\'s typed form, such as {{"S": "text"}}')


# --- Items to lines -----------------------------------------------------------------------------------


def _sorted(value: Value) -> Value:
    """Returns the value with sorted maps, so that equal items make equal lines."""
    match value:
        case dict():
            return {name: _sorted(value[name]) for name in sorted(value)}
        case list():
            return [_sorted(member) for member in value]
    return value


def _plain_members(content: Mapping[str, Value], forms: Mapping[str, _Form], path: Path) -> str:
    members = (
        f"{encode_basestring(name)}: {_plain(value, forms.get(name), (*path, name))}"
        for name, value in content.items()
    )
    return "{" + ", ".join(members) + "}"


def _plain(value: Value, form: _Form | None, path: Path) -> str:
    kind, of = (form.kind, _form(form.of)) if isinstance(form, FieldType) else (None, None)
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            if kind == "bytes":
                _refuse(path, "text", "bytes")
            return encode_basestring(value)
        case Decimal():
            return number_text(value)
        case bytes():
            if kind != "bytes":
                _refuse(path, "bytes", "text")
            return f'"{base64_text(value)}"'
        case dict():
            return _plain_members(value, form if isinstance(form, dict) else {}, path)
        case list():
            if kind == "set" and value:
                _refuse(path, "a list", "a set")
            return _plain_list(value, of if kind == "list" else None, path)
        case frozenset():
            if kind != "set":
                _refuse(path, "a set", "a list")
            return _plain_list(sorted(value), of, path)


def _plain_list(members: Iterable[Value], of: _Form | None, path: Path) -> str:
    return "[" + ", ".join(_plain(member, of, path) for member in members) + "]"


def _refuse(path: Path, what: str, taken_for: str) -> NoReturn:
    raise ValueError(
        f"{_dotted(path)} is {what}, which the model does not declare: a plain line would read it back as {taken_for}"
    )


def _dotted(path: Path) -> str:
    return ".".join(path)
