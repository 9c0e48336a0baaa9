"""The fields of a plan: what is asked for under one key of the answer, and what is selected of the objects there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    ListValueNode,
    ObjectValueNode,
    ValueNode,
    VariableNode,
    is_non_null_type,
)

from keygraph_resolvers.schema.meanings import Meaning

if TYPE_CHECKING:
    from keygraph_resolvers.plan.compile import Planner
    from keygraph_resolvers.plan.plan import ObjectPlan


@dataclass(eq=False)
class FieldPlan:
    """One field of the answer."""

    key: str
    """Its name in the answer."""
    nodes: tuple[FieldNode, ...]
    """Where it is asked for; several are merged."""
    owner: GraphQLObjectType
    definition: GraphQLField | None
    """None for `__typename`."""
    meaning: Meaning | None
    """None for what the graph does not answer: `__typename`, and fields that somebody added to the root."""
    below: Below | None
    """What is selected of the objects that it gives."""

    @property
    def name(self) -> str:
        return self.nodes[0].name.value

    @property
    def type(self) -> GraphQLOutputType:
        if self.definition is None:
            raise LookupError("__typename has no definition")
        return self.definition.type

    @property
    def nullable_type(self) -> Any:
        """Its type, or that which it is where it may not be null."""
        return self.type.of_type if is_non_null_type(self.type) else self.type

    @property
    def is_nullable(self) -> bool:
        return self.definition is not None and not is_non_null_type(self.definition.type)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables in its arguments."""
        return tuple(
            {
                name: None
                for node in self.nodes
                for argument in node.arguments or ()
                for name in _variables_in(argument.value)
            }
        )


def _variables_in(value: ValueNode) -> Iterator[str]:
    match value:
        case VariableNode(name=name):
            yield name.value
        case ListValueNode(values=values):
            for inner in values:
                yield from _variables_in(inner)
        case ObjectValueNode(fields=fields):
            for member in fields:
                yield from _variables_in(member.value)


@dataclass(eq=False)
class Below:
    """What is selected of the objects of a field, by their types."""

    planner: Planner
    nodes: tuple[FieldNode, ...]
    types: tuple[GraphQLObjectType, ...]
    """What the objects can be."""
    made: dict[str, ObjectPlan] = field(default_factory=dict)

    def of(self, type_name: str) -> ObjectPlan:
        """What is selected of an object of that type."""
        found = self.made.get(type_name)
        if found is None:
            found = self.made[type_name] = self.planner.object(type_name, self.nodes)
        return found

    @property
    def only(self) -> ObjectPlan:
        """What is selected, where the objects are of one type."""
        [type_] = self.types
        return self.of(type_.name)

    @property
    def any(self) -> ObjectPlan:
        """What is selected of the first of the types."""
        return self.of(self.types[0].name)

    @property
    def plans(self) -> Iterator[ObjectPlan]:
        """What is selected of each of the types."""
        return (self.of(type_.name) for type_ in self.types)
