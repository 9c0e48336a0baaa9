"""GraphQL over HTTP: what is taken, what is refused, and how it is answered."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from keygraph_resolvers import Limits, OperationRequest
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.errors import NotAQuery
from keygraph_resolvers.read.meter import Memory
from keygraph_resolvers.schema.json_numbers import as_long_json
from keygraph_server.connections import BEGINS, LET_THROUGH
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http import graphql_http
from keygraph_server.http.graphql_http import EndpointOptions, GraphQLEndpoint
from keygraph_server.http.middleware import AroundEndpoints
from keygraph_server.http.origins import Origins
from keygraph_server.http.requests import parse_body, values_in
from tests import asgi
from tests.clocks import slowness

JSON = "application/json; charset=utf-8"
GRAPHQL_RESPONSE = "application/graphql-response+json; charset=utf-8"
LIMIT = 10_000

SYNTAX_ERROR = {"message": "Syntax Error", "extensions": {"code": "GRAPHQL_PARSE_FAILED"}}
FIELD_ERROR = {"message": "no such day", "path": ["day"], "extensions": {"code": "BAD_USER_INPUT"}}


def _down(*path: str) -> dict[str, Any]:
    return {"message": "no connection", "path": [*path], "extensions": {"code": "UNAVAILABLE"}}


class FakeService:
    """Answers by the document, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any] | None, str | None]] = []
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.memory = Memory(1_000_000)

    async def execute(self, request: OperationRequest) -> dict[str, Any]:
        if request.document.startswith("mutation") and request.only_queries:
            raise NotAQuery("mutation")
        self.asked.append((request.document, request.variables, request.operation_name))
        match request.document:
            case "{":
                return {"errors": [deepcopy(SYNTAX_ERROR)]}
            case "{ day }":
                return {"data": {"day": None}, "errors": [deepcopy(FIELD_ERROR)]}
            case "{ must }":
                return {"data": None, "errors": [deepcopy(FIELD_ERROR)]}
            case "{ masked }":
                return {"errors": [{"message": "wrong", "extensions": {"code": "INTERNAL", "id": "1"}}]}
            case "{ busy }":
                return {"errors": [{"message": "busy", "extensions": {"code": "UNAVAILABLE"}}]}
            case "{ down }":
                return {"data": {"a": None, "b": None}, "errors": [_down("a"), _down("b"), _down("b", "c")]}
            case "{ half }":
                return {"data": {"a": None, "b": {}}, "errors": [_down("a"), _down("b", "c")]}
            case "{ absent }":
                return {"data": {"a": None, "b": None}, "errors": [_down("a")]}
            case "{ other }":
                return {"data": {"a": None, "day": None}, "errors": [_down("a"), deepcopy(FIELD_ERROR)]}
            case "{ all }":
                return {"data": None, "errors": [_down("a", "b")]}
            case "{ long }":
                return {"data": {"long": 10**37 + 1, "name": "Zoë"}}
            case "{ broken }":
                raise RuntimeError("the password is hunter2")
            case "{ slow }":
                self.started.set()
                try:
                    await asyncio.sleep(60)
                finally:
                    self.cancelled.set()
        return {"data": {"name": "Zoë"}}


@pytest.fixture
def service() -> FakeService:
    return FakeService()


def app_of(endpoint: GraphQLEndpoint, service: FakeService) -> Starlette:
    app = Starlette(
        routes=[Route("/graphql", endpoint, methods=["GET", "POST"])],
        middleware=[Middleware(AroundEndpoints, Origins.of("none"), LIMIT)],
    )
    app.state.service = service
    return app


@asynccontextmanager
async def client_of(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with asgi.client_of(app) as client:
        # What httpx sends of itself is taken away, so that each test says what it sends.
        del client.headers["accept"]
        yield client


@pytest.fixture
def app(service: FakeService) -> Starlette:
    return app_of(GraphQLEndpoint(), service)


@pytest.fixture
async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def post(client: httpx.AsyncClient, body: object, **headers: str) -> httpx.Response:
    sent = {"content-type": "application/json"} | {
        name.replace("_", "-"): text for name, text in headers.items()
    }
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post("/graphql", content=content, headers=sent)


def message(response: httpx.Response) -> str:
    content = response.json()
    assert list(content) == ["errors"]
    [error] = content["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "requestId": response.headers["x-request-id"]}
    text: str = error["message"]
    return text


class TestRequests:
    async def test_all_parameters_reach_the_service(
        self, client: httpx.AsyncClient, service: FakeService
    ) -> None:
        body = {
            "query": "query A { name }",
            "variables": {"a": [1, None]},
            "operationName": "A",
            "extensions": {"x": 1},
        }
        response = await post(client, body)
        assert response.status_code == 200
        assert service.asked == [("query A { name }", {"a": [1, None]}, "A")]

    async def test_parameters_may_be_null(self, client: httpx.AsyncClient, service: FakeService) -> None:
        body = {"query": "{ name }", "variables": None, "operationName": None, "extensions": None}
        assert (await post(client, body)).json() == {"data": {"name": "Zoë"}}
        assert service.asked == [("{ name }", None, None)]

    def test_a_large_body_is_read_at_once(self) -> None:
        body = orjson.dumps({"query": "{ day }", "variables": {"text": ("1" * 18 + " ") * 52_000}})

        def seconds() -> float:
            began = time.process_time()
            parse_body(body)
            return (time.process_time() - began) / slowness()

        assert min(seconds() for _ in range(5)) < 0.01

    @pytest.mark.parametrize(
        "values",
        [
            b"[]," * 330_000,
            b"{}," * 330_000,
            b'"",' * 330_000,
            b"1," * 490_000,
            (b"[" * 999 + b"]" * 999 + b",") * 490,
        ],
        ids=["lists", "objects", "texts", "numbers", "nested lists"],
    )
    def test_a_body_of_many_small_values_is_not_parsed(self, values: bytes) -> None:
        body, codes = b'{"query": "{ day }", "variables": {"a": [' + values + b"0]}}", set()

        def seconds() -> float:
            began = time.process_time()
            with pytest.raises(RequestRefusedError) as refused:
                parse_body(body)
            codes.add(refused.value.code)
            return (time.process_time() - began) / slowness()

        assert min(seconds() for _ in range(5)) < 0.02
        assert codes == {"DOCUMENT_LIMIT"}

    @given(
        st.recursive(
            st.none() | st.text('a,"\\[{'), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
    def test_values_are_counted_as_they_are_parsed(self, content: Any) -> None:
        def values(value: Any) -> int:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
            return 0 if inner is None else 1 + max(0, len(inner) - 1) + sum(map(values, inner))

        assert values_in(orjson.dumps(content), 1_000) == values(content)

    def test_a_large_body_of_text_is_taken(self) -> None:
        variables = {"text": 'a, "[{\\' * 50_000, "all": [[]] * 5_000}
        assert parse_body(orjson.dumps({"query": "{ day }", "variables": variables})).variables == variables

    @pytest.mark.parametrize("number", [2**63 - 1, 2**64, -(2**64), 10**37 + 1])
    async def test_long_integers_keep_their_digits(
        self, client: httpx.AsyncClient, service: FakeService, number: int
    ) -> None:
        await post(client, {"query": "{ name }", "variables": {"n": number, "f": 1.5}})
        assert service.asked == [("{ name }", {"n": number, "f": 1.5}, None)]

    @pytest.mark.parametrize(
        "content_type",
        [
            "application/json",
            "application/json; charset=utf-8",
            'APPLICATION/JSON;charset="UTF-8"',
            "application/json;charset=utf8",
        ],
    )
    async def test_json_in_utf_8_is_taken(self, client: httpx.AsyncClient, content_type: str) -> None:
        response = await post(client, {"query": "{ name }"}, content_type=content_type)
        assert response.status_code == 200

    @pytest.mark.parametrize(
        ("content_type", "expected"),
        [
            ("text/plain", "the Content-Type of a request must be application/json"),
            ("application/x-www-form-urlencoded", "the Content-Type of a request must be application/json"),
            ("", "the Content-Type of a request must be application/json"),
            ("application/json; charset=latin-1", "the charset of a request must be utf-8"),
        ],
    )
    async def test_anything_else_is_refused(
        self, client: httpx.AsyncClient, service: FakeService, content_type: str, expected: str
    ) -> None:
        response = await post(client, {"query": "{ name }"}, content_type=content_type)
        assert response.status_code == 415
        assert message(response) == expected
        assert service.asked == []

    async def test_a_packed_body_is_refused(self, client: httpx.AsyncClient) -> None:
        response = await post(client, {"query": "{ name }"}, content_encoding="gzip")
        assert response.status_code == 415
        assert message(response) == "requests with a Content-Encoding are not supported"

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            (b"", "the body is not valid JSON: Input is a zero-length, empty document (character 0)"),
            (b'{"query": ', "the body is not valid JSON: unexpected end of data (character 10)"),
            (b'{"query": "\xff"}', "the body is not valid JSON: its text is not UTF-8"),
            (
                b'{"query": "{ \\ud800 }"}',
                "the body is not valid JSON: \\ud800 to \\udfff are halves of characters and come in pairs (character 13)",
            ),
            (
                b'{"query": "{ name }", "variables": {"a": NaN}}',
                "the body is not valid JSON: unexpected character, expected a JSON value (character 41)",
            ),
            (b"[" * 9000, "the body is not valid JSON: depth limit exceeded (character 1025)"),
            (
                b'{"query": "{ name }", "variables": {"a": ' + b"1" * 5000 + b"}}",
                "the body is not valid JSON: number is infinity when parsed as double (character 41)",
            ),
            (b"[" * 255 + b"1" * 30 + b"]" * 255, "the body is nested too deeply"),
            (b'"{ name }"', "the body must be a JSON object"),
            ([{"query": "{ name }"}], "batches are not supported: send one request at a time"),
            ({}, "query must be a string that contains a GraphQL document"),
            ({"query": None}, "query must be a string that contains a GraphQL document"),
            ({"query": {"a": 1}}, "query must be a string that contains a GraphQL document"),
            ({"query": "{ name }", "variables": "{}"}, "variables must be an object or null"),
            ({"query": "{ name }", "variables": []}, "variables must be an object or null"),
            ({"query": "{ name }", "operationName": 1}, "operationName must be a string or null"),
            ({"query": "{ name }", "extensions": [1]}, "extensions must be an object or null"),
        ],
    )
    @pytest.mark.parametrize("accept", ["application/json", "application/graphql-response+json"])
    async def test_what_is_no_graphql_request_is_400(
        self, client: httpx.AsyncClient, service: FakeService, body: object, expected: str, accept: str
    ) -> None:
        response = await post(client, body, accept=accept)
        assert response.status_code == 400
        assert response.headers["content-type"] == f"{accept}; charset=utf-8"
        assert message(response) == expected
        assert service.asked == []

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS"])
    async def test_other_methods_are_not_allowed(self, client: httpx.AsyncClient, method: str) -> None:
        response = await client.request(method, "/graphql")
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


class TestGet:
    async def test_all_parameters_reach_the_service(
        self, client: httpx.AsyncClient, service: FakeService
    ) -> None:
        params = {
            "query": "query Ä { name }",
            "variables": '{"a": [1, null], "n": 18446744073709551616}',
            "operationName": "Ä",
            "extensions": "{}",
        }
        response = await client.get("/graphql", params=params)
        assert response.status_code == 200
        assert response.json() == {"data": {"name": "Zoë"}}
        assert service.asked == [("query Ä { name }", {"a": [1, None], "n": 2**64}, "Ä")]

    @pytest.mark.parametrize("accept", ["application/json", "application/graphql-response+json"])
    async def test_it_may_only_be_a_query(
        self, client: httpx.AsyncClient, service: FakeService, accept: str
    ) -> None:
        response = await client.get(
            "/graphql", params={"query": "mutation { name }"}, headers={"accept": accept}
        )
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert message(response) == "a mutation needs a POST request"

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("", "query must be a string that contains a GraphQL document"),
            ("?query=", "query must be a string that contains a GraphQL document"),
            ("?query={name}&query={name}", "the URL has query more than once"),
            ("?query=%ff", "the URL is not valid: its parameters must be UTF-8"),
            (
                "?" + "&".join(f"p{n}=1" for n in range(60)),
                "the URL is not valid: its parameters must be UTF-8",
            ),
            (
                "?query={name}&variables={",
                "variables are not valid JSON: unexpected end of data (character 1)",
            ),
            ("?query={name}&variables=[]", "variables must be an object or null"),
            ("?query={name}&extensions=1", "extensions must be an object or null"),
        ],
    )
    async def test_what_is_no_graphql_request_is_400(
        self, client: httpx.AsyncClient, service: FakeService, url: str, expected: str
    ) -> None:
        response = await client.get(f"/graphql{url}")
        assert response.status_code == 400
        assert message(response) == expected
        assert service.asked == []

    async def test_answers_without_errors_are_kept_as_the_setting_says(self, service: FakeService) -> None:
        app = app_of(GraphQLEndpoint(EndpointOptions(cache_control="public, max-age=60")), service)
        async with client_of(app) as client:
            kept = await client.get("/graphql", params={"query": "{ name }"})
            assert kept.headers["cache-control"] == "public, max-age=60"
            assert kept.headers["vary"] == "accept, accept-encoding, origin"
            failed = await client.get("/graphql", params={"query": "{ day }"})
            posted = await post(client, {"query": "{ name }"})
            refused = await client.get("/graphql")
        options = EndpointOptions(cache_control="public, max-age=60", context_of=lambda request, viewer: {})
        async with client_of(app_of(GraphQLEndpoint(options), service)) as client:
            personal = await client.get("/graphql", params={"query": "{ name }"})
        for each in (failed, posted, refused, personal):
            assert each.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize(
        "headers",
        [
            {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
            {"accept": "image/avif,image/webp,*/*;q=0.8"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
            {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "accept": "application/json"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "origin": "https://evil.example"},
            {"origin": "https://evil.example", "accept": "application/json"},
            {"origin": "null", "accept": "application/json"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
            {"sec-fetch-site": "none", "origin": "null"},
            {"sec-fetch-site": "cross-site", "accept": "application/json"},
            {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
            {"sec-fetch-site": "cross-site", "content-type": "text/plain; application/json"},
            {"sec-fetch-site": "cross-site", "authorization": "Basic YW5uOnNlY3JldA=="},
            {"sec-fetch-site": "cross-site", "authorization": "Negotiate YW5u"},
            {"referer": "https://evil.example/page"},
            {"referer": "http://keygraph.evil.example/", "accept": "application/json"},
            {"referer": "https://evil.example", "sec-fetch-site": "same-origin"},
        ],
    )
    async def test_what_a_foreign_page_can_send_is_refused(
        self, client: httpx.AsyncClient, service: FakeService, headers: dict[str, str]
    ) -> None:
        response = await client.get("/graphql", params={"query": "{ name }"}, headers=headers)
        assert response.status_code == 403
        assert "Apollo-Require-Preflight" in message(response)
        assert service.asked == []

    async def test_a_browser_says_where_a_post_comes_from(self, service: FakeService) -> None:
        origins = Origins.of("https://shop.example.com, chrome-extension://abc")
        async with client_of(app_of(GraphQLEndpoint(EndpointOptions(origins=origins)), service)) as client:
            for site, refused, allowed in (
                (
                    "cross-site",
                    "- null https://evil.example chrome-extension://abcd http://keygraph",
                    "https://shop.example.com chrome-extension://abc",
                ),
                ("same-site", "- https://evil.example.com http://keygraph", "https://shop.example.com"),
                ("odd", "- https://evil.example", ""),
                (
                    "same-origin",
                    "null https://api.example.com",
                    "- https://keygraph https://shop.example.com",
                ),
                ("none", "null https://evil.example chrome-extension://abcd", "- http://keygraph"),
                (
                    "-",
                    "null file:// keygraph ftp://keygraph https://evil.example HTTP://evil.example http://keygraph.evil.example",
                    "-",
                ),
                (
                    "-",
                    "http://keygraph:8000 https://shop.example.com,https://evil.example",
                    "http://keygraph",
                ),
                # A proxy that ends TLS, and others.
                ("-", "", "https://keygraph:443 https://shop.example.com chrome-extension://abc"),
            ):
                for origin in (refused + " " + allowed).split():
                    fields = {"sec-fetch-site": site, "origin": origin}
                    headers = {name: value for name, value in fields.items() if value != "-"}
                    response = await client.post("/graphql", json={"query": "{ name }"}, headers=headers)
                    expected = 403 if origin in refused.split() else 200
                    assert (site, origin, response.status_code) == (site, origin, expected)
            # A server that knows that it is reached by HTTPS, from a proxy that it trusts.
            for origin, expected in (("http://keygraph", 403), ("https://keygraph", 200)):
                url = "https://keygraph/graphql"
                response = await client.post(url, json={"query": "{ name }"}, headers={"origin": origin})
                assert (origin, response.status_code) == (origin, expected)

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"accept": "*/*"},
            {"accept": "application/graphql-response+json, application/json;q=0.9"},
            {"accept": "*/*", "sec-fetch-mode": "cors"},
            {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
            {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "accept": "text/html,*/*;q=0.8"},
            {"origin": "https://evil.example", "apollo-require-preflight": "true"},
            {"origin": "https://evil.example", "content-type": "Application/JSON; charset=utf-8"},
            {"origin": "https://evil.example", "authorization": "bearer ey"},
            {"origin": "https://shop.example.com", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
            {"referer": "http://keygraph/page?id=1", "accept": "*/*"},
            {"referer": "https://shop.example.com/", "accept": "application/json"},
            {"referer": "https://evil.example/", "apollo-require-preflight": "true"},
        ],
    )
    async def test_all_else_is_answered(self, service: FakeService, headers: dict[str, str]) -> None:
        app = app_of(
            GraphQLEndpoint(EndpointOptions(origins=Origins.of("https://shop.example.com"))), service
        )
        async with client_of(app) as client:
            response = await client.get("/graphql", params={"query": "{ name }"}, headers=headers)
        assert response.status_code == 200


async def test_requests_of_one_client_begin_behind_each_other() -> None:
    """Also those that are no operations, such as health checks and unknown paths."""
    begun = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["client"][0])
        ends = time.perf_counter() + 0.001
        while time.perf_counter() < ends:
            pass

    around = AroundEndpoints(app, Origins.of("none"), LIMIT)
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/healthz", "headers": []}
    clients = [("127.0.0.2", 1)] * 200 + [("127.0.0.3", 1)]
    await asyncio.gather(*(around({**scope, "client": client}, empty, empty) for client in clients))
    assert len(begun) == 201
    assert begun.index("127.0.0.3") < 60


async def test_a_request_that_was_read_after_a_wait_begins_without_another() -> None:
    """It does so at once, and behind a proxy it waits: others of the proxy's clients were read with it."""
    begun = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["client"][0])

    around, shared = AroundEndpoints(app, Origins.of("none"), LIMIT), rounds()
    states = [
        {LET_THROUGH: (shared.number, "127.0.0.1")},
        {},
        {LET_THROUGH: (shared.number - 2, "127.0.0.1")},
    ]
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/healthz", "headers": []}
    scopes = [{**scope, "client": ("127.0.0.1", 1), "state": state} for state in states]
    scopes.append({**scopes[0], "client": ("10.0.0.1", 1)})
    requests = asyncio.gather(*(around(each, empty, empty) for each in scopes))
    shared.count(0.0)
    shared.ends = 1e-9  # this round is over
    await asyncio.sleep(0)
    assert [BEGINS in each for each in scopes] == [False, True, True, True]
    assert begun == ["127.0.0.1"]
    await requests


async def test_a_request_whose_client_leaves_does_not_wait_to_begin() -> None:
    begun = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun
        begun += 1

    around = AroundEndpoints(app, Origins.of("none"), LIMIT)
    scopes: list[dict[str, Any]] = [
        {"type": "http", "method": "GET", "path": "/healthz", "headers": []} for _ in range(200)
    ]
    requests = asyncio.gather(*(around(scope, empty, empty) for scope in scopes))
    rounds().count(0.0)
    rounds().ends = 1e-9  # this round is over
    await asyncio.sleep(0)
    waiting = [scope[BEGINS] for scope in scopes if not scope[BEGINS].done()]
    for turn in waiting:
        turn.set_result(False)
    await requests
    assert begun == len(scopes) - len(waiting) < 20


async def test_integers_of_more_than_64_bits_are_written_beside_others(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[int]()

    def noted(value: object) -> bytes:
        threads.append(threading.get_ident())
        return as_long_json(value)

    monkeypatch.setattr(graphql_http, "as_long_json", noted)
    response = await post(client, {"query": "{ long }"})
    assert response.json() == {"data": {"long": 10**37 + 1, "name": "Zoë"}}
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


async def empty(*_: object) -> Any:
    raise AssertionError


class TestBodyLimit:
    async def test_a_body_of_the_limit_is_taken(self, client: httpx.AsyncClient) -> None:
        body = json.dumps({"query": "{ name }"}).encode().ljust(LIMIT)
        assert (await post(client, body)).status_code == 200

    async def test_a_larger_one_is_413(self, client: httpx.AsyncClient, service: FakeService) -> None:
        body = json.dumps({"query": "{ name }"}).encode().ljust(LIMIT + 1)
        response = await post(client, body)
        assert response.status_code == 413
        assert message(response) == "the body of a request is limited to 10,000 bytes"
        assert service.asked == []

    async def test_a_larger_one_in_chunks_is_not_read_to_its_end(self, client: httpx.AsyncClient) -> None:
        read = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal read
            while read < 100_000:
                read += 400
                yield b" " * 400

        response = await client.post(
            "/graphql", content=endless(), headers={"content-type": "application/json"}
        )
        assert response.status_code == 413
        assert read == 10_400

    @pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413)])
    async def test_a_length_that_is_said_twice_is_not_believed(
        self, client: httpx.AsyncClient, size: int, status: int
    ) -> None:
        fields = [("content-type", "application/json"), ("content-length", "5"), ("content-length", "7")]
        body = json.dumps({"query": "{ name }"}).encode().ljust(size)
        request = client.build_request("POST", "/graphql", content=body, headers=fields)
        request.headers = httpx.Headers([("host", "test"), *fields])
        response = await client.send(request)
        assert response.status_code == status

    @pytest.mark.parametrize("is_in_chunks", [False, True])
    async def test_other_endpoints_are_given_none_that_is_larger(self, is_in_chunks: bool) -> None:
        async def count(request: Request) -> Response:
            return PlainTextResponse(str(len(await request.body())))

        async def in_chunks(size: int) -> AsyncIterator[bytes]:
            yield b" " * (size - 1)
            yield b" "

        guarded = Middleware(AroundEndpoints, Origins.of("none"), LIMIT)
        app = Starlette(routes=[Route("/count", count, methods=["POST"])], middleware=[guarded])
        async with client_of(app) as client:
            for size, status in ((LIMIT, 200), (LIMIT + 1, 413)):
                content = in_chunks(size) if is_in_chunks else b" " * size
                response = await client.post("/count", content=content)
                assert response.status_code == status
        assert message(response) == "the body of a request is limited to 10,000 bytes"


class TestAnswers:
    @pytest.mark.parametrize(
        ("accept", "expected"),
        [
            (None, JSON),
            ("*/*", JSON),
            ("application/*", JSON),
            ("application/graphql-response+json, */*", GRAPHQL_RESPONSE),
            ("application/json;q=0, */*", GRAPHQL_RESPONSE),
            ("application/json", JSON),
            ("application/graphql-response+json", GRAPHQL_RESPONSE),
            ("application/graphql-response+json; charset=utf-8, application/json;q=0.9", GRAPHQL_RESPONSE),
            ("application/json, application/graphql-response+json", GRAPHQL_RESPONSE),
            ("application/graphql-response+json;q=0.5, application/json", JSON),
            ("application/graphql-response+json;q=0, */*", JSON),
            ("text/html, application/json;q=0.1", JSON),
        ],
    )
    async def test_the_media_type_is_what_the_client_accepts(
        self, client: httpx.AsyncClient, accept: str | None, expected: str
    ) -> None:
        response = await post(client, {"query": "{ name }"}, **({"accept": accept} if accept else {}))
        assert response.status_code == 200
        assert response.headers["content-type"] == expected
        assert response.headers["vary"] == "accept, accept-encoding"
        assert response.content == '{"data":{"name":"Zoë"}}'.encode()

    @pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "application/json;q=x"])
    async def test_a_client_that_accepts_neither_is_told(
        self, client: httpx.AsyncClient, service: FakeService, accept: str
    ) -> None:
        response = await post(client, {"query": "{ name }"}, accept=accept)
        assert response.status_code == 406
        assert message(response) == "answers are application/graphql-response+json or application/json"
        assert service.asked == []

    @pytest.mark.parametrize("accept", ["text/event-stream", "multipart/mixed; subscriptionSpec=1.0"])
    async def test_a_client_that_waits_for_a_stream_reads_that_there_is_none(
        self, client: httpx.AsyncClient, accept: str
    ) -> None:
        response = await post(client, {"query": "subscription { name }"}, accept=accept)
        assert response.status_code == 406
        assert message(response) == (
            "answers are application/graphql-response+json or application/json, and nothing is streamed: "
            "there are no subscriptions until KEYGRAPH_LIVE is set"
        )

    async def test_a_websocket_is_refused_in_words(self, client: httpx.AsyncClient, app: Starlette) -> None:
        told = "this server has no WebSockets and no subscriptions until KEYGRAPH_LIVE is set: send HTTP POST"
        response = await client.get("/graphql", headers={"connection": "Upgrade", "upgrade": "WebSocket"})
        assert (response.status_code, message(response)) == (400, told)
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "websocket",
            "path": "/graphql",
            "headers": [],
            "subprotocols": ["graphql-transport-ws"],
        }
        await app(scope, receive, send)
        assert sent == [
            {"type": "websocket.accept", "subprotocol": "graphql-transport-ws"},
            {"type": "websocket.close", "code": 4400, "reason": told},
        ]
        assert len(told) <= 123  # RFC 6455, 5.5

    @pytest.mark.parametrize(
        ("query", "accept", "status"),
        [
            ("{", "application/graphql-response+json", 400),
            ("{", "application/json", 200),
            ("{ day }", "application/graphql-response+json", 200),
            ("{ day }", "application/json", 200),
            ("{ must }", "application/graphql-response+json", 200),
            ("{ masked }", "application/graphql-response+json", 500),
        ],
    )
    async def test_the_status_says_whether_the_operation_was_executed(
        self, client: httpx.AsyncClient, query: str, accept: str, status: int
    ) -> None:
        response = await post(client, {"query": query}, accept=accept)
        assert response.status_code == status

    async def test_long_integers_keep_their_digits(self, client: httpx.AsyncClient) -> None:
        response = await post(client, {"query": "{ long }"})
        assert response.status_code == 200
        assert response.content == '{"data":{"long":%d,"name":"Zoë"}}'.encode() % (10**37 + 1)

    async def test_errors_come_with_the_data(self, client: httpx.AsyncClient) -> None:
        response = await post(client, {"query": "{ day }"})
        [error] = response.json()["errors"]
        assert error["extensions"].pop("requestId") == response.headers["x-request-id"]
        assert response.json()["data"] == {"day": None}
        assert error == FIELD_ERROR

    @pytest.mark.parametrize("accept", [JSON, GRAPHQL_RESPONSE])
    async def test_a_server_with_too_much_to_do_says_so_to_proxies_too(
        self, client: httpx.AsyncClient, accept: str
    ) -> None:
        response = await post(client, {"query": "{ busy }"}, accept=accept.partition(";")[0])
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert response.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
        assert "retry-after" not in (await post(client, {"query": "{ day }"})).headers

    @pytest.mark.parametrize(
        ("document", "as_json"),
        [("{ down }", 503), ("{ all }", 503), ("{ half }", 200), ("{ absent }", 200), ("{ other }", 200), ("{ day }", 200)],
    )  # fmt: skip
    async def test_an_outage_of_all_root_fields_has_its_status(
        self, service: FakeService, document: str, as_json: int
    ) -> None:
        for outage_ok in (False, True):
            app = app_of(GraphQLEndpoint(EndpointOptions(outage_ok=outage_ok)), service)
            async with client_of(app) as client:
                response = await post(client, {"query": document}, accept="application/json")
                assert response.status_code == (200 if outage_ok else as_json)
                assert ("retry-after" in response.headers) == (response.status_code == 503)
                assert "data" in response.json()
                # The specification: what has data is a success.
                assert (await post(client, {"query": document}, accept=GRAPHQL_RESPONSE)).status_code == 200

    async def test_an_answer_at_the_limit_and_one_byte_beyond(self, service: FakeService) -> None:
        whole = len(b'{"data":{"name":"Zo\xc3\xab"}}')
        for limit in (whole, whole - 1):
            limits = Limits().model_copy(update={"answer_limit": limit})
            app = app_of(GraphQLEndpoint(EndpointOptions(limits=limits)), service)
            async with client_of(app) as client:
                response = await post(client, {"query": "{ name }"})
            assert response.status_code == 200
            if limit == whole:
                assert response.json() == {"data": {"name": "Zoë"}}
            else:
                assert response.json()["data"] is None
                [error] = response.json()["errors"]
                assert error["extensions"]["code"] == "ANSWER_LIMIT"
                assert f"larger than {limit} bytes" in error["message"]

    async def test_an_unexpected_error_shows_nothing_but_its_id(
        self, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.ERROR):
            response = await post(client, {"query": "{ broken }"})
        assert response.status_code == 500
        assert "hunter2" not in response.text
        assert "Error" not in response.text
        [error] = response.json()["errors"]
        assert error["extensions"]["code"] == "INTERNAL"
        assert error["extensions"]["id"] in error["message"]
        assert error["extensions"]["id"] in caplog.text
        assert "hunter2" in caplog.text


class TestDisconnects:
    async def test_a_client_that_goes_ends_its_operation(self, app: Starlette, service: FakeService) -> None:
        body = json.dumps({"query": "{ slow }"}).encode()
        messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await service.started.wait()
            return {"type": "http.disconnect"}

        async with asyncio.timeout(10):
            await app(scope(), receive, ignore)
        assert service.cancelled.is_set()

    async def test_a_client_that_goes_while_it_sends_is_no_error(
        self, app: Starlette, service: FakeService, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        await app(scope(), receive, ignore)
        assert service.asked == []
        assert caplog.records == []

    async def test_a_server_that_stops_ends_its_operations_and_says_so(
        self, app: Starlette, service: FakeService
    ) -> None:
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        body = json.dumps({"query": "{ slow }"}).encode()
        messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            return await asyncio.Future()

        request = asyncio.create_task(app(scope(), receive, send))
        await service.started.wait()
        request.cancel()
        await request
        assert service.cancelled.is_set()
        assert sent[0]["status"] == 503
        assert json.loads(sent[1]["body"])["errors"][0]["extensions"]["code"] == "UNAVAILABLE"


def scope() -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": "/graphql",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }


async def ignore(message: object) -> None:
    """Nobody is there to be sent anything."""
