"""Completion: how a value becomes what its type writes, and what becomes of errors and nulls.

Values are completed many at once: the values of one field of many objects, or the elements of many lists. A value that
cannot be written is reported. Its position in the answer becomes null, or `FAILED` where it may not be null; then what
holds it fails too, up to the nearest position that may be null (GraphQL specification 6.4.3 and 6.4.4).

Paths are made for reports alone. What writes values is given a function, `PathOf`, that makes the path of the value
with a given number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, TypeAlias

from graphql import GraphQLError

from keygraph_resolvers.errors import warning
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.plan.selection import SelectedField, Selection
from keygraph_resolvers.read.context import Limits

FAILED: Final = object()
"""Stands for a value that is null where it may not be; its error has been reported."""

# --- Paths --------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One element of a path."""

    key: str | int
    order: int
    """Its place among its siblings in the answer."""
    is_nullable: bool


Path: TypeAlias = tuple[Step, ...]
PathOf: TypeAlias = Callable[[int], Path]
"""Makes the path of the value with this number."""


def root_path(number: int) -> Path:
    """The path of the root, with which all others begin."""
    return ()


def below_field(path_of: PathOf, step: Step) -> PathOf:
    """The paths of one field of objects."""
    return lambda number: (*path_of(number), step)


def in_lists(path_of: PathOf, ends: Sequence[int], *, is_nullable: bool) -> PathOf:
    """The paths of the elements of lists, counted through all lists. `ends` has the number after each list's last."""

    def path_of_element(number: int) -> Path:
        place = bisect_right(ends, number)
        index = number - (ends[place - 1] if place else 0)
        return (*path_of(place), Step(index, index, is_nullable))

    return path_of_element


def among(path_of: PathOf, numbers: Sequence[int]) -> PathOf:
    """The paths of some of the values."""
    return lambda number: path_of(numbers[number])


# --- Reports ------------------------------------------------------------------------------------------


class Report(NamedTuple):
    """What is to be told of a position in the answer."""

    path: Path
    field: SelectedField
    error: Exception | None
    """None for a count that was given up."""

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(step.order for step in self.path)

    @property
    def keys(self) -> list[str | int]:
        return [step.key for step in self.path]

    @property
    def null_depth(self) -> int:
        """How long the path of the position is that becomes null for the error."""
        return next((n for n in range(len(self.path), 0, -1) if self.path[n - 1].is_nullable), 0)


class Completion:
    """What the writing of one answer shares: what others have answered, how objects are written, what is reported."""

    def __init__(self, plan: Plan, limits: Limits, foreign: Mapping[str, Any] | None = None) -> None:
        """`foreign` has the values of the root's fields that are not the graph's."""
        self.columns: dict[Selection, Any] = plan.rows
        self.foreign: Mapping[str, Any] = foreign or {}
        self.reports: list[Report] = []
        self._limits = limits

    def errors_and_warnings(self) -> tuple[list[GraphQLError], list[dict[str, Any]]]:
        """The errors and warnings of the answer, in its order.

        An error ends the writing of what becomes null for it: what was reported behind it in there is not told.
        """
        errors, warnings = [], []
        ended: tuple[int, ...] | None = None
        for each in sorted(self.reports, key=lambda report: report.order):
            order = each.order
            if ended is not None and order[: len(ended)] == ended:
                continue
            if each.error is None:
                warnings.append(self._count_warning(each))
            else:
                errors.append(_graphql_error(each, each.error))
                ended = order[: each.null_depth]
        return errors, warnings

    def _count_warning(self, report: Report) -> dict[str, Any]:
        most = self._limits.count_pages
        message = (
            f"totalCount is null: counting the list takes more than {most} page{'s' * (most > 1)} of 1 MB. "
            "Count a narrower range, or page through the list."
        )
        return warning("COUNT_LIMIT", message, report.keys)


def _graphql_error(report: Report, error: Exception) -> GraphQLError:
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


# --- Values -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Where values stand: in a field, or in the lists of a field."""

    field: SelectedField
    is_nullable: bool
    warns: bool = False
    """Whether a warning says why a value is null."""

    @property
    def failed(self) -> object:
        """What stands there for a value that has failed."""
        return None if self.is_nullable else FAILED

    def fail(self, run: Completion, path: Path, error: Exception) -> object:
        """Reports an error; gives what stands there instead of the value."""
        run.reports.append(Report(path, self.field, error))
        return self.failed

    def null(self, run: Completion, path_of: PathOf, number: int) -> object:
        """What a null becomes there."""
        if not self.is_nullable:
            message = f"Cannot return null for non-nullable field {self.field.owner.name}.{self.field.name}."
            return self.fail(run, path_of(number), TypeError(message))
        if self.warns:
            run.reports.append(Report(path_of(number), self.field, None))
        return None


Read: TypeAlias = Callable[[Any], Any]
"""Gives the value of a source, such as an object or an item; None for null. Raises what is reported as its error."""
Complete: TypeAlias = Callable[[Completion, Sequence[Any], PathOf], Sequence[Any]]
"""Gives what is written for each of these sources. It takes the paths of the values."""


def leaves(position: Position, read: Read, serialize: Read | None) -> Complete:
    """What completes scalars and enums; without `serialize`, values are written as they are read."""

    def complete(run: Completion, sources: Sequence[Any], path_of: PathOf) -> list[Any]:
        written: list[Any] = []
        add = written.append
        for source in sources:
            try:
                value = read(source)
                if value is None:
                    value = position.null(run, path_of, len(written))
                elif serialize is not None:
                    value = serialize(value)
            except Exception as error:
                value = position.fail(run, path_of(len(written)), error)
            add(value)
        return written

    return complete


def composites(
    position: Position, read: Read, write: Complete, are_there: Callable[[Sequence[Any]], bool] | None = None
) -> Complete:
    """What completes objects and lists. `write` is given the values that are there, and may give FAILED for some.

    `are_there` says of sources that they are values, all of which are there, so that none has to be read.
    """

    def complete(run: Completion, sources: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        if are_there is not None and are_there(sources):
            written = write(run, sources, path_of)
        else:
            written = write_those_there(run, sources, path_of)
        if run.reports:
            written = [position.failed if each is FAILED else each for each in written]
        return written

    def write_those_there(run: Completion, sources: Sequence[Any], path_of: PathOf) -> Sequence[Any]:
        written: list[Any] = []
        values, numbers = [], []
        for number, source in enumerate(sources):
            try:
                value = read(source)
            except Exception as error:
                written.append(position.fail(run, path_of(number), error))
                continue
            if value is None:
                written.append(position.null(run, path_of, number))
            else:
                written.append(None)
                values.append(value)
                numbers.append(number)
        if len(values) == len(sources):
            return write(run, values, path_of)
        for number, each in zip(numbers, write(run, values, among(path_of, numbers)), strict=True):
            written[number] = each
        return written

    return complete


def lists(position: Position, read: Read, elements: Complete, *, has_nullable: bool) -> Complete:
    """What completes lists. `has_nullable` says whether their elements may be null."""
    field = position.field

    def read_list(source: Any) -> list[Any] | None:
        value = read(source)
        if value is None or type(value) is list:
            return value
        if isinstance(value, str | bytes | Mapping):
            raise TypeError(f"{field.owner.name}.{field.name} is a list, and {type(value).__name__} is none.")
        return list(value)

    def write(run: Completion, values: Sequence[list[Any]], path_of: PathOf) -> Sequence[Any]:
        ends = [*accumulate(map(len, values))]
        flat = values[0] if len(values) == 1 else [*chain.from_iterable(values)]
        written = elements(run, flat, in_lists(path_of, ends, is_nullable=has_nullable)) if flat else []
        if len(values) == 1:
            each_list = [written]
        else:
            each_list = [written[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if run.reports:
            return [FAILED if any(each is FAILED for each in one) else one for one in each_list]
        return each_list

    return composites(position, read_list, write)
