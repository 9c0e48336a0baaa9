"""Each document's items, written one by one by mutations over HTTP into an empty table, and then held against it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import GraphQLInputObjectType, GraphQLSchema, build_schema, get_named_type

from keygraph import Graph
from keygraph.dynamo.items import Item, number_text
from keygraph.dynamo.store import CreateTable, DeleteTable, Store
from keygraph.dynamo.table import Key
from keygraph.keys.types import moment_text
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph.tables.bulk import whole_table
from keygraph.tables.repair import Repairs
from keygraph_server.app import create_app
from keygraph_server.settings import read_settings
from tests.asgi import running
from tests.documents.samples import NAMES, graph_of, in_any_shard, sample_of, without_counted
from tests.verified import verified


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
async def test_a_documents_table_is_built_through_mutations(
    name: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    graph = graph_of(name)
    wanted = dict(_by_key(graph, sample_of(name)))
    sqlite = f"sqlite:{tmp_path / 'table.db'}"
    address = sqlite if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
    async with _served(name, address) as (client, store):
        schema = build_schema((await client.get("/schema.graphql")).text)
        # What others lead to comes first.
        for record in sorted(graph.types.values(), key=lambda record: not record.is_node):
            for item in wanted.values():
                if graph.recognise(item) is record and not _is_second(graph, record, item):
                    await _write(client, schema, record, item)
        found = [item async for item in whole_table(store)]
        await _count(graph, store)
        assert [item async for item in whole_table(store)] == found
    assert dict(_by_key(graph, found)) == wanted


async def _count(graph: Graph, store: Store) -> None:
    """Sets what nodes count where it is wrong."""
    repairs = Repairs(graph, store, ["counts"], lambda kind, changes: None)
    await verified(graph, store, repairs=repairs)


@asynccontextmanager
async def _served(name: str, address: str) -> AsyncIterator[tuple[httpx.AsyncClient, Store]]:
    """A client of the served model, and the store with its table, which is empty."""
    model = f"keygraph_examples.{name}:graph"
    app = create_app(read_settings(model=model, store=address, secret="the secret of the documents' tests"))
    async with running(app) as client:
        store: Store = app.state.store
        await store.send(DeleteTable())
        await store.send(CreateTable())
        yield client, store
        await store.send(DeleteTable())


async def _write(client: httpx.AsyncClient, schema: GraphQLSchema, record: RecordType, item: Item) -> None:
    name = f"{'create' if record.is_node else 'put'}{record.name}"
    assert schema.mutation_type is not None
    type_ = get_named_type(schema.mutation_type.fields[name].args["input"].type)
    assert isinstance(type_, GraphQLInputObjectType)
    values = _values(record, item)
    given = {field: values[field] for field in type_.fields if values.get(field) is not None}
    document = (
        f"mutation ($input: {type_.name}!) {{ {name}(input: $input) {{ clientMutationId __typename }} }}"
    )
    answer = await client.post("/graphql", json={"query": document, "variables": {"input": given}})
    assert "errors" not in answer.json(), (given, answer.json())


def _values(record: RecordType, item: Item) -> dict[str, Any]:
    """The values of a record as a client writes them, by the names of its fields and of its ends."""
    values = {camel(field.name): _written(record.reader(field)(item)) for field in record.fields.values()}
    for end in record.ends.values():
        identity = record.end_identity(item, end) or ()
        for slot, text in zip(end.identity, identity, strict=False):
            values[camel(record.leaf_name((end.name, *slot.path)))] = _written(slot.text.value(text))
    return values


def _written(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case Decimal():
            return number_text(value)
    return value


def _is_second(graph: Graph, record: RecordType, item: Item) -> bool:
    """Whether the item is the mirror of one that was written before it, and so was written with it."""
    other = graph.counterpart(record, item)
    return other is not None and graph.table_keys(other.record, other.identity)[0] < graph.table.key_of(item)


def _by_key(graph: Graph, items: Iterable[Item]) -> Iterator[tuple[Key, Item]]:
    """Items by their keys, each in the first shard of each of its keys: the documents have chosen others."""
    for item in items:
        record = graph.recognise(item)
        assert record is not None, item
        moved = in_any_shard(record, without_counted(record, item))
        yield graph.table.key_of(moved), moved
