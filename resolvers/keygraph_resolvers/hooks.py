"""Strawberry's schema extensions: their hooks around an operation, and their changes to its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphql import ExecutionResult as CoreResult
from graphql import GraphQLError, MiddlewareManager, specified_rules
from strawberry.extensions.runner import SchemaExtensionsRunner
from strawberry.types import ExecutionContext, ExecutionResult
from strawberry.types.graphql import OperationType

from keygraph.codes import Code
from keygraph_resolvers.errors import NotAQuery, public_error
from keygraph_resolvers.plan.documents import Document
from keygraph_resolvers.plan.validation import errors_of_rules
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.types import GraphSchema


class _AnswerError(GraphQLError):
    """An error of the response, as extensions see it."""

    def __init__(self, response: dict[str, Any]) -> None:
        super().__init__(response["message"], path=response.get("path"), extensions=response["extensions"])
        self.response = response


class Hooks:
    """The extensions of a schema during one operation. It is not made for a schema without extensions."""

    def __init__(
        self,
        schema: GraphSchema,
        document: str,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        context: Any,
    ) -> None:
        # The last is Strawberry's own, for directives on fields, of which there are none.
        self._extensions = schema.get_extensions()[: len(schema.extensions)]
        self._core = core_schema(schema)
        self._execution = ExecutionContext(
            query=document,
            schema=schema,
            allowed_operations=[*OperationType],
            context=context,
            variables=dict(variables or {}),
            provided_operation_name=operation_name,
        )
        for each in self._extensions:
            each.execution_context = self._execution
        self._runner = SchemaExtensionsRunner(self._execution, self._extensions)
        resolving = [each for each in self._extensions if each._implements_resolve()]
        self.middleware = MiddlewareManager(*resolving) if resolving else None
        """The middleware around each resolver; None if there is none."""

    async def around(self, respond: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the response as changed by the extensions. Raises NotAQuery."""
        response: dict[str, Any] = {}
        try:
            async with self._runner.operation():
                response = await respond()
                self._execution.result = _result_of(response)
            self._take_result(response)
            results = await self._runner.get_extensions_results(self._execution)
        except NotAQuery:
            raise
        except Exception as error:
            return {"data": None, "errors": [_public(error)]}
        if results:
            response["extensions"] = {**response.get("extensions", {}), **results}
        return response

    async def read(self, read: Callable[[], Awaitable[Document]]) -> Document:
        """Returns the document, with the errors that the extensions and their rules find."""
        async with self._runner.parsing():
            found = await read()
            self._execution.graphql_document = found.ast
        if not found.ast.definitions:
            self._execution.pre_execution_errors = found.errors
            return found
        async with self._runner.validation():
            rules = [each for each in self._execution.validation_rules if each not in specified_rules]
            own = found.errors or (errors_of_rules(self._core, found.ast, rules) if rules else [])
            self._execution.pre_execution_errors = [
                *(self._execution.pre_execution_errors or ()),
                *own,
            ] or None
        errors = self._execution.pre_execution_errors
        return Document(found.ast, errors, found.digest) if errors else found

    async def execute(self, execute: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the response of an execution, unless an extension already has a result."""
        async with self._runner.executing():
            response: dict[str, Any] = {}
            if self._execution.result is None:
                response = await execute()
                self._execution.result = _result_of(response)
        self._take_result(response)
        return response

    def _take_result(self, response: dict[str, Any]) -> None:
        """Copies an extension's result into the response."""
        result = self._execution.result
        if not isinstance(result, ExecutionResult | CoreResult):
            return
        if result.data is not None or "data" in response or not result.errors:
            response["data"] = result.data
        response.pop("errors", None)
        if result.errors:
            response["errors"] = [_public(each) for each in result.errors]


def _result_of(response: Mapping[str, Any]) -> ExecutionResult:
    """Returns a response as extensions see it."""
    errors: list[GraphQLError] = [_AnswerError(each) for each in response.get("errors", ())]
    return ExecutionResult(response.get("data"), errors or None, response.get("extensions"))


def _public(error: Exception) -> dict[str, Any]:
    """Returns an error that an extension has kept, made or raised, as clients see it."""
    if isinstance(error, _AnswerError):
        return error.response
    if not isinstance(error, GraphQLError):
        return public_error(GraphQLError(str(error), original_error=error))
    if error.path is not None:
        # Otherwise an error with a path and without a code means a value that its field cannot have.
        error.extensions = {"code": Code.INTERNAL, **(error.extensions or {})}
    return public_error(error)
