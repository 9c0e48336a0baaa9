"""Parses, validates and plans documents once, and caches them for the next request with the same text.

They are cached by a hash of their text, up to a number of bytes. For a refused document, only the errors are cached, in
a separate, smaller number of bytes, so that it evicts no other document.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
    Visitor,
    visit,
)
from graphql.execution.values import VariableValues, get_variable_values

from keygraph.codes import Code
from keygraph.graph import Graph
from keygraph.kept import SizedCache
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.errors import NotAQuery, public_error
from keygraph_resolvers.plan.compile import compile_plan
from keygraph_resolvers.plan.document_limits import DocumentLimit, DocumentLimits, LimitedDocuments
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.plan.validation import MOST_ERRORS, NO_SUBSCRIPTIONS, validation_errors
from keygraph_resolvers.plan.variables import InputReaders, Variable, place_of_value, read_variables

_ENTRY_BYTES = 25_000
"""The base size of a document or a plan. These sizes were measured with tracemalloc on the examples' operations."""
_TOKEN_BYTES = 600
"""The size of a token of a parsed document."""
_FIELD_BYTES = 2_500
"""The size of a field of a plan, with what runs of the plan keep on it."""
_KEY_BYTES = 400
"""The size of a cache entry without its value."""
_LEAVES = frozenset({str, int, float, bool, type(None)})
"""The types of values that contain no others."""
_REFUSED_BYTES = 1_000_000
"""The memory for refused documents. Each takes a few hundred to a few thousand bytes."""


class Refused(Exception):
    """An operation that cannot be executed at all."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        self.errors = errors
        super().__init__()


def refused(message: str) -> Refused:
    return Refused([public_error(GraphQLError(message), code=Code.BAD_USER_INPUT)])


@dataclass(eq=False)
class Document:
    """A document: its errors, or its operations and their plans."""

    ast: DocumentNode
    """Without definitions if it cannot be parsed."""
    errors: list[GraphQLError]
    digest: bytes = b""
    """The hash of its text."""
    size: int = 0
    """Its approximate size in memory, in bytes."""
    variables: dict[str | None, Sequence[Variable] | None] = field(default_factory=dict)
    """The variables of its operations that were analyzed, by the operations' names."""

    @property
    def told(self) -> list[dict[str, Any]]:
        """Its errors, in the form for clients."""
        return [public_error(error, code=OperationCode.GRAPHQL_VALIDATION_FAILED) for error in self.errors]

    @cached_property
    def operations(self) -> list[OperationDefinitionNode]:
        return [each for each in self.ast.definitions if isinstance(each, OperationDefinitionNode)]

    @cached_property
    def fragments(self) -> dict[str, FragmentDefinitionNode]:
        definitions = self.ast.definitions
        return {each.name.value: each for each in definitions if isinstance(each, FragmentDefinitionNode)}

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        """The variables in `@skip` and `@include`."""
        found: dict[str, None] = {}

        class Directives(Visitor):
            def enter_directive(self, node: Any, *_: Any) -> None:
                if node.name.value in ("skip", "include") and isinstance(
                    node.arguments[0].value, VariableNode
                ):
                    found[node.arguments[0].value.name.value] = None

        visit(self.ast, Directives())
        return tuple(found)

    def operation(self, name: str | None) -> OperationDefinitionNode:
        """The operation of that name, or the only one. Raises Refused if the document is invalid or has none."""
        if self.errors:
            raise Refused(self.told)
        found = [each for each in self.operations if name is None or (each.name and each.name.value == name)]
        if found and (len(found) == 1 or name is not None):
            return found[0]
        if name is not None:
            raise refused(f"the document has no operation called {name!r}")
        raise refused(
            "the document has several operations: give the name of one"
            if found
            else "the document has no operation"
        )


@dataclass(slots=True, eq=False)
class PreparedOperation:
    """An operation of a document, with the values of its variables, ready to run."""

    document: Document
    operation: OperationDefinitionNode
    values: VariableValues
    plan: Plan | None
    """None if it was not made yet."""


class Watched(Protocol):
    """Observes an operation, including one that is refused."""

    digest: bytes
    operation: OperationDefinitionNode | None


class Documents:
    """The most recently used documents of a schema, and their plans."""

    def __init__(
        self,
        schema: Any,
        graph: Graph,
        limits: DocumentLimits,
        kept_bytes: int,
        *,
        introspection: bool = True,
        suggestions: bool = True,
    ) -> None:
        """`schema` is graphql-core's; `kept_bytes` is the most that documents and plans together may take.

        `introspection` is whether documents may ask for `__schema` and `__type`, `suggestions` whether errors suggest
        names.
        """
        self._schema = schema
        self._graph = graph
        self._limited = LimitedDocuments(schema, limits)
        self._most_values = limits.variable_values
        self._inputs = InputReaders(schema)
        self._introspection = introspection
        self._suggestions = suggestions
        self.kept: SizedCache[Any, Any] = SizedCache(kept_bytes)
        """Documents by the hashes of their texts; plans by the hash, their operation's name and the values of
        directives; introspection results by the hash and the name."""
        self._refused: SizedCache[bytes, bytes] = SizedCache(min(kept_bytes, _REFUSED_BYTES))
        """The errors sent to clients, as JSON, by the hashes of the texts."""

    @property
    def kept_bytes(self) -> int:
        """The approximate size of the cache."""
        return self.kept.bytes + self._refused.bytes

    def known(self, text: str) -> Document | None:
        """The cached document of a text."""
        found: Document | None = self.asked_again(_digest(text))
        return found

    def asked_again(self, key: Hashable) -> Any:
        """The cached value of a key, which becomes the last to be dropped; None if there is none."""
        found = self.kept.get(key)
        if found is not None:
            self.kept.move_to_end(key)
        return found

    def read(self, text: str) -> Document:
        """The document of a text. Its errors are those of parsing, of its limits, or of validation."""
        return self.known(text) or self.keep(self.parsed(text))

    def parsed(self, text: str) -> Document:
        """Parses and validates a document, without caching it. May be called in any thread."""
        try:
            ast = self._limited.parsed(text)
        except GraphQLError as error:
            return Document(DocumentNode(definitions=()), [error], _digest(text))
        errors = validation_errors(
            self._schema, ast, introspection=self._introspection, suggestions=self._suggestions
        )
        size = _ENTRY_BYTES + len(text) + _TOKEN_BYTES * (ast.token_count or 0)
        return Document(ast, errors, _digest(text), size)

    def keep(self, document: Document) -> Document:
        """Caches a document for the next request with its text; if it cannot be executed, only its errors."""
        if not document.errors:
            self.kept.keep(document.digest, document, document.size)
        else:
            told = json.dumps(document.told).encode()
            self._refused.keep(document.digest, told, _KEY_BYTES + len(told))
        return document

    def refusal(self, text: str) -> list[dict[str, Any]] | None:
        """The cached errors of a text that cannot be executed; None if it is not known."""
        told = self._refused.get(_digest(text))
        return None if told is None else json.loads(told)

    def prepared_again(
        self, text: str, name: str | None, given: Mapping[str, Any], seen: Watched, *, only_queries: bool
    ) -> PreparedOperation | None:
        """Returns what `prepared` does for the cached document of a text; None if there is none."""
        document = self.known(text)
        return (
            None
            if document is None
            else self.prepared(document, name, given, seen, only_queries=only_queries)
        )

    def prepared(
        self,
        document: Document,
        name: str | None,
        given: Mapping[str, Any],
        seen: Watched,
        *,
        only_queries: bool,
    ) -> PreparedOperation:
        """Returns the operation of that name with the given variables. Notes the document and the operation in `seen`.

        Raises Refused if the operation cannot be executed, NotAQuery for other kinds if `only_queries` are allowed, and
        DocumentLimit if the variables have too many values.
        """
        seen.digest = document.digest
        seen.operation = operation = document.operation(name)
        if only_queries and operation.operation is not OperationType.QUERY:
            raise NotAQuery(operation.operation.value)
        if not self.has_plan(operation):
            raise refused(NO_SUBSCRIPTIONS)
        values = self.values(document, operation, given)
        plan = self.known_plan(document, operation, values.coerced)
        return PreparedOperation(document, operation, values, plan)

    def has_plan(self, operation: OperationDefinitionNode) -> bool:
        """Whether the operation may have fields that the graph answers."""
        is_known = operation.operation != OperationType.SUBSCRIPTION
        return is_known and self._schema.get_root_type(operation.operation) is not None

    def _refuse_many_values(self, variables: Mapping[str, Any]) -> None:
        """Raises DocumentLimit if variables have too many values; each element and each member counts as one."""
        waiting: list[Any] = [*variables.values()]
        count, most = len(waiting), self._most_values
        while waiting and count <= most:
            value = waiting.pop()
            if type(value) in _LEAVES:
                continue  # as most are
            if isinstance(value, dict):
                count += len(value)
                waiting += value.values()
            elif isinstance(value, list):
                count += len(value)
                waiting += value
        if count > most:
            told = "The variables have more values than they may have"
            raise DocumentLimit(f"{told}, and the limit is {most:,}.")

    def values(
        self, document: Document, operation: OperationDefinitionNode, given: Mapping[str, Any]
    ) -> VariableValues:
        """Returns the values of an operation's variables. Raises Refused if they do not fit, and DocumentLimit if there
        are too many."""
        self._refuse_many_values(given)
        if not operation.variable_definitions:
            return VariableValues({}, {})
        name = operation.name.value if operation.name else None
        if name not in document.variables:
            document.variables[name] = self._inputs.variables(operation)
        known = document.variables[name]
        found = None if known is None else read_variables(known, given)
        if found is not None:
            return found
        values = get_variable_values(
            self._schema,
            operation.variable_definitions,
            dict(given),
            max_errors=MOST_ERRORS,
            hide_suggestions=not self._suggestions,
        )
        if not isinstance(values, VariableValues):
            raise Refused([_unfit(error, operation, document.fragments) for error in values])
        return values

    def known_plan(
        self, document: Document, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> Plan | None:
        """The cached plan of an operation for these values of its directives' variables, if there is one."""
        found: Plan | None = self.asked_again(_plan_key(document, operation, _booleans(document, variables)))
        return found

    def plan(
        self, document: Document, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> Plan:
        """The plan of an operation for these values of its directives' variables."""
        known = self.known_plan(document, operation, variables)
        if known is not None:
            return known
        booleans = _booleans(document, variables)
        found = compile_plan(self._schema, self._graph, operation, document.fragments, booleans)
        fields = sum(len(selection.fields) for selection in found.selections)
        self.kept.keep(_plan_key(document, operation, booleans), found, _ENTRY_BYTES + _FIELD_BYTES * fields)
        return found


def _unfit(
    error: GraphQLError,
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
) -> dict[str, Any]:
    """Returns the error of a variable that does not fit, with its place in the arguments."""
    shown = public_error(error)
    place = place_of_value(error.message, operation, fragments)
    if place:
        shown["extensions"]["path"] = place
    return shown


def _digest(text: str) -> bytes:
    return sha256(text.encode(errors="surrogatepass")).digest()


def _booleans(document: Document, variables: Mapping[str, Any]) -> dict[str, bool]:
    return {name: bool(variables.get(name)) for name in document.deciding}


def _plan_key(
    document: Document, operation: OperationDefinitionNode, booleans: Mapping[str, bool]
) -> Hashable:
    return document.digest, operation.name.value if operation.name else None, tuple(booleans.values())
