"""A field that is stored in items, and how its value is read from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from keygraph.declare.declaration import Kept
from keygraph.dynamo.conditions import Path, at_path
from keygraph.dynamo.items import Value
from keygraph.errors import CorruptItem
from keygraph.keys.types import FieldType, Kind, decoder

ValueReader: TypeAlias = Callable[[Mapping[str, Value]], Any]
"""Reads a value from an item."""


@dataclass(frozen=True, eq=False)
class Field:
    """A field that is stored in the item."""

    name: str
    type: FieldType
    optional: bool
    attribute: Path
    default: Any
    """Its value if the item has none; dataclasses.MISSING for no default."""
    description: str | None
    kept: Kept | None = None
    """What the server keeps in it."""
    in_key: bool = False
    """Whether it is held by a key and by no attribute."""
    is_expiry: bool = False
    """Whether it is the time when the item expires."""
    is_external: bool = False
    """Whether another server has it, so that no item does. Here it is optional."""
    is_null_elsewhere: bool = False
    """Whether the other server may have no value."""
    kept_of: str = ""
    """The source of a count, sum or copy: the name of a list, or of a list or an end and a field there."""

    @property
    def may_be_null(self) -> bool:
        """Whether clients may get null."""
        return self.is_null_elsewhere if self.is_external else self.optional

    @property
    def is_given(self) -> bool:
        """Whether clients may write it: the server keeps its value otherwise, or another server has it."""
        return self.kept in (None, "id") and not self.is_external

    @property
    def is_required(self) -> bool:
        """Whether an item without a value cannot be read."""
        return not (self.optional or self.has_default)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


STORED_AS_READ: Mapping[Kind, type] = {
    "id": str,
    "string": str,
    "boolean": bool,
    "decimal": Decimal,
    "bytes": bytes,
}
"""The kinds of fields whose value is the attribute's value, with its Python type."""


def missing(owner: str, name: str, paths: Iterable[Path]) -> str:
    """Returns what is wrong with an item that lacks a field or an end, with its attributes if they have other names."""
    shown = " and ".join(".".join(path) for path in paths)
    return f"{owner}.{name} is missing in an item{'' if shown == name else f' (attribute {shown})'}"


def field_reader(
    field: Field, owner: str, read_keys: ValueReader, *, is_key: bool, plain: type | None
) -> ValueReader:
    """Returns a function that reads the field's value: from its attribute, else from a key that holds it, else its
    default.

    `owner` is the type's name, for messages; `read_keys` reads the value from keys; `is_key` says that the attribute is
    itself a key, which is parsed first; `plain` is the Python type of an attribute that is the value. The result raises
    CorruptItem if the attribute does not fit, or if a required field has no value.
    """
    decoded, [name, *inner] = decoder(field.type), field.attribute

    def read(item: Mapping[str, Value]) -> Any:
        stored: Any = at_path(item, field.attribute) if inner else item.get(name)
        if stored is not None:
            try:
                return decoded(stored)
            except ValueError as error:
                raise CorruptItem(
                    f"{owner}.{field.name} of an item is not of type {field.type.name}: it is {error}"
                ) from None
        value = read_keys(item)
        if value is None and field.has_default:
            value = field.default
        if value is None and not field.optional:
            raise CorruptItem(missing(owner, field.name, [field.attribute]))
        return value

    if is_key:

        def read_key_first(item: Mapping[str, Value]) -> Any:
            value = read_keys(item)
            return read(item) if value is None else value

        return read_key_first
    if plain is not None:

        def read_plain(item: Mapping[str, Value]) -> Any:
            stored = item.get(name)
            return stored if type(stored) is plain else read(item)

        return read_plain
    return read
