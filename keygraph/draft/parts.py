"""The parts of a draft: types with their fields, ends, lists, and keys in indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from keygraph.draft.kinds import ItemKind, Texts
from keygraph.draft.names import ScopeNames
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index
from keygraph.keys.template import SHARD, Reference
from keygraph.names import end_names, snake

SHARD_PLACEHOLDER = Reference(SHARD)
TemplatePart: TypeAlias = "str | Reference"


@dataclass
class DraftField:
    """A field: its annotation, and the doubts about it. Without an attribute, only a key holds it."""

    annotation: str
    optional: bool = False
    doubts: list[str] = field(default_factory=list)
    attribute: str | None = None
    nodes: DraftEnd | None = None
    """The end of each member, if it is a list or set of nodes."""

    def __str__(self) -> str:
        return f"{self.annotation} | None" if self.optional else self.annotation


@dataclass
class DraftEnd:
    """An end, and the attributes that hold it, by the node's key fields."""

    target: DraftType
    attributes: dict[str, str] = field(default_factory=dict)
    optional: bool = False
    doubts: list[str] = field(default_factory=list)
    whole_key: bool = False
    """Whether its attribute holds the node's whole partition key."""


@dataclass
class IndexCall:
    """A type's keys in an index: templates for those keys that have none yet."""

    index: Index
    templates: list[tuple[TemplatePart, ...]] = field(default_factory=list)
    shards: int | None = None


@dataclass
class DraftList:
    """A list of a node: its type, and the choice of its path."""

    of: DraftType
    is_one: bool = False
    at: str | None = None
    index: Index | None = None


@dataclass(eq=False)
class DraftType:
    """A record type of the draft. `source` has its items; a virtual node has none."""

    name: str
    kind: Literal["node", "edge", "record"]
    source: ItemKind | None
    partition: tuple[TemplatePart, ...] = ()
    sort: tuple[TemplatePart, ...] = ()
    shards: int | None = None
    type_value: str | None = None
    fields: dict[str, DraftField] = field(default_factory=dict)
    ends: dict[str, DraftEnd] = field(default_factory=dict)
    calls: dict[str, IndexCall] = field(default_factory=dict)
    lists: dict[str, DraftList] = field(default_factory=dict)
    root_lists: dict[str | None, str | Literal[False]] = field(default_factory=dict)
    """The names of root lists, by index; None is the table itself."""
    doubts: list[str] = field(default_factory=list)
    formats: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The formats of fields in keys, by path."""
    texts: dict[tuple[str, ...], Texts] = field(default_factory=dict)
    """The texts of fields and of ends' key fields, by path."""
    used: set[str] = field(default_factory=set)
    """The attributes that are already a field or an end."""
    names: ScopeNames = field(default_factory=ScopeNames)
    ids: frozenset[tuple[str, ...]] = frozenset()
    """For a node: the texts of its partition's key fields in the sample."""

    @property
    def is_virtual(self) -> bool:
        return self.source is None

    @property
    def items(self) -> Sequence[Item]:
        """Its items in the sample."""
        return self.source.items if self.source else ()

    @property
    def signature(self) -> tuple[str | None, ...]:
        """For a node: its partition key, with None for each key field."""
        return tuple(part if isinstance(part, str) else None for part in self.partition)

    @property
    def key_paths(self) -> list[str]:
        """For a node: the names of the key fields in its partition key."""
        return [
            part.path[0]
            for part in self.partition
            if isinstance(part, Reference) and part != SHARD_PLACEHOLDER
        ]

    def names_at(self, end: str) -> Mapping[str, str]:
        """For a node: returns the names of its key fields at an end of that name."""
        return end_names(end, snake(self.name), self.key_paths)

    @property
    def is_known_by_partition(self) -> bool:
        """For a node: whether its partition key identifies it, so that it can be an end."""
        inside = {part.path for part in self.partition if isinstance(part, Reference)}
        return (
            bool(inside)
            and self.shards is None
            and all(part.path in inside for part in self.sort if isinstance(part, Reference))
        )

    def attributes_of(self, path: tuple[str, ...]) -> list[str]:
        """Returns the attributes that hold a field, or a key field of an end; none if only keys hold it."""
        end = self.ends.get(path[0])
        if end is None:
            attribute = self.fields[path[0]].attribute
            return [attribute] if attribute else []
        return [attribute for field, attribute in end.attributes.items() if field in path[1:]]

    def placeholder(self, path: tuple[str, ...]) -> Reference:
        """Returns the placeholder of a field, in its format."""
        return Reference(path, self.formats.get(path, ""))

    def stands_at(self, signature: Sequence[str | None], at: int = 0) -> bool:
        """For a possible end: returns whether its whole partition key is at this place, before a word or the end."""
        end = at + len(self.signature)
        return (
            self.is_known_by_partition
            and tuple(signature[at:end]) == self.signature
            and tuple(signature[end : end + 1]) != (None,)
        )

    @property
    def single_ids(self) -> frozenset[str]:
        """For a node with one key field: its values in the sample."""
        return frozenset(id_[0] for id_ in self.ids) if len(self.key_paths) == 1 else frozenset()
