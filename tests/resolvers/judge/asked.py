"""An operation as plain Python, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.resolvers.judge.items import Identity, Row
from tests.resolvers.judge.plain import End, Listing, Path, Slot, Type, camel


@dataclass(frozen=True)
class Leaf:
    """A field or a method of an item, or one of `id` and `__typename`."""

    name: str


@dataclass(frozen=True)
class EndAt:
    end: End
    inners: Mapping[Type, Selection]
    """By the type of the node."""


@dataclass(frozen=True)
class Compared:
    """One comparison of `where`."""

    path: Path
    """A field, or an end and a key field of its node."""
    operator: str
    value: Any


@dataclass(frozen=True)
class Joined:
    """`and`, `or` or `not`."""

    word: str
    inner: tuple[Where, ...]


Where: TypeAlias = Compared | Joined


@dataclass
class Said:
    """What a client says of a list."""

    required: dict[Slot, Any] = field(default_factory=dict)
    ranged: dict[Slot, dict[str, Any]] = field(default_factory=dict)
    where: Where | None = None
    first: int | None = None
    last: int | None = None
    after: Row | None = None
    before: Row | None = None
    descending: bool = False
    to: list[Identity] | None = None


@dataclass(frozen=True)
class ListAt:
    listing: Listing
    said: Said
    edge: Selection | None
    """What is selected of edges besides their nodes, and the cursor."""
    edge_node: Selection | None
    nodes: Selection | None
    counts: bool = False
    looks: bool = False


@dataclass(frozen=True)
class ByKey:
    type: Type
    identity: Identity
    inner: Selection
    by_id: bool = False
    """Whether it is asked for by its global id."""


Selected: TypeAlias = Leaf | EndAt | ListAt | ByKey
Selection: TypeAlias = Mapping[str, Selected]
"""By response keys."""


class Writer:
    """Writes the text of a selection."""

    def __init__(
        self,
        names: Mapping[tuple[Listing, Slot], str],
        cursors: Mapping[tuple[Listing, Row], str],
        ids: Mapping[tuple[Type, tuple[Any, ...]], str],
        compared: Mapping[tuple[Type, Path], str],
    ) -> None:
        """`names` are those of arguments, `compared` those in `where`; cursors and ids are what the product gave."""
        self.names = names
        self.cursors = cursors
        self.ids = ids
        self.compared = compared

    def selection(self, selection: Selection) -> str:
        return "{ " + " ".join(self._selected(key, each) for key, each in selection.items()) + " }"

    def _selected(self, key: str, each: Selected) -> str:
        match each:
            case Leaf(name):
                return f"{key}: {name if name.startswith('__') else camel(name)}"
            case EndAt(end, inners) if end.others:
                parts = [f"... on {node.name} {self.selection(inner)}" for node, inner in inners.items()]
                return f"{key}: {camel(end.name)} {{ {' '.join(parts)} }}"
            case EndAt(end, inners):
                return f"{key}: {camel(end.name)} {self.selection(inners[end.node])}"
            case ByKey(type_, identity, inner, True):
                text = self.ids[type_, type_.canonical(identity)]
                return f'{key}: node(id: "{text}") {{ ... on {type_.name} {self.selection(inner)} }}'
            case ByKey(type_, identity, inner):
                given = ", ".join(
                    f"{camel(name)}: {type_.fields[name].kind.literal(value)}" for name, value in identity
                )
                return f"{key}: {type_.query}({given}) {self.selection(inner)}"
        return f"{key}: {camel(each.listing.name)}{self._arguments(each)} {self._connection(each)}"

    def _connection(self, each: ListAt) -> str:
        listing = each.listing
        if listing.is_one:
            if listing.far_end is None:
                return self.selection(each.edge_node or {})
            inner = [self._selected(key, leaf) for key, leaf in (each.edge or {}).items()]
            inner += [f"node {self.selection(each.edge_node)}"] if each.edge_node else []
            return "{ " + " ".join(inner) + " }"
        parts = []
        if each.edge is not None:
            inner = ["cursor", *(self._selected(key, leaf) for key, leaf in each.edge.items())]
            inner += [f"node {self.selection(each.edge_node)}"] if each.edge_node else []
            parts.append(f"edges {{ {' '.join(inner)} }}")
        if each.nodes:
            parts.append(f"nodes {self.selection(each.nodes)}")
        if each.counts:
            parts.append("totalCount")
        if each.looks:
            parts.append("pageInfo { hasNextPage hasPreviousPage startCursor endCursor }")
        return "{ " + " ".join(parts) + " }"

    def _arguments(self, each: ListAt) -> str:
        listing, said = each.listing, each.said
        given = []
        for slot, value in said.required.items():
            given.append(f"{self.names[listing, slot]}: {listing.type.kind_of(slot.path).literal(value)}")
        for slot, operators in said.ranged.items():
            kind = listing.type.kind_of(slot.path)
            inner = ", ".join(f"{operator}: {kind.literal(value)}" for operator, value in operators.items())
            given.append(f"{self.names[listing, slot]}: {{ {inner} }}")
        if said.where is not None:
            given.append(f"where: {self._where(listing.type, said.where)}")
        for name in ("first", "last"):
            if getattr(said, name) is not None:
                given.append(f"{name}: {getattr(said, name)}")
        for name in ("after", "before"):
            if getattr(said, name) is not None:
                given.append(f'{name}: "{self.cursors[listing, getattr(said, name)]}"')
        if said.descending:
            given.append("direction: DESC")
        if said.to is not None:
            node = listing.far_end.node if listing.far_end else listing.type
            ids = ", ".join(f'"{self.ids[node, node.canonical(identity)]}"' for identity in said.to)
            given.append(f"to: [{ids}]")
        return f"({', '.join(given)})" if given else ""

    def _where(self, type_: Type, where: Where) -> str:
        if isinstance(where, Compared):
            kind = type_.kind_of(where.path)
            if where.operator == "exists":
                value = "true" if where.value else "false"
            elif where.operator == "between":
                low, high = map(kind.literal, where.value)
                value = f"{{from: {low}, to: {high}}}"
            elif where.operator == "in":
                value = f"[{', '.join(map(kind.literal, where.value))}]"
            else:
                value = kind.literal(where.value)
            return f"{{ {self.compared[type_, where.path]}: {{ {where.operator}: {value} }} }}"
        inner = [self._where(type_, each) for each in where.inner]
        return f"{{ {where.word}: {inner[0] if where.word == 'not' else '[' + ', '.join(inner) + ']'} }}"
