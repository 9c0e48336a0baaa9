"""The playground's page, its libraries, and GraphiQL in a real browser."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
import strawberry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keygraph_server.playground import PageSettings, playground_routes
from keygraph_server.playground.examples import ExampleOperation
from keygraph_server.playground.page import LIBRARIES, render_page
from tests.asgi import client_of
from tests.server.chromium import EDITOR, RESPONSE, needs_assets, needs_chromium, open_page
from tests.server.serving import served

QUERY = 'query Who {\n  user(userId: "USER001") {\n    name\n  }\n}\n'
EXAMPLE = ExampleOperation("Who", "query", "Who somebody is.", QUERY)
SHOP = PageSettings("Shop", "shop:graph", lambda: [EXAMPLE])


async def _answer_no_examples(request: Request) -> Response:
    return JSONResponse([])


NO_EXAMPLES = Route("/playground/examples", _answer_no_examples, methods=["POST"])
BUNDLED = Path(__file__).parents[2] / "server/playground"


def open_client() -> httpx.AsyncClient:
    return client_of(Starlette(routes=playground_routes(SHOP)), "playground")


class PageReader(HTMLParser):
    """What a browser reads from the page: its elements, and the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.texts.append((self.elements[-1][0], data))

    def loaded(self) -> list[str]:
        """The address of every script and stylesheet."""
        return [
            str(attrs.get("src") or attrs.get("href"))
            for tag, attrs in self.elements
            if (tag == "script" and "src" in attrs) or attrs.get("rel") == "stylesheet"
        ]

    def settings(self) -> dict[str, Any]:
        text = next(text for tag, text in self.texts if tag == "script" and text.strip())
        settings: dict[str, Any] = json.loads(text)
        return settings


class TestLibraries:
    def test_the_lock_file_pins_hashes_and_no_addresses(self) -> None:
        packages = json.loads((BUNDLED / "package-lock.json").read_text("utf-8"))["packages"]
        wanted = json.loads((BUNDLED / "package.json").read_text("utf-8"))["dependencies"]
        assert wanted == {name: packages[f"node_modules/{name}"]["version"] for name in wanted}
        installed = {name: package for name, package in packages.items() if name}
        assert [name for name, package in installed.items() if "resolved" in package] == []
        assert [name for name, package in installed.items() if "integrity" not in package] == []

    @needs_assets
    def test_licenses_come_with_what_is_bundled(self) -> None:
        lines = (LIBRARIES / "licenses.txt").read_text("utf-8").splitlines()
        assert {"react-dom", "monaco-editor", "graphiql", "graphql", "cytoscape"} <= {*lines}


class TestPage:
    async def test_what_it_names_is_served(self) -> None:
        client = open_client()
        page = PageReader((await client.get("/")).text)
        assert page.loaded() == [
            "playground/libraries/monaco.css",
            "playground/libraries/libraries.css",
            "playground/page/playground.css",
            "playground/page/begin.js",
            "playground/libraries/libraries.js",
            "playground/page/playground.js",
        ]
        are_installed = (LIBRARIES / "libraries.js").is_file()
        for address in page.loaded():
            is_there = are_installed or "libraries" not in address
            assert (await client.get(f"/{address}")).status_code == (200 if is_there else 404)

    @pytest.mark.parametrize(
        "text",
        [
            "</script><script>alert(1)</script>",
            "<!--<script>",
            "\"'&amp;&lt; $title ${scripts} $$",
            "line\u2028separator \0 ü 😀",
        ],
    )
    def test_titles_and_queries_are_text(self, text: str) -> None:
        plain = PageReader(render_page(SHOP))
        told = PageSettings(text, text, lambda: [replace(EXAMPLE, description=text)])
        page = PageReader(render_page(told))
        assert page.elements == plain.elements
        settings = page.settings()
        assert (settings["table"], settings["model"], settings["examples"][0]["description"]) == (
            text,
            text,
            text,
        )
        assert "".join(data for tag, data in page.texts if tag == "title").strip() == f"{text} · Keygraph"

    async def test_no_script_stands_in_the_page_and_none_is_from_elsewhere(self) -> None:
        response = await open_client().get("/")
        assert [
            attrs
            for tag, attrs in PageReader(response.text).elements
            if tag == "style"
            or (tag == "script" and "src" not in attrs and attrs.get("type") != "application/json")
            or any(name == "style" or name.startswith("on") for name in attrs)
        ] == []
        policy = response.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "worker-src 'self'"} <= {*policy}
        # A style that somebody smuggles in can load nothing from elsewhere, and so tell nobody what it matched.
        assert [rule for rule in policy if "unsafe" in rule] == ["style-src 'self' 'unsafe-inline'"]
        assert [rule for rule in policy if "http" in rule or "*" in rule] == []


@strawberry.type(description="Somebody who buys or sells.")
class User:
    name: str


@strawberry.type
class Query:
    @strawberry.field
    def user(self, user_id: strawberry.ID) -> User:
        return User(name=f"Alice of {user_id}")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    schema = strawberry.Schema(Query)

    async def answer(request: Request) -> Response:
        asked = await request.json()
        result = await schema.execute(
            asked["query"], variable_values=asked.get("variables"), operation_name=asked.get("operationName")
        )
        return JSONResponse({"data": result.data})

    routes = [Route("/graphql", answer, methods=["POST"]), NO_EXAMPLES, *playground_routes(SHOP)]
    with served(Starlette(routes=routes)) as found:
        yield found


TEXT = f"{EDITOR}.getValue()"


@needs_assets
@needs_chromium
@pytest.mark.long
class TestInChromium:
    """With the network cut: no name resolves in this browser."""

    def test_graphiql_its_explorer_and_its_docs_work_and_nothing_complains(self, address: str) -> None:
        with open_page(address) as page:
            page.wait_for(EDITOR)
            assert page.evaluate(TEXT) == QUERY
            assert page.evaluate("document.title") == "Shop · Keygraph"

            page.click(".graphiql-execute-button")
            page.wait_for(f"{RESPONSE}.getValue().includes('Alice of USER001')")

            page.evaluate(f"{EDITOR}.setValue({' '.join(QUERY.split())!r})")
            page.click("[aria-label^='Prettify query']")
            page.wait_for(f"{TEXT}.trim() === {QUERY.strip()!r}")

            page.click("[aria-label='Show Documentation Explorer']")
            page.wait_for("document.querySelector('.graphiql-doc-explorer').innerText.includes('Query')")

            page.click("[aria-label='Show GraphiQL Explorer']")
            page.wait_for("document.querySelector('.graphiql-explorer-root').innerText.includes('user')")
            assert page.complaints == []

    def test_it_works_where_storage_is_blocked(self, address: str) -> None:
        blocked = (
            "Object.defineProperty(window, 'localStorage',"
            " { get() { throw new DOMException('blocked', 'SecurityError'); } })"
        )
        with open_page(address, first_script=blocked) as page:
            page.wait_for(EDITOR)
            assert page.evaluate(TEXT) == QUERY
            assert page.complaints == []

    def test_a_token_goes_with_each_request(self) -> None:
        sent: list[str | None] = []
        schema = strawberry.Schema(Query)

        async def answer(request: Request) -> Response:
            asked = await request.json()
            if asked.get("operationName") != "IntrospectionQuery":
                sent.append(request.headers.get("authorization"))
            result = await schema.execute(asked["query"], operation_name=asked.get("operationName"))
            return JSONResponse({"data": result.data})

        routes = [
            Route("/graphql", answer, methods=["POST"]),
            NO_EXAMPLES,
            *playground_routes(replace(SHOP, asks_for_token=True)),
        ]
        with served(Starlette(routes=routes)) as address, open_page(address) as page:
            page.wait_for(EDITOR)
            for typed in ("Bearer a.b.c", ""):
                page.fill("document.querySelector('.token input')", typed)
                count = len(sent)
                page.click(".graphiql-execute-button")
                page.wait_for("document.querySelector('.graphiql-execute-button[aria-label^=Execute]')")
                page.wait_for(f"{RESPONSE}.getValue().includes('Alice of USER001')")
                while len(sent) == count:
                    time.sleep(0.01)
            assert sent == ["Bearer a.b.c", None]
            assert page.complaints == []
