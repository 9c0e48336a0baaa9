"""graphql-core's own execution, which answers the root's fields that the graph does not: introspection, and an
application's own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    execute,
)
from graphql.execution.values import VariableValues

from keygraph.access.claims import ANONYMOUS, Viewer
from keygraph.admission import Admission
from keygraph.lists.projection import Attributes
from keygraph_resolvers.errors import public_error
from keygraph_resolvers.plan.cost import exceeded_error
from keygraph_resolvers.plan.documents import Documents, PreparedOperation
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.strawberry_internals import core_schema, executor_class
from keygraph_resolvers.schema.types import GraphSchema
from keygraph_resolvers.schema.visible import Hidden, VisibleSchemas
from keygraph_resolvers.steps.selection import SelectedField
from keygraph_resolvers.worker_thread import WorkerThread

INTROSPECTION = ("__schema", "__type")


class CoreExecution:
    """Answers fields of the root by graphql-core's own execution."""

    def __init__(
        self,
        schema: GraphSchema,
        documents: Documents,
        thread: WorkerThread,
        *,
        shows_all: bool,
        suggestions: bool,
    ) -> None:
        """`shows_all`: introspection shows every viewer the whole schema, not only what a rule might allow."""
        self._core = core_schema(schema)
        self._executor_class = executor_class(schema.execution_context_class)
        self.visible = None if shows_all else VisibleSchemas(self._core, schema.graph)
        """What viewers may see of the schema; None for all of it."""
        self._no_attributes = Attributes.of(schema.graph, {})
        self._documents = documents
        self._thread = thread
        self._introspecting = Admission(1, sys.maxsize)
        self._hides_suggestions = not suggestions

    async def introspection(
        self, prepared: PreparedOperation, fields: Iterable[SelectedField], requested: Run
    ) -> dict[str, Any]:
        """Returns the answer to introspection, made in a thread because it takes long, and kept if always the same."""
        operation = _of_fields(prepared.operation.node, fields)
        lease = requested.meter.holding
        async with self._introspecting.place(clients=() if lease is None else lease.clients):
            hidden, core = Hidden(), self._core
            if self.visible is not None and requested.access is not None:
                hidden, core = await self._thread.run(self.visible.of, requested.access)
            name = operation.name.value if operation.name else None
            key = (prepared.document.digest, name, "introspection", hidden)
            text: bytes | None = None if operation.variable_definitions else self._documents.cached(key)
            if text is not None:
                kept: dict[str, Any] = orjson.loads(text)
                return kept
            run = self._own_run(requested, ANONYMOUS)
            answer = _response(await self._thread.run(self._result, prepared, operation, run, core))
            if not operation.variable_definitions and "errors" not in answer:
                text = await self._thread.run(_compact, answer)
                self._documents.kept.keep(key, text, sys.getsizeof(text))
            return answer

    async def own_fields(
        self, prepared: PreparedOperation, fields: Iterable[SelectedField], requested: Run
    ) -> dict[str, Any]:
        """Returns the answer for an application's own fields, in the run of an operation."""
        run = self._own_run(requested, requested.viewer)
        run.meter, run.context, run.middleware = requested.meter, requested.context, requested.middleware
        result = self._result(prepared, _of_fields(prepared.operation.node, fields), run, self._core)
        if inspect.isawaitable(result):
            result = await result
        if run.budget is not None and run.meter.is_exceeded:
            return {"data": None, "errors": [exceeded_error(run.meter.sent, run.budget)]}
        return _response(result)

    def _own_run(self, requested: Run, viewer: Viewer) -> Run:
        """Returns a run whose fields determine themselves what they read."""
        return Run(
            requested.graph,
            requested.store,
            requested.cursors,
            requested.limits,
            VariableValues({}, {}),
            self._no_attributes,
            frozenset(),
            requested.budget,
            viewer,
        )

    def _result(
        self, prepared: PreparedOperation, operation: OperationDefinitionNode, run: Run, core: GraphQLSchema
    ) -> Any:
        """Returns the result of an execution, or an awaitable of it."""
        return execute(
            core,
            DocumentNode(definitions=(operation, *prepared.document.fragments.values())),
            context_value=run.resolvers_context,
            middleware=run.middleware,
            variable_values=dict(prepared.variables),
            executor_class=self._executor_class,
            hide_suggestions=self._hides_suggestions,
        )


def _of_fields(
    operation: OperationDefinitionNode, fields: Iterable[SelectedField]
) -> OperationDefinitionNode:
    nodes = tuple(node for each in fields for node in each.nodes)
    return replace(operation, selection_set=SelectionSetNode(selections=nodes))


def _compact(answer: dict[str, Any]) -> bytes:
    """Returns an answer as JSON, in no more memory than it needs: orjson's own has room for up to twice as much."""
    return bytes(memoryview(orjson.dumps(answer)))


def _response(result: ExecutionResult) -> dict[str, Any]:
    errors = [public_error(error) for error in result.errors or ()]
    if result.data is None and errors and all("path" not in error for error in errors):
        return {"errors": errors}  # variables that do not fit: nothing was executed
    return {"data": result.data, **({"errors": errors} if errors else {})}
