"""The application: its routes on a real store, and how it starts and ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph.tables.bulk import write_batches
from keygraph_server.app import SERVED_FILE, app_from_environment, create_app, identity
from keygraph_server.cursor_secret import kept_secret, with_secret
from keygraph_server.errors import SettingsError
from keygraph_server.models import configured_model, load_model, printed
from keygraph_server.settings import Settings
from keygraph_server.stores import look_at_items
from tests.asgi import client_of, running
from tests.server.conftest import forget_models
from tests.server.library import MODEL, book, library_settings, make_table, serving

OWN_SCHEMA = """
from keygraph import Graph, many
from keygraph_resolvers import build_schema
from library import Book, by_kind, graph as books

graph = build_schema(Graph(books.table, Book, lists={"catalog": many(Book, index=by_kind)}))
"""


@pytest.fixture
def settings(folder: Path) -> Settings:
    (folder / "own.py").write_text(OWN_SCHEMA)
    return library_settings(folder)


async def ask(client: httpx.AsyncClient, query: str) -> dict[str, Any]:
    response = await client.post("/graphql", json={"query": query})
    content: dict[str, Any] = response.json()
    return content


@pytest.mark.parametrize("module", ["library", "own"])
async def test_the_table_and_its_indexes_have_other_names_by_settings(
    settings: Settings, module: str
) -> None:
    given = {"model": module, "indexes": "by_kind=books-by-kind"}
    named = settings.model_copy(update={"table": "Library-production", **given})
    model = configured_model(named)
    assert [index.name for index in model.graph.table.indexes] == ["books-by-kind"]
    assert (model.graph.table.name, model.graph.table.keys) == (
        "Library-production",
        load_model("library").graph.table.keys,
    )
    # Another application of the same process keeps its own.
    assert configured_model(settings).graph.table.name == "Library"
    async with open_store(settings.store_address, model.graph.table) as store:
        await store.send(CreateTable())
        await write_batches(store, [([book("1", "Emma")], None)], lambda mark: None)
    async with running(create_app(named)) as client:
        field = "catalog" if module == "own" else "books"
        query = f'{{ book(isbn: "1") {{ title }} {field} {{ nodes {{ title }} }} }}'
        emma = {"title": "Emma"}
        assert await ask(client, query) == {"data": {"book": emma, field: {"nodes": [emma]}}}
    async with running(create_app(settings)) as client:
        answer = await ask(client, '{ book(isbn: "1") { title } }')
        assert answer["errors"][0]["message"].startswith("there is no table Library")


class TestRoutes:
    @pytest.mark.parametrize("prefix", ["", "/api"])
    async def test_an_address_with_a_slash_behind_it_is_the_same(
        self, settings: Settings, prefix: str
    ) -> None:
        app = create_app(settings)
        async with running(app) as client:
            client = client_of(app, root_path=prefix)
            for path in ("/graphql", "/graphql/"):
                response = await client.post(f"{prefix}{path}", json={"query": "{ __typename }"})
                assert response.json() == {"data": {"__typename": "Query"}}
            for path, status in (("/", 200), ("/healthz/", 200), ("/readyz/", 503), ("/graphql//", 404)):
                assert (await client.get(f"{prefix}{path}")).status_code == status
            assert (await client.get(f"{prefix}/playground/page")).status_code == 404

    async def test_the_settings_limit_pages_and_bodies(self, settings: Settings) -> None:
        await make_table(settings, book("1", "Emma"))
        limited = settings.model_copy(update={"max_page_size": 5, "max_body_bytes": 100})
        async with running(create_app(limited)) as client:
            content = await ask(client, "{ books(first: 6) { totalCount } }")
            assert "BAD_USER_INPUT" in str(content["errors"])
            assert await ask(client, "{ books(first: 5) { totalCount } }") == {
                "data": {"books": {"totalCount": 1}}
            }
            response = await client.post("/graphql", json={"query": "{ books { totalCount } }".ljust(100)})
            assert response.status_code == 413

    async def test_the_read_budget_ends_a_page(self, settings: Settings) -> None:
        await make_table(settings, *(book(str(number), f"Volume {number:02}") for number in range(40)))
        query = '{ books(where: {isbn: {eq: "39"}}) { nodes { isbn } pageInfo { hasNextPage } } }'
        async with running(create_app(settings.model_copy(update={"read_budget": 10}))) as client:
            assert await ask(client, query) == {
                "data": {"books": {"nodes": [], "pageInfo": {"hasNextPage": True}}}
            }
        async with running(create_app(settings)) as client:
            assert await ask(client, query) == {
                "data": {"books": {"nodes": [{"isbn": "39"}], "pageInfo": {"hasNextPage": False}}}
            }

    async def test_a_count_that_costs_too_much_is_null_with_a_warning(self, settings: Settings) -> None:
        await make_table(
            settings, *({**book(str(n), f"Volume {n}"), "note": "x" * 300_000} for n in range(5))
        )
        query = "{ here: books { totalCount nodes { isbn } } }"
        async with running(create_app(settings.model_copy(update={"count_pages": 1}))) as client:
            response = await client.post("/graphql", json={"query": query})
            content = response.json()
        assert response.status_code == 200
        assert content["data"]["here"]["totalCount"] is None
        assert [node["isbn"] for node in content["data"]["here"]["nodes"]] == ["0", "1", "2", "3", "4"]
        [warning] = content["extensions"]["warnings"]
        assert (warning["code"], warning["path"]) == ("COUNT_LIMIT", ["here", "totalCount"])
        assert "more than 1 page of 1 MB" in warning["message"]
        assert "errors" not in content
        async with running(create_app(settings)) as client:
            assert (await ask(client, "{ books { totalCount } }")) == {"data": {"books": {"totalCount": 5}}}

    async def test_the_schema_is_served_as_it_is_printed(self, settings: Settings) -> None:
        async with running(create_app(settings)) as client:
            response = await client.get("/schema.graphql")
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert response.text == printed(load_model("library").schema)
        assert "type Book implements Node {" in response.text

    async def test_the_playground_has_the_queries_of_the_model(
        self, settings: Settings, folder: Path
    ) -> None:
        (folder / "library.graphql").write_text("query Everything { books { totalCount } }\n")
        async with running(create_app(settings)) as client:
            response = await client.get("/")
        assert response.status_code == 200
        assert "<title>Library" in response.text
        assert "query Everything { books { totalCount } }" in response.text

    async def test_the_playground_has_queries_also_where_none_are_written(self, settings: Settings) -> None:
        async with running(create_app(settings)) as client:
            assert "query Books {" in (await client.get("/")).text

    async def test_what_an_endpoint_hides_stays_hidden(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def fail(request: Request) -> Response:
            raise RuntimeError("the password is hunter2")

        app = create_app(settings)
        app.router.routes.append(Route("/fail", fail))
        with caplog.at_level(logging.ERROR):
            async with running(app) as client:
                response = await client.get("/fail")
        assert response.status_code == 500
        assert "hunter2" not in response.text
        assert response.json()["errors"][0]["extensions"]["id"] in caplog.text


class TestHealth:
    async def test_it_is_alive_without_its_table(self, settings: Settings) -> None:
        async with running(create_app(settings)) as client:
            response = await client.get("/healthz")
        assert (response.status_code, response.text) == (200, "ok")

    async def test_it_is_ready_with_its_table(self, settings: Settings) -> None:
        async with serving(settings) as client:
            response = await client.get("/readyz")
        assert (response.status_code, response.json()) == (200, {"ready": True})

    async def test_it_is_not_ready_without(self, settings: Settings) -> None:
        async with running(create_app(settings)) as client:
            response = await client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {"ready": False, "reason": "the store has no table Library"}

    async def test_it_is_not_ready_with_another_table(self, settings: Settings, folder: Path) -> None:
        await make_table(settings)
        (folder / "library.py").write_text(MODEL.replace('"by_kind", "kind"', '"by_type", "kind"'))
        forget_models(folder)
        async with running(create_app(settings)) as client:
            response = await client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {
            "ready": False,
            "reason": "the table Library: it lacks the index by_type",
        }

    async def test_it_is_not_ready_while_the_store_does_not_answer(self, settings: Settings) -> None:
        away = settings.model_copy(update={"store": "http://127.0.0.1:9", "deadline": 0.2})
        async with running(create_app(away)) as client:
            response = await client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["ready"] is False
        assert "127.0.0.1:9" in response.json()["reason"]


class TestLifespan:
    async def test_the_store_is_one_and_is_closed_at_the_end(self, settings: Settings) -> None:
        await make_table(settings)
        app = create_app(settings)
        async with running(app) as client:
            await ask(client, "{ books { totalCount } }")
            store = app.state.store
            assert app.state.service.store is store
        assert not list(Path.cwd().glob("*.sqlite-wal"))
        with pytest.raises(Exception, match="closed"):
            await store.send(CreateTable())


class TestSecret:
    async def test_cursors_outlive_a_restart(self, settings: Settings) -> None:
        await make_table(settings, book("1", "Emma"), book("2", "Ulysses"))
        unset = settings.model_copy(update={"secret": None})
        async with running(create_app(unset)) as client:
            content = await ask(client, "{ books(first: 1) { pageInfo { endCursor } } }")
        cursor = content["data"]["books"]["pageInfo"]["endCursor"]
        async with running(create_app(unset)) as client:
            query = f'{{ books(after: "{cursor}") {{ nodes {{ title }} }} }}'
            assert await ask(client, query) == {"data": {"books": {"nodes": [{"title": "Ulysses"}]}}}

    def test_it_is_kept_for_the_owner_alone(self, folder: Path) -> None:
        file = folder / "data/library.sqlite.secret"
        secret = kept_secret(file)
        assert len(bytes.fromhex(secret)) == 32
        assert file.stat().st_mode & 0o777 == 0o600
        assert kept_secret(file) == secret
        assert list(file.parent.iterdir()) == [file]

    def test_processes_that_make_it_at_once_agree(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = folder / "library.sqlite.secret"
        first = kept_secret(file)
        # The other process has looked before the file was there.
        monkeypatch.setattr(Path, "exists", lambda path: False)
        assert kept_secret(file) == first

    def test_a_short_one_is_refused(self, folder: Path) -> None:
        file = folder / "library.sqlite.secret"
        file.write_text("x" * 31)
        with pytest.raises(SettingsError, match="has a secret of fewer than 32 characters"):
            kept_secret(file)
        file.write_text("x" * 32)
        assert kept_secret(file) == "x" * 32

    def test_with_another_store_it_is_new_and_the_log_says_so(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        unset = settings.model_copy(update={"store": "aws", "secret": None})
        first, second = with_secret(unset).secret, with_secret(unset).secret
        assert isinstance(first, SecretStr)
        assert first != second
        assert len(caplog.records) == 2
        assert "KEYGRAPH_SECRET is not set: cursors become invalid at a restart" in caplog.text

    @pytest.mark.parametrize("store", ["aws", "http://127.0.0.1:8001"])
    def test_in_production_dynamodb_needs_one(self, settings: Settings, store: str) -> None:
        unset = settings.model_copy(update={"store": store, "secret": None, "env": "production"})
        with pytest.raises(SettingsError, match="KEYGRAPH_SECRET is not set: each process would refuse"):
            with_secret(unset)
        assert with_secret(unset.model_copy(update={"store": "sqlite:library.sqlite"})).secret is not None

    def test_one_that_is_given_is_used(self, settings: Settings, folder: Path) -> None:
        assert with_secret(settings) == settings
        assert not list(folder.glob("*.secret"))


class TestFactory:
    @pytest.mark.long
    async def test_a_worker_serves_what_the_environment_says(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await make_table(settings)
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        async with running(app_from_environment()) as client:
            assert (await client.get("/readyz")).json() == {"ready": True}

    async def test_a_worker_opens_only_the_file_of_the_others(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await make_table(settings)
        file = settings.sqlite_file
        assert file is not None
        for name, value in {**settings.environment(), SERVED_FILE: identity(file)}.items():
            monkeypatch.setenv(name, value)
        app_from_environment()
        file.rename(file.with_name("away.sqlite"))
        for _ in range(2):
            with pytest.raises(SystemExit):
                app_from_environment()
            assert (
                "is not the file that the server was started with" in capsys.readouterr().err.splitlines()[-1]
            )
            file.write_bytes(file.with_name("away.sqlite").read_bytes())

    def test_a_worker_that_cannot_start_says_why_in_a_line(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("KEYGRAPH_MODEL", "nope")
        with pytest.raises(SystemExit) as caught:
            app_from_environment()
        assert caught.value.code == 3
        [line] = capsys.readouterr().err.splitlines()
        assert "ERROR keygraph_server.app: there is no module nope" in line
        assert list(folder.iterdir()) == []


class TestFirstLook:
    @pytest.fixture
    def logged(self, settings: Settings, caplog: pytest.LogCaptureFixture) -> Callable[..., Any]:
        """What is logged of a table with these items: levels and messages."""
        caplog.set_level(logging.INFO, "keygraph_server")

        async def logged(*items: Item, **others: Any) -> list[tuple[str, str]]:
            await make_table(settings, *items)
            caplog.clear()
            await look_at_items(settings.model_copy(update=others), load_model("library").graph)
            own = (record for record in caplog.records if record.name == "keygraph_server.stores")
            return [(record.levelname, record.getMessage()) for record in own]

        return logged

    async def test_a_field_that_no_item_has_is_logged_once_by_type(self, logged: Any) -> None:
        renamed: list[Item] = [
            {("titel" if name == "title" else name): value for name, value in book(str(n), "Emma").items()}
            for n in range(3)
        ]
        assert await logged(*renamed) == [
            (
                "WARNING",
                "Book, in a sample of 3: no item has the field title; titel was probably meant, "
                "in which no field is stored.",
            )
        ]

    async def test_items_that_an_index_lacks_are_logged_once_by_type(self, logged: Any) -> None:
        unlisted = [
            {name: value for name, value in book(str(n), "Emma").items() if name != "kind"} for n in range(3)
        ]
        assert await logged(book("9", "Persuasion"), *unlisted) == [
            (
                "WARNING",
                "Book, in a sample of 4: the keys of 3 do not match the attributes (by_kind: the item is not in the "
                "index: it has no kind). `keygraph verify` finds all such items, and `keygraph verify --repair` "
                "lists how to fix them.",
            )
        ]

    async def test_right_items_are_not_logged(self, logged: Any) -> None:
        assert await logged(book("1", "Emma")) == []

    async def test_a_table_that_cannot_be_scanned_is_served(self, logged: Any) -> None:
        [(level, _)] = await logged(store="http://127.0.0.1:9", deadline=0.2)
        assert level == "INFO"
