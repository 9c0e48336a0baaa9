"""Requests, and their operations: documents are parsed, validated and planned once, and cached for the next request
with the same text.

They are cached by a hash of their text, up to a number of bytes. For a refused document, only the errors are cached, in
a separate, smaller number of bytes, so that it evicts no other document.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
    Visitor,
)
from graphql.execution.values import VariableValues, get_variable_values

from keygraph.access.claims import Claims
from keygraph.admission import Admission, Place
from keygraph.codes import Code
from keygraph.dynamo.table import Table
from keygraph.graph import Graph
from keygraph.kept import SizedCache
from keygraph.limits import Limits
from keygraph.model.permissions import Permissions
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.errors import NotAQuery, bare, public_error, words_of
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.compile import compile_plan
from keygraph_resolvers.plan.cost import cost_report
from keygraph_resolvers.plan.document_limits import DocumentLimit, LimitedDocuments
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.plan.validation import (
    MOST_ERRORS,
    SENT_TO_WHO_LISTENS,
    unnamed,
    validation_errors,
    visit_once,
)
from keygraph_resolvers.plan.variables import InputReaders, Variable, place_of_value, read_variables
from keygraph_resolvers.read.changes import RecordChange
from keygraph_resolvers.read.meter import Holding, MeteredStore
from keygraph_resolvers.read.recording import Reads
from keygraph_resolvers.worker_thread import WorkerThread

ResultT = TypeVar("ResultT")

_ENTRY_BYTES = 25_000
"""The base size of a document or a plan. These sizes were measured with tracemalloc on the examples' operations."""
_TOKEN_BYTES = 600
"""The size of a token of a parsed document."""
_FIELD_BYTES = 2_500
"""The size of a field of a plan, with what runs of the plan keep on it."""
_BOUND_BYTES = 400
"""The size of what a bound of a plan has of one step."""
_KEY_BYTES = 400
"""The size of a cache entry without its value."""
_REFUSED_BYTES = 1_000_000
"""The memory for refused documents. Each takes a few hundred to a few thousand bytes."""
_NO_VALUES = VariableValues({}, {})
_FEW_VALUES = 300
"""Variables with more values are read in a thread."""
SHORT_TEXT = 400
"""The longest new document, in characters, that is read and planned in a round of the event loop, in up to 5 ms. For longer
ones, a thread does it."""


@dataclass(slots=True, eq=False)
class Observation:
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
        has_bound = self.bound is not None and (bool(self.plan.roots) or not self.plan.is_mutation)
        sent = None if is_secretive else self.meter.sent
        return cost_report(self.bound if has_bound else None, sent, self.plan.elsewhere, table)


@dataclass(slots=True, eq=False)
class OperationRequest:
    """One operation to execute."""

    document: str
    variables: Mapping[str, Any] | None = None
    operation_name: str | None = None
    _: KW_ONLY
    viewer: Claims | None = None
    """The claims of the viewer, for the rules of the model; None for nobody in particular."""
    context: Any = None
    """The `info.context` of an application's resolvers; None for an object with the `viewer`."""
    with_cost: bool = False
    """Whether the answer has `extensions.cost`, which has no actual figures if attributes of items decide what the viewer
    may see: these would reveal what is there."""
    only_queries: bool = False
    idempotency_key: str | None = None
    """Mutations that are sent again with the same key are not carried out again."""
    began: float | None = None
    """Its time counts from then, by the event loop's clock; None for now."""
    holding: Holding | None = None
    """Counts its memory."""
    reads: Reads | None = None
    """Takes what it reads. It is then a run of a live operation, and subscriptions may be executed."""
    change: RecordChange | None = None
    """The change for which a subscription to changes is answered. What it reads is not recorded."""
    access: Permissions | None = None
    """The viewer's permissions, if others use them too: what other items decide is then read once."""
    observation: Observation = field(default_factory=Observation)
    clients: tuple[str, ...] = field(init=False)
    """The names of whoever has sent it: its address, and the viewer."""

    def __post_init__(self) -> None:
        address = "" if self.holding is None else self.holding.address
        subject = None if self.viewer is None else self.viewer.get("sub")
        self.clients = (address,) * bool(address) + (f"viewer {subject}",) * bool(subject)


class Refused(Exception):
    """An operation that cannot be executed at all."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        self.errors = errors
        super().__init__()


def refused(message: str) -> Refused:
    return Refused([public_error(GraphQLError(message), code=Code.BAD_USER_INPUT)])


class _Directives(Visitor):
    """Finds the variables in `@skip` and `@include`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, None] = {}

    def enter_directive(self, node: Any, *_: Any) -> None:
        if node.name.value in ("skip", "include") and isinstance(node.arguments[0].value, VariableNode):
            self.found[node.arguments[0].value.name.value] = None


class DocumentOperation(NamedTuple):
    """An operation of a document, with what all requests for it share."""

    node: OperationDefinitionNode
    has_plan: bool
    """Whether it may have fields that the graph answers."""
    variables: Sequence[Variable] | None
    """None if graphql-core has to read them."""
    plan_key: tuple[bytes, str | None]
    """The key of its plans, without the values of the variables in `deciding`."""
    deciding: tuple[str, ...]
    """The variables in `@skip` and `@include`."""


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
    requested: dict[str | None, DocumentOperation] = field(default_factory=dict)
    """Its operations, by the names with which they were requested; None for the only one."""

    @property
    def public_errors(self) -> list[dict[str, Any]]:
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
        return tuple(visit_once(self.ast, _Directives()).found)

    def operation(self, name: str | None) -> OperationDefinitionNode:
        """The operation of that name, or the only one. Raises Refused if the document is invalid or has none."""
        if self.errors:
            raise Refused(self.public_errors)
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
    operation: DocumentOperation
    variables: Mapping[str, Any]
    """As the request gave them."""
    count: int
    """How many values these are."""
    values: VariableValues
    """Of the variables."""
    plan: Plan


@dataclass(slots=True, eq=False)
class Turn:
    """The time for all that prepares a request: for a short document, in rounds of the event loop. For a long one, a thread
    does it all before anything of others: a turn for each step would end many operations late, and all in vain."""

    request: OperationRequest
    ends: float
    """By the event loop's clock."""
    preparing: Admission
    thread: WorkerThread
    place: Place | None = None

    async def do(
        self,
        work: Callable[[], ResultT],
        known: Callable[[], ResultT | None] = lambda: None,
        *,
        is_long: bool = False,
    ) -> ResultT:
        """Returns the result of a step, or what is known when its turn comes: another client may have sent it meanwhile.
        Raises Overloaded and TimeoutError."""
        async with asyncio.timeout_at(self.ends):
            if self.place is None and len(self.request.document) <= SHORT_TEXT and not is_long:
                await rounds().wait_for_time(next(iter(self.request.clients), ""))
                found = known()
                return work() if found is None else found
            self.place = self.place or await self.preparing.enter(clients=self.request.clients)
            found = known()
            return await self.thread.run(work) if found is None else found

    def end(self) -> None:
        """Gives the thread to others."""
        if self.place is not None:
            self.preparing.leave(self.place)
            self.place = None


class Documents:
    """The most recently used documents of a schema, and their plans."""

    def __init__(
        self,
        schema: Any,
        graph: Graph,
        limits: Limits,
        *,
        introspection: bool = True,
        suggestions: bool = True,
    ) -> None:
        """`schema` is graphql-core's. `introspection` is whether documents may ask for `__schema` and `__type`,
        `suggestions` whether errors suggest names.
        """
        self._schema = schema
        self._graph = graph
        self._limited = LimitedDocuments(schema, limits)
        self._most_characters = limits.max_document_characters
        self._most_values = limits.max_variable_values
        self._inputs = InputReaders(schema)
        self._introspection = introspection
        self._suggestions = suggestions
        for_refused = min(limits.document_cache_bytes // 10, _REFUSED_BYTES)
        self.kept: SizedCache[Any, Any] = SizedCache(limits.document_cache_bytes - for_refused)
        """Documents by the hashes of their texts; plans by the hash, their operation's name and the values of
        directives; introspection results by the hash and the name."""
        self._refused: SizedCache[bytes, bytes] = SizedCache(for_refused)
        """The errors sent to clients, as JSON, by the hashes of the texts."""

    @property
    def kept_bytes(self) -> int:
        """The approximate size of the cache."""
        return self.kept.bytes + self._refused.bytes

    def known(self, text: str) -> Document | None:
        found: Document | None = self.cached(_digest(text))
        return found

    def cached(self, key: Hashable) -> Any:
        """The cached value of a key, which becomes the last to be dropped; None if there is none."""
        found = self.kept.get(key)
        if found is not None:
            self.kept.used[key] = monotonic()
        return found

    def read(self, text: str) -> Document:
        """The document of a text. Its errors are those of parsing, of its limits, or of validation."""
        return self.known(text) or self.keep(self._parsed(text))

    def _parsed(self, text: str) -> Document:
        """Parses and validates a document, without caching it. May be called in any thread."""
        try:
            ast = self._limited.parsed(text)
        except GraphQLError as error:
            return Document(DocumentNode(definitions=()), [bare(error)], _digest(text))
        sent = None if self._suggestions else text
        errors = validation_errors(self._schema, ast, sent, introspection=self._introspection)
        size = _ENTRY_BYTES + 2 * sys.getsizeof(text) + _TOKEN_BYTES * (ast.token_count or 0)
        return Document(ast, errors, _digest(text), size)

    def keep(self, document: Document) -> Document:
        """Caches a document for the next request with its text; if it cannot be executed, only its errors."""
        if not document.errors:
            self.kept.keep(document.digest, document, document.size)
        else:
            errors = json.dumps(document.public_errors).encode()
            self._refused.keep(document.digest, errors, _KEY_BYTES + len(errors))
        return document

    def executable(self, text: str) -> Document | None:
        """The cached document of a text; None if the text is not known. Raises Refused if it cannot be executed."""
        errors = None if (document := self.known(text)) else self._refused.get(_digest(text))
        if errors is not None:
            raise Refused(json.loads(errors))
        return document

    async def prepare(
        self,
        request: OperationRequest,
        turn: Turn,
        read: Callable[[Callable[[], Awaitable[Document]]], Awaitable[Document]] | None = None,
    ) -> PreparedOperation:
        """Returns the operation of a request with its plan.

        `read` wraps what reads the document. Raises Refused if the operation cannot be executed, NotAQuery for other
        kinds if `only_queries` are allowed, DocumentLimit if the variables have too many values, Overloaded, and
        TimeoutError.
        """
        text = request.document
        if len(text) > self._most_characters:  # the hash of 1 MB takes a millisecond
            try:
                self._limited.check_length(text)
            except GraphQLError as error:
                raise Refused([public_error(error)]) from None
        if read is None:
            document = await self._read_in_turn(turn, partial(self.executable, text))
        else:
            document = await read(partial(self._read_in_turn, turn, partial(self.known, text)))
            turn.end()  # what wraps it may take long
        observation = request.observation
        observation.digest = document.digest
        operation = self.operation(document, request.operation_name)
        observation.operation = node = operation.node
        if request.only_queries and node.operation is not OperationType.QUERY:
            raise NotAQuery(node.operation.value)
        if not operation.has_plan:
            raise refused(f"this {node.operation.value} cannot be executed")
        if node.operation is OperationType.SUBSCRIPTION and request.reads is None and request.change is None:
            raise refused(SENT_TO_WHO_LISTENS)
        variables = request.variables or {}
        count = self.counted(variables)
        if count > _FEW_VALUES:
            # An empty object of a type with many fields is one value, and each of the fields is looked for in it.
            read_values = partial(self.values, document, operation, variables)
            values = await turn.do(read_values, is_long=True)
        else:
            values = self.values(document, operation, variables)
        known: Callable[[], Plan | None] = partial(self.cached, _plan_key(operation, values.coerced))
        plan = known()
        if plan is None:
            compiled = partial(self._compiled, document, operation, values.coerced)
            plan = await turn.do(compiled, known)
            self.keep_plan(operation, plan, values.coerced)
        return PreparedOperation(document, operation, variables, count, values, plan)

    def operation(self, document: Document, name: str | None) -> DocumentOperation:
        """The operation of that name, or the only one. Raises Refused if there is none."""
        found = document.requested.get(name)
        if found is None:
            node = document.operation(name)
            found = document.requested[name] = DocumentOperation(
                node,
                self._schema.get_root_type(node.operation) is not None,
                self._inputs.variables(node),
                (document.digest, node.name.value if node.name else None),
                document.deciding,
            )
        return found

    async def _read_in_turn(self, turn: Turn, known: Callable[[], Document | None]) -> Document:
        """Returns the document of a request."""
        return known() or self.keep(await turn.do(partial(self._parsed, turn.request.document), known))

    def values(
        self, document: Document, operation: DocumentOperation, given: Mapping[str, Any]
    ) -> VariableValues:
        """Returns the values of an operation's variables. Raises Refused if they do not fit."""
        if operation.variables is not None:
            found = read_variables(operation.variables, given) if operation.variables else _NO_VALUES
            if found is not None:
                return found
        values = get_variable_values(
            self._schema,
            operation.node.variable_definitions or (),
            dict(given),
            max_errors=MOST_ERRORS,
            hide_suggestions=not self._suggestions,
        )
        if not isinstance(values, VariableValues):
            if not self._suggestions:
                place = operation.node.loc
                sent = words_of(place.source.body if place else "", given)
                values = [unnamed(error, sent) for error in values]
            raise Refused([_unfit(error, operation.node, document.fragments) for error in values])
        return values

    def counted(self, variables: Mapping[str, Any]) -> int:
        """Returns how many values variables have: each element and each member counts as one. Raises DocumentLimit for too
        many."""
        most, waiting = self._most_values, [*variables.values()]
        count = len(waiting)
        while waiting and count <= most:
            value = waiting.pop()
            if isinstance(value, dict):
                count += len(value)
                waiting += value.values()
            elif isinstance(value, list):
                count += len(value)
                waiting += value
        if count > most:
            problem = "The variables have more values than they may have"
            raise DocumentLimit(f"{problem}, and the limit is {most:,}.")
        return count

    def plan(self, document: Document, operation: DocumentOperation, variables: Mapping[str, Any]) -> Plan:
        """The plan of an operation for these values of its directives' variables."""
        known: Plan | None = self.cached(_plan_key(operation, variables))
        return known or self.keep_plan(operation, self._compiled(document, operation, variables), variables)

    def _compiled(
        self, document: Document, operation: DocumentOperation, variables: Mapping[str, Any]
    ) -> Plan:
        """A new plan, which is not kept. Any thread may make it."""
        booleans = {name: bool(variables.get(name)) for name in operation.deciding}
        return compile_plan(self._schema, self._graph, operation.node, document.fragments, booleans)

    def keep_plan(self, operation: DocumentOperation, plan: Plan, variables: Mapping[str, Any]) -> Plan:
        """Keeps a plan for when the operation comes again, or counts it with the bounds that it has now. Returns it."""
        fields = sum(len(selection.fields) for selection in plan.selections)
        bounds = (len(plan.bounds) + len(plan.refused)) * (1 + len(plan.varying) + len(plan.lists))
        size = _ENTRY_BYTES + _FIELD_BYTES * fields + _BOUND_BYTES * bounds
        self.kept.keep(_plan_key(operation, variables), plan, size)
        return plan


def _unfit(
    error: GraphQLError,
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
) -> dict[str, Any]:
    """Returns the error of a variable that does not fit, with its place in the arguments."""
    public = public_error(error)
    place = place_of_value(error.message, operation, fragments)
    if place:
        public["extensions"]["path"] = place
    return public


def _digest(text: str) -> bytes:
    return sha256(text.encode(errors="surrogatepass")).digest()


def _plan_key(operation: DocumentOperation, variables: Mapping[str, Any]) -> Hashable:
    if not operation.deciding:
        return operation.plan_key
    return operation.plan_key, *[bool(variables.get(name)) for name in operation.deciding]
