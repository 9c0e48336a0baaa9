"""The recorded contents of a model file: a `Declaration` for each class, with the specifiers of its fields."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypedDict

from keygraph.access.language import AccessRule
from keygraph.dynamo.table import Index, IndexKey, Shards
from keygraph.keys.formats import Format

TypeValue: TypeAlias = str | Mapping[str, str | Mapping[str, str | bool] | None] | None
"""The argument of `type=`: the value of the type attribute, or the values of several attributes, or comparisons of
them: `{"GSI1PK": {"beginsWith": "ORDER#"}, "closedAt": {"exists": True}}`."""
Kept: TypeAlias = Literal[
    "created", "updated", "version", "id", "degree", "top", "rank", "count", "sum", "average", "minimum", "maximum",
    "latest", "copy", "walk", "as_of",
]  # fmt: skip
"""What the server keeps in a field: when its record was created or last written, how often it was written, a new id,
the number of items in a list, the sum or average of one of their fields, its smallest, largest or last value, a copy
of a field of the node at an end, the nodes that a walk finds, or when the job computed another field."""
OF_ENDS = frozenset[Kept | None]({"minimum", "maximum", "latest"})
"""What is the value of the first or the last item of a list."""
Keeper: TypeAlias = Literal["transaction", "job", "stream"]
"""Who keeps a count, sum or copy: the transaction that writes what it depends on, `keygraph summarize`, or
`keygraph follow`, which reads the table's stream."""
OF_STREAM = frozenset[Kept | None]({"count", "sum", "average", "walk"})
"""What can be kept by the stream: each change adds to it, or for a walk, the node walks again."""
WriteName: TypeAlias = Literal["create", "put", "update", "upsert", "move", "delete"]
WriteKind: TypeAlias = WriteName | Literal["bulk"]
"""What `writes=` can name; `bulk` gives each of the type's mutations a plural."""
EVERY_WRITE: tuple[WriteKind, ...] = ("create", "put", "update", "upsert", "move", "delete", "bulk")
USUAL_WRITES: tuple[WriteKind, ...] = ("create", "update", "delete")
USUAL_WRITES_OF_OTHERS: tuple[WriteKind, ...] = ("put", "delete")
Writes: TypeAlias = bool | Sequence[WriteKind] | None
"""The argument of `writes=`: all mutations, none, these, or with None the usual ones."""
DEFAULT_ITEM_BYTES = 1024
"""The assumed size of an item, in bytes, if its type declares no `item_bytes`."""
RecordKind: TypeAlias = Literal["node", "edge", "record", "fields"]


class SharedDefault:
    """Makes copies of a default that is assigned to a field and can be changed, which dataclasses refuse."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return copy.deepcopy(self.value)


@dataclass(frozen=True, slots=True)
class StoredAs:
    """The place of a field in the item: a path of names, or for an end one name for each key field."""

    path: tuple[str, ...]
    attributes: Mapping[str, str]
    format: Format | None = None
    """The format of its values, if not the usual one for the type."""
    kept: Kept | None = None
    """What the server keeps in it."""
    kept_of: str = ""
    """The source of a count, sum or copy: a list, a list and a field of its items, or an end and a field."""
    kept_where: Mapping[str, Any] | None = None
    """The condition that an item meets to be counted."""
    in_key: bool = False
    """Whether it is held by a key and by no attribute."""
    whole_key: bool = False
    """Whether the attribute of an end holds the node's whole partition key."""
    was: str = ""
    """The attribute in which older items hold the field."""
    is_expiry: bool = False
    """Whether it is the time when the item expires."""
    follows: bool = False
    """Whether it is a copy that changes with its source."""
    access: Sequence[AccessRule] = ()
    """Who may read and write it."""
    keeper: Keeper = "transaction"
    """Who keeps a count, sum or copy."""
    size: int = 0
    """The most values that a top holds."""
    within: str = ""
    """The field or end whose value those have that are ranked among each other; empty for all."""
    shards: int = 0
    """The number of items over which a count, sum or average is spread in addition to the node's own; 0 for none."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options by which a list chooses among the possible paths."""

    at: str | None
    index: Index | None
    """The index to read; None is the table."""
    any_index: bool
    """Whether no index was named."""
    access: Sequence[AccessRule] = ()
    """Who may read it."""
    of: object = None
    """The types that a root list contains; the list of a node names them in its annotation."""
    needs: tuple[str, ...] | None = None
    """The required arguments that it is meant to have; None if nothing is said about them."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """The lists that a walk follows, and its limits."""

    lists: tuple[str, ...]
    budget: int | None
    """The most items it may examine; None for the server's limit."""
    access: Sequence[AccessRule]
    """Who may read it."""
    depth: int | None = None
    """The most edges between a node and the start; None for a ranking, which follows each list once."""
    weight: str | None = None
    """The field of the last list's items that weights a path."""
    decay: tuple[str, timedelta] | None = None
    """The field of the last list's items that says when a path began, and the time after which its weight is halved."""
    include_first: bool = False
    """Whether the nodes of the first list are ranked too."""
    keeper: Keeper = "transaction"
    """Who keeps what it finds on the node: a job, or nobody, so that each query walks."""
    keep: int = 0
    """The most nodes that are kept."""

    @property
    def weighing(self) -> frozenset[str]:
        """The fields of the last list's items that determine their weight."""
        decay = () if self.decay is None else self.decay[:1]
        return frozenset(name for name in (self.weight, *decay) if name is not None)

    @property
    def is_kept(self) -> bool:
        """Whether its node keeps what it finds."""
        return self.keeper != "transaction"


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes for clients on a type, a field or a list, in addition to its description."""

    deprecated: str | None = None
    """Why it is deprecated and what to use instead; None if it is not."""
    shareable: bool = False
    """Whether other servers of the same supergraph may have it too."""
    external: bool = False
    """Whether another server of the supergraph owns it and this one only refers to it."""


NO_NOTES = Notes()


@dataclass(frozen=True, slots=True)
class CheckRule:
    """Conditions on a record after every write, and what a client is told where it would not."""

    where: Mapping[str, Any]
    message: str


class TypeOptions(TypedDict, total=False):
    """The options of the decorators of nodes, edges and records; `node` describes them."""

    type: TypeValue
    shards: Shards | None
    lists: str | Literal[False] | None
    item_bytes: int | None
    writes: Writes
    check: Sequence[CheckRule]
    access: Sequence[AccessRule]
    deprecated: str | None
    shareable: bool


class NodeOptions(TypeOptions, total=False):
    item: bool
    gather: bool


class EdgeOptions(TypeOptions, total=False):
    mirror: bool
    counterpart: str | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """The arguments that a class's decorator was given."""

    kind: RecordKind
    keys: tuple[str | IndexKey, ...] = ()
    type: TypeValue = None
    item: bool = True
    shards: Shards | None = None
    lists: str | Literal[False] | None = None
    mirror: bool = False
    counterpart: str | None = None
    item_bytes: int | None = None
    writes: Writes = None
    gather: bool = False
    check: Sequence[CheckRule] = ()
    access: Sequence[AccessRule] = ()
    deprecated: str | None = None
    shareable: bool = False
    docstring: str | None = None
    own: Mapping[str, StoredAs | ListOptions | WalkOptions] = dataclasses.field(default_factory=dict)
    """The specifiers of the class's own fields."""
    own_notes: Mapping[str, Notes] = dataclasses.field(default_factory=dict)
    """The notes on the class's own fields and lists."""
    namespace: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The names in scope where the class was declared, if that is not a module."""


@dataclass(frozen=True, slots=True)
class MethodDeclaration:
    """The arguments that a method's decorator was given."""

    needs: tuple[str, ...] | None
    """The names that it reads; None for the whole item."""
    access: Sequence[AccessRule]
    notes: Notes


DECLARATION = "__keygraph__"
METHOD = "__keygraph_method__"


def declaration_of(cls: object) -> Declaration | None:
    """Returns the class's own declaration; None if it has none or is not a class."""
    return cls.__dict__.get(DECLARATION) if isinstance(cls, type) else None


def method_of(function: object) -> MethodDeclaration | None:
    """Returns what a method declares that is a field; None for anything else."""
    return getattr(function, METHOD, None)


def methods_of(cls: type) -> dict[str, MethodDeclaration]:
    """Returns the class's own methods that are fields."""
    return {name: method for name, each in vars(cls).items() if (method := method_of(each)) is not None}


def own_notes_of(cls: type) -> dict[str, Notes]:
    """Returns the notes on a class's own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else dict(declaration.own_notes)
    return own | {name: each.notes for name, each in methods_of(cls).items()}


def access_of(cls: type) -> tuple[Sequence[AccessRule], dict[str, Sequence[AccessRule]]]:
    """Returns the access rules of a class's own decorator, and those of its own fields, lists and methods."""
    declaration = declaration_of(cls)
    own = {} if declaration is None else {name: each.access for name, each in declaration.own.items()}
    own |= {name: each.access for name, each in methods_of(cls).items()}
    return () if declaration is None else declaration.access, own
