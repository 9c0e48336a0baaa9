"""The table and its indexes: names, key attributes and projections.

A store is opened for a `Table`. To declare keys in an `Index`, a record type calls it: `gsi1("USER", "{created_at}")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from keygraph.dynamo.items import Value, number, number_text

KeyType: TypeAlias = Literal["S", "N", "B"]
KeyValue: TypeAlias = str | Decimal | bytes
Key: TypeAlias = tuple[KeyValue, ...]
"""The values of an item's table key: its partition key, and its sort key if the table has one."""
Position: TypeAlias = tuple[KeyValue, ...]
"""The place of an item in a table or an index: the values of `Table.position(index)`."""
Projection: TypeAlias = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]

_PythonType: TypeAlias = type[str] | type[Decimal] | type[bytes]
_KEY_PYTHON_TYPES: dict[KeyType, _PythonType] = {"S": str, "N": Decimal, "B": bytes}


class KeyAttribute(NamedTuple):
    """The name and the type (`S`, `N` or `B`) of an attribute that is a key."""

    name: str
    type: KeyType = "S"

    def holds(self, value: object) -> bool:
        """Returns whether the value has this key's type."""
        return type(value) is _KEY_PYTHON_TYPES[self.type]

    def text(self, value: object) -> str | None:
        """Returns the text of a key's value, as templates read it; None if the value has another type.

        A number's text is its digits; the text of bytes has one character for each byte.
        """
        match value:
            case str() if self.type == "S":
                return value
            case Decimal() if self.type == "N":
                return number_text(value)
            case bytes() if self.type == "B":
                return value.decode(self.encoding)
        return None

    @property
    def encoding(self) -> str:
        """The encoding of its texts, by its usual name."""
        return "Latin-1" if self.type == "B" else "UTF-8"

    def value(self, text: str) -> KeyValue:
        """Returns the key's value from a text that a template rendered. Raises ValueError if it cannot be one."""
        if self.type == "N":
            return number(text)
        return text.encode(self.encoding) if self.type == "B" else text


def key_type(value: KeyValue) -> KeyType:
    """Returns the type of a key's value."""
    return next(key for key, type_ in _KEY_PYTHON_TYPES.items() if type(value) is type_)


Shards: TypeAlias = int | range | list[str] | tuple[str, ...]
"""The values of `shards=`: a count (the shards are 0, 1 and so on), their numbers, or their names."""
KeyDeclaration: TypeAlias = str | tuple[str, KeyType]


def _key_attribute(declared: KeyDeclaration) -> KeyAttribute:
    return KeyAttribute(declared) if isinstance(declared, str) else KeyAttribute(*declared)


@dataclass(frozen=True, slots=True, init=False)
class _KeySchema:
    """The part that a table and an index have in common."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None
    key_names: frozenset[str] = field(repr=False, compare=False)
    """The attributes of the keys; asked for by each answer."""

    def __init__(
        self, name: str, partition_key: KeyDeclaration, sort_key: KeyDeclaration | None = None
    ) -> None:
        set_ = object.__setattr__
        set_(self, "name", name)
        set_(self, "partition", _key_attribute(partition_key))
        set_(self, "sort", None if sort_key is None else _key_attribute(sort_key))
        set_(self, "key_names", frozenset(key.name for key in self.keys))

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """The partition key, and the sort key if there is one."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def shown_keys(self) -> str:
        """The names and types of the keys, for messages."""
        return " and ".join(f"{key.name} ({key.type})" for key in self.keys)


def _merged(own: tuple[KeyAttribute, ...], others: tuple[KeyAttribute, ...]) -> tuple[KeyAttribute, ...]:
    names = {key.name for key in own}
    return own + tuple(key for key in others if key.name not in names)


@dataclass(frozen=True, slots=True)
class IndexKey:
    """The keys that a record type has in one index: their templates, and the fields that read it.

    `lists` names the root list that reads it (False: none), `finds` the root field that finds one item; `shards` are
    the partitions that it is spread over.
    """

    index: Index
    templates: tuple[str, ...]
    lists: str | Literal[False] | None = None
    finds: str | None = None
    shards: Shards | None = None


@dataclass(frozen=True, slots=True, init=False)
class Index(_KeySchema):
    """A global or local secondary index: its name, its key attributes and what it projects."""

    projection: Projection
    local: bool
    declared: Index | None = field(compare=False, repr=False)
    """The index of the model, if this one has another name than it does."""

    def __init__(
        self,
        name: str,
        partition_key: KeyDeclaration,
        sort_key: KeyDeclaration | None = None,
        *,
        projection: Literal["ALL", "KEYS_ONLY"] | list[str] | tuple[str, ...] = "ALL",
        local: bool = False,
    ) -> None:
        """`projection` is "ALL", "KEYS_ONLY", or the names of the attributes that it has in addition to its keys."""
        _KeySchema.__init__(self, name, partition_key, sort_key)
        named = projection if isinstance(projection, str) else tuple(projection)
        object.__setattr__(self, "projection", named)
        object.__setattr__(self, "local", local)
        object.__setattr__(self, "declared", None)

    def renamed(self, name: str) -> Index:
        """Returns the index under another name than the model's."""
        other = Index(name, self.partition, self.sort, projection=self.projection, local=self.local)
        object.__setattr__(other, "declared", self)
        return other

    def __call__(
        self,
        *templates: str,
        lists: str | Literal[False] | None = None,
        finds: str | None = None,
        shards: Shards | None = None,
    ) -> IndexKey:
        """Returns the keys of a record type in this index: its partition template and its sort template."""
        return IndexKey(self, templates, lists, finds, shards)

    @property
    def named(self) -> frozenset[str]:
        """The attributes that it projects by name."""
        return frozenset(() if isinstance(self.projection, str) else self.projection)


@dataclass(frozen=True, slots=True, init=False)
class Table(_KeySchema):
    """A DynamoDB table: its name, its key attributes and its indexes."""

    indexes: tuple[Index, ...]
    origin: str | None = field(compare=False, repr=False)
    """DynamoDB's name for this table alone, and when it was made, whatever address it was reached at; None if it is unknown."""
    _positions: Mapping[str | None, tuple[KeyAttribute, ...]] = field(compare=False, repr=False)

    def __init__(
        self,
        name: str,
        *,
        partition_key: KeyDeclaration,
        sort_key: KeyDeclaration | None = None,
        indexes: Sequence[Index] = (),
        origin: str | None = None,
    ) -> None:
        _KeySchema.__init__(self, name, partition_key, sort_key)
        object.__setattr__(self, "indexes", tuple(indexes))
        object.__setattr__(self, "origin", origin)
        # Used for every page. If two indexes have the same name, which is a mistake, the first one counts.
        positions = {index.name: _merged(index.keys, self.keys) for index in reversed(self.indexes)}
        object.__setattr__(self, "_positions", {None: self.keys, **positions})

    def index(self, name: str) -> Index:
        """Returns the index of that name. Raises KeyError if the table lacks it."""
        for index in self.indexes:
            if index.name == name:
                return index
        raise KeyError(name)

    def with_indexes(self, indexes: Sequence[Index]) -> Table:
        """Returns the table with these indexes instead of its own."""
        return Table(self.name, partition_key=self.partition, sort_key=self.sort, indexes=indexes)

    def named(self, name: str, indexes: Mapping[str, str] = MappingProxyType({})) -> Table:
        """Returns the table under another name, with other names of these indexes."""
        renamed = [
            each.renamed(indexes[each.name]) if each.name in indexes else each for each in self.indexes
        ]
        return Table(name, partition_key=self.partition, sort_key=self.sort, indexes=renamed)

    def own(self, index: Index) -> Index:
        """Returns the index that the model declares, under the name that it has in this table."""
        return next((each for each in self.indexes if each.declared == index), index)

    def keyed(self, index: str | None) -> Table | Index:
        """Returns the target of a read with that index name: the index, or the table for None."""
        return self if index is None else self.index(index)

    def position(self, index: str | None) -> tuple[KeyAttribute, ...]:
        """Returns the attributes of an item's position: an index's keys, then the table's, without duplicates. Raises
        KeyError if the table lacks the index."""
        return self._positions[index]

    def projected(self, index: Index) -> frozenset[str] | None:
        """Returns the attributes that the index holds of its items; None for all."""
        if index.projection == "ALL":
            return None
        return index.named | {key.name for key in self.position(index.name)}

    def has(self, index: str | None, attribute: str) -> bool:
        """Returns whether the table (None) or the index holds that attribute of its items."""
        held = None if index is None else self.projected(self.index(index))
        return held is None or attribute in held

    def key_of(self, item: Mapping[str, Value]) -> Key:
        """Returns the item's table key. Raises KeyError if it lacks a key attribute."""
        # Called for every item of a batch, so there is no loop.
        partition: Any = item[self.partition.name]
        sort: Any = None if self.sort is None else item[self.sort.name]
        return (partition,) if self.sort is None else (partition, sort)

    def attributes_of(self, key: Key) -> dict[str, Value]:
        """Returns the attributes that hold a table key."""
        return {attribute.name: value for attribute, value in zip(self.keys, key, strict=True)}

    def position_of(self, item: Mapping[str, Value], index: str | None) -> Position:
        """Returns the item's position in the table or the index. Raises KeyError if it lacks a key attribute."""
        return tuple(cast(KeyValue, item[key.name]) for key in self.position(index))

    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        """Returns every attribute that is a key of the table or of an index, without duplicates."""
        found: dict[str, KeyAttribute] = {}
        for keys in (self.keys, *(index.keys for index in self.indexes)):
            for key in keys:
                found.setdefault(key.name, key)
        return tuple(found.values())
