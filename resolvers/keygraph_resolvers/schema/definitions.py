"""Strawberry definitions made without classes to decorate: object types, inputs, enums, fields, arguments.

Strawberry reads types from decorated classes; here they come from a graph. An empty type is made first and gets its
fields later, so types may refer to each other in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast

import strawberry
from graphql import GraphQLField, GraphQLInputField
from strawberry.annotation import StrawberryAnnotation
from strawberry.directive import DirectiveLocation
from strawberry.schema_directives import OneOf
from strawberry.types import get_object_definition
from strawberry.types.arguments import StrawberryArgument
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

from keygraph.declare.docstrings import class_docstring, member_docstrings
from keygraph.keys.types import FieldType
from keygraph_resolvers.naming.descriptions import in_words, of_type
from keygraph_resolvers.naming.scalar_values import SCALARS
from keygraph_resolvers.schema.field_kinds import FieldKind
from keygraph_resolvers.schema.strawberry_internals import set_definition, strawberry_field

OutputType: TypeAlias = "StrawberryType | type"
MadeT = TypeVar("MadeT")
nullable, list_of = StrawberryOptional, StrawberryList
ID_TYPE: OutputType = cast(type, strawberry.ID)
_KIND = "keygraph"
"""The key under which a field's metadata holds its kind."""
_MARK = "$"
"""The first character of arguments' Python names: Strawberry gives `info` and others a special meaning."""


@strawberry.directive(
    locations=[DirectiveLocation.QUERY],
    description="Strongly consistent reads, at twice the cost. Lists that do not support them are refused.",
)
def consistent() -> None:
    """Does nothing: the plan reads the directive."""


CONSISTENT = consistent


class _MadeType(StrawberryAnnotation):
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
        description: str,
        arguments: Sequence[StrawberryArgument] = (),
        deprecated: str | None = None,
    ) -> None:
        """`deprecated` is the reason for deprecation."""
        super().__init__(
            python_name=name,
            graphql_name=name,
            type_annotation=_MadeType(type_),
            description=description,
            deprecation_reason=deprecated,
            metadata={_KIND: kind},
        )
        self.kind = kind
        self.arguments = list(arguments)


def own_field(field: StrawberryField, type_: OutputType, kind: FieldKind) -> StrawberryField:
    """A copy of a user's field with another type, and the kind that continues from its resolver's result."""
    made = copy(field)
    made.type_annotation = _MadeType(type_)
    made.metadata = MappingProxyType({**(field.metadata or {}), _KIND: kind})
    return made


def kind_of(definition: GraphQLField | GraphQLInputField | StrawberryField) -> FieldKind | None:
    """The kind of a field; None if the graph does not answer it."""
    field = definition if isinstance(definition, StrawberryField) else strawberry_field(definition)
    return None if field is None else field.metadata.get(_KIND)


def argument(
    name: str, type_: OutputType, description: str | None = None, default: object = UNSET
) -> StrawberryArgument:
    return StrawberryArgument(_MARK + name, name, _MadeType(type_), description=description, default=default)


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
        super().__init__(name, tuple(map(_MadeType, members)), description=description)
        self._resolve_type = resolve_type

    def get_type_resolver(self, type_map: Any) -> Callable[..., str]:
        return self._resolve_type


def _shell(name: str, description: str | None, **options: Any) -> type:
    cls = type(name, (), {})
    usual: dict[str, Any] = {"is_input": False, "is_interface": False, "interfaces": []}
    usual |= {"is_type_of": None, "resolve_type": None, "directives": ()}
    definition = StrawberryObjectDefinition(
        name=name, origin=cls, description=description, extend=False, fields=[], **{**usual, **options}
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
    kind: FieldKind | None = None,
) -> StrawberryField:
    """A field of an input. Required fields cannot be deprecated."""
    is_required = default is MISSING and not isinstance(type_, StrawberryOptional)
    if default is MISSING and not is_required:
        default = UNSET
    return StrawberryField(
        python_name=name,
        graphql_name=name,
        type_annotation=_MadeType(type_),
        description=description,
        default=default,
        deprecation_reason=None if is_required else deprecated,
        metadata={_KIND: kind},
    )


def enum_type(
    enum: type[Enum], description: str | None, member_descriptions: Mapping[str, str]
) -> StrawberryEnumDefinition:
    """The GraphQL enum of a Python enum, which stays unchanged; its names are the members'."""
    values = [
        EnumValue(
            name, member.value, description=member_descriptions.get(name) or f"{in_words(name).capitalize()}."
        )
        for name, member in enum.__members__.items()
        if member.name == name
    ]
    return StrawberryEnumDefinition(enum, enum.__name__, values, description)


class SchemaTypes:
    """The types of one schema: each is made once, and each name stands for one thing."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        """`declared` are the names of the model's classes, which stand for these."""
        self._made: dict[tuple[str, str], Any] = {}
        self._uses = {name: name for name in declared}
        self.clashes: dict[tuple[str, str], str] = {}
        """For each name with another thing that it would stand for, the first one."""

    def once(self, name: str, use: str, make: Callable[[], MadeT]) -> MadeT:
        """Returns the type of that name, which is made at first. `use` says what the name stands for."""
        first = self._uses.setdefault(name, use)
        if first != use:
            self.clashes[name, use] = first
        if (name, use) not in self._made:
            self._made[name, use] = make()
        return cast(MadeT, self._made[name, use])

    def of_record(self, name: str) -> type | None:
        """Returns the type of a record type; None if it was not made."""
        return self._made.get((name, name))

    def _with_fields(
        self,
        name: str,
        use: str,
        make: Callable[[], type],
        fields: Callable[[], Iterable[StrawberryField]],
    ) -> type:
        is_new = (name, use) not in self._made
        made = self.once(name, use, make)
        if is_new:  # its fields may lead back to it
            add_fields(made, [*fields()])
        return made

    def object(
        self,
        name: str,
        use: str,
        description: str,
        fields: Callable[[], Iterable[StrawberryField]],
        interfaces: Sequence[type] = (),
    ) -> type:
        make = partial(object_type, name, description, interfaces=interfaces)
        return self._with_fields(name, use, make, fields)

    def input(
        self,
        name: str,
        use: str,
        description: str,
        fields: Callable[[], Iterable[StrawberryField]],
        *,
        is_one_of: bool = False,
    ) -> type:
        made = partial(
            _shell,
            name,
            description,
            is_input=True,
            # Its values reach the resolver as mappings, by the names in GraphQL.
            from_input=lambda cls, value, context: value,
            directives=(OneOf(),) if is_one_of else (),
        )
        return self._with_fields(name, use, made, fields)

    def enum(self, cls: type[Enum], use: str, members: Mapping[str, str] | None = None) -> OutputType:
        """Returns the GraphQL enum of a Python enum, with the descriptions of its members, or those in its source."""
        described = class_docstring(cls) or of_type(cls.__name__)

        def make() -> StrawberryEnumDefinition:
            return enum_type(cls, described, members or member_docstrings(cls))

        return self.once(cls.__name__, use, make)

    def names(self, name: str, use: str, description: str, members: Mapping[str, str]) -> OutputType:
        """Returns the enum of that name. Each member stands for its name, and has its description."""
        functional: Any = Enum
        own = {each: each for each in members}
        return self.once(name, use, lambda: enum_type(functional(name, own), description, members))

    def scalar(self, type_: FieldType) -> OutputType:
        """Returns the GraphQL scalar or enum of a field's type."""
        if type_.kind == "enum":
            return self.enum(type_.cls, type_.cls.__name__)
        return cast(OutputType, SCALARS[type_.kind].python)

    def value(self, type_: FieldType, struct: Callable[[FieldType], type]) -> OutputType:
        """Returns the GraphQL type of a field's values. `struct` returns that of a nested dataclass."""
        if type_.of is not None:
            element = self.value(type_.of, struct)
            return list_of(nullable(element) if type_.of_optional else element)
        return struct(type_) if type_.kind == "object" else self.scalar(type_)
