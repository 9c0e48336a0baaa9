"""What is seen of operations: the request's id everywhere, and one line of the log for each."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from bench.house import exchange
from keygraph.errors import Throttled, Unavailable
from keygraph_server.app import create_app
from keygraph_server.logs import configure_logging
from keygraph_server.settings import Settings
from tests.asgi import running
from tests.server.library import library_settings, make_table, serving

QUERY = "query Shelf($isbn: ID!) { book(isbn: $isbn) { title } books { nodes { title } } }"


@pytest.fixture
async def settings(folder: Path) -> Settings:
    settings = library_settings(folder, log_format="json")
    await make_table(settings)
    return settings


async def ask(client: httpx.AsyncClient, query: str, **more: Any) -> httpx.Response:
    return await client.post("/graphql", json={"query": query, **more})


class TestRequestIds:
    async def test_it_is_in_the_header_the_errors_and_the_log(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
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
        async with serving(settings) as client:
            for path in ("/healthz", "/readyz", "/schema.graphql", "/nowhere"):
                assert len((await client.get(path)).headers["x-request-id"]) == 32

    @pytest.mark.parametrize("given", ["abc-1.2:3_4", "x" * 64])
    async def test_that_of_a_proxy_is_kept(self, settings: Settings, given: str) -> None:
        async with serving(settings) as client:
            response = await client.get("/healthz", headers={"x-request-id": given})
        assert response.headers["x-request-id"] == given

    async def test_of_two_none_is_kept(self, settings: Settings) -> None:
        async with serving(settings) as client:
            twice = [("x-request-id", "of-the-client"), ("x-request-id", "of-the-proxy")]
            response = await client.get("/healthz", headers=twice)
        assert len(response.headers["x-request-id"]) == 32

    @pytest.mark.parametrize("given", ["x" * 65, "", "a b", 'a"', "é"])
    async def test_a_long_or_strange_one_is_replaced(self, settings: Settings, given: str) -> None:
        async with serving(settings) as client:
            response = await client.get("/healthz", headers={"x-request-id": given.encode("latin-1")})
        assert len(response.headers["x-request-id"]) == 32
        assert response.headers["x-request-id"] != given

    async def test_an_unexpected_error_has_it_too(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
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
        async with serving(settings.model_copy(update={"log_variables": True})) as client:
            await ask(client, QUERY, variables={"isbn": "978-secret"})
        assert json.loads(capsys.readouterr().err)["variables"] == {"isbn": "978-secret"}

    async def test_no_line_is_written_where_that_is_set(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with serving(settings.model_copy(update={"log_operations": False})) as client:
            await ask(client, QUERY, variables={"isbn": "1"})
        assert capsys.readouterr().err == ""

    async def test_an_error_is_logged_by_its_code(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
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
        gone = settings.model_copy(update={"store": "http://127.0.0.1:1", "deadline": 0.2})
        async with running(create_app(gone)) as client:
            await ask(client, "{ books { totalCount } }")
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert (line["level"], line["codes"]) == ("warning", ["UNAVAILABLE"])

    async def test_a_report_that_fails_is_not_the_clients_concern(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("keygraph_server.telemetry.process.Telemetry._log_operation", fail)
        async with serving(settings) as client:
            response = await ask(client, "{ books { totalCount } }")
        assert response.json() == {"data": {"books": {"totalCount": 0}}}


@pytest.mark.long
async def test_an_outage_of_thousands_of_requests_is_few_lines(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = cycle((Unavailable, Throttled, RuntimeError))

    async def fail(request: object) -> None:
        raise next(failures)(f"failure {len(statuses)}")

    statuses: list[int] = []
    configure_logging(settings)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        monkeypatch.setattr(app.state.service._shared, "store", Mock(send=fail, table=app.state.store.table))
        body = json.dumps({"query": '{ book(isbn: "1") { title } }'}).encode()
        for _ in range(3_000):
            start, _ = await exchange(app, [{"type": "http.request", "body": body, "more_body": False}])
            statuses.append(start["status"])
    assert Counter(statuses) == {200: 2_000, 503: 1_000}
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {code for line in lines for code in line.get("codes", ())} == {
        "UNAVAILABLE", "THROTTLED", "INTERNAL",
    }  # fmt: skip
    assert 80 <= len(lines) <= 100
