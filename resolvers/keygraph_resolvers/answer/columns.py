"""The answer written field by field, each for all objects at once: as most answers are, which have nothing to report.

A column writes one field of many objects; below a list or an object, those of all of them are one column again. What is no
plain value — an error, a null where none may be — raises `Irregular` or what was wrong, and the answer is
written object by object (`keygraph_resolvers.answer.writers`), which knows where each stands and what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from keygraph.model.fields import Field
from keygraph_resolvers.answer.writers import LEADS_ON, is_leaf, is_written_as_read, serializer, writer
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan
from keygraph_resolvers.read.visits import ListVisit, Visit
from keygraph_resolvers.schema.meanings import Called, Edges, Nodes, NodesByIds, PageInfo, Stored

if TYPE_CHECKING:
    from keygraph_resolvers.answer.completion import Completion

Column: TypeAlias = "Callable[[Completion, Sequence[Any], Sequence[Any]], Sequence[Any]]"
"""Takes the run, objects, and the items of those that have any."""


class Irregular(Exception):
    """Something is to be reported."""


class Columns(NamedTuple):
    """How objects of one plan are written."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    has_items: bool


def columns(plan: ObjectPlan) -> Columns:
    """How the fields of objects are written, in the order of the answer."""
    return Columns(
        tuple(field.key for field in plan.fields),
        tuple(_column(plan, field) for field in plan.fields),
        any(is_leaf(field) for field in plan.fields),
    )


def rows(run: Completion, plan: ObjectPlan, objects: Sequence[Any]) -> list[dict[str, Any]]:
    """What was selected of objects of one plan."""
    if not objects:
        return []
    keys, made_by, has_items = run.columns_of(plan)
    if not keys:
        return [{} for _ in objects]
    items = [visit.source.item for visit in objects] if has_items else ()
    made = [column(run, objects, items) for column in made_by]
    return [dict(zip(keys, row, strict=True)) for row in zip(*made, strict=True)]


def _column(plan: ObjectPlan, field: FieldPlan) -> Column:
    if field.definition is not None:
        if is_leaf(field):
            return _leaf_column(plan, field, cast(Stored, field.meaning).field)
        match field.meaning:
            case Edges() | Nodes():
                return _list_column(field)
            case NodesByIds():
                return _named_column(field)
            case PageInfo():
                return _info_column(field)
            case Called(method) if method.nodes:
                return _object_column(field)
            case meaning if isinstance(meaning, LEADS_ON):
                return _object_column(field)
    write = writer(plan, field)
    return lambda run, objects, items: [write(run, each, None) for each in objects]


# --- Leaves -------------------------------------------------------------------------------------------


def _leaf_column(plan: ObjectPlan, field: FieldPlan, stored: Field) -> Column:
    record, is_nullable, type_ = plan.record, field.is_nullable, field.nullable_type
    if record is None:
        raise LookupError(f"{plan.of.name} has no items")
    serialize = None if is_written_as_read(stored, type_) else serializer(type_)

    def completed(values: Sequence[Any]) -> Sequence[Any]:
        if None in values:
            if not is_nullable:
                raise Irregular
            if serialize is not None:
                return [None if value is None else serialize(value) for value in values]
        return values if serialize is None else [serialize(value) for value in values]

    if stored.name in record.key_fields:
        number, value_of = record.place_in_identity(stored.name)
        return lambda run, objects, items: completed(
            [value_of(visit.source.identity[number]) for visit in objects]
        )
    read = record.reader(stored)
    attribute = record.plain_attribute(stored)
    if attribute is None or serialize is not None:
        return lambda run, objects, items: completed([read(item) for item in items])
    name, expected = attribute
    only = {expected}

    def plain(run: Completion, objects: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
        values = [item.get(name) for item in items]
        return values if set(map(type, values)) == only else completed([read(item) for item in items])

    return plain


# --- What leads on ------------------------------------------------------------------------------------


def _object_column(field: FieldPlan) -> Column:
    """What writes the object that a field gives."""
    is_nullable = field.is_nullable
    plan = field.below.only if field.below and len(field.below.types) == 1 else None

    def write(run: Completion, objects: Sequence[Visit], items: Sequence[Any]) -> Sequence[Any]:
        found = [visit.found[field] for visit in objects]
        kinds = set(map(type, found))
        if plan is not None and kinds == {ListVisit}:
            return rows(run, plan, found)
        if not kinds <= {Visit, NoneType}:
            raise Irregular
        return _rows_or_nulls(run, found, is_nullable=is_nullable)

    return write


def _named_column(field: FieldPlan) -> Column:
    """What writes nodes that were asked for by their ids, of which some may not exist."""
    return lambda run, objects, items: [
        _rows_or_nulls(run, visit.found[field], is_nullable=True) for visit in objects
    ]


def _info_column(field: FieldPlan) -> Column:
    plan = cast(Below, field.below).only

    def write(run: Completion, objects: Sequence[ListVisit], items: Sequence[Any]) -> Sequence[Any]:
        infos = [visit.info for visit in objects]
        if None in infos:
            raise Irregular
        return rows(run, plan, infos)

    return write


def _list_column(field: FieldPlan) -> Column:
    """What writes the edges or the nodes of lists."""
    is_nodes = isinstance(field.meaning, Nodes)

    def write(run: Completion, objects: Sequence[ListVisit], items: Sequence[Any]) -> Sequence[Any]:
        if {type(visit.page) for visit in objects} != {list}:
            raise Irregular
        found = [visit.found[field] for visit in objects]
        if is_nodes:
            found = [[node for node in each if not node.is_missing] for each in found]
        written = _rows_of_visits(run, [*chain.from_iterable(found)])
        if len(found) == 1:
            return [written]
        lists, start = [], 0
        for each in found:
            end = start + len(each)
            lists.append(written[start:end])
            start = end
        return lists

    return write


def _rows_or_nulls(
    run: Completion, visits: Sequence[Visit | None], *, is_nullable: bool
) -> Sequence[dict[str, Any] | None]:
    """What was selected of objects that may not be there."""
    there = [visit for visit in visits if visit is not None and not visit.is_missing]
    if len(there) == len(visits):
        return _rows_of_visits(run, there)
    if not is_nullable:
        raise Irregular
    written = iter(_rows_of_visits(run, there))
    return [None if visit is None or visit.is_missing else next(written) for visit in visits]


def _rows_of_visits(run: Completion, visits: Sequence[Visit]) -> list[dict[str, Any]]:
    """What was selected of objects that were found, of whatever types."""
    if not visits:
        return []
    plan = visits[0].plan
    for visit in visits:
        if visit.error is not None:
            raise Irregular
        if visit.plan is not plan:
            break
    else:
        return rows(run, plan, visits)
    groups: dict[ObjectPlan, list[Visit]] = {}
    for visit in visits:
        if visit.error is not None:
            raise Irregular
        groups.setdefault(visit.plan, []).append(visit)
    written = {plan: iter(rows(run, plan, group)) for plan, group in groups.items()}
    return [next(written[visit.plan]) for visit in visits]
