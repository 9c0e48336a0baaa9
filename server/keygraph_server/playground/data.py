"""The data of the playground that does not come from GraphQL: examples, the keys of the model in the table, and raw
items (`items`).

It answers only POST with a JSON body, which no page of another site can send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.items import Item, base64_text
from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Index
from keygraph.errors import BadUserInput, KeygraphError
from keygraph.graph import Graph
from keygraph.model.permissions import Permissions
from keygraph.model.records import End, RecordType
from keygraph.names import camel
from keygraph.tables.sample import sample
from keygraph_resolvers.schema.strawberry_internals import core_schema
from keygraph_resolvers.schema.visible import VisibleSchemas
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.requests import check_body_type, read_json, request_headers
from keygraph_server.models import Model
from keygraph_server.playground.examples import examples_of, nothing_known
from keygraph_server.playground.items import read_items
from keygraph_server.playground.values import TableValues

if TYPE_CHECKING:
    from keygraph.lists.describe_types import DescribedPath

_SAMPLE = 300
"""The number of items that are read for the values of examples."""
_SAMPLE_SECONDS = 2.0

_Ask = Callable[[Store, dict[str, Any]], Awaitable[Any]]


def data_routes(model: Model, *, shows_items: bool) -> list[BaseRoute]:
    """The routes of a model's data. Without `shows_items`, they reveal nothing of the table."""
    graph = model.graph
    # On first request, because few ask for it.
    described = cache(lambda: {**described_graph(graph), "closed": closed_mutations(model)})
    # The schema has no type of this name for an edge that only lists show.
    with_ids = graph.types.keys() & core_schema(model.schema).type_map.keys()

    def examples(values: Any) -> list[dict[str, Any]]:
        return [asdict(example) for example in examples_of(model, values)]

    without_items, turn = cache(lambda: examples(nothing_known)), asyncio.Lock()

    async def ask_examples(store: Store, content: dict[str, Any]) -> Any:
        if not shows_items:
            return without_items()
        # They take tens of milliseconds.
        async with turn:
            return await in_daemon_thread(examples, await _table_values(graph, store))

    async def ask_description(store: Store, content: dict[str, Any]) -> Any:
        return described()

    async def ask_items(store: Store, content: dict[str, Any]) -> Any:
        return await read_items(graph, with_ids, store, content)

    routes: list[BaseRoute] = [_route("examples", ask_examples), _route("description", ask_description)]
    if shows_items:
        routes.append(_route("items", ask_items))
    return routes


def _route(name: str, ask: _Ask) -> Route:
    async def answer(request: Request) -> Response:
        check_body_type(request_headers(request.scope))
        try:
            body = read_json(await request.body(), "the body")
            content = await ask(request.app.state.service.store, body if isinstance(body, dict) else {})
        except KeygraphError as error:
            status = 400 if isinstance(error, BadUserInput) else 503
            raise RequestRefusedError(str(error), status, error.code) from None
        text = orjson.dumps(content, default=base64_text)
        return Response(text, media_type="application/json")

    return Route(f"/playground/{name}", answer, methods=["POST"], name=f"playground-{name}")


async def _table_values(graph: Graph, store: Store) -> TableValues:
    """Values from a sample of the table; empty if it does not arrive in time."""
    items: Iterable[Item] = ()
    try:
        async with asyncio.timeout(_SAMPLE_SECONDS):
            items = await sample(store, _SAMPLE)
    except (KeygraphError, TimeoutError):
        pass
    return TableValues(graph, items)


# --- The model in the table --------------------------------------------------------------------------


def described_graph(graph: Graph) -> dict[str, Any]:
    """Returns the output of `keygraph describe` as JSON."""
    from keygraph.lists.describe_types import described_root, described_types

    return {
        "table": graph.table.name,
        "indexes": [
            {
                "name": keyed.name if isinstance(keyed, Index) else None,
                "keys": [key.name for key in keyed.keys],
                "projection": keyed.projection if isinstance(keyed, Index) else "ALL",
            }
            for keyed in (graph.table, *graph.table.indexes)
        ],
        "types": [
            {
                "name": each.record.name,
                "kind": each.kind,
                "description": each.summary,
                "keys": [asdict(keys) for keys in each.keys],
                "byKey": each.by_key,
                "fields": _fields(each.record),
                "ends": [node.name for end in each.record.ends.values() for node in end.members],
                "lists": [_described_path(path) for path in each.paths],
            }
            for each in described_types(graph)
        ],
        "root": [_described_path(path) for path in described_root(graph)],
    }


def closed_mutations(model: Model) -> list[str]:
    """Returns the mutations that no rule can allow the viewer of the page, who is anonymous."""
    core = core_schema(model.schema)
    if core.mutation_type is None or not model.graph.has_access_rules:
        return []
    hidden, _ = VisibleSchemas(core, model.graph).of(Permissions())
    return sorted(name for owner, name in hidden if owner == core.mutation_type.name)


def _fields(record: RecordType) -> list[dict[str, Any]]:
    """The fields and ends of a type, in the order of the model."""
    found = []
    for name in record.order:
        held = record.list_ends.get(name) or record.ends.get(name) or record.fields.get(name)
        if held is not None:
            is_list = isinstance(held, End) and held.is_list
            text = held.type_name if isinstance(held, End) else held.type.name
            found.append(
                {
                    "name": camel(name),
                    "type": f"list of {text}" if is_list else text,
                    "isOptional": held.optional,
                    "isKey": name in record.key_fields,
                }
            )
    return found


def _described_path(described: DescribedPath) -> dict[str, Any]:
    renamed = replace(
        described,
        name=camel(described.name),
        needs=tuple(map(camel, described.needs)),
        narrowed_by=tuple(map(camel, described.narrowed_by)),
    )
    return {camel(name): value for name, value in asdict(renamed).items()}
