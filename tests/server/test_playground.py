"""The playground's page, its pinned files, and GraphiQL in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
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
from keygraph_server.playground.assets import (
    ASSETS_FOLDER,
    Asset,
    AssetError,
    holds_all_assets,
    install_assets,
    read_manifest,
)
from keygraph_server.playground.examples import ExampleOperation
from keygraph_server.playground.page import CDN, LOCAL, render_page
from tests.server.chromium import EDITOR, needs_assets, needs_chromium, open_page
from tests.server.serving import served

QUERY = 'query Who {\n  user(userId: "USER001") {\n    name\n  }\n}\n'
EXAMPLE = ExampleOperation("Who", "query", "Who somebody is.", QUERY)
SHOP = PageSettings("Shop", "shop:graph", lambda: [EXAMPLE])


async def _answer_no_examples(request: Request) -> Response:
    return JSONResponse([])


NO_EXAMPLES = Route("/playground/examples", _answer_no_examples, methods=["POST"])
FOLDER = ASSETS_FOLDER.parent


def open_client(assets: Path | None = None) -> httpx.AsyncClient:
    app = Starlette(routes=playground_routes(SHOP, assets))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://playground")


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

    def loaded(self) -> list[tuple[str | None, str | None]]:
        """The address and the integrity of every script and stylesheet."""
        return [
            (attrs.get("src") or attrs.get("href"), attrs.get("integrity"))
            for tag, attrs in self.elements
            if (tag == "script" and "src" in attrs) or attrs.get("rel") == "stylesheet"
        ]

    def settings(self) -> dict[str, Any]:
        text = next(text for tag, text in self.texts if tag == "script" and text.strip())
        settings: dict[str, Any] = json.loads(text)
        return settings


class TestManifest:
    def test_every_file_is_pinned_by_version_and_hash(self) -> None:
        manifest = read_manifest()
        assert [f"{asset.package}/{asset.path}" for asset in manifest] == [
            "graphiql/graphiql.min.css",
            "@graphiql/plugin-explorer/dist/style.css",
            "react/umd/react.production.min.js",
            "react-dom/umd/react-dom.production.min.js",
            "graphiql/graphiql.min.js",
            "@graphiql/plugin-explorer/dist/index.umd.js",
            "cytoscape/dist/cytoscape.min.js",
        ]
        for asset in manifest:
            assert re.fullmatch(r"\d+\.\d+\.\d+", asset.version)
            name, _, digest = asset.integrity.partition("-")
            assert name == "sha384"
            assert len(base64.b64decode(digest, validate=True)) == 48

    def test_npm_installs_the_versions_that_it_names(self) -> None:
        wanted = json.loads((FOLDER / "package.json").read_text("utf-8"))["dependencies"]
        lock = json.loads((FOLDER / "package-lock.json").read_text("utf-8"))["packages"]
        versions = {asset.package: asset.version for asset in read_manifest()}
        assert versions == wanted
        assert versions == {name: lock[f"node_modules/{name}"]["version"] for name in versions}

    def test_the_lock_file_pins_hashes_and_no_addresses(self) -> None:
        packages = json.loads((FOLDER / "package-lock.json").read_text("utf-8"))["packages"]
        installed = {name: package for name, package in packages.items() if name}
        assert [name for name, package in installed.items() if "resolved" in package] == []
        assert [name for name, package in installed.items() if "integrity" not in package] == []


class Installation:
    """A node_modules folder of two small packages, the manifest that pins a file of each, and where they go."""

    def __init__(self, folder: Path) -> None:
        self.node_modules = folder / "node_modules"
        self.target = folder / "assets"
        self.manifest = [self.add("@a/style", "dist/style.css"), self.add("b", "b.js")]

    def add(self, package: str, path: str) -> Asset:
        file = self.node_modules / package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.encode())
        digest = base64.b64encode(hashlib.sha384(path.encode()).digest()).decode()
        return Asset(package, "1.0.0", path, f"sha384-{digest}")

    def found(self) -> list[str]:
        return sorted(str(path.relative_to(self.target)) for path in self.target.rglob("*") if path.is_file())


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


class TestInstall:
    def test_it_copies_the_pinned_files_and_no_others(self, installation: Installation) -> None:
        installation.add("b", "other.js")
        (installation.target / "b@0.9.0").mkdir(parents=True)
        (installation.target / "b@0.9.0/b.js").write_text("old")
        install_assets(installation.target, installation.manifest, installation.node_modules)
        assert installation.found() == ["@a/style@1.0.0/dist/style.css", "b@1.0.0/b.js"]
        assert holds_all_assets(installation.target, installation.manifest)

    def test_a_changed_file_is_refused_and_nothing_is_written(self, installation: Installation) -> None:
        (installation.node_modules / "b/b.js").write_text("tampered")
        with pytest.raises(AssetError, match=re.escape("b.js of b is not the file that manifest.json pins")):
            install_assets(installation.target, installation.manifest, installation.node_modules)
        assert not installation.target.exists()

    def test_a_missing_file_is_named(self, installation: Installation) -> None:
        (installation.node_modules / "b/b.js").unlink()
        with pytest.raises(AssetError, match=re.escape("b has no b.js")):
            install_assets(installation.target, installation.manifest, installation.node_modules)

    def test_without_npm_it_says_so(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        with pytest.raises(AssetError, match="npm was not found"):
            install_assets(installation.target, installation.manifest)

    def test_what_a_failing_npm_says_is_one_line(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        npm = installation.node_modules / "npm"
        npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\necho 'npm error more' >&2\nexit 1\n")
        npm.chmod(0o755)
        monkeypatch.setenv("PATH", str(npm.parent))
        with pytest.raises(AssetError, match=r"^npm failed: npm error code ENOTFOUND$"):
            install_assets(installation.target, installation.manifest)

    def test_a_changed_file_in_the_folder_is_noticed(self, installation: Installation) -> None:
        install_assets(installation.target, installation.manifest, installation.node_modules)
        (installation.target / "b@1.0.0/b.js").write_text("half")
        assert not holds_all_assets(installation.target, installation.manifest)


class TestPage:
    async def test_without_installed_files_it_names_the_cdn_by_the_same_hashes(self, tmp_path: Path) -> None:
        response = await open_client(tmp_path).get("/")
        manifest = read_manifest()
        assert PageReader(response.text).loaded() == [
            *((f"{CDN}/{asset.address}", asset.integrity) for asset in manifest[:2]),
            ("playground/page/playground.css", None),
            ("playground/page/begin.js", None),
            *((f"{CDN}/{asset.address}", asset.integrity) for asset in manifest[2:-1]),
            ("playground/page/playground.js", None),
        ]
        assert all(
            attrs["crossorigin"] == "anonymous"
            for _, attrs in PageReader(response.text).elements
            if "integrity" in attrs
        )
        policy = {
            rule.split()[0]: rule.split()[1:]
            for rule in response.headers["content-security-policy"].split(";")
        }
        allowed = {"'self'", *(f"{CDN}/{asset.address}" for asset in manifest)}
        assert {*policy["script-src"], *policy["style-src"]} == allowed
        assert not any(
            CDN in place for name in policy if name[:-4] not in ("script", "style") for place in policy[name]
        )

    def test_with_installed_files_it_names_no_other_origin(self) -> None:
        manifest = read_manifest()
        page = PageReader(render_page(SHOP, manifest, LOCAL))
        assert [address for address, integrity in page.loaded() if integrity] == [
            f"playground/npm/{asset.address}" for asset in manifest[:-1]
        ]
        assert page.settings()["libraries"] == {
            "cytoscape": {
                "src": f"playground/npm/{manifest[-1].address}",
                "integrity": manifest[-1].integrity,
            }
        }

    @needs_assets
    async def test_every_installed_file_that_it_names_isserved(self) -> None:
        client = open_client()
        response = await client.get("/")
        assert "https:" not in response.headers["content-security-policy"]
        loaded = PageReader(response.text).loaded()
        assert len(loaded) == 9
        loaded += [(each["src"], None) for each in PageReader(response.text).settings()["libraries"].values()]
        assert {address: (await client.get(f"/{address}")).status_code for address, _ in loaded} == {
            address: 200 for address, _ in loaded
        }

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
        plain = PageReader(render_page(SHOP, read_manifest(), LOCAL))
        told = PageSettings(text, text, lambda: [replace(EXAMPLE, description=text)])
        page = PageReader(render_page(told, read_manifest(), LOCAL))
        assert page.elements == plain.elements
        settings = page.settings()
        assert (settings["table"], settings["model"], settings["examples"][0]["description"]) == (
            text,
            text,
            text,
        )
        assert "".join(data for tag, data in page.texts if tag == "title").strip() == f"{text} · Keygraph"

    async def test_no_script_or_style_stands_in_the_page(self, tmp_path: Path) -> None:
        response = await open_client(tmp_path).get("/")
        assert [
            attrs
            for tag, attrs in PageReader(response.text).elements
            if tag == "style"
            or (tag == "script" and "src" not in attrs and attrs.get("type") != "application/json")
            or any(name == "style" or name.startswith("on") for name in attrs)
        ] == []
        assert "unsafe" not in response.headers["content-security-policy"]


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


TEXT = f"{EDITOR}.CodeMirror.getValue()"


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
            page.wait_for("document.querySelector('.result-window').innerText.includes('Alice of USER001')")

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
                page.wait_for(
                    "document.querySelector('.result-window').innerText.includes('Alice of USER001')"
                )
                while len(sent) == count:
                    time.sleep(0.01)
            assert sent == ["Bearer a.b.c", None]
            assert page.complaints == []
