"""Execution, the writing half: the answer of a run, from what was read.

Everything is there by now, so that nothing waits here: values are completed as the GraphQL specification says
(6.4.3), and a null where none may be goes up to the nearest field that may be null (6.4.4). How a field is written is
prepared once for each plan: for all objects at once (`keygraph_resolvers.answer.columns`), and, where an answer has something to
report, for one after the other (`keygraph_resolvers.answer.writers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError

from keygraph_resolvers.answer.columns import Columns, columns, rows
from keygraph_resolvers.answer.writers import FieldWriter, NullError, Path, path_list, writers
from keygraph_resolvers.errors import warning
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan, Plan
from keygraph_resolvers.read.context import Limits
from keygraph_resolvers.read.visits import Visit


class Completion:
    """Writes out one run."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        self.errors: list[GraphQLError] = []
        self.warnings: list[dict[str, Any]] = []
        """What the answer says beside its data: see `keygraph_resolvers.errors`."""
        self._limits = limits
        self._writers: dict[ObjectPlan, tuple[FieldWriter, ...]] = plan.writers
        self._columns: dict[ObjectPlan, Columns] = plan.columns
        self._foreign: Mapping[str, Any] = {}

    def root(self, visit: Visit, foreign: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The data of the answer; None where a null went up to the root. `foreign` has what others have answered
        for the root's fields that are not the graph's."""
        self._foreign = foreign or {}
        found = self._at_once(visit)
        if found is not None:
            return found
        try:
            return self.object(visit.plan, visit, None)
        except NullError:
            return None

    def _at_once(self, visit: Visit) -> dict[str, Any] | None:
        """The data where nothing is to be reported; None where something is."""
        try:
            [data] = rows(self, visit.plan, [visit])
        except Exception:
            data = None
        if self.errors or self.warnings:
            self.errors.clear()
            self.warnings.clear()
            return None
        return data

    def columns_of(self, plan: ObjectPlan) -> Columns:
        """How objects of a plan are written."""
        found = self._columns.get(plan)
        if found is None:
            found = self._columns[plan] = columns(plan)
        return found

    def object(self, plan: ObjectPlan, source: Any, path: Path | None) -> dict[str, Any]:
        """What was selected of an object. Raises NullError where a field is null that may not be."""
        prepared = self._writers.get(plan)
        if prepared is None:
            prepared = self._writers[plan] = writers(plan)
        answer: dict[str, Any] = {}
        for key, write, field in prepared:
            try:
                answer[key] = write(self, source, path)
            except NullError:
                if not field.is_nullable:
                    raise
                answer[key] = None
            except Exception as error:
                self.report(error, field, (path, key))
                if not field.is_nullable:
                    raise NullError from None
                answer[key] = None
        return answer

    def foreign(self, key: str) -> Any:
        """What others have answered for a field of the root."""
        return self._foreign[key]

    def report(self, error: Exception, field: FieldPlan, path: Path) -> None:
        """Takes note of what a field gave instead of its value."""
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

    def count_given_up(self, path: Path) -> None:
        """Says why a list's count is null."""
        most = self._limits.count_pages
        message = (
            f"totalCount is null: to count the list takes more than {most} page{'s' * (most > 1)} of 1 MB. "
            "Count a narrower range of it, or read it page by page."
        )
        self.warnings.append(warning("COUNT_LIMIT", message, path_list(path)))
