"""What an operation costs, over HTTP: told when asked for, as the page on it shows, and limited by the settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import keygraph_examples
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.tables.interchange import Interchange
from keygraph_examples import commerce
from keygraph_server.app import create_app
from keygraph_server.http.graphql_http import COST_HEADER
from keygraph_server.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/cost.md").read_text("utf-8")
TIMES = {"waitedMs", "beganMs", "endedMs"}


def block(language: str) -> str:
    """The first block of a language on the page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def without_times(value: Any) -> Any:
    """The value without what differs from run to run."""
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in TIMES}
    return value


@pytest.fixture
async def settings(folder: Path) -> Settings:
    """The shop of the examples, in a file."""
    return Settings(model="keygraph_examples.commerce:graph", store=f"sqlite:{folder}/shop.sqlite")


async def ask(settings: Settings, *asked: tuple[str, dict[str, str]]) -> list[dict[str, Any]]:
    """The answers of the server to documents with headers."""
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://keygraph") as client,
    ):
        await fill(app.state.store)
        answers = []
        for document, headers in asked:
            answer = await client.post("/graphql", json={"query": document}, headers=headers)
            answers.append(answer.json())
        return answers


async def fill(store: Any) -> None:
    """Writes the shop's items."""
    await store.send(CreateTable())
    interchange, folder = Interchange(commerce.graph), Path(keygraph_examples.__file__).parent
    for name in ("commerce.jsonl", "commerce.described.jsonl"):
        lines = (folder / name).read_text("utf-8").splitlines()
        await store.send(BatchWrite(tuple(map(interchange.read, lines))))


async def test_the_page_shows_what_is_told(settings: Settings) -> None:
    """Who reads the page would look for fields that are not there, or not know what they see."""
    assert f"`{COST_HEADER}: true`" in PAGE
    [answer] = await ask(settings, (block("graphql"), {COST_HEADER: "true"}))
    assert "errors" not in answer
    told = answer["extensions"]["cost"]
    shown = json.loads(block("json"))
    assert without_times(told) == without_times(shown)
    for here, there in zip(told["requests"], shown["requests"], strict=True):
        assert here.keys() == there.keys()
    assert told["actual"].keys() == shown["actual"].keys()


async def test_nothing_is_told_without_the_header(settings: Settings) -> None:
    """Every answer would carry what its reader has not asked for."""
    document = block("graphql")
    plain, false, true = await ask(
        settings, (document, {}), (document, {COST_HEADER: "false"}), (document, {COST_HEADER: "TRUE"})
    )
    assert list(plain) == list(false) == ["data"]
    assert list(true) == ["data", "extensions"]
    assert plain["data"] == true["data"]


async def test_the_settings_limit_cost_and_depth(settings: Settings) -> None:
    """KEYGRAPH_COST_LIMIT and KEYGRAPH_DEPTH_LIMIT would do nothing."""
    document = "{ users(first: 100) { nodes { name } } }"

    async def codes(**limits: float) -> list[str]:
        [answer] = await ask(settings.model_copy(update=limits), (document, {}))
        return [error["extensions"]["code"] for error in answer.get("errors", ())]

    assert await codes(cost_limit=12.0) == ["COST_LIMIT"]
    assert await codes(cost_limit=13.0) == []
    assert await codes(depth_limit=2) == ["DEPTH_LIMIT"]
    assert await codes(depth_limit=3) == []
    assert await codes(cost_limit=0.0, depth_limit=0) == []


async def test_there_are_limits_without_settings(settings: Settings) -> None:
    """A server that nobody has configured would let anybody stop it, or pay for anything."""
    hop = "{ orders(first: 100) { nodes { items(first: 100) { nodes { orders(first: 100) { nodes { customer %s } } } } } } }"
    document = f"{{ users(first: 100) {{ nodes {hop % (hop % '{ name }')} }} }}"
    [answer] = await ask(settings, (document, {}))
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["COST_LIMIT"]
