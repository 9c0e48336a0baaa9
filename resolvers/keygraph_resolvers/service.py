"""The service: one operation in, one GraphQL response out. No HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from graphql import GraphQLError, OperationDefinitionNode
from graphql.execution.values import VariableValues

from keygraph.access.claims import ANONYMOUS, Claims, Viewer
from keygraph.admission import ITEMS_OF_A_PLACE, LARGE, Admission, Overloaded
from keygraph.deadlines import Deadlines, Wait
from keygraph.dynamo.store import Store
from keygraph.errors import BadUserInput, TimedOut, without_frames
from keygraph.limits import Limits
from keygraph.model.permissions import Permissions
from keygraph.turns import BUDGET, TooMuchWork, WorkBudget, step_by_step
from keygraph_resolvers.answer.completion import AnswerTooLarge, Completion, write_data
from keygraph_resolvers.answer.reports import errors_and_warnings
from keygraph_resolvers.core_execution import INTROSPECTION, CoreExecution
from keygraph_resolvers.engine.engine import new_root, read, rounds
from keygraph_resolvers.errors import answer_limit_error, internal_error, public_error, words_of
from keygraph_resolvers.hooks import Hooks
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.cost import exceeded_error, refused_error
from keygraph_resolvers.plan.document_limits import DocumentLimit, caused
from keygraph_resolvers.plan.documents import Documents, OperationRequest, PreparedOperation, Refused, Turn
from keygraph_resolvers.plan.explain import Explanation, explain_plan, stand_ins
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.meter import Memory, SharedReads
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.recording import RecordingStore
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.types import GraphSchema
from keygraph_resolvers.steps.call import CallOwn
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.worker_thread import WorkerThread

_AT_ONCE = 200_000
"""The largest answer, in bytes, that is written at once, in about 10 ms. Larger ones are written in a thread."""
_NESTED_AT_ONCE = 10_000
"""The most values in lists, maps and sets of items, for the same: a scalar such as `JSON` makes a value of each."""
_MORE_FOR_ANY = 4
"""A byte of an object or list of a scalar counts so often more: 40,000 bytes are 13,000 values, such as `[],`."""
_ITEMS_OF_A_VALUE = 4
"""A value that a mutation writes takes about as much memory as this many items that are read: it is a part of an input,
a request, an action and a payload."""


class Service:
    """Answers operations on a schema from a store, within limits.

    `secret` encrypts the cursors: anyone who knows it can read and make them. `introspection`: operations may ask for
    `__schema` and `__type`; `shows_all`: these show every viewer the whole schema, not only what a rule might allow;
    `suggestions`: errors suggest names of the schema.
    """

    def __init__(
        self,
        schema: GraphSchema,
        store: Store,
        *,
        secret: bytes,
        limits: Limits | None = None,
        introspection: bool = True,
        shows_all: bool = True,
        suggestions: bool = True,
    ) -> None:
        self.schema = schema
        self.store = store
        self._shared = SharedReads(store)
        self.limits = limits = limits or Limits()
        self.admission = Admission(limits.max_running, limits.max_waiting)
        self.memory = Memory(limits.operation_memory)
        """The memory that operations hold until their answers are sent."""
        self._cursors = Cursors(secret)
        self._thread = WorkerThread()
        self._preparing = Admission(1, limits.max_running + limits.max_waiting)
        self._documents = Documents(
            core_schema(schema),
            schema.graph,
            limits,
            introspection=introspection,
            suggestions=suggestions,
        )
        self._core = CoreExecution(
            schema, self._documents, self._thread, shows_all=shows_all, suggestions=suggestions
        )
        self._suggestions = suggestions
        self._cost_limit = limits.cost_limit or None
        self._deadlines: Deadlines | None = None

    def makes_much(self) -> bool:
        """Whether large operations run, or a long new document is prepared: they keep much of what they make."""
        return LARGE in self.admission.taken or self._preparing.running > 0

    @property
    def kept_bytes(self) -> int:
        """The approximate bytes kept for documents that may come again."""
        return self._documents.kept_bytes

    def execute(
        self, request: OperationRequest | str, variables: Mapping[str, Any] | None = None
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Returns the response to an operation: `data`, `errors` with their codes, or both.

        A document alone, or with variables, is a request too. An operation that could not be executed at all has no
        `data`. `extensions.warnings` lists fields that are null for another reason than an error. Raises NotAQuery for
        an operation of another kind if `only_queries` are allowed.
        """
        if isinstance(request, str):
            request = OperationRequest(request, variables)
        if not self.schema.extensions:
            return self._execute(request, None)
        hooks = Hooks(
            self.schema, request.document, request.variables, request.operation_name, request.context
        )
        return hooks.around(partial(self._execute, request, hooks))

    async def _execute(self, request: OperationRequest, hooks: Hooks | None) -> dict[str, Any]:
        """Returns the response to a request, with the hooks of the schema's extensions."""
        began = asyncio.get_running_loop().time() if request.began is None else request.began
        ends = began + self.limits.operation_timeout
        observation, turn = request.observation, Turn(request, ends, self._preparing, self._thread)
        error = None
        try:
            prepared = await self._documents.prepare(request, turn, None if hooks is None else hooks.read)
            plan, run = prepared.plan, self._run_of(prepared.values, prepared.plan, request.viewer)
            run.idempotency_key, run.context = request.idempotency_key, request.context
            run.meter.holding = request.holding
            if not self._suggestions:
                # Not by way of the request, which references the run.
                run.sent = partial(words_of, request.document, request.variables)
            if request.reads is not None:
                run.meter.store = RecordingStore(run.meter.store, request.reads)
                run.wants_changes = request.reads.add_changes
            run.change = request.change
            run.access = request.access or run.access
            run.middleware = None if hooks is None else hooks.middleware
            observation.plan, observation.meter = plan, run.meter
            if not plan.writes:
                # The bound of writes is made of all that they write: it is computed when they have a place.
                bound = observation.bound = Bound(plan, run)
                if bound.known is None and plan.roots:
                    # It may take milliseconds.
                    error = await turn.do(partial(self._limit_error, bound))
                    self._documents.keep_plan(prepared.operation, plan, prepared.values.coerced)
                else:
                    error = self._limit_error(bound)
        except Refused as wrong:
            return {"errors": wrong.errors}
        except (DocumentLimit, Overloaded) as beyond:
            return {"errors": [public_error(caused(beyond))]}
        except TimeoutError:
            return self._late()
        finally:
            if turn.place is not None:
                turn.end()
        answer: dict[str, Any] = {"errors": [error]}
        if error is None:
            respond = partial(self._admitted, prepared, run, request, ends)
            answer = await (respond() if hooks is None else hooks.execute(respond))
        if request.with_cost:
            report = observation.cost(self.schema.graph.table, is_secretive=plan.is_secretive(run))
            answer.setdefault("extensions", {})["cost"] = report
        return answer

    def _late(self, *, may_have_written: bool = False) -> dict[str, Any]:
        written = " Its writes may have taken effect." if may_have_written else ""
        late = TimedOut(f"The operation took more than {self.limits.operation_timeout:g} seconds.{written}")
        return {"data": None, "errors": [public_error(caused(late))]}

    def explain(
        self,
        document: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        *,
        viewer: Claims | None = None,
    ) -> Explanation:
        """Returns what a query of a viewer will read, and what it may cost; nothing is read.

        Required variables without a value get stand-ins. Raises BadUserInput if there is nothing to explain.
        """
        read, given = self._documents.read(document), dict(variables or {})
        try:
            operation = self._documents.operation(read, operation_name)
            if not operation.has_plan:
                raise _no_plan(operation.node)
            taken = stand_ins(core_schema(self.schema), operation.node, given)
            self._documents.counted(given)
            values = self._documents.values(read, operation, given | taken)
            plan = self._documents.plan(read, operation, values.coerced)
            run = self._run_of(values, plan, viewer)
        except DocumentLimit as beyond:
            raise BadUserInput(str(beyond)) from None
        except Refused as wrong:
            raise BadUserInput("; ".join(map(_placed, wrong.errors))) from None
        if plan.is_mutation and not plan.roots:
            raise _no_plan(operation.node)
        explanation = explain_plan(plan, run, taken)
        error = self._limit_error(explanation.bound)
        return explanation if error is None else replace(explanation, refusal=error["message"])

    def _limit_error(self, bound: Bound) -> dict[str, Any] | None:
        """Returns why an operation is refused before anything is read."""
        units = bound.total.read_units  # in any case: it tells the run when its steps request keys
        if self._cost_limit is not None and units > self._cost_limit:
            return refused_error(bound, self._cost_limit)
        return None

    def _run_of(self, values: VariableValues, plan: Plan, viewer: Claims | None) -> Run:
        return Run(
            self.schema.graph,
            self._shared,
            self._cursors,
            self.limits,
            values,
            plan.attributes,
            plan.looked_for,
            self._cost_limit,
            ANONYMOUS if not viewer else Viewer(viewer),
            is_consistent=plan.is_consistent or plan.is_live,
        )

    async def _admitted(
        self, prepared: PreparedOperation, run: Run, request: OperationRequest, ends: float
    ) -> dict[str, Any]:
        """Returns the response when its turn has come, if it comes before the event loop's clock reaches `ends`. An
        operation that reads nothing does not wait."""
        plan, place = prepared.plan, None
        budget = WorkBudget()
        budget.seconds = run.limits.operation_work
        budget.client = request.clients[0] if request.clients else ""
        BUDGET.set(budget)
        if self._deadlines is None or self._deadlines.loop is not asyncio.get_running_loop():
            self._deadlines = Deadlines()
        try:
            with Wait(self._deadlines, ends):
                size, error = _ITEMS_OF_A_VALUE * prepared.count, None
                prepare = partial(self._prepare_writes, prepared, run, request, budget)
                waits_unprepared = bool(plan.writes) and size >= ITEMS_OF_A_PLACE
                if plan.writes and not waits_unprepared:
                    # Only its bound says how large it is.
                    error = await prepare()
                if error is None and (plan.roots or plan.foreign):
                    bound = None if waits_unprepared else request.observation.bound
                    size = size if bound is None else _size_of(bound, is_mutation=plan.is_mutation)
                    place = await self.admission.enter(size, request.clients)
                    budget.leave_place = partial(self.admission.leave_to_others, place)
                if waits_unprepared:
                    error = await prepare()
                return await self._respond(prepared, run) if error is None else {"errors": [error]}
        except (Overloaded, TooMuchWork) as refused:
            return {"errors": [public_error(caused(refused))]}
        except TimeoutError as late:
            without_frames(late)
            return self._late(may_have_written=plan.is_mutation and run.meter.has_sent)
        finally:
            budget.leave_place = None
            if place is not None:
                self.admission.leave(place)

    async def _prepare_writes(
        self, prepared: PreparedOperation, run: Run, request: OperationRequest, budget: WorkBudget
    ) -> dict[str, Any] | None:
        """Prepares what a mutation writes. Returns why it is refused before anything is read."""
        plan = prepared.plan
        budget.rounds = rounds()
        known = plan.refused and plan.refused.get(_hash_of(prepared, request))
        if not known or request.with_cost:
            for write in plan.writes:
                await step_by_step(write.preparing(run))
        request.observation.bound = bound = Bound(plan, run, known or None)
        error = self._limit_error(bound)
        if error is not None:
            bound.keep_refused(_hash_of(prepared, request))
            self._documents.keep_plan(prepared.operation, plan, prepared.values.coerced)
        return error

    async def _respond(self, prepared: PreparedOperation, run: Run) -> dict[str, Any]:
        """Returns the response: what was read and written, or why it cannot be answered."""
        plan, meter = prepared.plan, run.meter
        try:
            if plan.is_mutation:
                results = await self._write(prepared, run)
            elif plan.foreign:
                results = await self._read_all(prepared, run)
            else:
                results = _Results(await read(run, plan.steps))
            if results.refusal is not None:
                return results.refusal
            refusal = None if meter.holding is None else meter.holding.refusal
            if refusal is not None and not plan.is_mutation:
                return {"errors": [public_error(GraphQLError(str(refusal), original_error=refusal))]}
            if self._cost_limit is not None and meter.is_exceeded and not plan.is_mutation:
                sent = None if plan.is_secretive(run) else meter.sent
                return {"data": None, "errors": [exceeded_error(sent, self._cost_limit)]}
            # A large answer is written in a thread.
            most = run.limits.answer_limit
            response = None
            if not run.is_large and meter.nested < _NESTED_AT_ONCE:
                response = _written(plan, run, results, min(most, _AT_ONCE), _MORE_FOR_ANY)
            if response is None:
                if meter.holding is not None:
                    await meter.holding.wait_to_answer()
                response = await self._thread.run(_written, plan, run, results, most)
            return response or {"data": None, "errors": [answer_limit_error(most)]}
        except Exception as error:
            return {"data": None, "errors": [internal_error(error)]}

    async def _read_all(self, prepared: PreparedOperation, run: Run) -> _Results:
        """Returns what a query reads: the graph's fields, and at the same time all others."""
        plan = prepared.plan
        introspected = [each for each in plan.foreign if each.name in INTROSPECTION]
        own = [each for each in plan.foreign if each.name not in INTROSPECTION]
        others = []
        try:
            async with asyncio.TaskGroup() as group:
                root = group.create_task(read(run, plan.steps))
                if introspected:
                    others.append(group.create_task(self._core.introspection(prepared, introspected, run)))
                if own:
                    others.append(group.create_task(self._core.own_fields(prepared, own, run)))
        except asyncio.CancelledError as canceled:
            without_frames(canceled)  # the group's frame references it
            raise
        results = _Results(root.result())
        for each in others:
            results.take(each.result())
        return results

    async def _write(self, prepared: PreparedOperation, run: Run) -> _Results:
        """Returns the results of mutations: one after the other, each with the selected fields of its payload."""
        plan, results = prepared.plan, _Results(new_root())
        for selected in plan.root.fields:
            if selected in plan.foreign:
                run.meter.has_sent = True
                results.take(await self._core.own_fields(prepared, [selected], run))
            elif selected.key in plan.mutations:
                again = run.again()
                run.meter.has_sent |= isinstance(plan.mutations[selected.key], CallOwn)
                await plan.mutations[selected.key].carry_out(again, results.root)
                results.access[selected] = again.access
        return results


def _size_of(bound: Bound, *, is_mutation: bool) -> int:
    """Returns the most items, or requests, for which the operation has places."""
    # Nothing limits how many edges are deleted with a node.
    least = ITEMS_OF_A_PLACE if is_mutation and bound.open_places else 0
    return max(least, bound.total.items - bound.total.counted, bound.total.requests)


def _hash_of(prepared: PreparedOperation, request: OperationRequest) -> bytes:
    """Returns a hash of what decides what a mutation of a plan writes, and for whom."""
    given = prepared.variables, request.viewer, request.idempotency_key is None
    return sha256(repr(given).encode(errors="surrogatepass")).digest()


def _placed(error: Mapping[str, Any]) -> str:
    """Returns the message of a refusal, with its place in the document."""
    places = [f"line {place['line']}, column {place['column']}: " for place in error.get("locations", ())[:1]]
    return f"{''.join(places)}{error['message']}"


@dataclass
class _Results:
    """The values found for an operation."""

    root: Object
    foreign: dict[str, Any] = field(default_factory=dict)
    """The values of the root's fields that graphql-core's own execution answers."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    access: dict[SelectedField, Permissions | None] = field(default_factory=dict)
    """The viewer's permissions for each mutation: later ones do not change them."""
    refusal: dict[str, Any] | None = None
    """The answer of an operation whose data is null because of one of these errors."""

    def take(self, answer: dict[str, Any]) -> None:
        """Copies what graphql-core's own execution answered."""
        self.errors += answer.get("errors", ())
        data = answer.get("data")
        if data is not None:
            self.foreign |= data
        elif self.refusal is None:
            self.refusal = {"data": None, "errors": self.errors} if "data" in answer else answer


def _written(
    plan: Plan, run: Run, results: _Results, most_bytes: int, more_for_any: int = 0
) -> dict[str, Any] | None:
    """Returns the response with what was found; None if that has more bytes."""
    completion = Completion(plan.rows, most_bytes, results.foreign, run.access, results.access, more_for_any)
    try:
        response: dict[str, Any] = {"data": write_data(completion, plan.root, results.root)}
    except AnswerTooLarge:
        return None
    errors = results.errors
    if completion.reports:
        own_errors, warnings = errors_and_warnings(completion.reports, run.limits, run.sent and run.sent())
        errors = [*errors, *own_errors]
        if warnings:
            response["extensions"] = {"warnings": warnings}
    if errors:
        response["errors"] = errors
    return response


def _no_plan(operation: OperationDefinitionNode) -> BadUserInput:
    kind = operation.operation.value
    return BadUserInput(f"this {kind} has no plan, because graphql-core's own execution answers it")
