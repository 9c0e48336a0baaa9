"""An operation's selections: the fields of its objects, with what is selected below them.

A selection that several places share, through fragments, is one object, so that results for it are computed once.
Selections never change. `keygraph_resolvers.plan.selections` makes them; steps read what they select.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    ListValueNode,
    ObjectValueNode,
    ValueNode,
    VariableNode,
    is_non_null_type,
)
from graphql.execution.values import get_argument_values

from keygraph.errors import BadUserInput, again
from keygraph.model.fields import Field
from keygraph.model.permissions import is_decided_by_key
from keygraph.model.records import RecordType
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema import field_kinds as kinds

ResultT = TypeVar("ResultT")


@dataclass(eq=False)
class SelectedField:
    """One field of the answer."""

    key: str
    """Its name in the answer."""
    nodes: tuple[FieldNode, ...]
    """Where it is selected; several are merged."""
    owner: GraphQLObjectType
    definition: GraphQLField | None
    """None for `__typename`."""
    kind: kinds.FieldKind | None
    """None for fields that the graph does not answer: `__typename`, and an application's own fields of the root."""
    below: Mapping[str, Selection]
    """The selections on the objects that it returns, by their types."""
    numbers: Mapping[SelectedField, Field] = field(default_factory=dict)
    """The fields selected from a list, and inside its aggregates, that are numbers kept on its owner."""
    constant: Any = field(default=None, init=False)
    """The result of `cached` for arguments without variables: the same in every run."""

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
        """Its type, without the non-null marker."""
        return self.type.of_type if is_non_null_type(self.type) else self.type

    @property
    def is_nullable(self) -> bool:
        return self.definition is not None and not is_non_null_type(self.definition.type)

    @property
    def only(self) -> Selection:
        """The selection, if the objects have a single type."""
        [selection] = self.below.values()
        return selection

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                name
                for node in self.nodes
                for argument in node.arguments or ()
                for name in _variables_in(argument.value)
            )
        )

    def arguments(self, run: Run) -> Mapping[str, Any]:
        """Returns its arguments by GraphQL name. Raises BadUserInput for an unusable variable, or GraphQLError."""
        definition = cast(GraphQLField, self.definition)
        if not definition.args:
            return {}
        try:
            return get_argument_values(definition, self.nodes[0], run.variables)
        except GraphQLError as error:
            raise BadUserInput(error.message) from None

    def cached(self, run: Run, make: Callable[[Mapping[str, Any]], ResultT]) -> ResultT:
        """Returns the result of `make` for its arguments, made once for a run, or for all runs if no variable is used.

        Raises as `arguments` does, and what `make` raises.
        """
        found = self.constant or run.cached.get(self)
        if found is None:
            try:
                found = make(self.arguments(run))
            except Exception as error:
                found = as_value(error)
            if self.variables or isinstance(found, Exception):
                run.cached[self] = found
            else:
                self.constant = found
        if isinstance(found, Exception):
            raise again(found)
        return cast(ResultT, found)

    @property
    def model_name(self) -> str | None:
        """Its name in the model; None for fields that the model does not name."""
        match self.kind:
            case kinds.Stored(of) | kinds.NodeAt(of) | kinds.Called(of) | kinds.WalkOf(of):
                return of.name
            case kinds.ListOf(path) if path.owner is not None:
                return path.name
        return None

    def has_argument(self, name: str) -> bool:
        return any(argument.name.value == name for node in self.nodes for argument in node.arguments or ())

    @property
    def is_type_unknown(self) -> bool:
        """Whether the key of a node that it returns may not determine the node's type."""
        match self.kind:
            case kinds.NodeAt(end):
                return end.is_ambiguous
            case kinds.FarNode(path) if path.far_end is not None:
                return path.record.ends[path.far_end].is_ambiguous
            case kinds.Called(method):
                return len(method.nodes) > 1
            case kinds.OwnNode(records):
                return len(records) > 1
            case kinds.Nodes():
                return len(self.below) > 1
        return False


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
class Selection:
    """The selection on an object of one type."""

    of: GraphQLObjectType
    record: RecordType | None
    """The record type that the object is of, or whose edge it is."""
    fields: tuple[SelectedField, ...]
    copied: set[str] = field(default_factory=set)
    """The copies in the item that answer for nodes at its ends."""

    def having(self, *wanted: type[Any]) -> tuple[SelectedField, ...]:
        """Returns the fields with one of these kinds."""
        return tuple(each for each in self.fields if isinstance(each.kind, wanted))

    @cached_property
    def restricted(self) -> Mapping[SelectedField, str]:
        """The fields that not every viewer of the object may read, with their names in the model."""
        access = None if self.record is None else self.record.access
        names = {} if access is None else {each: each.model_name for each in self.fields}
        return {each: name for each, name in names.items() if name and access and access.is_restricted(name)}

    def waits(self, selected: SelectedField) -> bool:
        """Returns whether only the object's item has the field, or may show who may read it."""
        if isinstance(selected.kind, kinds.WalkOf) and selected.kind.walk.options.is_kept:
            return True
        name = self.restricted.get(selected)
        return name is not None and self.record is not None and not is_decided_by_key(self.record, name)

    @cached_property
    def lists(self) -> tuple[SelectedField, ...]:
        """The fields that are read by the object's key, or when its item shows who may read them."""
        return self.having(kinds.ListOf)

    @cached_property
    def key_ends(self) -> tuple[SelectedField, ...]:
        """The nodes whose keys are in the object's own key."""
        return tuple(
            each
            for each in self.having(kinds.NodeAt, kinds.FarNode)
            if not isinstance(each.kind, kinds.NodeAt) or self._is_in_key(each.kind.end.name)
            if not self.waits(each)
        )

    @cached_property
    def item_ends(self) -> tuple[SelectedField, ...]:
        """The nodes whose keys are in the item."""
        return tuple(each for each in self.having(kinds.NodeAt) if each not in self.key_ends)

    @cached_property
    def needs_item(self) -> bool:
        """Whether something is selected that the object's key does not contain."""
        if self.record is None or self.record.is_virtual:
            return False
        return not self.is_answered_by(frozenset())

    def is_answered_by(self, names: Set[str]) -> bool:
        """Returns whether the object's key and these fields of it answer all that is selected, for any viewer."""
        return all(self._is_answered_by(each, names) for each in self.fields)

    def _is_answered_by(self, selected: SelectedField, names: Set[str]) -> bool:
        if self.waits(selected) or selected.numbers:
            return False
        match selected.kind:
            case kinds.Stored(stored):
                return self._is_in_key(stored.name) or stored.name in names
            case kinds.NodeAt(end):
                return self._is_in_key(end.name)
            case kinds.Called(method):
                needs = method.needs
                return needs is not None and all(self._is_in_key(each) or each in names for each in needs)
        return True

    def _is_in_key(self, name: str) -> bool:
        return self.record is not None and name in self.record.key_fields

    @cached_property
    def named(self) -> frozenset[str]:
        """The fields, ends and methods of the record type that are selected."""
        names = set()
        for each in self.fields:
            match each.kind:
                case kinds.Stored(of) | kinds.NodeAt(of) | kinds.Called(of):
                    names.add(of.name)
                case kinds.FarNode(path) if path.far_end is not None:
                    names.add(path.far_end)
                case kinds.WalkOf(walk) if walk.options.is_kept:
                    names.add(walk.name)
            names |= {number.name for number in each.numbers.values()}
        if self.record is not None and self.record.access is not None:
            for name in self.restricted.values():
                names |= self.record.access.names("read", name)
        return frozenset(names | self.copied)

    @property
    def inner(self) -> Iterator[Selection]:
        return (selection for each in self.fields for selection in each.below.values())
