"""The service: one operation in, one GraphQL response out. No HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError, OperationDefinitionNode, parse
from strawberry.exceptions import MissingQueryError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types.execution import PreExecutionError

from keygraph.store import Store
from resolvers.context import Limits, RequestContext
from resolvers.errors import public_error
from resolvers.schema import GraphSchema


class Service:
    """Answers operations on a schema from a store.

    `secret` seals the cursors: whoever knows it can make them. `max_page_size` is the largest `first` and `last`,
    `read_budget` how many items one page may look at under a filter, `count_pages` how many pages of 1 MB one
    `totalCount` may read, `concurrency` how many lists one operation reads at the same time.
    """

    def __init__(
        self,
        schema: GraphSchema,
        store: Store,
        *,
        secret: bytes,
        max_page_size: int = 100,
        read_budget: int = 10_000,
        count_pages: int = 20,
        concurrency: int = 64,
    ) -> None:
        self.schema = schema
        self.store = store
        self._secret = secret
        self._limits = Limits(max_page_size, read_budget, count_pages, concurrency)

    async def execute(
        self,
        document: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
    ) -> dict[str, Any]:
        """The response to an operation: `data`, `errors` with their codes, or both.

        One that could not be executed at all has no `data`. `extensions.warnings` says which fields are null for
        another reason than an error.
        """
        if operation_name is None and _has_several_operations(document):
            return _refusal("the document has several operations: say the name of one", "BAD_USER_INPUT")
        context = RequestContext(self.schema.graph, self.store, self._secret, self._limits)
        try:
            result = await self.schema.execute(
                document,
                variable_values=dict(variables or {}),
                context_value=context,
                operation_name=operation_name,
            )
        except MissingQueryError:
            return _refusal("the document is empty", "GRAPHQL_PARSE_FAILED")
        except CannotGetOperationTypeError:
            named = "" if operation_name is None else f" called {operation_name!r}"
            return _refusal(f"the document has no operation{named}", "BAD_USER_INPUT")
        except InvalidOperationTypeError as error:
            return _refusal(f"a {error.operation_type.value} is not served here", "BAD_USER_INPUT")
        errors = result.errors or []
        if isinstance(result, PreExecutionError):
            return {"errors": [public_error(error, code="GRAPHQL_VALIDATION_FAILED") for error in errors]}
        shown = [public_error(error) for error in errors]
        if result.data is None and errors and all(error.path is None for error in errors):
            return {"errors": shown}  # variables that do not fit: nothing was executed
        response: dict[str, Any] = {"data": result.data}
        if shown:
            response["errors"] = shown
        if context.warnings:
            response["extensions"] = {"warnings": context.warnings}
        return response


_OPERATION = re.compile(r"\b(?:query|mutation|subscription)\b")


def _has_several_operations(document: str) -> bool:
    """Whether it has. Strawberry would run the first one; the GraphQL specification (6.1) refuses to choose."""
    if len(_OPERATION.findall(document)) < 2:
        return False
    try:
        definitions = parse(document, no_location=True).definitions
    except GraphQLError:
        return False
    return sum(isinstance(definition, OperationDefinitionNode) for definition in definitions) > 1


def _refusal(message: str, code: str) -> dict[str, Any]:
    return {"errors": [public_error(GraphQLError(message), code=code)]}
