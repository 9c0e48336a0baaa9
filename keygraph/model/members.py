"""What a record type is made of: its stored fields, its ends, its lists and its methods.

They are made by `keygraph.resolve.fields` and never change afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from keygraph.dynamo.conditions import Path
from keygraph.keys.template import FieldPath, Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.declaration import ListOptions
from keygraph.names import camel

if TYPE_CHECKING:
    from keygraph.model.records import RecordType


@dataclass(frozen=True, eq=False)
class Field:
    """A field that is stored in the item."""

    name: str
    type: FieldType
    optional: bool
    attribute: Path
    default: Any
    """Its value where the item has none; dataclasses.MISSING for no default."""
    description: str | None

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(frozen=True, eq=False)
class End:
    """A field whose annotation is a node type, or a union of some: where the item keeps that node's key.

    An end has an identity, which is the node's own where there is one type, or where the keys of all are alike. Else
    it is the text of the partition key, which tells the type.
    """

    name: str
    members: tuple[RecordType, ...]
    """The types that the node can be of, in the order in which they are named."""
    optional: bool
    attributes: Mapping[FieldPath, Path]
    """For each part of the end's identity, by its path in the node, the attribute that holds it."""
    description: str | None
    text: NodeText | None = None
    """How the node stands in a key where the keys of the members differ."""

    @property
    def type_name(self) -> str:
        """The types in words, for messages."""
        return " or ".join(member.name for member in self.members)

    @property
    def alike(self) -> list[tuple[RecordType, ...]]:
        """The members in groups, of which each has one key."""
        if self.text is None:
            return [self.members]
        names = (variant.members for variant in self.text.variants)
        return [tuple(member for member in self.members if member.name in group) for group in names]

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether there is a key that members of several types have alike."""
        return any(len(members) > 1 for members in self.alike)

    @cached_property
    def identity(self) -> tuple[Slot, ...]:
        """The slots of the end's identity, as the node's type sees them; the node itself is at the empty path."""
        return self.members[0].identity if self.text is None else (Slot((), self.text),)

    def identity_of(self, record: RecordType, identity: tuple[str, ...]) -> tuple[str, ...]:
        """The end's identity where a node of a member type stands there."""
        if self.text is None:
            return identity
        return (record.partition_text(identity),)

    def nodes(self, identity: tuple[str, ...]) -> tuple[tuple[RecordType, ...], tuple[str, ...]]:
        """The types that the node with this identity of the end can be of, and its own identity.

        They are several where the keys of members are alike. Raises ValueError where it is no key of a member.
        """
        if self.text is None:
            return self.members, identity
        variant, texts = self.text.read(*identity)
        members = tuple(member for member in self.members if member.name in variant.members)
        return members, tuple(texts.get(slot.name, "") for slot in members[0].identity)


@dataclass(frozen=True, eq=False)
class DeclaredList:
    """A field annotated `Many[X]` or `One[X]`."""

    name: str
    of: RecordType
    is_one: bool
    options: ListOptions
    description: str | None


@dataclass(frozen=True, eq=False)
class Method:
    """A method that is a field."""

    name: str
    function: Any
    needs: tuple[str, ...] | None
    signature: inspect.Signature
    hints: Mapping[str, Any]
    types: tuple[FieldType, ...]
    """The types of what it returns and takes, where they are no nodes."""
    nodes: tuple[RecordType, ...]
    """The types of the node that it returns; none where it returns something else."""
    description: str | None

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """Its parameters but `self`, by the names of the arguments that a reader gives."""
        _, *names = self.signature.parameters
        return {camel(name): name for name in names}
