"""Strawberry's schema extensions: their hooks around an operation, and their changes to its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphql import ExecutionResult as CoreResult
from graphql import GraphQLError, MiddlewareManager, specified_rules, validate
from strawberry.extensions.runner import SchemaExtensionsRunner
from strawberry.types import ExecutionContext, ExecutionResult
from strawberry.types.graphql import OperationType

from keygraph.codes import Code
from keygraph_resolvers.errors import NotAQuery, public_error
from keygraph_resolvers.plan.documents import Document
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.types import GraphSchema


class _ToldError(GraphQLError):
    """An error of the response, as extensions see it."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["message"], path=told.get("path"), extensions=told["extensions"])
        self.told = told


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
        self._asked = ExecutionContext(
            query=document,
            schema=schema,
            allowed_operations=[*OperationType],
            context=context,
            variables=dict(variables or {}),
            provided_operation_name=operation_name,
        )
        for each in self._extensions:
            each.execution_context = self._asked
        self._runner = SchemaExtensionsRunner(self._asked, self._extensions)
        resolving = [each for each in self._extensions if each._implements_resolve()]
        self.middleware = MiddlewareManager(*resolving) if resolving else None
        """The middleware around each resolver; None if there is none."""

    async def around(self, respond: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the response as changed by the extensions. Raises NotAQuery."""
        told: dict[str, Any] = {}
        try:
            async with self._runner.operation():
                told = await respond()
                self._asked.result = _result_of(told)
            self._take_result(told)
            results = await self._runner.get_extensions_results(self._asked)
        except NotAQuery:
            raise
        except Exception as error:
            return {"data": None, "errors": [_public(error)]}
        if results:
            told["extensions"] = {**told.get("extensions", {}), **results}
        return told

    async def read(self, read: Callable[[], Awaitable[Document]]) -> Document:
        """Returns the document, with the errors that the extensions and their rules find."""
        async with self._runner.parsing():
            found = await read()
            self._asked.graphql_document = found.ast
        if not found.ast.definitions:
            self._asked.pre_execution_errors = found.errors
            return found
        async with self._runner.validation():
            rules = [each for each in self._asked.validation_rules if each not in specified_rules]
            own = found.errors or (validate(self._core, found.ast, rules) if rules else [])
            self._asked.pre_execution_errors = [*(self._asked.pre_execution_errors or ()), *own] or None
        errors = self._asked.pre_execution_errors
        return Document(found.ast, errors, found.digest) if errors else found

    async def execute(self, execute: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the response of an execution, unless an extension already has a result."""
        async with self._runner.executing():
            told: dict[str, Any] = {}
            if self._asked.result is None:
                told = await execute()
                self._asked.result = _result_of(told)
        self._take_result(told)
        return told

    def _take_result(self, told: dict[str, Any]) -> None:
        """Copies an extension's result into the response."""
        result = self._asked.result
        if not isinstance(result, ExecutionResult | CoreResult):
            return
        if result.data is not None or "data" in told or not result.errors:
            told["data"] = result.data
        told.pop("errors", None)
        if result.errors:
            told["errors"] = [_public(each) for each in result.errors]


def _result_of(told: Mapping[str, Any]) -> ExecutionResult:
    """Returns a response as extensions see it."""
    errors: list[GraphQLError] = [_ToldError(each) for each in told.get("errors", ())]
    return ExecutionResult(told.get("data"), errors or None, told.get("extensions"))


def _public(error: Exception) -> dict[str, Any]:
    """Returns an error that an extension has kept, made or raised, as clients see it."""
    if isinstance(error, _ToldError):
        return error.told
    if not isinstance(error, GraphQLError):
        return public_error(GraphQLError(str(error), original_error=error))
    if error.path is not None:
        # Otherwise an error with a path and without a code means a value that its field cannot have.
        error.extensions = {"code": Code.INTERNAL, **(error.extensions or {})}
    return public_error(error)
