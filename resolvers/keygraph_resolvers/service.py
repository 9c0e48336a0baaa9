"""The service: one operation in, one GraphQL response out. No HTTP."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import orjson
from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    execute,
)
from graphql.execution.values import VariableValues

from keygraph.access.claims import ANONYMOUS, Claims, Viewer
from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Table
from keygraph.errors import BadUserInput, TimedOut
from keygraph.lists.projection import Attributes
from keygraph.model.permissions import Permissions
from keygraph.turns import BUDGET, WorkBudget
from keygraph_resolvers.admission import Admission, Overloaded
from keygraph_resolvers.answer.completion import AnswerTooLarge, Completion, write_data
from keygraph_resolvers.answer.reports import errors_and_warnings
from keygraph_resolvers.aside import Aside
from keygraph_resolvers.errors import answer_limit_error, internal_error, public_error
from keygraph_resolvers.hooks import Hooks
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.cost import cost_report, exceeded_error, refused_error
from keygraph_resolvers.plan.document_limits import (
    USUAL_LIMITS,
    DocumentLimit,
    DocumentLimits,
    caused,
)
from keygraph_resolvers.plan.documents import Document, Documents, Refused
from keygraph_resolvers.plan.explain import Explanation, explain_plan, stand_ins
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.meter import Holding, MeteredStore
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Limits, Run
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.types import GraphSchema
from keygraph_resolvers.schema.visible import Hidden, VisibleSchemas
from keygraph_resolvers.steps.selection import SelectedField

PreparedT = TypeVar("PreparedT", Document, Plan)

_INTROSPECTION = ("__schema", "__type")
_AT_ONCE = 200_000
"""The largest answer, in bytes, that is written at once, in about 10 ms. Larger ones are written in a thread."""
_SHORT_TEXT = 400
"""The longest new document, in characters, that is read at once, in up to 5 ms. Longer ones are read in a thread."""


@dataclass(slots=True, eq=False)
class Observed:
    """What others may see of an operation, while it runs and after. Parts that it did not reach are None."""

    digest: bytes = b""
    """The SHA-256 of the document, if it was read."""
    operation: OperationDefinitionNode | None = None
    """None if the document could not be executed."""
    plan: Plan | None = None
    bound: Bound | None = None
    meter: MeteredStore | None = None
    """The operation's requests to the store."""

    def cost(self, table: Table, *, is_secretive: bool = False) -> dict[str, Any] | None:
        """Returns the cost bound and the actual cost, as in `extensions.cost`; None if there is no plan.

        With `is_secretive`, it reveals nothing of what was read.
        """
        if self.plan is None or self.meter is None:
            return None
        has_bound = bool(self.plan.roots) or not self.plan.is_mutation
        sent = None if is_secretive else self.meter.sent
        return cost_report(self.bound if has_bound else None, sent, self.plan.elsewhere, table)


class Service:
    """Answers operations on a schema from a store.

    `secret` encrypts the cursors: anyone who knows it can read and make them. `max_page_size` is the largest `first`
    and `last`, `max_ids` how many ids one argument may list, `read_budget` how many items one page may examine under a
    filter, `count_pages` how many pages of 1 MB one `totalCount` may read, `concurrency` how many lists one operation
    reads at the same time, `answer_bytes` how large its answer may be, `max_running` how many operations run at the
    same time, and `max_waiting` how many more wait for their turn. `cost_limit` is how many read units an operation may
    cost; None for any number. `document_limits` is how large a document may be, `kept_bytes` how much memory documents
    and their plans may take until they are used again. `where_terms` is how many conditions a `where` may have,
    `work_seconds` an operation's processor time for pages of many items, `timeout` how many seconds it may take.
    `introspection`: operations may ask for `__schema` and `__type`; `shows_all`: these show every viewer the whole
    schema, not only what a rule might allow; `suggestions`: errors suggest names of the schema.
    """

    def __init__(
        self,
        schema: GraphSchema,
        store: Store,
        *,
        secret: bytes,
        max_page_size: int = 100,
        max_ids: int = 100,
        read_budget: int = 10_000,
        count_pages: int = 20,
        concurrency: int = 256,
        answer_bytes: int = 8_000_000,
        max_running: int = 256,
        max_waiting: int = 1_000,
        cost_limit: float | None = None,
        document_limits: DocumentLimits = USUAL_LIMITS,
        kept_bytes: int = 32_000_000,
        where_terms: int = 50,
        work_seconds: float = 5.0,
        timeout: float = 15.0,
        introspection: bool = True,
        shows_all: bool = True,
        suggestions: bool = True,
    ) -> None:
        self.schema = schema
        self.store = store
        self._cursors = Cursors(secret)
        self.limits = Limits(
            max_page_size,
            max_ids,
            read_budget,
            count_pages,
            concurrency,
            answer_bytes,
            where_terms,
            work_seconds,
        )
        self._core = core_schema(schema)
        self.admission = Admission(max_running, max_waiting)
        self._visible = None if shows_all else VisibleSchemas(self._core, schema.graph)
        self._preparing = Admission(1, max_running + max_waiting)
        self._aside = Aside()
        self._introspecting = asyncio.Lock()
        self._documents = Documents(
            self._core,
            schema.graph,
            document_limits,
            kept_bytes,
            introspection=introspection,
            suggestions=suggestions,
        )
        self._timeout = timeout
        self._hides_suggestions = not suggestions
        self._cost_limit = cost_limit
        self._no_attributes = Attributes.of(schema.graph, {})

    @property
    def kept_bytes(self) -> int:
        """The approximate bytes kept for documents that may come again."""
        return self._documents.kept_bytes

    async def execute(
        self,
        document: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        *,
        with_cost: bool = False,
        idempotency_key: str | None = None,
        observed: Observed | None = None,
        only_queries: bool = False,
        viewer: Claims | None = None,
        context: Any = None,
        holding: Holding | None = None,
        began: float | None = None,
        hooks: Hooks | None = None,
    ) -> dict[str, Any]:
        """Returns the response to an operation: `data`, `errors` with their codes, or both.

        An operation that could not be executed at all has no `data`. `extensions.warnings` lists fields that are null
        for another reason than an error; `with_cost` asks for `extensions.cost`. Mutations sent again with the same
        idempotency key are not carried out again. `observed` receives what can be seen of the operation, and `holding`
        counts its memory. Its time counts from `began`, by the event loop's clock; None for now. Raises NotAQuery for
        an operation of another kind if `only_queries` are allowed. `viewer` are the claims of the viewer, for the rules
        of the model; None for nobody in particular. If attributes of items decide what the viewer may see, the cost has
        no actual figures: these would reveal what is there. `context` is what resolvers get as `info.context`; None for
        an object with the `viewer`. `hooks` are the hooks of the schema's extensions, which this method starts itself.
        """
        if hooks is None and self.schema.extensions:
            hooks = Hooks(self.schema, document, variables, operation_name, context)
            respond = partial(
                self.execute,
                document,
                variables,
                operation_name,
                with_cost=with_cost,
                idempotency_key=idempotency_key,
                observed=observed,
                only_queries=only_queries,
                viewer=viewer,
                context=context,
                holding=holding,
                began=began,
                hooks=hooks,
            )
            return await hooks.around(respond)
        ends = (asyncio.get_running_loop().time() if began is None else began) + self._timeout
        seen = Observed() if observed is None else observed
        try:
            asked, is_new = None, False
            if hooks is None:
                asked = self._documents.prepared_again(
                    document, operation_name, variables or {}, seen, only_queries=only_queries
                )
            if asked is None:
                is_new = self._documents.known(document) is None
                if hooks is None:
                    read = await self._valid(document, ends)
                else:
                    read = await hooks.read(lambda: self._document(document, ends))
                asked = self._documents.prepared(
                    read, operation_name, variables or {}, seen, only_queries=only_queries
                )
            plan = asked.plan
            if plan is None:
                make_plan = partial(
                    self._documents.plan, asked.document, asked.operation, asked.values.coerced
                )
                # The plan of a new document is made in the same turn in which the document was read.
                plan = make_plan() if is_new else await self._prepared(make_plan, ends)
        except Refused as wrong:
            return {"errors": wrong.errors}
        except (DocumentLimit, Overloaded) as beyond:
            return {"errors": [public_error(caused(beyond))]}
        except TimeoutError:
            return self._late()
        run = self._run_of(asked.values, plan, viewer)
        run.idempotency_key = idempotency_key
        run.meter.holding = holding
        run.context = context
        run.middleware = None if hooks is None else hooks.middleware
        bound = Bound(plan, run)
        seen.plan, seen.bound, seen.meter = plan, bound, run.meter
        error = self._limit_error(bound)
        answer: dict[str, Any] = {"errors": [error]}
        if error is None and hooks is not None:
            answer = await hooks.execute(
                lambda: self._in_time(self._admitted(plan, run, asked.document, variables), ends, plan)
            )
        elif error is None:
            answer = await self._in_time(self._admitted(plan, run, asked.document, variables), ends, plan)
        if with_cost:
            report = seen.cost(self.schema.graph.table, is_secretive=plan.is_secretive(run))
            answer.setdefault("extensions", {})["cost"] = report
        return answer

    async def _valid(self, text: str, ends: float) -> Document:
        """Returns the document of a text. Raises Refused if it is invalid; a refused one is not read again."""
        told = self._documents.refusal(text)
        if told is not None:
            raise Refused(told)
        return await self._document(text, ends)

    async def _document(self, text: str, ends: float) -> Document:
        """Returns the document of a text. A long new one is read in a thread. Raises Overloaded, or TimeoutError."""
        known = self._documents.known(text)
        if known is not None or len(text) <= _SHORT_TEXT:
            return known or await self._prepared(partial(self._documents.read, text), ends)
        async with asyncio.timeout_at(ends), self._preparing:
            # Another client may have sent it meanwhile.
            return self._documents.known(text) or self._documents.keep(
                await self._aside.do(self._documents.parsed, text)
            )

    async def _prepared(self, prepare: Callable[[], PreparedT], ends: float) -> PreparedT:
        """Returns what is prepared for a new text: one at a time, and all others have their turn between two. Raises
        Overloaded, or TimeoutError."""
        async with asyncio.timeout_at(ends), self._preparing:
            await asyncio.sleep(0)
            return prepare()

    async def _in_time(self, response: Awaitable[dict[str, Any]], ends: float, plan: Plan) -> dict[str, Any]:
        """Returns the response, if it comes before the event loop's clock reaches `ends`."""
        try:
            async with asyncio.timeout_at(ends):
                return await response
        except TimeoutError:
            return self._late(may_have_written=plan.is_mutation)

    def _late(self, *, may_have_written: bool = False) -> dict[str, Any]:
        written = " Its writes may have taken effect." if may_have_written else ""
        late = TimedOut(f"The operation took more than {self._timeout:g} seconds.{written}")
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
            operation = read.operation(operation_name)
            if not self._documents.has_plan(operation):
                raise _no_plan(operation)
            taken = stand_ins(self._core, operation, given)
            values = self._documents.values(read, operation, given | taken)
            plan = self._documents.plan(read, operation, values.coerced)
            run = self._run_of(values, plan, viewer)
        except DocumentLimit as beyond:
            raise BadUserInput(str(beyond)) from None
        except Refused as wrong:
            raise BadUserInput("; ".join(map(_placed, wrong.errors))) from None
        if plan.is_mutation and not plan.roots:
            raise _no_plan(operation)
        explanation = explain_plan(plan, run, taken)
        error = self._limit_error(explanation.bound)
        return explanation if error is None else replace(explanation, refusal=error["message"])

    def _limit_error(self, bound: Bound) -> dict[str, Any] | None:
        """Returns why an operation is refused before anything is read."""
        if self._cost_limit is not None and bound.total.read_units > self._cost_limit:
            return refused_error(bound, self._cost_limit)
        return None

    def _run_of(self, values: VariableValues, plan: Plan | None, viewer: Claims | None) -> Run:
        """Returns a run of a plan; without a plan, a run of other fields, which determine themselves what they read."""
        run = Run(
            self.schema.graph,
            self.store,
            self._cursors,
            self.limits,
            values,
            self._no_attributes if plan is None else plan.attributes,
            frozenset() if plan is None else plan.looked_for,
            self._cost_limit,
            ANONYMOUS if not viewer else Viewer(viewer),
        )
        run.is_consistent = plan is not None and plan.is_consistent
        return run

    async def _admitted(
        self, plan: Plan, run: Run, document: Document, variables: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Returns the response when its turn has come. An operation that reads nothing does not wait."""
        if not plan.roots and not plan.foreign:
            return await self._run(plan, run, document, variables)
        try:
            async with self.admission:
                return await self._run(plan, run, document, variables)
        except Overloaded as overloaded:
            return {"errors": [public_error(caused(overloaded))]}

    async def _run(
        self, plan: Plan, run: Run, document: Document, variables: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        meter = run.meter
        budget = WorkBudget()
        budget.seconds = run.limits.work_seconds
        BUDGET.set(budget)
        carry_out = self._write if plan.is_mutation else self._read
        try:
            found = await carry_out(plan, run, document, variables)
            if found.refusal is not None:
                return found.refusal
            refusal = None if meter.holding is None else meter.holding.refusal
            if refusal is not None and not plan.is_mutation:
                return {"errors": [public_error(GraphQLError(str(refusal), original_error=refusal))]}
            if self._cost_limit is not None and meter.is_exceeded and not plan.is_mutation:
                told = None if plan.is_secretive(run) else meter.sent
                return {"data": None, "errors": [exceeded_error(told, self._cost_limit)]}
            return await self._answered(plan, run, found)
        except Exception as error:
            return {"data": None, "errors": [internal_error(error)]}

    async def _answered(self, plan: Plan, run: Run, found: _Found) -> dict[str, Any]:
        """Returns the response with what was found. A large one is written in a thread."""
        most = run.limits.answer_bytes
        response = None if run.is_large else _written(plan, run, found, min(most, _AT_ONCE))
        if response is None and (run.is_large or most > _AT_ONCE):
            if run.meter.holding is not None:
                await run.meter.holding.wait_to_answer()
            response = await self._aside.do(_written, plan, run, found, most)
        return response or {"data": None, "errors": [answer_limit_error(most)]}

    async def _read(
        self, plan: Plan, run: Run, document: Document, variables: Mapping[str, Any] | None
    ) -> _Found:
        """Returns what a query reads: the graph's fields, and at the same time all others."""
        if not plan.foreign:
            return _Found(await run.read(plan.steps.start_by_key))
        introspected = _nodes(each for each in plan.foreign if each.name in _INTROSPECTION)
        others = _nodes(each for each in plan.foreign if each.name not in _INTROSPECTION)
        answered = []
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(run.read(plan.steps.start_by_key))
            if introspected:
                operation = _of_fields(plan.operation, introspected)
                answered.append(group.create_task(self._introspected(document, operation, variables, run)))
            if others:
                operation = _of_fields(plan.operation, others)
                answered.append(group.create_task(self._elsewhere(document, operation, variables, run)))
        found = _Found(asked.result())
        for each in answered:
            found.take(each.result())
        return found

    async def _introspected(
        self,
        document: Document,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any] | None,
        asked: Run,
    ) -> dict[str, Any]:
        """Returns the answer to introspection, made in a thread because it takes long, and kept if always the same."""
        async with self._introspecting:
            hidden, core = Hidden(), self._core
            if self._visible is not None and asked.access is not None:
                hidden, core = await self._aside.do(self._visible.of, asked.access)
            key = (document.digest, operation.name.value if operation.name else None, "introspection", hidden)
            text: bytes | None = None if operation.variable_definitions else self._documents.asked_again(key)
            if text is not None:
                kept: dict[str, Any] = orjson.loads(text)
                return kept
            run = self._run_of(VariableValues({}, {}), None, None)
            answer = _shown(
                await self._aside.do(self._core_result, document, operation, variables, run, core)
            )
            if not operation.variable_definitions and "errors" not in answer:
                text = await self._aside.do(orjson.dumps, answer)
                self._documents.kept.keep(key, text, len(text))
            return answer

    async def _write(
        self, plan: Plan, run: Run, document: Document, variables: Mapping[str, Any] | None
    ) -> _Found:
        """Returns the results of mutations: one after the other, each with the selected fields of its payload."""
        found = _Found(run.new_root())
        steps = plan.mutations
        for selected in plan.root.fields:
            if selected in plan.foreign:
                operation = _of_fields(plan.operation, selected.nodes)
                found.take(await self._elsewhere(document, operation, variables, run))
            elif selected.key in steps:
                again = run.again()
                await steps[selected.key].carry_out(again, found.root)
                found.access[selected] = again.access
        return found

    async def _elsewhere(
        self,
        document: Document,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any] | None,
        asked: Run,
    ) -> dict[str, Any]:
        """Returns graphql-core's answer for an application's own fields of the root, in the run of an operation."""
        run = self._run_of(VariableValues({}, {}), None, asked.viewer)
        run.meter, run.context, run.middleware = asked.meter, asked.context, asked.middleware
        result = self._core_result(document, operation, variables, run, self._core)
        if inspect.isawaitable(result):
            result = await result
        if self._cost_limit is not None and run.meter.is_exceeded:
            return {"data": None, "errors": [exceeded_error(run.meter.sent, self._cost_limit)]}
        return _shown(result)

    def _core_result(
        self,
        document: Document,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any] | None,
        run: Run,
        core: GraphQLSchema,
    ) -> Any:
        """Returns the result of graphql-core's own execution, or an awaitable of it."""
        return execute(
            core,
            DocumentNode(definitions=(operation, *document.fragments.values())),
            context_value=run.resolvers_context,
            middleware=run.middleware,
            variable_values=dict(variables or {}),
            executor_class=self.schema.execution_context_class,
            hide_suggestions=self._hides_suggestions,
        )


def _placed(error: Mapping[str, Any]) -> str:
    """Returns the message of a refusal, with its place in the document."""
    places = [f"line {place['line']}, column {place['column']}: " for place in error.get("locations", ())[:1]]
    return f"{''.join(places)}{error['message']}"


@dataclass
class _Found:
    """The values found for an operation."""

    root: Object
    foreign: dict[str, Any] = field(default_factory=dict)
    """The values of the root's fields that graphql-core's own execution answers."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    """The errors of these fields."""
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


def _written(plan: Plan, run: Run, found: _Found, most_bytes: int) -> dict[str, Any] | None:
    """Returns the response with what was found; None if that has more bytes."""
    completion = Completion(plan, most_bytes, found.foreign, run.access, found.access)
    try:
        response: dict[str, Any] = {"data": write_data(completion, plan.root, found.root)}
    except AnswerTooLarge:
        return None
    errors = found.errors
    if completion.reports:
        own_errors, warnings = errors_and_warnings(completion.reports, run.limits)
        errors = [*errors, *map(public_error, own_errors)]
        if warnings:
            response["extensions"] = {"warnings": warnings}
    if errors:
        response["errors"] = errors
    return response


def _shown(result: ExecutionResult) -> dict[str, Any]:
    """Returns the response with the result of graphql-core's own execution."""
    shown = [public_error(error) for error in result.errors or ()]
    if result.data is None and shown and all("path" not in error for error in shown):
        return {"errors": shown}  # variables that do not fit: nothing was executed
    return {"data": result.data, **({"errors": shown} if shown else {})}


def _nodes(fields: Iterable[SelectedField]) -> tuple[FieldNode, ...]:
    return tuple(node for each in fields for node in each.nodes)


def _no_plan(operation: OperationDefinitionNode) -> BadUserInput:
    kind = operation.operation.value
    return BadUserInput(f"this {kind} has no plan, because graphql-core's own execution answers it")


def _of_fields(operation: OperationDefinitionNode, nodes: tuple[FieldNode, ...]) -> OperationDefinitionNode:
    """Returns the operation with only these fields."""
    return replace(operation, selection_set=SelectionSetNode(selections=nodes))
