"""What is seen of operations: the request's id everywhere, and one line of the log for each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph_server.app import create_app
from keygraph_server.models import load_model
from keygraph_server.settings import Settings, read_settings
from tests.server.library import MODEL

QUERY = "query Shelf($isbn: ID!) { book(isbn: $isbn) { title } books { nodes { title } } }"


@pytest.fixture
async def settings(folder: Path) -> Settings:
    (folder / "library.py").write_text(MODEL)
    settings = read_settings(
        model="library",
        store="sqlite:library.sqlite",
        secret="a secret of enough characters for the tests",
        log_format="json",
    )
    async with open_store(settings.store_address, load_model("library").graph.table) as store:
        await store.send(CreateTable())
    return settings


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keygraph") as client:
            yield client


async def ask(client: httpx.AsyncClient, query: str, **more: Any) -> httpx.Response:
    return await client.post("/graphql", json={"query": query, **more})


class TestRequestIds:
    async def test_it_is_in_the_header_the_errors_and_the_log(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Somebody who is told of an error could not find it in the log."""
        async with serving(settings) as client:
            refused = await ask(client, "{ nothing { like this")
            partial = await ask(client, '{ __typename books(after: "no cursor") { totalCount } }')
            not_graphql = await client.post("/graphql", content=b"{}")
        ids = set()
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        for response, line in zip((refused, partial, not_graphql), lines, strict=True):
            request_id = response.headers["x-request-id"]
            [error] = response.json()["errors"]
            assert error["extensions"]["requestId"] == line["request_id"] == request_id
            ids.add(request_id)
        assert len(ids) == 3

    async def test_every_route_has_one(self, settings: Settings) -> None:
        """What a proxy logs of other requests could not be found again."""
        async with serving(settings) as client:
            for path in ("/healthz", "/readyz", "/schema.graphql", "/nowhere"):
                assert len((await client.get(path)).headers["x-request-id"]) == 32

    @pytest.mark.parametrize("given", ["abc-1.2:3_4", "x" * 64])
    async def test_that_of_a_proxy_is_kept(self, settings: Settings, given: str) -> None:
        """The logs of a proxy and of the server could not be brought together."""
        async with serving(settings) as client:
            response = await client.get("/healthz", headers={"x-request-id": given})
        assert response.headers["x-request-id"] == given

    async def test_of_two_none_is_kept(self, settings: Settings) -> None:
        """A client could put one of its own beside that of the proxy."""
        async with serving(settings) as client:
            twice = [("x-request-id", "of-the-client"), ("x-request-id", "of-the-proxy")]
            response = await client.get("/healthz", headers=twice)
        assert len(response.headers["x-request-id"]) == 32

    @pytest.mark.parametrize("given", ["x" * 65, "", "a b", 'a"', "é"])
    async def test_a_long_or_strange_one_is_replaced(self, settings: Settings, given: str) -> None:
        """A client could fill the log, or write into it what looks like something else."""
        async with serving(settings) as client:
            response = await client.get("/healthz", headers={"x-request-id": given.encode("latin-1")})
        assert len(response.headers["x-request-id"]) == 32
        assert response.headers["x-request-id"] != given

    async def test_an_unexpected_error_has_it_too(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of all errors those that are ours would be the hardest to find."""

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("the password is hunter2")

        monkeypatch.setattr("keygraph_resolvers.service.Service.execute", fail)
        async with serving(settings) as client:
            response = await ask(client, "{ books { totalCount } }")
        assert response.status_code == 500
        [error] = response.json()["errors"]
        assert error["extensions"]["requestId"] == response.headers["x-request-id"]
        # What other tests have configured may have written the error as text.
        lines = [text for text in capsys.readouterr().err.splitlines() if text.startswith("{")]
        line = json.loads(lines[-1])
        assert (line["level"], line["status"], line["codes"]) == ("error", 500, ["INTERNAL"])


class TestOperations:
    async def test_the_line_says_what_was_asked_and_what_it_cost(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """An expensive operation could not be found in the log, or not told from another of its name."""
        async with serving(settings) as client:
            await ask(client, QUERY, variables={"isbn": "978-secret"})
        [text] = capsys.readouterr().err.splitlines()
        assert "978-secret" not in text
        line = json.loads(text)
        assert 0 < line.pop("duration_ms") < 60_000
        del line["timestamp"], line["request_id"]
        assert line == {
            "event": "operation",
            "level": "info",
            "logger": "keygraph_server.operations",
            "name": "Shelf",
            "type": "query",
            "hash": sha256(QUERY.encode()).hexdigest(),
            "status": 200,
            "codes": [],
            "bound": 3.0,
            "read_units": 1.0,
            "write_units": 0.0,
            "requests": 2,
        }

    async def test_variables_are_logged_only_where_that_is_set(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """KEYGRAPH_LOG_VARIABLES would do nothing."""
        async with serving(settings.model_copy(update={"log_variables": True})) as client:
            await ask(client, QUERY, variables={"isbn": "978-secret"})
        assert json.loads(capsys.readouterr().err)["variables"] == {"isbn": "978-secret"}

    async def test_no_line_is_written_where_that_is_set(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """KEYGRAPH_LOG_OPERATIONS would do nothing."""
        async with serving(settings.model_copy(update={"log_operations": False})) as client:
            await ask(client, QUERY, variables={"isbn": "1"})
        assert capsys.readouterr().err == ""

    async def test_an_error_is_logged_by_its_code(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Errors could not be counted, or the log would repeat what a client has sent."""
        async with serving(settings) as client:
            await ask(client, '{ a: books(after: "x") { totalCount } b: books(after: "y") { totalCount } }')
            await ask(client, "{ hunter2 }", operationName="n" * 1000)
        wrong, refused = (json.loads(line) for line in capsys.readouterr().err.splitlines())
        assert (wrong["codes"], wrong["status"], wrong["type"]) == (["BAD_USER_INPUT"], 200, "query")
        assert refused["codes"] == ["GRAPHQL_VALIDATION_FAILED"]
        assert (refused["name"], refused["type"], refused["bound"]) == ("n" * 100 + "…", None, None)
        assert "hunter2" not in str(refused)

    async def test_a_store_that_is_gone_is_a_warning(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Operations that failed for an outage would look like all others."""
        gone = settings.model_copy(update={"store": "http://127.0.0.1:1", "deadline": 0.2})
        async with serving(gone) as client:
            await ask(client, "{ books { totalCount } }")
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert (line["level"], line["codes"]) == ("warning", ["UNAVAILABLE"])

    async def test_a_report_that_fails_is_not_the_clients_concern(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fault in what watches operations would cost clients their answers."""

        def fail(*_: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("keygraph_server.telemetry.log_lines.LogLines.report", fail)
        async with serving(settings) as client:
            response = await ask(client, "{ books { totalCount } }")
        assert response.json() == {"data": {"books": {"totalCount": 0}}}
