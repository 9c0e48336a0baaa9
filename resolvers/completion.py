"""Execution, the writing half: the answer of a run, from what was read.

Everything is there by now, so that nothing waits here: values are completed as the GraphQL specification says
(6.4.3), and a null where none may be goes up to the nearest field that may be null (6.4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from graphql import (
    GraphQLError,
    GraphQLOutputType,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from resolvers.context import Limits
from resolvers.errors import warning
from resolvers.meanings import (
    Attribute,
    Cursor,
    Edges,
    GlobalId,
    Nodes,
    PageInfo,
    Stored,
    TotalCount,
)
from resolvers.plan import Below, FieldPlan, ObjectPlan
from resolvers.visits import ListVisit, Visit

Path: TypeAlias = "tuple[Path | None, str | int]"
"""Where a value stands: where its parent stands, and its key or number there."""
_Complete: TypeAlias = Callable[[Any, Path], Any]


class _NullError(Exception):
    """A null where none may be. Its error has been reported."""


class Completion:
    """Writes out one run."""

    def __init__(self, limits: Limits) -> None:
        self.errors: list[GraphQLError] = []
        self.warnings: list[dict[str, Any]] = []
        """What the answer says beside its data: see `resolvers.errors`."""
        self._limits = limits
        self._completers: dict[FieldPlan, tuple[Callable[[Any], Any], _Complete]] = {}

    def root(self, visit: Visit, foreign: dict[str, Any] | None) -> dict[str, Any] | None:
        """The data of the answer; None where a null went up to the root. `foreign` has what others have answered
        for the root's fields that are not the graph's."""
        try:
            return self._object(visit.plan, visit, None, foreign)
        except _NullError:
            return None

    # --- Objects --------------------------------------------------------------------------------------

    def _object(
        self, plan: ObjectPlan, source: Any, path: Path | None, foreign: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for field in plan.fields:
            if field.meaning is None:
                answer[field.key] = foreign[field.key] if foreign and field.definition else plan.of.name
                continue
            completer = self._completers.get(field)
            if completer is None:
                completer = self._completers[field] = (_value_of(field), self._completer(field, field.type))
            value_of, complete = completer
            here = (path, field.key)
            try:
                answer[field.key] = complete(value_of(source), here)
            except _NullError:
                if not field.is_nullable:
                    raise
                answer[field.key] = None
            except Exception as error:
                self._report(error, field, here)
                if not field.is_nullable:
                    raise _NullError from None
                answer[field.key] = None
        return answer

    def _report(self, error: Exception, field: FieldPlan, path: Path) -> None:
        if isinstance(error, GraphQLError) and error.path is None:
            original = error.original_error or error
            extensions = error.extensions
        else:
            original, extensions = error, None
        self.errors.append(
            GraphQLError(
                str(error) or type(error).__name__,
                nodes=list(field.nodes),
                path=path_list(path),
                original_error=original,
                extensions=extensions,
            )
        )

    # --- Values ---------------------------------------------------------------------------------------

    def _completer(self, field: FieldPlan, type_: GraphQLOutputType) -> _Complete:
        """What completes the values of a type; it raises for null where none may be."""
        if is_non_null_type(type_):
            inner = self._completer(field, type_.of_type)
            owner, name = field.owner.name, field.name

            def complete_some(value: Any, path: Path) -> Any:
                completed = inner(value, path)
                if completed is None:
                    raise TypeError(f"Cannot return null for non-nullable field {owner}.{name}.")
                return completed

            return complete_some
        if is_list_type(type_):
            return self._list_completer(field, type_.of_type)
        if isinstance(field.meaning, TotalCount):
            return self._total
        if is_leaf_type(type_):
            serialize = type_.serialize
            return lambda value, path: None if value is None else serialize(value)
        return self._object_completer(field)

    def _total(self, value: int | None, path: Path) -> int | None:
        """A list's count; null where it was given up."""
        if value is None:
            most = self._limits.count_pages
            message = (
                f"totalCount is null: to count the list takes more than {most} page{'s' * (most > 1)} of 1 MB. "
                "Count a narrower range of it, or read it page by page."
            )
            self.warnings.append(warning("COUNT_LIMIT", message, path_list(path)))
        return value

    def _list_completer(self, field: FieldPlan, element: GraphQLOutputType) -> _Complete:
        complete = self._completer(field, element)
        is_nullable = not is_non_null_type(element)
        owner, name = field.owner.name, field.name

        def complete_list(values: Any, path: Path) -> list[Any] | None:
            if values is None:
                return None
            if isinstance(values, str | bytes | Mapping):
                raise TypeError(f"{owner}.{name} is a list, and {type(values).__name__} is none.")
            answer: list[Any] = []
            for number, value in enumerate(values):
                here = (path, number)
                try:
                    answer.append(complete(value, here))
                except _NullError:
                    if not is_nullable:
                        raise
                    answer.append(None)
                except Exception as error:
                    self._report(error, field, here)
                    if not is_nullable:
                        raise _NullError from None
                    answer.append(None)
            return answer

        return complete_list

    def _object_completer(self, field: FieldPlan) -> _Complete:
        below = cast(Below, field.below)
        plan = below.only if len(below.types) == 1 else None

        def complete_object(value: Any, path: Path) -> dict[str, Any] | None:
            if value is None:
                return None
            if isinstance(value, Visit):
                if value.error is not None:
                    raise value.error
                return None if value.is_missing else self._object(value.plan, value, path)
            return self._object(cast(ObjectPlan, plan), value, path)

        return complete_object


def path_list(path: Path | None) -> list[str | int]:
    """The path from the root."""
    keys: list[str | int] = []
    while path is not None:
        parent, key = path
        keys.append(key)
        path = parent
    return keys[::-1]


# --- What a field's value is --------------------------------------------------------------------------


def _value_of(field: FieldPlan) -> Callable[[Any], Any]:
    """What gives the value of a field, of the object that it is selected of. It raises what reading gave."""
    match field.meaning:
        case Stored(stored):
            return lambda visit: visit.source.shown(stored)
        case GlobalId():
            return lambda visit: visit.source.id
        case Cursor():
            return lambda visit: visit.edge.cursor
        case Attribute(name):
            return lambda value: getattr(value, name)
        case Edges():
            return lambda visit: _edges(visit, field)
        case Nodes():
            return lambda visit: _nodes(visit, field)
        case PageInfo():
            return _info
        case TotalCount():
            return lambda visit: _or_raise(visit.total)
    return lambda visit: _or_raise(visit.found[field])


def _or_raise(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def _edges(visit: ListVisit, field: FieldPlan) -> Sequence[Any]:
    _or_raise(visit.page)
    return visit.found[field]


def _nodes(visit: ListVisit, field: FieldPlan) -> Sequence[Visit]:
    """The nodes of the page; those that do not exist are left out where they were looked for."""
    _or_raise(visit.page)
    return [node for node in visit.found[field] if not node.is_missing]


def _info(visit: ListVisit) -> Any:
    _or_raise(visit.page)
    return visit.info
