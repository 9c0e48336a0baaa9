"""Any operation that a schema allows, and what is nearly one: no answer is a fault of the server, or tells what no model declares.

FUZZ_EXAMPLES is how many operations each model is asked; the default is for every run of the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_graphql import nodes
from hypothesis_graphql import strategies as operations

import keygraph_examples
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.engines.open import open_store
from keygraph_server.app import create_app
from keygraph_server.models import load_model, printed
from keygraph_server.settings import read_settings
from tests.asgi import client_of
from tests.documents.samples import sample_of

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "25"))
FOLDER = Path(keygraph_examples.__file__).parent
MODELS = sorted(file.stem for file in FOLDER.glob("*.graphql"))
PLANTED = "planted-s3cret"
"""Stands in the table where no model looks."""
SCALARS = {
    "DateTime": st.sampled_from([*["2024-01-20T12:00:00Z"] * 9, "2024-01-20", "x"]).map(nodes.String),
    "Date": st.sampled_from([*["2024-01-20"] * 9, "2024-13-40"]).map(nodes.String),
    "Decimal": st.sampled_from([*["1.5", "-0", "7"] * 4, "1e999", "NaN"]).map(nodes.String),
    "Long": st.integers(-(10**40), 10**40).map(nodes.Int),
    "Base64": st.sampled_from([*["", "AA=="] * 5, "?"]).map(nodes.String),
    "JSON": st.sampled_from(["x", ""]).map(nodes.String) | st.booleans().map(nodes.Boolean),
}


def planted(items: list[Item], keys: set[str]) -> Iterator[Item]:
    """The items, each with an attribute that no type declares, and beside each an item of no type."""
    for item in items:
        yield {**item, "Planted": PLANTED}
        yield {
            name: value if isinstance(value, Decimal | bytes) else f"{value}~{PLANTED}"
            for name, value in item.items()
            if name in keys
        } | {"Planted": PLANTED}


@dataclass
class Served:
    """A model that is served in this process."""

    runner: asyncio.Runner
    client: httpx.AsyncClient
    operations: st.SearchStrategy[str]

    def ask(self, body: bytes) -> httpx.Response:
        headers = {"content-type": "application/json"}
        return self.runner.run(self.client.post("/graphql", content=body, headers=headers))


@pytest.fixture(scope="module", params=MODELS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    name = request.param
    model = load_model(f"keygraph_examples.{name}:graph")
    graph, file = model.graph, tmp_path_factory.mktemp("fuzz") / f"{name}.sqlite"
    items = sample_of(name)
    keys = {key.name for index in (graph.table, *graph.table.indexes) for key in index.keys}
    app = create_app(
        read_settings(model=f"keygraph_examples.{name}:graph", store=f"sqlite:{file}", log_operations=False)
    )

    async def fill() -> None:
        async with open_store(f"sqlite:{file}", graph.table) as store:
            await store.send(CreateTable())
            await store.send(BatchWrite(puts=tuple(planted(items, keys))))

    with asyncio.Runner() as runner:
        runner.run(fill())
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        client = client_of(app, raise_app_exceptions=False)
        texts = sorted(
            {str(value).partition("#")[2] or str(value) for item in items for value in item.values()}
        )
        known = st.sampled_from(texts) | st.text(max_size=20)
        scalars = {**SCALARS, "ID": known.map(nodes.String), "String": known.map(nodes.String)}
        yield Served(runner, client, operations.from_schema(printed(model.schema), custom_scalars=scalars))
        runner.run(client.aclose())
        runner.run(lifespan.__aexit__(None, None, None))


def check(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code in {200, 400}, response.text
    assert PLANTED not in response.text
    assert '"INTERNAL"' not in response.text, response.text
    content: dict[str, Any] = response.json()
    for error in content.get("errors", ()):
        assert error["extensions"]["code"], error
        assert len(error["message"]) < 1_000
    return content


FUZZED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    database=None,
)


@pytest.mark.long
@FUZZED
@given(data=st.data())
def test_any_operation(served: Served, data: st.DataObject) -> None:
    document = data.draw(served.operations)
    check(served.ask(json.dumps({"query": document}).encode()))


@FUZZED
@given(data=st.data())
def test_what_is_nearly_an_operation(served: Served, data: st.DataObject) -> None:
    known = [text for file in FOLDER.glob("*.graphql") for text in file.read_text("utf-8").split("\n\n")]
    text = data.draw(st.sampled_from(known))
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 20)))
    put = data.draw(
        st.sampled_from(["", "{", "}", "(", "$x", '"', "...", "@", "#", "\0", "é", "[", ":", "on"])
        | st.text()
    )
    body = json.dumps(
        {"query": text[:at] + put + text[until:], "variables": {"x": data.draw(st.text() | st.none())}}
    )
    cut = data.draw(st.integers(0, len(body)) | st.just(len(body)))
    check(served.ask(body.encode("utf-8", "surrogatepass")[:cut]))
