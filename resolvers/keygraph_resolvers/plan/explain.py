"""Explaining an operation before it runs: its steps with the requests that each will be, and the estimate.

Keys that are not known yet are shown by the placeholders of their templates, and variables that the client has not given
by a stand-in, so that a plan can be read without a value at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keygraph.errors import BadUserInput
from keygraph.lists.counting import count_requests
from keygraph.lists.describe import DescribedRequest, described_requests, key_request
from keygraph.lists.gather import Together
from keygraph.lists.placeholders import shown_key
from keygraph.lists.reading import page_requests
from keygraph.model.records import RecordType
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.cost import CostEstimate
from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.plan import ObjectPlan, Plan
from keygraph_resolvers.plan.shown import ShownList, ShownLists
from keygraph_resolvers.plan.steps import Step, steps_of
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.roots import named_at_root
from keygraph_resolvers.schema.meanings import NodeById, NodeByKey, NodesByIds


@dataclass(frozen=True)
class Explanation:
    """What an operation will read."""

    steps: Sequence[Step]
    estimate: CostEstimate
    stand_ins: Mapping[str, Any]
    """What was taken for variables of which no value was given."""
    elsewhere: Sequence[str]
    """The root's fields that graphql-core's own execution answers: they have no steps, and are not estimated."""


def explained_steps(
    plan: Plan, context: RequestContext, arguments: Arguments, stand_ins: Mapping[str, Any]
) -> list[Step]:
    """The steps of a plan with their requests. Of a stand-in nobody wants to know that it is no global id."""
    requests = _Requests(plan, context, arguments, stand_ins)
    steps = [each for each in steps_of(plan, context.graph) if requests.may_be_read(each)]
    for each in steps:
        requests.add(each, is_many=False)
    return steps


class _Requests:
    """Adds its requests to each step."""

    def __init__(
        self, plan: Plan, context: RequestContext, arguments: Arguments, stand_ins: Mapping[str, Any]
    ) -> None:
        self._context = context
        self._graph = context.graph
        self._shown = ShownLists(context, arguments)
        self._identities: dict[str, tuple[str, ...]] = {}
        self._problems: dict[str, str] = {}
        self._named_types: dict[str, set[str]] = {}
        for each in plan.root.having(NodeByKey, NodeById, NodesByIds):
            try:
                sources = named_at_root(context.graph, each, arguments)
            except Exception as error:
                if not any(f"'{value}'" in message_of(error) for value in stand_ins.values()):
                    self._problems[each.key] = message_of(error)
                continue
            self._named_types[each.key] = {source.record.name for source in sources}
            if len(sources) == 1:
                self._identities[each.key] = sources[0].identity

    def may_be_read(self, step: Step) -> bool:
        """Whether a step of the root is one of the types that are named, where global ids tell these."""
        named = self._named_types.get(step.place)
        if named is not None:
            step.types = tuple(name for name in step.types if name in named)
        return bool(step.types)

    def add(self, step: Step, *, is_many: bool, owner: tuple[str, ...] | None = None) -> None:
        """Adds the requests of a step, and of those below it.

        `is_many`: it is read for any number of objects. `owner` is the identity of a list's owner, where it is known.
        """
        step.is_many = is_many
        identity = self._identities.get(step.place) if step.kind == "get node" else None
        if step.selected is not None:
            self._add_list(step, step.selected, owner)
        elif step.is_read:
            step.requests = tuple(self._gets(step, identity, is_many=is_many))
            step.problem = self._problems.get(step.place)
        for each in step.steps:
            is_own = each.selected is not None and each.plan is step.plan
            below_many = is_many or (step.kind == "read neighbours" and step.page != "1")
            self.add(each, is_many=below_many, owner=identity if is_own else None)
        self._join(step, identity)

    def _gets(
        self, step: Step, identity: tuple[str, ...] | None, *, is_many: bool
    ) -> Iterator[DescribedRequest]:
        found: dict[DescribedRequest, None] = {}
        for name in step.types:
            record = self._graph.types[name]
            request = key_request(self._graph, record, identity, self._context.attributes.projection)
            found[replace(request, operation="BatchGetItem") if is_many else request] = None
        yield from found

    def _add_list(self, step: Step, selected: FieldPlan, owner: tuple[str, ...] | None) -> None:
        try:
            shown = self._shown.of(selected, owner)
            if shown.said.to is not None:
                step.requests = (self._named(shown, len(shown.said.to)),)
                return
            times = shown.needs.path.keys.shards or 1
            requests = (
                count_requests(shown.neighbours)
                if step.kind == "count"
                else page_requests(shown.neighbours, shown.extent)
            )
            step.requests = (described_requests(self._graph, requests, times),) if requests else ()
        except Exception as error:
            step.problem = message_of(error)

    def _named(self, shown_list: ShownList, count: int) -> DescribedRequest:
        """How the edges to the nodes that the client names are read."""
        path = shown_list.needs.path
        request = key_request(self._graph, path.record)
        if path.finds_by_node:
            return replace(request, operation="BatchGetItem", keys=f"{request.keys}, {count} keys")
        between = path.keys_of_both_ends
        if between is None:
            raise BadUserInput(f"no key of {path.record.name} tells both its ends")
        shown = " AND ".join(
            f"{key.name} = {template}"
            for key, template in zip(between.attributes, between.templates, strict=False)
        )
        return DescribedRequest("Query", between.index_name, f"{shown}, {count} times")

    def _join(self, step: Step, identity: tuple[str, ...] | None) -> None:
        """Shows as one what one Query reads: a node and its lists, or lists alone."""
        owners: dict[int, ObjectPlan] = {}
        for each in (step, *step.steps):
            if each.plan is not None and each.plan.gathers and (each is step or each.plan is not step.plan):
                owners[id(each.plan)] = each.plan
        for plan in owners.values():
            is_own = plan is step.plan and step.kind == "get node"
            record = plan.record
            if record is None or (is_own and step.problem):
                continue
            known = identity if is_own else None
            for joint in self._shown.together(plan, known, is_wanted=is_own and step.is_read):
                parts = [
                    each
                    for field in joint.fields
                    for each in ([step] if field is None else _pages_of(step, plan, field))
                ]
                if len(parts) > 1:
                    self._join_parts(parts, joint.together, record, known)

    def _join_parts(
        self, parts: list[Step], together: Together, record: RecordType, identity: tuple[str, ...] | None
    ) -> None:
        request = together.request(shown_key(record, identity), self._context.attributes.projection)
        for part in parts:
            part.requests = ()
            part.together = tuple(each.place for each in parts if each is not part)
        first = min(parts, key=lambda part: part.kind != "get node")
        first.requests = (described_requests(self._graph, [request]),)


def _pages_of(step: Step, plan: ObjectPlan, field: FieldPlan) -> list[Step]:
    """The step below that reads a page of the list."""
    return [
        each
        for each in step.steps
        if each.kind == "read neighbours" and each.selected is field and each.plan is plan
    ]
