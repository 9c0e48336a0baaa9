"""Runs an operation against a store, and measures its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from graphql.execution.values import VariableValues

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable, DeleteTable, Store
from keygraph.engines.open import open_store
from keygraph.graph import Graph
from keygraph.limits import NO_LIMITS, Limits
from keygraph.tables.bulk import BATCH_ITEMS, write_batches
from keygraph_resolvers.answer.completion import Completion, write_data
from keygraph_resolvers.engine.engine import read
from keygraph_resolvers.plan.bound import Bound
from keygraph_resolvers.plan.documents import Documents
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.meter import Sent
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.types import GraphSchema


@dataclass(frozen=True)
class Measured:
    """The requests of one operation to a store."""

    sent: Sequence[Sent]

    @property
    def requests(self) -> int:
        return len(self.sent)

    @property
    def round_trips(self) -> int:
        """The longest chain of requests in which each waited for the one before."""
        return max((sent.round_trip for sent in self.sent), default=0)


@asynccontextmanager
async def filled_store(url: str, graph: Graph, items: Sequence[Item]) -> AsyncIterator[Store]:
    """Yields a store at the address with a new table of these items, which is deleted at the end."""
    # On a small machine, this many lists at once make DynamoDB Local slow; that must not fail an operation.
    async with open_store(url, graph.table, deadline=120.0) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        batches = ((items[at : at + BATCH_ITEMS], None) for at in range(0, len(items), BATCH_ITEMS))
        await write_batches(store, batches, lambda _: None)
        try:
            yield store
        finally:
            await store.send(DeleteTable())


@dataclass(frozen=True)
class Planned:
    """The only query of a document, planned."""

    plan: Plan
    values: VariableValues


def planned(schema: GraphSchema, document: str, variables: Mapping[str, Any] | None = None) -> Planned:
    """Plans the only query of a document. Raises ValueError if there is none, or it is not valid."""
    core = core_schema(schema)
    documents = Documents(core, schema.graph, NO_LIMITS)
    read = documents.read(document)
    if read.errors or len(read.operations) != 1:
        raise ValueError(f"no query: {read.errors}")
    operation = documents.operation(read, None)
    values = documents.values(read, operation, variables or {})
    return Planned(documents.plan(read, operation, values.coerced), values)


async def measured(
    schema: GraphSchema, store: Store, document: str, variables: Mapping[str, Any] | None = None
) -> Measured:
    """Runs the only query of a document. Raises ValueError if its answer has an error."""
    found = planned(schema, document, variables)
    plan = found.plan
    # No list waits for its turn: whatever waits, waits for a key.
    limits = Limits(concurrency=10_000)
    run = Run(
        schema.graph,
        store,
        Cursors(b"of a measurement"),
        limits,
        found.values,
        plan.attributes,
        plan.looked_for,
    )
    _ = Bound(plan, run).total  # the run is told with it when its steps request keys
    root = await read(run, plan.steps)
    completion = Completion(plan.rows, limits.answer_limit)
    write_data(completion, plan.root, root)
    if completion.reports:
        raise ValueError(f"the answer has errors: {[str(each.error) for each in completion.reports[:3]]}")
    return Measured(tuple(run.meter.sent))
