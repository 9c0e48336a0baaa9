"""The steps of a plan: what is read, on which access path, from which key, in which round trip.

A plan is made of fields; this is the same plan made of reads, as a tree in which a step hangs under that which tells
its key. It is what `keygraph explain` prints, as text or as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from graphql import FieldNode, ListValueNode, VariableNode, print_ast

from keygraph.graph import Graph
from keygraph.names import camel
from keygraph.paths import AccessPath
from keygraph.projecting import attributes_of
from keygraph.records import RecordType
from resolvers.connections import DEFAULT_PAGE_SIZE
from resolvers.meanings import Called, FarNode, ListOf, NodeAt, NodeById, NodeByKey, NodesByIds, OnlyOf
from resolvers.plan import Below, FieldPlan, ObjectPlan, Plan, neighbour_needs

MOST_STEPS = 500
"""A plan's tree is cut there: fragments can make it much longer than the document."""

StepKind: TypeAlias = Literal["get node", "read neighbours", "count", "call"]


@dataclass
class Step:
    """One read of a plan, for every object that it hangs under."""

    kind: StepKind
    place: str
    """The keys of the answer that lead to it, such as `user.orders.items`."""
    types: tuple[str, ...]
    """The record types of what is read: several where the key does not tell which."""
    key: str
    """What tells the key that is read by."""
    round_trip: int
    """The first one in which it can be; 0 where nothing is read."""
    path: AccessPath | None = None
    page: str = ""
    """How many neighbours, as the operation says it."""
    arguments: str = ""
    """What else the operation says of a list."""
    attributes: tuple[str, ...] | None = None
    """What is asked of each item; None for all of it."""
    steps: list[Step] = field(default_factory=list)

    @property
    def is_read(self) -> bool:
        """Whether it costs a request: what a key tells is answered without one."""
        return self.round_trip > 0


def steps_of(plan: Plan, graph: Graph) -> list[Step]:
    """The steps of a plan, as trees."""
    return _Steps(plan, graph).roots()


class _Steps:
    def __init__(self, plan: Plan, graph: Graph) -> None:
        self._plan = plan
        self._graph = graph
        self._left = MOST_STEPS

    def roots(self) -> list[Step]:
        found: list[Step] = []
        for each in self._plan.root.fields:
            match each.meaning:
                case NodeByKey(record):
                    names = " and ".join(camel(record.leaf_name(slot.path)) for slot in record.identity)
                    found += self._nodes(each, f"argument {names}", 1, each.key, must_exist=True)
                case NodeById() | NodesByIds():
                    found += self._nodes(each, "global id", 1, each.key, must_exist=True)
                case ListOf() | OnlyOf():
                    found += self._neighbours(each, "the root", 1, each.key)
        return found

    def _nodes(
        self, selected: FieldPlan, key: str, round_trip: int, place: str, *, must_exist: bool = False
    ) -> list[Step]:
        """The steps of the nodes that a field gives: one for each of the types of which different things are asked."""
        found = []
        for plan in cast(Below, selected.below).plans:
            record = cast(RecordType, plan.record)
            is_read = not record.is_virtual and (plan.needs_item or must_exist)
            if not plan.fields or not self._may_go_on():
                continue
            step = Step(
                "get node",
                place,
                (record.name,),
                key,
                round_trip if is_read else 0,
                attributes=self._attributes(record),
            )
            step.steps = self._below(plan, record, round_trip, round_trip + is_read, place)
            found.append(step)
        return _joined(found)

    def _below(
        self, plan: ObjectPlan, record: RecordType, key_trip: int, item_trip: int, place: str
    ) -> list[Step]:
        """The steps below an object: those that its key tells start at one round trip, its item's at another."""
        steps: list[Step] = []
        for each in plan.lists:
            steps += self._neighbours(each, f"the key of {record.name}", key_trip, f"{place}.{each.key}")
        for ends, round_trip in ((plan.key_ends, key_trip), (plan.item_ends, item_trip)):
            for each in ends:
                steps += self._end(each, record, round_trip, place)
        for each in plan.methods:
            if cast(Called, each.meaning).method.nodes:
                key = f"{record.name}.{each.name}"
                steps += self._nodes(each, key, item_trip, f"{place}.{each.key}")
        return steps

    def _end(self, selected: FieldPlan, record: RecordType, round_trip: int, place: str) -> list[Step]:
        match selected.meaning:
            case FarNode(path):
                if path.far_end is None:
                    # The node is the item itself.
                    plan = cast(Below, selected.below).only
                    return self._below(plan, record, round_trip, round_trip, place)
                return self._nodes(selected, f"{record.name}.{path.far_end}", round_trip, place)
            case NodeAt(end):
                return self._nodes(
                    selected, f"{record.name}.{end.name}", round_trip, f"{place}.{selected.key}"
                )
        return []

    def _neighbours(self, selected: FieldPlan, key: str, round_trip: int, place: str) -> list[Step]:
        needs = neighbour_needs(selected)
        path, found = needs.path, []
        if needs.has_page and self._may_go_on():
            step = Step(
                "read neighbours",
                place,
                (path.record.name,),
                key,
                round_trip,
                path,
                "1" if path.is_one else _page(selected.nodes[0]),
                _said(selected.nodes[0]),
                self._attributes(path.record),
            )
            after = round_trip + 1
            below = step.steps
            if needs.wants_whole:
                whole = Step(
                    "get node",
                    place,
                    (path.record.name,),
                    f"the table key in {path.keys.index_name}",
                    after,
                    attributes=self._attributes(path.record),
                )
                step.steps.append(whole)
                below, after = whole.steps, after + 1
            plans = needs.items if path.is_one else [cast(Below, each.below).only for each in needs.edges]
            for plan in plans:
                below += self._below(plan, path.record, after, after, place)
            for each in needs.nodes:
                if path.far_end is None:
                    below += self._below(cast(Below, each.below).only, path.record, after, after, place)
                else:
                    below += self._nodes(each, f"{path.record.name}.{path.far_end}", after, place)
            found.append(step)
        if needs.has_total and self._may_go_on():
            said = _said(selected.nodes[0])
            found.append(
                Step(
                    "count", place, (path.record.name,), key, round_trip, path, arguments=said, attributes=()
                )
            )
        return found

    def _attributes(self, record: RecordType) -> tuple[str, ...] | None:
        found = attributes_of(self._graph, record, self._plan.needed.get(record, frozenset()))
        return None if found is None else tuple(sorted(found))

    def _may_go_on(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _joined(steps: list[Step]) -> list[Step]:
    """The steps with those as one that differ in their type alone."""
    found: list[Step] = []
    for step in steps:
        same = next(
            (each for each in found if not each.steps and not step.steps and _is_alike(each, step)), None
        )
        if same is None:
            found.append(step)
        else:
            same.types += step.types
            if same.attributes is not None and step.attributes is not None:
                same.attributes = tuple(sorted({*same.attributes, *step.attributes}))
            else:
                same.attributes = None
    return found


def _is_alike(one: Step, other: Step) -> bool:
    return (one.kind, one.place, one.key, one.round_trip) == (
        other.kind,
        other.place,
        other.key,
        other.round_trip,
    )


def _page(node: FieldNode) -> str:
    given = {each.name.value: each.value for each in node.arguments or ()}
    for name in ("last", "first"):
        if name in given:
            value = given[name]
            shown = f"${value.name.value}" if isinstance(value, VariableNode) else print_ast(value)
            return f"{name} {shown}"
    return f"first {DEFAULT_PAGE_SIZE}"


def _said(node: FieldNode) -> str:
    """The arguments of a list besides the size of its page, as they were written."""
    return ", ".join(
        f"{each.name.value}: {_shortened(each.value)}"
        for each in node.arguments or ()
        if each.name.value not in ("first", "last")
    )


def _shortened(value: Any) -> str:
    if isinstance(value, ListValueNode) and len(value.values) > 3:
        return f"[{len(value.values)} values]"
    text = print_ast(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- As text and as JSON ------------------------------------------------------------------------------


def steps_text(steps: Sequence[Step], more: Callable[[Step], Sequence[str]] = lambda step: ()) -> str:
    """The steps as a tree of lines. `more` gives further lines of a step, such as its requests."""
    return "".join(f"{line}\n" for line in _lines(steps, more))


def _lines(steps: Sequence[Step], more: Callable[[Step], Sequence[str]]) -> Iterator[str]:
    for step in steps:
        yield described(step)
        inner = [*more(step)]
        bar = "│  " if step.steps else "   "
        yield from (f"{bar}{line}" for line in inner)
        for number, child in enumerate(step.steps):
            is_last = number == len(step.steps) - 1
            head, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            for line_number, line in enumerate(_lines([child], more)):
                yield (rest if line_number else head) + line


def described(step: Step) -> str:
    """A step in one line."""
    parts = [f"{step.place}: {step.kind} {' or '.join(step.types)}"]
    if step.path is not None:
        keys = step.path.keys
        parts.append(f"on {keys.index_name or 'the table'} ({keys})")
    parts.append(f"by {step.key}")
    if step.page:
        parts.append(step.page if step.kind != "count" else "")
    if step.arguments:
        parts.append(f"({step.arguments})")
    if not step.is_read:
        parts.append("[not read: the key tells all]")
    else:
        parts.append(f"[round trip {step.round_trip}]")
    return " ".join(part for part in parts if part)


def steps_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps as JSON."""
    return [
        {
            "kind": step.kind,
            "place": step.place,
            "types": list(step.types),
            "keyFrom": step.key,
            "isRead": step.is_read,
            "roundTrip": step.round_trip or None,
            "index": step.path.keys.index_name if step.path else None,
            "keys": str(step.path.keys) if step.path else None,
            "page": step.page or None,
            "arguments": step.arguments or None,
            "attributes": None if step.attributes is None else list(step.attributes),
            "steps": steps_json(step.steps),
        }
        for step in steps
    ]
