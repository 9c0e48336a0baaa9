"""The variables of an operation: functions that read their values are made once, from their types.

graphql-core inspects each type again for every value of every request: it takes 0.07 ms for the input of an order with
five items, and this module 0.02 (by timeit). graphql-core reads values that do not fit, and reports what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import graphql
from graphql.execution.get_variable_signature import GraphQLVariableSignature, get_variable_signature
from graphql.execution.values import VariableValues, VariableValueSource, get_variable_values
from graphql.utilities.coerce_input_value import coerce_default_value

from keygraph_resolvers.plan.validation import visit_once

_Reader: TypeAlias = Callable[[Any], Any]
"""Returns the value of a client's input. Raises if that does not fit, and for null."""


class _Unfit(Exception):
    """A value that does not fit its type, or that graphql-core has to read."""


class _Member(NamedTuple):
    """A field of an input."""

    name: str
    read: _Reader
    is_nullable: bool
    default: Any
    """Its value if it is not given; Undefined if there is none."""


class Variable(NamedTuple):
    """A variable of an operation."""

    signature: GraphQLVariableSignature
    read: _Reader
    is_nullable: bool
    default: Any
    """Its value if it is not given; Undefined if there is none."""


def read_variables(variables: Sequence[Variable], given: Mapping[str, Any]) -> VariableValues | None:
    """Returns the values of the given variables; None if graphql-core has to read them, or report what is wrong."""
    sources: dict[str, VariableValueSource] = {}
    read: dict[str, Any] = {}
    for signature, read_one, is_nullable, default in variables:
        name = signature.name
        value = given.get(name, graphql.Undefined)
        sources[name] = VariableValueSource(signature, value)
        if value is graphql.Undefined:
            if default is not graphql.Undefined:
                read[name] = default
            elif not is_nullable:
                return None
        elif value is None:
            if not is_nullable:
                return None
            read[name] = None
        else:
            try:
                read[name] = read_one(value)
            except Exception:
                # As in graphql-core, a scalar may raise any exception for a value that does not fit.
                return None
    return VariableValues(sources, read)


def place_of_value(
    message: str,
    operation: graphql.OperationDefinitionNode,
    fragments: Mapping[str, graphql.FragmentDefinitionNode],
) -> list[str | int]:
    """Returns the place that an error of graphql-core about a variable's value names, as in errors of writes: from the
    argument in which the variable is used first. Empty if the error names none."""
    found = _UNFIT.match(message)
    if found is None:
        return []
    inner = re.findall(r"\w+", f"{found['inner'] or ''} {found['field'] or ''}")
    first = _first_use(found["name"], (operation, *fragments.values()))
    # A client may have sent a member of any name, such as `²`.
    return [*first, *(int(each) if re.fullmatch("[0-9]{1,9}", each) else each for each in inner)]


_UNFIT = re.compile(
    r"Variable '\$(?P<name>\w+)' has invalid value(?: at (?P<inner>[.\w\[\]]+))?: "
    r"(?:Expected value of type '\w+' (?:not )?to include \w+ field '(?P<field>\w+)')?"
)
"""The form of graphql-core's messages."""


def _first_use(name: str, definitions: Iterable[graphql.Node]) -> list[str | int]:
    """Returns the place of a variable in the argument that uses it first; the variable's own name if none does."""
    for each in definitions:
        found = visit_once(each, _FirstUse(name)).found
        if found:
            return found
    return [name]


class _FirstUse(graphql.Visitor):
    """Finds the place of the argument that uses a variable first."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[str | int] = []

    def enter_variable(self, node: Any, key: Any, parent: Any, path: Any, ancestors: list[Any]) -> Any:
        if node.name.value != self.name:
            return None
        for number, each in enumerate((*ancestors, parent)):
            if isinstance(each, graphql.ArgumentNode | graphql.ObjectFieldNode):
                self.found.append(each.name.value)
            elif isinstance(each, graphql.ListValueNode):
                self.found.append(cast(int, path[number + 1]))
        return self.BREAK if self.found else None


class InputReaders:
    """Makes functions that read values of a schema's input types."""

    def __init__(self, schema: graphql.GraphQLSchema) -> None:
        self._schema = schema
        self._readers: dict[graphql.GraphQLInputObjectType, _Reader | None] = {}
        """None while one is made, and for a type that contains itself, whose values have unknown depth."""

    def variables(self, operation: graphql.OperationDefinitionNode) -> list[Variable] | None:
        """The variables of an operation; None if graphql-core has to read them."""
        found: list[Variable] = []
        for node in operation.variable_definitions or ():
            signature = get_variable_signature(self._schema, node)
            read = None if isinstance(signature, graphql.GraphQLError) else self._of(signature.type)
            if isinstance(signature, graphql.GraphQLError) or read is None:
                return None
            by_core = get_variable_values(self._schema, [node], {}) if node.default_value else None
            default = (
                by_core.coerced[signature.name] if isinstance(by_core, VariableValues) else graphql.Undefined
            )
            if node.default_value and default is graphql.Undefined:
                return None
            found.append(Variable(signature, *read, default))
        return found

    def _of(self, type_: Any) -> tuple[_Reader, bool] | None:
        """Returns a function that reads values of a type, and whether it may be null; None if graphql-core has to."""
        is_nullable = not isinstance(type_, graphql.GraphQLNonNull)
        inner = type_ if is_nullable else type_.of_type
        match inner:
            case graphql.GraphQLScalarType() | graphql.GraphQLEnumType():
                read: _Reader | None = inner.coerce_input_value
            case graphql.GraphQLList():
                read = self._of_list(inner.of_type)
            case graphql.GraphQLInputObjectType():
                if inner not in self._readers:
                    self._readers[inner] = None
                    self._readers[inner] = self._of_object(inner)
                read = self._readers[inner]
            case _:
                read = None
        return None if read is None else (read, is_nullable)

    def _of_list(self, element: Any) -> _Reader | None:
        found = self._of(element)
        if found is None:
            return None
        read, is_nullable = found

        def read_list(value: Any) -> Any:
            if type(value) is not list or (None in value and not is_nullable):
                raise _Unfit
            return [None if each is None else read(each) for each in value]

        return read_list

    def _of_object(self, type_: graphql.GraphQLInputObjectType) -> _Reader | None:
        members: list[_Member] = []
        for name, field in type_.fields.items():
            found = self._of(field.type)
            if found is None or field.out_name is not None:
                return None
            members.append(_Member(name, *found, coerce_default_value(field)))
        made, is_one_of = type_.out_type, type_.is_one_of

        def read_object(value: Any) -> Any:
            if type(value) is not dict:
                raise _Unfit
            read: dict[str, Any] = {}
            missing = 0
            for name, read_member, is_nullable, default in members:
                given = value.get(name, graphql.Undefined)
                if given is graphql.Undefined:
                    missing += 1
                    if default is not graphql.Undefined:
                        read[name] = default
                    elif not is_nullable:
                        raise _Unfit
                elif given is not None:
                    read[name] = read_member(given)
                elif is_nullable:
                    read[name] = None
                else:
                    raise _Unfit
            if len(members) - missing < len(value):
                raise _Unfit  # a field that the type does not have
            if is_one_of and (len(read) != 1 or None in read.values()):
                raise _Unfit
            return made(read)

        return read_object
