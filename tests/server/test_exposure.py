"""What pages, browsers and clients in production may see."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from keygraph_server.app import create_app
from keygraph_server.connections.refusals import NOT_HTTP
from keygraph_server.http.origins import Origins
from tests.asgi import running
from tests.server.library import book, library_settings, make_table, serving
from tests.server.test_app import ask

SECRET = "a secret of more than 32 characters"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type, authorization",
}
ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class TestOrigins:
    @pytest.mark.parametrize(
        ("text", "allowed", "others"),
        [
            ("none", [], ["http://localhost:3000", "null"]),
            ("*", ["https://shop.example.com", "null"], []),
            (
                "http://localhost:*, http://127.0.0.1:*",
                ["http://localhost", "http://localhost:5173", "http://127.0.0.1:3000"],
                [
                    "https://localhost:5173",
                    "http://localhost.evil.example",
                    "http://localhost:80@evil.example",
                ],
            ),
            (
                "https://*.example.com https://shop.example:8443",
                ["https://a.example.com", "https://a.b.example.com", "https://shop.example:8443"],
                [
                    "https://example.com",
                    "https://evilexample.com",
                    "https://shop.example",
                    "https://a.example-com",
                ],
            ),
        ],
    )
    def test_the_setting_lists_them(self, text: str, allowed: list[str], others: list[str]) -> None:
        origins = Origins.of(text)
        assert [each for each in [*allowed, *others] if origins.allow(each)] == allowed

    @pytest.mark.parametrize(
        "text", ["shop", "https://shop.example.com/", "https://*", "* https://a.example", ""]
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        if text:
            with pytest.raises(ValueError, match="is not an origin"):
                Origins.of(text)
        else:
            assert not Origins.of(text).allow("https://shop.example.com")


class TestCors:
    async def test_a_page_of_an_allowed_origin_may_ask(self, folder: Path) -> None:
        settings = library_settings(folder)
        origin = {"origin": "http://localhost:5173"}
        async with serving(settings) as client:
            preflight = await client.options("/graphql", headers=PREFLIGHT | origin)
            answer = await client.post("/graphql", json={"query": "{ __typename }"}, headers=origin)
            fetched = await client.get("/graphql", params={"query": "{ __typename }"}, headers=origin)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-headers"] == "content-type, authorization"
        assert preflight.headers["access-control-allow-methods"] == "GET, POST"
        for response in (preflight, answer, fetched):
            assert len(response.headers["x-request-id"]) == 32
            assert response.headers["access-control-allow-origin"] == "http://localhost:5173"
            assert "origin" in response.headers["vary"].lower()
        assert answer.headers["access-control-expose-headers"] == "retry-after, x-request-id"
        assert answer.json() == fetched.json() == {"data": {"__typename": "Query"}}

    @pytest.mark.parametrize("given", [{"env": "production"}, {"cors_origins": "https://shop.example.com"}])
    async def test_no_other_may(self, folder: Path, given: dict[str, str]) -> None:
        settings = library_settings(folder, **given)
        origin = {"origin": "http://localhost:5173"}
        async with serving(settings) as client:
            preflight = await client.options("/graphql", headers=PREFLIGHT | origin)
            answer = await client.post("/graphql", json={"query": "{ __typename }"}, headers=origin)
        assert (preflight.status_code, answer.status_code) == (400, 403)
        for response in (preflight, answer):
            assert "access-control-allow-origin" not in response.headers
            assert "origin" in response.headers["vary"].lower()


class TestSecureHeaders:
    @pytest.mark.parametrize(
        "path",
        ["/", "/graphql", "/healthz", "/readyz", "/schema.graphql", "/none", "/playground/page/icon.svg"],
    )
    async def test_every_answer_has_them(self, folder: Path, path: str) -> None:
        settings = library_settings(folder)
        async with serving(settings) as client:
            headers = (await client.get(path)).headers
        # A browser keeps a file, and asks whether it has changed.
        expected = {**ALWAYS, "cache-control": None} if "icon" in path else ALWAYS
        assert {name: headers.get(name) for name in ALWAYS} == expected
        assert len(headers.get_list("content-security-policy")) == 1
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert ("script-src" in headers["content-security-policy"]) is (path == "/")
        assert "strict-transport-security" not in headers

    def test_answers_of_a_connection_have_them_too(self) -> None:
        """The same, for a request that never reaches the application."""
        head, _, body = NOT_HTTP.response(https_only=False).partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert {f"{name}: {value}" for name, value in ALWAYS.items()} <= {*lines}
        assert any(line.startswith("content-security-policy: default-src 'none'") for line in lines)
        [error] = json.loads(body)["errors"]
        request_id = error["extensions"]["requestId"]
        assert len(request_id) == 32
        assert f"x-request-id: {request_id}" in lines
        assert request_id.encode() not in NOT_HTTP.response(https_only=False)

    async def test_in_production_browsers_stay_with_https(self, folder: Path) -> None:
        async with running(create_app(library_settings(folder, env="production"))) as client:
            headers = (await client.get("/healthz")).headers
        assert headers["strict-transport-security"] == "max-age=31536000"
        head, _, _ = NOT_HTTP.response(https_only=True).partition(b"\r\n\r\n")
        assert b"strict-transport-security: max-age=31536000" in head.split(b"\r\n")


class TestProduction:
    async def test_there_are_only_the_endpoints_that_it_needs(self, folder: Path) -> None:
        async with running(create_app(library_settings(folder, env="production"))) as client:
            statuses = {
                path: (await client.get(path)).status_code for path in ("/", "/schema.graphql", "/healthz")
            }
        assert statuses == {"/": 404, "/schema.graphql": 404, "/healthz": 200}

    @pytest.mark.parametrize("field", ["__schema { types { name } }", '__type(name: "Book") { name }'])
    async def test_introspection_is_refused(self, folder: Path, field: str) -> None:
        async with running(create_app(library_settings(folder, env="production"))) as client:
            content = await ask(client, f"{{ {field} }}")
            assert await ask(client, "{ __typename }") == {"data": {"__typename": "Query"}}
        assert "data" not in content
        assert content["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"

    @pytest.mark.parametrize(
        ("query", "variables", "shown"),
        [
            ("{ bok { title } }", {}, "Cannot query field 'bok' on type 'Query'."),
            ("{ books(frst: 1) { totalCount } }", {}, "Unknown argument 'frst' on field 'Query.books'."),
            ("{ books }", {}, "Field 'books' of type '…' must have a selection of subfields."),
            (
                "query ($where: BookWhere) { books(where: $where) { totalCount } }",
                {"where": {"isbnn": {}}},
                None,
            ),
        ],
    )
    async def test_names_are_not_suggested(
        self, folder: Path, query: str, variables: dict[str, Any], shown: str | None
    ) -> None:
        for env, is_suggested in (("development", True), ("production", False)):
            settings = library_settings(folder, env=env)
            async with running(create_app(settings)) as client:
                response = await client.post("/graphql", json={"query": query, "variables": variables})
            [error] = response.json()["errors"]
            assert ("Did you mean" in error["message"]) is is_suggested
            assert is_suggested or shown in (None, error["message"])

    @pytest.mark.parametrize(
        ("query", "variables"),
        [
            ("{ book { __typename } }", {}),
            ("mutation { createBook(input: {}) { __typename } }", {}),
            ("mutation { updateBook(input: {}) { __typename } }", {}),
            ("mutation($of: CreateBookInput!) { createBook(input: $of) { __typename } }", {"of": {}}),
            ("{ books { nodes } aggregate: books { nodes { nope } } }", {}),
            ("{ books(where: 1, after: {}) { nodes { id { id } ... on Node { id } } } }", {}),
            ("query($of: Int) { books(where: $of) { edges { nope } pageInfo } }", {}),
            ("query($of: BookWhere) { books(where: $of) { totalCount } }", {"of": {"title": 1, "of": {}}}),
        ],
    )
    async def test_required_names_are_not_told(
        self, folder: Path, query: str, variables: dict[str, Any]
    ) -> None:
        """Nor any other name of the schema that was not sent. Those of GraphQL itself are no secret."""
        sent = query + str(variables)
        for env in ("development", "production"):
            app = create_app(library_settings(folder, env=env))
            async with running(app) as client:
                response = await client.post("/graphql", json={"query": query, "variables": variables})
            types = re.findall(r"^(?:type|input|enum) (\w+)", app.state.service.schema.as_str(), re.MULTILINE)
            names = {each for each in (*types, "isbn", "title") if each not in sent} - {"Query", "Mutation"}
            errors = [(each["message"], each["extensions"].get("path")) for each in response.json()["errors"]]
            assert bool(names & {*re.findall(r"\w+", str(errors))}) is (env == "development")

    async def test_costs_are_not_told(self, folder: Path) -> None:
        settings = library_settings(folder, env="production", cost_limit=0.5)
        async with serving(settings, book("1", "Emma")) as client:
            response = await client.post(
                "/graphql", json={"query": "{ books { totalCount } }"}, headers={"x-keygraph-cost": "true"}
            )
        [error] = response.json()["errors"]
        assert error["extensions"].keys() == {"code", "requestId"}
        assert error["extensions"]["code"] == "COST_LIMIT"
        assert not any(character.isdigit() for character in error["message"])
        assert "extensions" not in response.json()

    @pytest.mark.parametrize(("env", "is_told"), [("development", True), ("production", False)])
    async def test_the_store_is_not_named(
        self, folder: Path, env: str, is_told: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings = library_settings(folder, env=env, auth="none").model_copy(
            update={"store": "http://127.0.0.1:9", "deadline": 0.2}
        )
        async with running(create_app(settings)) as client:
            ready = await client.get("/readyz")
            asked = await client.post("/graphql", json={"query": '{ book(isbn: "1") { title } }'})
        [error] = asked.json()["errors"]
        assert error["extensions"]["code"] in ("UNAVAILABLE", "TIMEOUT")
        for response in (ready, asked):
            assert ("127.0.0.1:9" in response.text) is is_told
        assert ready.status_code == 503
        assert "127.0.0.1:9" in caplog.text + ready.text

    async def test_a_busy_server_still_says_so(self, folder: Path) -> None:
        settings = library_settings(folder, env="production", max_running=1, max_waiting=0)
        await make_table(settings, book("1", "Emma"))
        app = create_app(settings)
        async with running(app) as client, app.state.service.admission.place():
            response = await client.post("/graphql", json={"query": '{ book(isbn: "1") { title } }'})
        [error] = response.json()["errors"]
        assert error["message"] == "the server has too much to do: try again in a second"
