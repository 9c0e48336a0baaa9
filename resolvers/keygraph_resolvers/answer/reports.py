"""The parts of an answer next to its data: the errors of its positions, and the warnings, in the order of the
answer."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, NamedTuple, TypeAlias

from graphql import GraphQLError

from keygraph.errors import WriteRefused
from keygraph.limits import Limits
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.errors import RefusedPart, public_error
from keygraph_resolvers.schema.field_kinds import Aggregate, WalkedCount
from keygraph_resolvers.steps.selection import SelectedField


class PathStep(NamedTuple):
    """One element of a path."""

    key: str | int
    order: int
    """Its place among its siblings in the answer."""
    is_nullable: bool


Path: TypeAlias = tuple[PathStep, ...]


class FieldReport(NamedTuple):
    """An error or a warning for a position in the answer."""

    path: Path
    field: SelectedField
    error: Exception | None
    """None for a count or an aggregate that was given up."""

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(step.order for step in self.path)

    @property
    def keys(self) -> list[str | int]:
        return [step.key for step in self.path]

    @property
    def null_depth(self) -> int:
        """The length of the path to the position that becomes null because of the error."""
        return next((n for n in range(len(self.path), 0, -1) if self.path[n - 1].is_nullable), 0)


def errors_and_warnings(
    reports: Iterable[FieldReport], limits: Limits, sent: Container[str] | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the errors, as a client sees them, and warnings of an answer. The limits say how much a count may read. With the
    words that the client has sent in `sent`, no other fields are named.

    An error makes a part of the answer null: reports after it in that part are left out.
    """
    errors, warnings = list[dict[str, Any]](), list[dict[str, Any]]()
    ended: tuple[int, ...] | None = None
    for each in sorted(reports, key=lambda report: report.order):
        order = each.order
        if ended is not None and order[: len(ended)] == ended:
            continue
        if each.error is None:
            warnings.append(_count_warning(each, limits))
        else:
            # One after the other: those of graphql-core take much memory.
            errors += [public_error(error, sent=sent) for error in _graphql_errors(each, each.error)]
            ended = order[: each.null_depth]
    return errors, warnings


def _count_warning(report: FieldReport, limits: Limits) -> dict[str, Any]:
    kind, most = report.field.kind, limits.count_pages
    if isinstance(kind, Aggregate):
        why = f"there are more than {_budget(kind, limits):,} items to look at. Aggregate fewer of them."
        return {
            "code": OperationCode.COUNT_LIMIT,
            "message": f"aggregate is null: {why}",
            "path": report.keys,
        }
    if isinstance(kind, WalkedCount) and kind.is_kept:
        why = "the number of nodes is more than the walk could count, and not kept."
    elif isinstance(kind, WalkedCount):
        budget = _budget(kind, limits)
        why = f"the walk looks at no more than {budget:,} items. Ask for a smaller distance, or page through it."
    else:
        why = (
            f"counting the list takes more than {most} page{'s' * (most > 1)} of 1 MB. "
            "Count a narrower range, or page through the list."
        )
    return {"code": OperationCode.COUNT_LIMIT, "message": f"totalCount is null: {why}", "path": report.keys}


def _budget(kind: Aggregate | WalkedCount, limits: Limits) -> int:
    return min(kind.budget or limits.read_budget, limits.read_budget)


def _graphql_errors(report: FieldReport, error: Exception) -> list[GraphQLError]:
    """The errors of a position: one, or all problems of a refused write."""
    if not isinstance(error, WriteRefused):
        return [_graphql_error(report, error)]
    return [
        GraphQLError(
            str(refused),
            nodes=list(report.field.nodes),
            path=report.keys,
            original_error=refused,
            extensions=refused.extensions,
        )
        for refused in map(RefusedPart, error.refusals)
    ]


def _graphql_error(report: FieldReport, error: Exception) -> GraphQLError:
    if isinstance(error, GraphQLError) and error.path is None:
        original = error.original_error or error
        extensions = error.extensions
    else:
        original, extensions = error, None
    return GraphQLError(
        str(error) or type(error).__name__,
        nodes=list(report.field.nodes),
        path=report.keys,
        original_error=original,
        extensions=extensions,
    )
