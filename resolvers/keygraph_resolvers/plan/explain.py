"""Explains an operation before it runs: its steps with the request of each, and its bound.

The Explain driver walks the values that the Bound driver adds up (`Step.worst`), and makes a tree of them. Required
variables without a value get stand-ins, so that a plan can be read without knowing a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import graphql

from keygraph.errors import KeygraphError
from keygraph.lists.describe import DescribedRequest, key_request
from keygraph.lists.projection import attributes_of
from keygraph.model.permissions import KnownRecord
from keygraph.model.records import RecordType
from keygraph.writing.sending.describe import DescribedWrite
from keygraph_resolvers.engine import worst
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.explained import (
    NOTHING,
    Explained,
    Where,
    access_text,
    arguments_text,
    list_access_text,
    page_text,
    problem_text,
)
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.write import SEARCH_ROUND_TRIPS

MOST_STEPS = 500
"""The most steps in a plan's tree, which is cut there: fragments can make it much longer than the document."""


@dataclass(frozen=True)
class Explanation:
    """The reads and writes of an operation."""

    steps: Sequence[Explained]
    bound: Bound
    stand_ins: Mapping[str, Any]
    """The stand-ins for variables without a value."""
    elsewhere: Sequence[str]
    """The root fields that graphql-core executes itself: they have no steps, and no bound."""
    refusal: str | None = None
    """Why the service would refuse it."""


def explain_plan(plan: Plan, run: Run, stand_ins: Mapping[str, Any]) -> Explanation:
    """Explains the reads and writes of a run of a plan. Nothing is sent."""
    driver = _Explain(run, plan.needed, stand_ins.values())
    steps: list[Explained] = []
    for step in plan.roots:
        # Mutations run one after the other, each with its payload.
        last = max((each.last_round_trip for each in steps), default=0)
        steps += driver.nodes_of(step, Where("", "", 1 + last if plan.is_mutation else 1))
    return Explanation(steps, Bound(plan, run), stand_ins, plan.elsewhere)


@dataclass(eq=False)
class _Explain:
    """The Explain driver: makes a tree of what steps request at most (`Step.worst`), in a run that reads nothing."""

    run: Run
    _needed: Mapping[RecordType, frozenset[str] | None]
    _stand_ins: Collection[Any]
    """They replace variables without a value."""
    _left: int = MOST_STEPS

    def nodes_of(self, step: worst.Bounded, where: Where) -> list[Explained]:
        """Returns the nodes of a step, with those of all steps that it starts. `where` is the place that starts it."""
        if self._left < 0:
            return []
        return _StepTree(self, step, replace(where, place=where.place + step.suffix)).nodes()

    def may_add_node(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def attributes(self, records: Iterable[RecordType]) -> tuple[str, ...] | None:
        """Returns the attributes that are requested from an item of any of the types; None for all."""
        found = [attributes_of(self.run.graph, each, self._needed.get(each, frozenset())) for each in records]
        return None if None in found else tuple(sorted({name for own in found for name in own or ()}))

    def access(self, record: RecordType, identity: tuple[str, ...] | None) -> str:
        """Returns the condition for the viewer to see a record, without what its identity decides, if that is known."""
        access = self.run.access
        if access is None:
            return ""
        if identity is None:
            return access_text(access.decision(record))
        known = KnownRecord(record, identity)
        return access_text(access.with_links(known, access.decide(known)))

    def problem(self, arguments: Callable[[Any], object]) -> str | None:
        """Returns why these arguments are refused. An invalid global id is not reported for a stand-in."""
        try:
            arguments(self.run)
        except Exception as error:
            message = message_of(error)
            return None if any(f"'{value}'" in message for value in self._stand_ins) else message
        return None


@dataclass(eq=False)
class _StepTree:
    """The nodes of one step at one place, with those of what it starts."""

    _driver: _Explain
    _step: worst.Bounded
    _where: Where
    _nodes: list[Explained] = field(default_factory=list)
    _made: dict[worst.Described, Explained] = field(default_factory=dict)
    _own: Explained | None = None
    """The step's own node."""
    _current: Explained | None = None
    """The node for which something is requested and started."""
    _combined: list[tuple[tuple[str, ...], DescribedRequest, int]] = field(default_factory=list)
    """The requests for several places, with their round trips."""

    def nodes(self) -> list[Explained]:
        is_closed = False
        for each in self._step.worst(self._driver.run):
            match each:
                case worst.Described():
                    is_closed = not self._open(each)
                    if is_closed and each.step() is self._step:
                        break
                case worst.NodeEnd():
                    self._current, is_closed = self._own, False
                case worst.Wait():
                    self._where = replace(self._where, round_trip=self._where.round_trip + each.usual)
                case worst.Times():
                    self._where = replace(self._where, is_many=self._where.is_many or each.number > 1)
                case worst.Unstarted():
                    for start in each.starts:
                        self._start(start, self._driver.problem(each.arguments))
                case worst.Transactions():
                    is_closed = not self._write(each)
                case worst.StepStart() if not is_closed:
                    self._start(each)
                case worst.KeyLookups(is_usual=True) if not is_closed:
                    self._look_up(each)
                case worst.QueryRequests() if each.requests and not is_closed:
                    self._query(each)
        for places, request, trip in self._combined:
            self._combine([self._where.place + each for each in places], request, trip)
        return self._nodes

    # --- Nodes --------------------------------------------------------------------------------------------

    def _open(self, described: worst.Described) -> bool:
        """Continues with a node, which is made unless it is there. Returns whether the viewer sees anything of it."""
        step, path = described.step(), described.path
        is_own = step is self._step
        node = self._made.get(described)
        if node is None:
            if not self._driver.may_add_node():
                return False
            key = described.key or self._where.key
            if path is not None:
                key = f"{worst.KEY_OF}{path.owner.name}" if path.owner else ""
            where = replace(
                self._where,
                place=self._where.place + ("" if is_own or step is None else step.suffix),
                key=key,
                identity=None if step is None else self._where.identity,
            )
            node = self._made[described] = Explained(described.kind, where, (), path=path, source=described)
            (self._nodes if is_own or self._own is None else self._own.steps).append(node)
            try:
                self._describe(described, node)
            except Exception as error:
                node.problem = message_of(error)
            node.is_read = node.problem is not None
        self._current, self._own = node, node if is_own else self._own
        return node.problem is None and node.access != NOTHING

    def _describe(self, described: worst.Described, node: Explained) -> None:
        """Sets what is known of a node without its requests. Raises what its arguments are refused for."""
        run, where, path = self._driver.run, node.where, described.path
        node.problem, node.types = where.problem, tuple(each.name for each in described.records)
        is_count = described.kind == "count"
        if described.kind != "walk":
            node.attributes = () if is_count else self._driver.attributes(described.records)
        if described.field is not None:
            [field, *_] = described.field.nodes
            node.arguments = arguments_text(field)
            node.page = "" if is_count else "1" if path is not None and path.is_one else page_text(field)
        if node.problem is not None:
            return
        arguments = described.arguments(run)
        node.page = described.page(run, node.page)
        if isinstance(arguments, ListArguments):
            is_visible = arguments.described(run, where.identity) is not None
            node.access = list_access_text(arguments.conditions(run)) if is_visible else NOTHING
        elif not described.records and arguments is not None:
            node.types = tuple(each.name for each in arguments.nodes)
        if described.has_rules:
            node.access = self._driver.access(described.records[0], where.identity)

    def _start(self, start: worst.StepStart, problem: str | None = None) -> None:
        identity = self._where.identity
        if start.key:
            known = {*start.identities(self._driver.run)} if start.identities is not None else {None}
            identity = known.pop() if len(known) == 1 else None
        where = replace(
            self._where,
            key=start.key or self._where.key,
            round_trip=self._where.round_trip + start.within[0],
            is_many=self._where.is_many or start.number > 1,
            identity=identity,
            problem=problem,
        )
        below = self._nodes if self._current is None else self._current.steps
        below += self._driver.nodes_of(start.step, where)

    # --- Requests -----------------------------------------------------------------------------------------

    def _look_up(self, lookups: worst.KeyLookups) -> None:
        node = self._current
        if node is None or node.source is None:
            return
        # Lookups of other items, which decide about access, may be of the same type.
        is_own = lookups.records is node.source.records
        is_many, identity = node.where.is_many or lookups.number > 1, None
        if is_own and node.path is None:
            node.where, identity = replace(node.where, is_many=is_many), node.where.identity
        count = f", {lookups.number} keys" if is_own and node.path and lookups.number > 1 else ""
        # What is in no batch is requested when another request was answered.
        trip = self._where.round_trip + lookups.within[0] + (lookups.unbatched > 0)
        projection = self._driver.run.attributes.projection
        for record in lookups.records:
            request = key_request(self._driver.run.graph, record, identity, projection, is_many=is_many)
            node.send(replace(request, keys=f"{request.keys}{count}"), trip)

    def _query(self, query: worst.QueryRequests) -> None:
        """Adds what is sent for the current node, or for several."""
        node, trip = self._current, self._where.round_trip + query.begins
        if query.combined is not None:
            found = query.combined(self._driver.run, self._where.identity)
            if query.places in found:
                self._combined.append((query.places, found[query.places], trip))
        elif node is not None and node.source is not None and not node.is_queried:
            node.is_queried, described = True, node.source
            try:
                for request in described.reads(self._driver.run, node.where.identity):
                    node.send(request, trip)
                for start in described.lists(self._driver.run):
                    node.is_read = True
                    self._start(start)
            except Exception as error:
                node.problem = message_of(error)

    def _combine(self, places: Sequence[str], request: DescribedRequest, trip: int) -> None:
        """Describes as one what one Query reads: the step's own node and lists."""
        nodes = self._nodes if self._own is None else [self._own, *self._own.steps]
        parts = [
            each for each in nodes if each.kind in ("get node", "read list") and each.where.place in places
        ]
        for part in parts:
            part.sent = {}
            part.send(request, trip)
            part.combined_with = tuple(each.where.place for each in parts if each is not part)
        for part in parts[1:]:
            part.sent = {}

    def _write(self, transactions: worst.Transactions) -> bool:
        """Adds the transactions of a mutation. Returns whether all of them can be sent."""
        where, group = self._where, 0
        first = last = where.round_trip
        try:
            for number, names, write in transactions.described(self._driver.run):
                if not self._driver.may_add_node():
                    break
                if number > group:
                    group, first = number, last + 1
                last = max(last, self._write_one(names, write, first))
        except KeygraphError as error:
            self._nodes.append(Explained("write", where, (), problem=problem_text(error)))
            return False
        self._where = replace(where, round_trip=last + 1)
        return True

    def _write_one(self, names: tuple[str, ...], write: DescribedWrite, trip: int) -> int:
        """Adds one transaction with its reads. Returns its round trip."""
        locks, parts = write.delete_locks, list[tuple[worst.StepKind, Sequence[DescribedRequest], int]]()
        parts += [("read first", [write.read], 1)] if write.read else []
        parts += [("read first", write.read_later, 1)] if write.read_later else []
        # They are set one after the other.
        parts += [("mark", locks, len(locks))] if locks else []
        parts += [("find what names", write.searches, SEARCH_ROUND_TRIPS)] if locks else []
        for kind, requests, taken in parts:
            sent = {each: trip + (number if kind == "mark" else 0) for number, each in enumerate(requests)}
            self._nodes.append(Explained(kind, replace(self._where, round_trip=trip), names, sent=sent))
            trip += taken
        where = replace(self._where, round_trip=trip)
        self._own = self._current = Explained("write", where, names, transactions=write.transactions)
        self._nodes.append(self._own)
        return trip


_CANDIDATES = ("2024-01-01T00:00:00Z", "2024-01-01", "AA==", "1", 1, True)
"""Values to try for a scalar that does not accept any text."""


def stand_ins(
    schema: graphql.GraphQLSchema, operation: graphql.OperationDefinitionNode, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a value for each required variable without one. A text is the variable's own name, such as `$user`."""
    found = {}
    for each in operation.variable_definitions or ():
        name, type_ = each.variable.name.value, graphql.type_from_ast(schema, each.type)
        is_needed = isinstance(type_, graphql.GraphQLNonNull) and each.default_value is None
        if is_needed and given.get(name) is None:
            found[name] = _value(type_, f"${name}")
    return found


def _value(type_: Any, name: str) -> Any:
    match type_:
        case graphql.GraphQLNonNull():
            return _value(type_.of_type, name)
        case graphql.GraphQLList():
            return [_value(type_.of_type, name)]
        case graphql.GraphQLEnumType():
            return next(iter(type_.values))
        case graphql.GraphQLInputObjectType():
            return {
                field_name: _value(field.type, f"{name}.{field_name}")
                for field_name, field in type_.fields.items()
                if isinstance(field.type, graphql.GraphQLNonNull)
            }
        case graphql.GraphQLScalarType(name="Int"):
            return 10
        case graphql.GraphQLScalarType():
            for candidate in (name, *_CANDIDATES):
                try:
                    type_.parse_value(candidate)
                except Exception:  # a scalar says no in its own way
                    continue
                return candidate
    return None
