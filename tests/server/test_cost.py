"""What an operation costs, over HTTP: told when asked for, as the page on it shows, and limited by the settings."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, OperationType, parse

import keygraph_examples
from keygraph import Graph
from keygraph.dynamo.store import BatchWrite, CreateTable, UnreadStore
from keygraph_examples import commerce
from keygraph_resolvers import Service, build_schema
from keygraph_server.app import create_app
from keygraph_server.http.graphql_http import COST_HEADER
from keygraph_server.services import configured_service
from keygraph_server.settings import Settings
from tests.asgi import running
from tests.documents.samples import NAMES, graph_of, sample_of
from tests.resolvers.operations import GRAPHS, OPERATIONS
from tests.server.command_line import run

PAGE = (Path(__file__).parents[2] / "docs/cost.md").read_text("utf-8")
TIMES = {"waitedMs", "beganMs", "endedMs"}


def block(language: str, number: int = 0) -> str:
    """A block of a language on the page: the first, or the one of that number."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found[number]


def without_times(value: Any) -> Any:
    """The value without what differs from run to run."""
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in TIMES}
    return value


@pytest.fixture
async def settings(folder: Path) -> Settings:
    return Settings(model="keygraph_examples.commerce:graph", store=f"sqlite:{folder}/shop.sqlite")


async def ask(settings: Settings, *asked: tuple[str, dict[str, str]]) -> list[dict[str, Any]]:
    app = create_app(settings)
    async with running(app) as client:
        await fill(app.state.store)
        answers = []
        for document, headers in asked:
            answer = await client.post("/graphql", json={"query": document}, headers=headers)
            answers.append(answer.json())
        return answers


async def fill(store: Any) -> None:
    await store.send(CreateTable())
    await store.send(BatchWrite(tuple(sample_of("commerce"))))


async def test_the_page_shows_what_is_told(settings: Settings) -> None:
    assert f"`{COST_HEADER}: true`" in PAGE
    [answer] = await ask(settings, (block("graphql"), {COST_HEADER: "true"}))
    assert "errors" not in answer
    told = answer["extensions"]["cost"]
    shown = json.loads(block("json"))
    assert without_times(told) == without_times(shown)
    for here, there in zip(told["requests"], shown["requests"], strict=True):
        assert here.keys() == there.keys()
    assert told["actual"].keys() == shown["actual"].keys()


async def test_the_page_shows_a_refusal(settings: Settings) -> None:
    [answer] = await ask(settings, (block("graphql", 1), {}))
    shown = json.loads(block("json", 1))
    for each in (answer, shown):
        assert len(each["errors"][0]["extensions"].pop("requestId")) == 32
    assert answer == shown


def test_the_page_shows_what_is_explained() -> None:
    first, _, shown = block("console").partition("\n")
    _, *words = shlex.split(first.removeprefix("$ "))
    printed = "".join(f"{line.rstrip()}\n" for line in run(*words).stdout.splitlines())
    assert printed == shown


async def test_nothing_is_told_without_the_header(settings: Settings) -> None:
    document = block("graphql")
    plain, false, true = await ask(
        settings, (document, {}), (document, {COST_HEADER: "false"}), (document, {COST_HEADER: "TRUE"})
    )
    assert list(plain) == list(false) == ["data"]
    assert list(true) == ["data", "extensions"]
    assert plain["data"] == true["data"]


async def test_the_settings_limit_cost_and_depth(settings: Settings) -> None:
    document = "{ users(first: 100) { nodes { name } } }"

    async def codes(**limits: float) -> list[str]:
        [answer] = await ask(settings.model_copy(update=limits), (document, {}))
        return [error["extensions"]["code"] for error in answer.get("errors", ())]

    assert await codes(cost_limit=12.0) == ["COST_LIMIT"]
    assert await codes(cost_limit=13.0) == []
    document = "{ users(first: 100) { nodes { orders(first: 1) { nodes { total } } } } }"
    assert await codes(depth_limit=1) == ["DEPTH_LIMIT"]
    assert await codes(depth_limit=2) == []
    assert await codes(cost_limit=0.0, depth_limit=0) == []


async def test_there_are_limits_without_settings(settings: Settings) -> None:
    hop = "{ orders(first: 100) { nodes { items(first: 100) { nodes { orders(first: 100) { nodes { customer %s } } } } } } }"
    document = f"{{ users(first: 100) {{ nodes {hop % (hop % '{ name }')} }} }}"
    [answer] = await ask(settings, (document, {}))
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["COST_LIMIT"]


# --- The default of the cost limit --------------------------------------------------------------------


def default_service(graph: Graph) -> Service:
    """A service of a server that nobody has configured. It reads nothing."""
    return configured_service(Settings(), build_schema(graph), UnreadStore(graph.table))


@pytest.mark.parametrize("name", NAMES)
async def test_the_queries_of_the_examples_are_under_the_default(name: str) -> None:
    service = default_service(graph_of(name))
    document = (Path(keygraph_examples.__file__).parent / f"{name}.graphql").read_text("utf-8")
    for definition in parse(document).definitions:
        if isinstance(definition, OperationDefinitionNode) and definition.name is not None:
            bound = service.explain(document, operation_name=definition.name.value).bound.total
            # What a mutation creates is not read.
            is_read = definition.operation is OperationType.QUERY
            assert bound.requests > 0, definition.name.value
            assert is_read <= (bound.read_units > 0), definition.name.value
            assert bound.read_units <= Settings().cost_limit, definition.name.value


def test_a_page_of_products_may_ask_what_is_bought_together() -> None:
    document = """{ tag(tagName: "audio") { products(first: 20) { nodes {
      name boughtTogether(first: 3) { edges { score node { name } } } } } } }"""
    bound = default_service(graph_of("commerce")).explain(document).bound.total
    assert 0 < bound.read_units <= Settings().cost_limit


async def test_the_largest_ordinary_operations_are_those_of_the_page() -> None:
    service = default_service(commerce.graph)
    counts = "{ users { nodes { name orders { totalCount } } } }"
    assert f"`{counts}`" in PAGE
    bounds = {name: bound_of(default_service(GRAPHS[name]), name) for name in GRAPHS}
    for units, said in (
        (service.explain(counts).bound.total.read_units, "{:,} read units in all"),
        (max(bounds.values()), "has a bound of {:,.0f} read units"),
    ):
        assert units <= Settings().cost_limit
        assert said.format(units) in " ".join(PAGE.split())


def bound_of(service: Service, name: str) -> float:
    """The largest bound of the operations of a model, in read units."""
    return max(
        service.explain(each.document, variables).bound.total.read_units
        for each in OPERATIONS[name]
        for variables in each.variables
    )
