"""What a model file says, written down: of each class a `Declaration`, of each of its fields what stands on its right."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, cast

from keygraph.access.language import AccessRule
from keygraph.dynamo.table import Index, IndexKey, Shards
from keygraph.keys.formats import Format

TypeValue: TypeAlias = str | Mapping[str, str | None] | None
"""What `type=` takes: the value of the type attribute, or the values of several attributes."""
Kept: TypeAlias = Literal["created", "updated", "version", "id", "count", "sum", "copy"]
"""What the server keeps in a field: when its record was created or last written, how often it was, a new id, how many items a
list has, the sum of a field of theirs, a field of the node at an end."""
WriteName: TypeAlias = Literal["create", "put", "update", "upsert", "move", "delete"]
"""What a mutation does to a record."""
WRITES_OF_NODES: tuple[WriteName, ...] = ("create", "update", "upsert", "move", "delete")
WRITES_OF_OTHERS: tuple[WriteName, ...] = ("put", "update", "move", "delete")
Writes: TypeAlias = bool | Sequence[WriteName]
"""What `writes=` takes: whether there are mutations of a type, or which."""
DEFAULT_ITEM_BYTES = 1024
"""The size that an item is taken to have, in bytes, where its type declares no `item_bytes`."""
RecordKind: TypeAlias = Literal["node", "edge", "record", "fields"]


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Where a field stands in the item: a path of names, or for an end one name for each key field."""

    path: tuple[str, ...]
    attributes: Mapping[str, str]
    format: Format | None = None
    """How its values are written, where that is not as others of its type."""
    kept: Kept | None = None
    """What the server keeps in it."""
    kept_of: str = ""
    """What it counts, adds up or copies: the name of a list, or of a list and a field of its items, or of an end and a field."""
    in_key: bool = False
    """Whether no attribute holds it, but a key."""
    is_expiry: bool = False
    """Whether it is when the item expires."""
    access: Sequence[AccessRule] = ()
    """Who may read and write it."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How a list chooses among the paths that there are."""

    at: str | None
    index: Index | None
    """The index that is read; None is the table."""
    any_index: bool
    """Whether nothing was said of the index."""
    access: Sequence[AccessRule] = ()
    """Who may read it."""
    of: object = None
    """The types of which it lists items, of a list at the root: that of a node says it by its annotation."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What a walk follows, and how far."""

    lists: tuple[str, ...]
    budget: int | None
    """How many items it may look at; None: as many as the server allows."""
    access: Sequence[AccessRule]
    """Who may read it."""
    depth: int | None = None
    """How many edges away a node may be; None for a ranking, which follows each list once."""
    weight: str | None = None
    """The field of the last list's items by which a way counts."""
    decay: tuple[str, timedelta] | None = None
    """The field of the last list's items that says when a way began, and in what time it counts half as much."""
    include_first: bool = False
    """Whether the nodes of the first list are ranked too."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What clients are told of a type, a field or a list besides its description."""

    deprecated: str | None = None
    """Why it should not be used any more, and what to use; None where it may be."""
    shareable: bool = False
    """Whether other servers of the same supergraph may have it too."""
    external: bool = False
    """Whether another server of the supergraph has it, and this one only names it."""


NO_NOTES = Notes()


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions on a record after every write, and what a client is told where it would not."""

    where: Mapping[str, Any]
    message: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a decorator was told about a class."""

    kind: RecordKind
    keys: tuple[str | IndexKey, ...] = ()
    type_value: TypeValue = None
    is_virtual: bool = False
    shards: Shards | None = None
    lists: str | Literal[False] | None = None
    mirror: bool = False
    counterpart: str | None = None
    item_bytes: int | None = None
    writes: Writes = True
    gather: bool = False
    rules: Sequence[Rule] = ()
    access: Sequence[AccessRule] = ()
    docstring: str | None = None
    own: Mapping[str, StoredAs | ListOptions | WalkOptions] = dataclasses.field(default_factory=dict)
    """What stands on the right of the class's own fields."""
    notes: Notes = NO_NOTES
    own_notes: Mapping[str, Notes] = dataclasses.field(default_factory=dict)
    """Those of the class's own fields and lists."""
    namespace: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The names that the class could see where it was declared, when that is not a module."""


_DECLARATION = "__keygraph__"
_NEEDS = "__keygraph_needs__"
_ACCESS = "__keygraph_access__"
_NOTES = "__keygraph_notes__"


def declare(cls: type, declaration: Declaration) -> None:
    """Writes down what the decorator of a class was told."""
    setattr(cls, _DECLARATION, declaration)


def declare_method(
    function: Callable[..., Any],
    needs: tuple[str, ...] | None,
    access: Sequence[AccessRule],
    notes: Notes,
) -> None:
    """Makes a method a field."""
    setattr(function, _NEEDS, needs)
    setattr(function, _ACCESS, access)
    setattr(function, _NOTES, notes)


def declaration_of(cls: object) -> Declaration | None:
    """What the class's own decorator was told; None where it has none, or is no class."""
    return cls.__dict__.get(_DECLARATION) if isinstance(cls, type) else None


def needs_of(function: object) -> tuple[str, ...] | Literal[False] | None:
    """What a method that is a field reads, None is the whole item; False where it is no field."""
    return cast("tuple[str, ...] | Literal[False] | None", getattr(function, _NEEDS, False))


def own_notes_of(cls: type) -> dict[str, Notes]:
    """The notes on a class's own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else dict(declaration.own_notes)
    return own | {
        name: each.__dict__[_NOTES] for name, each in vars(cls).items() if needs_of(each) is not False
    }


def access_of(cls: type) -> tuple[Sequence[AccessRule], dict[str, Sequence[AccessRule]]]:
    """The rules that a class's own decorator was told, and those of its own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else {name: each.access for name, each in declaration.own.items()}
    own |= {name: each.__dict__[_ACCESS] for name, each in vars(cls).items() if needs_of(each) is not False}
    return () if declaration is None else declaration.access, own
