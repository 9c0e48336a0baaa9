"""A field that is stored in items, and how its value is read from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from decimal import Decimal
from typing import Any, TypeAlias, cast

from keygraph.declare.declaration import OF_ENDS, Keeper, Kept
from keygraph.dynamo.conditions import Path, at_path, put_at_path
from keygraph.dynamo.items import Value
from keygraph.errors import CorruptItem
from keygraph.keys.types import AVERAGE_PARTS, FieldType, Kind, decoder

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
    kept_where: Mapping[str, Any] | None = None
    """The condition that an item of the list meets to be counted, as declared."""
    keeper: Keeper = "transaction"
    """Who keeps a count, sum or copy."""
    kept_size: int = 0
    """The most values that a top holds, or nodes that a walk found."""
    kept_within: str = ""
    """The field or end whose value those have that are ranked among each other; empty for all."""

    follows: bool = False
    """Whether it is a copy that changes with its source."""

    former: Path | None = None
    """The attribute that holds it in items that lack the other one: its name was changed."""

    shards: int = 0
    """The number of items over which a count, sum or average is spread in addition to the node's own; 0 for none."""

    ids_name: str = ""
    """The name of a list or set of nodes in inputs and filters: `thread_ids` of `threads`."""

    @property
    def kept_attribute(self) -> Path:
        """The attribute that holds all that the server stores for the field: its own, or the map that it is in."""
        return self.attribute[:-1] if self.kept in OF_ENDS else self.attribute

    @property
    def shard_attributes(self) -> dict[Path, str]:
        """The attributes of the node's own numbers, each with the one that has its part in the shards."""
        paths = (
            [(*self.attribute, part) for part in AVERAGE_PARTS]
            if self.kept == "average"
            else [self.attribute]
        )
        return {path: ".".join(path) for path in paths} if self.shards else {}

    @property
    def attributes(self) -> tuple[Path, ...]:
        """The attributes that may hold it, the present one first."""
        return (self.attribute,) if self.former is None else (self.attribute, self.former)

    @property
    def is_kept_later(self) -> bool:
        """Whether `keygraph summarize` or `keygraph follow` writes it, and no transaction."""
        return self.keeper != "transaction"

    @property
    def is_kept_by_stream(self) -> bool:
        """Whether `keygraph follow` writes it."""
        return self.keeper == "stream"

    @property
    def is_of_two_levels(self) -> bool:
        """Whether it is computed over the lists of the nodes of a list."""
        return self.kept_of.count(".") > (self.kept != "count")

    @property
    def is_only_by_job(self) -> bool:
        """Whether no transaction could keep it."""
        return self.is_of_two_levels or self.kept in ("degree", "top", "rank", "walk")

    @property
    def lists(self) -> list[str]:
        """The names of the lists that it is computed over; of two levels, the first one's and the second one's."""
        if self.kept == "degree":
            return self.kept_of.split(" ")
        if self.kept in ("copy", "rank", "as_of") or not self.kept_of:
            return []
        names = self.kept_of.split(".")
        return names if self.kept == "count" else names[:-1]

    @property
    def input_name(self) -> str:
        return self.ids_name or self.name

    @property
    def may_be_null(self) -> bool:
        """Whether clients may get null."""
        return self.is_null_elsewhere if self.is_external else self.optional

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
    attributes = " and ".join(".".join(path) for path in paths)
    return f"{owner}.{name} is missing in an item{'' if attributes == name else f' (attribute {attributes})'}"


def field_reader(field: Field, owner: str, read_keys: ValueReader, *, is_key: bool) -> ValueReader:
    """Returns a function that reads the field's value: from its attribute, else from a key that holds it, else its
    default.

    `owner` is the type's name, for messages; `read_keys` reads the value from keys; `is_key` says that the attribute is
    itself a key, which is parsed first. The result raises CorruptItem if the attribute does not fit, or if a required
    field has no value.
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

    if not is_key:
        return read
    return lambda item: read(item) if (value := read_keys(item)) is None else value


def in_either(read: ValueReader, field: Field) -> ValueReader:
    """Returns a function that reads the same field from items that hold it in its present or its former attribute."""
    return lambda item: read(in_present_attributes(item, [field]))


def in_present_attributes(item: Mapping[str, Value], fields: Iterable[Field]) -> Mapping[str, Value]:
    """Returns the item with the values of these fields in their present attributes."""
    for field in fields:
        # A stored null is no value.
        if field.former is None or at_path(item, field.attribute) is not None:
            continue
        value = cast(Value, at_path(item, field.former))
        if value is not None:
            moved = dict(item)
            put_at_path(moved, field.attribute, value)
            item = moved
    return item


def without_empty_text(read: ValueReader, attribute: Path) -> ValueReader:
    """Returns a function that reads the same field from items, but for which an empty text is no value."""

    def read_text(item: Mapping[str, Value]) -> Any:
        if at_path(item, attribute) == "":
            item = dict(item)
            put_at_path(item, attribute, None)
        return read(item)

    return read_text
