"""Undocumented parts of Strawberry that are used. No other module names them; a test holds them to the pinned version.

- `__strawberry_definition__` marks a class as a type. Strawberry sets it on decorated classes; ours have no fields to
  decorate when they are made.
- `Schema._schema` is the graphql-core schema, which validates documents and is walked by the planner. Strawberry only
  runs whole operations on it.
- `GraphQLCoreConverter.DEFINITION_BACKREF` finds the Strawberry field of a graphql-core field, and with it the field's
  kind.
- `CustomGraphQLEnumType` is its class of enums. By default, they compare a text with all their values when they read it,
  for a suggestion that only errors have: 900 KB take 30 ms.
- `MaybeNullValidationRule` and `OneOfInputValidationRule` are rules that `Schema.execute` adds to GraphQL's own.
"""

from __future__ import annotations

from typing import Any

import strawberry
from graphql import GraphQLField, GraphQLInputField, GraphQLSchema, specified_rules
from graphql.execution import Executor
from graphql.type import GraphQLResolveInfoHelpers
from strawberry.schema.schema_converter import CustomGraphQLEnumType, GraphQLCoreConverter
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.field import StrawberryField

VALIDATION_RULES = (*specified_rules, MaybeNullValidationRule, OneOfInputValidationRule)
"""The rules that a document must follow."""
CustomGraphQLEnumType.coerce_input_value.__defaults__ = (True,)  # `hide_suggestions`, which validation gives


class _HelpersOnDemand:
    """Makes an executor's helpers when a resolver asks for them: kept, they reference the executor in turn."""

    @property
    def async_helpers(self: Any) -> GraphQLResolveInfoHelpers:
        return GraphQLResolveInfoHelpers(gather=self.gather_async_work, track=self.track_async_work)

    @async_helpers.setter
    def async_helpers(self, helpers: GraphQLResolveInfoHelpers) -> None:
        pass


def executor_class(base: type[Executor[Any]]) -> type[Executor[Any]]:
    """Returns a class of graphql-core's executors that are freed without the garbage collector."""
    return type(base.__name__, (_HelpersOnDemand, base), {})


def set_definition(cls: type, definition: StrawberryObjectDefinition) -> None:
    """Makes a class the Strawberry type with this definition."""
    cls.__strawberry_definition__ = definition  # type: ignore[attr-defined]  # how Strawberry marks a type


def core_schema(schema: strawberry.Schema) -> GraphQLSchema:
    """The graphql-core schema of a Strawberry schema."""
    return schema._schema


def strawberry_field(definition: GraphQLField | GraphQLInputField) -> StrawberryField | None:
    """The Strawberry field that a graphql-core field was made from; None for introspection's."""
    found: StrawberryField | None = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return found
