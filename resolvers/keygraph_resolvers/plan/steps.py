"""The steps of a plan: what is read, on which access path, from which key, in which round trip.

A plan is made of fields; this is the same plan made of reads, as a tree in which a step hangs under that which tells
its key. `keygraph_resolvers.plan.explain` adds the requests; `keygraph explain` prints it, as text or as JSON.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from graphql import FieldNode, ListValueNode, VariableNode, print_ast

from keygraph.graph import Graph
from keygraph.lists.describe import DescribedRequest
from keygraph.lists.projection import attributes_of
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.plan.field_plans import Below, FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan, Plan, is_type_unknown, neighbour_needs
from keygraph_resolvers.read.connection import DEFAULT_PAGE_SIZE
from keygraph_resolvers.schema.meanings import (
    Called,
    FarNode,
    ListOf,
    NodeAt,
    NodeById,
    NodeByKey,
    NodesByIds,
    OnlyOf,
)

MOST_STEPS = 500
"""A plan's tree is cut there: fragments can make it much longer than the document."""

_KEY_OF = "the key of "
_IN_BRACKETS = re.compile(r"\[[^\[\]]{1,40}\]")
_HELD = "\u00a0"
"""A space at which no line is broken."""

StepKind: TypeAlias = Literal["get node", "read neighbours", "count"]


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
    selected: FieldPlan | None = field(default=None, repr=False)
    """The list that is read, if it is one."""
    plan: ObjectPlan | None = field(default=None, repr=False)
    """What is selected of the node that is got, or of the list's owner; None at the root, or if it may be several."""
    requests: tuple[DescribedRequest, ...] = ()
    """What is sent for it to DynamoDB; nothing for what is read together with another step."""
    is_many: bool = False
    """Whether it is read for any number of objects."""
    together: tuple[str, ...] = ()
    """The places of what the same request reads."""
    problem: str | None = None
    """Why it cannot be read."""

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
                    found += self._nodes(each, f"the argument {names}", 1, each.key, must_exist=True)
                case NodeById() | NodesByIds():
                    found += self._nodes(each, "its global id", 1, each.key, must_exist=True)
                case ListOf() | OnlyOf():
                    found += self._neighbours(each, "", 1, each.key, None)
        return found

    def _nodes(
        self, selected: FieldPlan, key: str, round_trip: int, place: str, *, must_exist: bool = False
    ) -> list[Step]:
        """The steps of the nodes that a field gives: one for each of the types of which different things are asked."""
        found = []
        if is_type_unknown(selected) and self._may_go_on():
            return [self._untold(selected, key, round_trip, place)]
        for plan in cast(Below, selected.below).plans:
            record = cast(RecordType, plan.record)
            is_read = not record.is_virtual and (plan.needs_item or must_exist)
            if not (plan.fields or must_exist) or not self._may_go_on():
                continue
            step = Step(
                "get node",
                place,
                (record.name,),
                key,
                round_trip if is_read else 0,
                attributes=self._attributes(record),
                plan=plan,
            )
            step.steps = self._below(plan, record, round_trip, round_trip + is_read, place)
            found.append(step)
        return _joined(found)

    def _untold(self, selected: FieldPlan, key: str, round_trip: int, place: str) -> Step:
        """The step of nodes of which only reading tells the types, so that nothing below them starts before."""
        step = Step("get node", place, (), key, round_trip, attributes=())
        for plan in cast(Below, selected.below).plans:
            record = cast(RecordType, plan.record)
            step.types += (record.name,)
            step.steps += self._below(plan, record, round_trip + 1, round_trip + 1, place)
            own = self._attributes(record)
            is_all = own is None or step.attributes is None
            step.attributes = None if is_all else tuple(sorted({*(step.attributes or ()), *(own or ())}))
        return step

    def _below(
        self, plan: ObjectPlan, record: RecordType, key_trip: int, item_trip: int, place: str
    ) -> list[Step]:
        """The steps below an object: those that its key tells start at one round trip, its item's at another."""
        steps: list[Step] = []
        for each in plan.lists:
            steps += self._neighbours(each, f"{_KEY_OF}{record.name}", key_trip, f"{place}.{each.key}", plan)
        for ends, round_trip in ((plan.key_ends, key_trip), (plan.item_ends, item_trip)):
            for each in ends:
                steps += self._end(each, record, round_trip, place)
        for each in plan.methods:
            if cast(Called, each.meaning).method.nodes:
                key = f"what the method {record.name}.{each.name} gives"
                steps += self._nodes(each, key, item_trip, f"{place}.{each.key}")
        return steps

    def _end(self, selected: FieldPlan, record: RecordType, round_trip: int, place: str) -> list[Step]:
        match selected.meaning:
            case FarNode(path):
                if path.far_end is None:
                    # The node is the item itself.
                    plan = cast(Below, selected.below).only
                    return self._below(plan, record, round_trip, round_trip, place)
                return self._nodes(selected, f"the end {record.name}.{path.far_end}", round_trip, place)
            case NodeAt(end):
                return self._nodes(
                    selected, f"the end {record.name}.{end.name}", round_trip, f"{place}.{selected.key}"
                )
        return []

    def _neighbours(
        self, selected: FieldPlan, key: str, round_trip: int, place: str, owner: ObjectPlan | None
    ) -> list[Step]:
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
                selected=selected,
                plan=owner,
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
                    below += self._nodes(each, f"the end {path.record.name}.{path.far_end}", after, place)
            found.append(step)
        if needs.has_total and self._may_go_on():
            said = _said(selected.nodes[0])
            found.append(
                Step(
                    "count",
                    place,
                    (path.record.name,),
                    key,
                    round_trip,
                    path,
                    arguments=said,
                    attributes=(),
                    selected=selected,
                    plan=owner,
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


def steps_text(steps: Sequence[Step], width: int = 100) -> str:
    """The steps as a tree of lines of at most so many characters, each with its requests below it."""
    return "".join(f"{line}\n" for line in _lines(steps, width))


def _lines(steps: Sequence[Step], width: int) -> Iterator[str]:
    for step in steps:
        first, *more = _wrapped(described(step), width)
        yield first
        bar = "│    " if step.steps else "     "
        yield from (f"{bar}{line}" for line in more)
        for request in step.requests:
            yield from (f"{bar}{line}" for line in request_lines(request, width - len(bar)))
        for number, child in enumerate(step.steps):
            is_last = number == len(step.steps) - 1
            head, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            for line_number, line in enumerate(_lines([child], width - 3)):
                yield (rest if line_number else head) + line


def described(step: Step) -> str:
    """A step in words."""
    kind = step.kind if step.is_read else step.kind.removeprefix("get ")
    parts = [f"{step.place}: {kind} {' or '.join(step.types)}"]
    if not step.key:
        parts.append("from the root")
    elif step.is_many and step.key.startswith(_KEY_OF):
        parts.append(f"by {_KEY_OF}each {step.key.removeprefix(_KEY_OF)}")
    else:
        parts.append(f"by {step.key}{' of each' if step.is_many else ''}")
    if step.page:
        parts.append(f"– {step.page}")
    if step.arguments:
        parts.append(f"({step.arguments})")
    parts.append(f"[round trip {step.round_trip}]" if step.is_read else "[not read: the key tells all]")
    if step.together:
        parts.append(f"[together with {' and '.join(step.together)}]")
    if step.problem is not None:
        parts.append(f"[cannot be read: {step.problem}]")
    return " ".join(parts)


def request_lines(request: DescribedRequest, width: int) -> Iterator[str]:
    """A request as lines: the operation and its keys, then what else is said, each where there is something."""
    where = f" {request.index}" if request.index else ""
    times = f" × {request.times} shards" if request.times > 1 else ""
    rows = [(f"{request.operation}{where}{times}:", request.keys)]
    if request.filter:
        rows.append(("  filter:", request.filter))
    if request.projection:
        rows.append(("  attributes:", request.projection))
    said = [f"at most {request.limit} item{'' if request.limit == 1 else 's'}"] if request.limit else []
    said += ["backward"] if request.is_backward else []
    said += ["the number alone is sent"] if request.counts else []
    if said:
        rows.append(("  page:", ", ".join(said)))
    for head, text in rows:
        yield from _wrapped(f"{head} {text}", width, indent="    ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines, broken at spaces; but not at those in brackets."""
    held = _IN_BRACKETS.sub(lambda found: found[0].replace(" ", _HELD), text)
    lines = textwrap.wrap(
        held, max(width, 40), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace(_HELD, " ") for line in lines]


def steps_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps as JSON."""
    return [
        {
            "kind": step.kind,
            "place": step.place,
            "types": list(step.types),
            "keyFrom": step.key or None,
            "isRead": step.is_read,
            "roundTrip": step.round_trip or None,
            "index": step.path.keys.index_name if step.path else None,
            "keys": str(step.path.keys) if step.path else None,
            "page": step.page or None,
            "arguments": step.arguments or None,
            "attributes": None if step.attributes is None else list(step.attributes),
            "together": list(step.together),
            "problem": step.problem,
            "requests": [_request_json(each) for each in step.requests],
            "steps": steps_json(step.steps),
        }
        for step in steps
    ]


def _request_json(request: DescribedRequest) -> dict[str, Any]:
    return {
        "operation": request.operation,
        "index": request.index,
        "keys": request.keys,
        "filter": request.filter,
        "attributes": request.projection,
        "limit": request.limit,
        "forward": not request.is_backward,
        "counts": request.counts,
        "atOnce": request.times,
    }
