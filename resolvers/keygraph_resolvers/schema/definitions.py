"""Strawberry definitions made without classes to decorate: object types, inputs, enums, fields, arguments.

Strawberry reads types from decorated classes; here they come from a graph. An empty type is made first and gets its
fields later, so types may refer to each other in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

import strawberry
from strawberry.annotation import StrawberryAnnotation
from strawberry.directive import DirectiveLocation
from strawberry.schema_directives import OneOf
from strawberry.types import get_object_definition
from strawberry.types.arguments import InputContext, StrawberryArgument
from strawberry.types.base import (
    StrawberryList,
    StrawberryObjectDefinition,
    StrawberryOptional,
    StrawberryType,
)
from strawberry.types.enum import EnumValue, StrawberryEnumDefinition
from strawberry.types.field import StrawberryField
from strawberry.types.union import StrawberryUnion
from strawberry.types.unset import UNSET

from keygraph_resolvers.naming.descriptions import of_member
from keygraph_resolvers.schema.field_kinds import FieldKind
from keygraph_resolvers.schema.strawberry_internals import set_definition

OutputType: TypeAlias = "StrawberryType | type"
_MARK = "$"
"""The first character of arguments' Python names: Strawberry gives `info` and others a special meaning."""


@strawberry.directive(
    locations=[DirectiveLocation.QUERY],
    description="Strongly consistent reads, at twice the cost. Lists that do not support them are refused.",
)
def consistent() -> None:
    """Does nothing: the plan reads the directive."""


CONSISTENT = consistent


def nullable(type_: OutputType) -> StrawberryOptional:
    return StrawberryOptional(type_)


def list_of(type_: OutputType) -> StrawberryList:
    return StrawberryList(type_)


class _Known(StrawberryAnnotation):
    """The annotation of a type made here: Strawberry need not resolve it, which saves a quarter of its work."""

    def evaluate(self) -> Any:
        return self.raw_annotation

    def resolve(self, **_: object) -> Any:
        return self.raw_annotation


class ServedField(StrawberryField):
    """A field of a derived type: a name, a type, and its kind."""

    def __init__(
        self,
        name: str,
        type_: OutputType,
        kind: FieldKind,
        arguments: Sequence[StrawberryArgument] = (),
        description: str | None = None,
        deprecated: str | None = None,
    ) -> None:
        """`deprecated` is the reason for deprecation."""
        super().__init__(
            python_name=name,
            graphql_name=name,
            type_annotation=_Known(type_),
            description=description,
            deprecation_reason=deprecated,
        )
        self.kind = kind
        self.arguments = list(arguments)


_KIND = "keygraph"
"""The key under which the metadata of a user's field holds its kind."""


def own_field(field: StrawberryField, type_: OutputType, kind: FieldKind) -> StrawberryField:
    """A copy of a user's field with another type, and the kind that continues from its resolver's result."""
    made = copy(field)
    made.type_annotation = _Known(type_)
    made.metadata = MappingProxyType({**(field.metadata or {}), _KIND: kind})
    return made


def kind_of(field: StrawberryField | None) -> FieldKind | None:
    """The kind of a field; None if the graph does not answer it."""
    if field is None or isinstance(field, ServedField):
        return None if field is None else field.kind
    kind: FieldKind | None = field.metadata.get(_KIND)
    return kind


def argument(
    name: str, type_: OutputType, description: str | None = None, default: object = UNSET
) -> StrawberryArgument:
    """An argument of a field."""
    return StrawberryArgument(_MARK + name, name, _Known(type_), description=description, default=default)


def object_type(
    name: str,
    description: str | None = None,
    *,
    interfaces: Sequence[type] = (),
    is_interface: bool = False,
    resolve_type: Callable[..., str] | None = None,
) -> type:
    """An object type or an interface without fields; `add_fields` adds them."""
    return _shell(
        name,
        description,
        is_interface=is_interface,
        interfaces=[definition_of(interface) for interface in interfaces],
        # Sources are not instances of these classes: an interface's resolve_type finds their types.
        is_type_of=(lambda source, info: True) if interfaces else None,
        resolve_type=resolve_type,
    )


class UnionType(StrawberryUnion):
    """A union of object types. Sources are not instances of their classes: `resolve_type` finds their types."""

    def __init__(
        self, name: str, members: Sequence[type], resolve_type: Callable[..., str], description: str
    ) -> None:
        super().__init__(name, tuple(map(_Known, members)), description=description)
        self._resolve_type = resolve_type

    def get_type_resolver(self, type_map: Any) -> Callable[..., str]:
        return self._resolve_type


def input_type(name: str, description: str | None = None, *, is_one_of: bool = False) -> type:
    """An input type without fields. Its values reach the resolver as mappings, keyed by GraphQL names.

    `is_one_of`: exactly one of its fields must be given.
    """
    directives = (OneOf(),) if is_one_of else ()
    return _shell(name, description, is_input=True, from_input=_as_mapping, directives=directives)


def _as_mapping(cls: type, value: Mapping[str, Any], context: InputContext) -> Mapping[str, Any]:
    return value


def _shell(name: str, description: str | None, **options: Any) -> type:
    cls = type(name, (), {})
    settings: dict[str, Any] = {
        "is_input": False,
        "is_interface": False,
        "interfaces": [],
        "is_type_of": None,
        "resolve_type": None,
        "directives": (),
        **options,
    }
    definition = StrawberryObjectDefinition(
        name=name,
        origin=cls,
        description=description,
        extend=False,
        fields=[],
        **settings,
    )
    set_definition(cls, definition)
    return cls


def definition_of(type_: type) -> StrawberryObjectDefinition:
    """The Strawberry definition of a type that Strawberry or this module has made."""
    return get_object_definition(type_, strict=True)


def add_fields(type_: type, fields: Sequence[StrawberryField]) -> None:
    definition_of(type_).fields.extend(fields)


def input_field(
    name: str,
    type_: OutputType,
    description: str | None = None,
    default: object = MISSING,
    deprecated: str | None = None,
) -> StrawberryField:
    """A field of an input. Required fields cannot be deprecated."""
    is_required = default is MISSING and not isinstance(type_, StrawberryOptional)
    if default is MISSING and not is_required:
        default = UNSET
    return StrawberryField(
        python_name=name,
        graphql_name=name,
        type_annotation=_Known(type_),
        description=description,
        default=default,
        deprecation_reason=None if is_required else deprecated,
    )


def enum_type(
    enum: type[Enum], description: str | None, member_descriptions: Mapping[str, str]
) -> StrawberryEnumDefinition:
    """The GraphQL enum of a Python enum, which stays unchanged; its names are the members'."""
    values = [
        EnumValue(name, member.value, description=member_descriptions.get(name) or of_member(name))
        for name, member in enum.__members__.items()
        if member.name == name
    ]
    return StrawberryEnumDefinition(enum, enum.__name__, values, description)
