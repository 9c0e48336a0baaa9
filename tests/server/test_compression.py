"""Compression of answers: by the client's wish, above a size, and nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from keygraph_resolvers import OperationRequest
from keygraph_resolvers.read.meter import Memory
from keygraph_server.http.compression import CompressedFiles
from keygraph_server.http.graphql_http import EndpointOptions, GraphQLEndpoint
from keygraph_server.playground import PageSettings, playground_routes
from tests.asgi import client_of

ABOVE = 1000


class EchoingService:
    """Answers with the document, so that a test says how long an answer is."""

    memory = Memory(1_000_000)

    async def execute(self, request: OperationRequest) -> dict[str, Any]:
        return {"data": {"text": request.document}}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    compressed = [Middleware(CompressedFiles, ABOVE)]
    app = Starlette(
        routes=[
            Route("/graphql", GraphQLEndpoint(EndpointOptions(compress_above=ABOVE)), methods=["POST"]),
            Route("/uncompressed", GraphQLEndpoint(), methods=["POST"]),
            *playground_routes(PageSettings("Shop" * 500), compressed),
        ]
    )
    app.state.service = EchoingService()
    async with client_of(app) as client:
        del client.headers["accept-encoding"]
        yield client


async def answer(
    client: httpx.AsyncClient, size: int, accepted: str | None, path: str = "/graphql"
) -> tuple[httpx.Headers, bytes]:
    """The headers and the bytes that are sent for an answer of so many bytes."""
    text = "x" * (size - len('{"data":{"text":""}}'))
    headers = {} if accepted is None else {"accept-encoding": accepted}
    async with client.stream("POST", path, json={"query": text}, headers=headers) as response:
        sent = b"".join([part async for part in response.aiter_raw()])
    body = gzip.decompress(sent) if "content-encoding" in response.headers else sent
    assert json.loads(body) == {"data": {"text": text}}
    assert len(body) == size
    assert int(response.headers["content-length"]) == len(sent)
    return response.headers, sent


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("x-gzip", True),
        ("*", True),
        ("*;q=0.1", True),
        ("identity;q=0.2, gzip;q=0.7", True),
        (None, False),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("gzip;q=0.000", False),
        ("*;q=0", False),
        ("identity, gzip;q=0.5", False),
        ("gzip;q=much", False),
        ("gzipped", False),
    ],
)
async def test_the_client_says_whether(
    client: httpx.AsyncClient, accepted: str | None, is_compressed: bool
) -> None:
    headers, _ = await answer(client, 5000, accepted)
    assert headers.get("content-encoding") == ("gzip" if is_compressed else None)
    # A cache would give what one client takes to another that does not.
    assert headers["vary"] == "accept, accept-encoding"


async def test_several_fields_are_one(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/graphql",
        json={"query": "x" * 2000},
        headers=[("accept-encoding", "br"), ("accept-encoding", "gzip")],
    )
    assert response.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(("size", "is_compressed"), [(ABOVE, False), (ABOVE + 1, True)])
async def test_small_answers_stay_as_they_are(
    client: httpx.AsyncClient, size: int, is_compressed: bool
) -> None:
    headers, _ = await answer(client, size, "gzip")
    assert ("content-encoding" in headers) == is_compressed


async def test_a_large_answer_is_whole(client: httpx.AsyncClient) -> None:
    headers, sent = await answer(client, 3_000_000, "gzip")
    assert headers["content-encoding"] == "gzip"
    assert len(sent) < 30_000


async def test_it_can_be_turned_off(client: httpx.AsyncClient) -> None:
    headers, _ = await answer(client, 5000, "gzip", "/uncompressed")
    assert "content-encoding" not in headers


async def test_refusals_are_answers_too(client: httpx.AsyncClient) -> None:
    response = await client.post("/graphql", json=[], headers={"accept-encoding": "gzip"})
    assert response.status_code == 400
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "accept, accept-encoding"


@pytest.mark.parametrize("path", ["/", "/playground/page/playground.js"])
async def test_the_playground_is_compressed_for_who_takes_it(client: httpx.AsyncClient, path: str) -> None:
    plain = await client.get(path, headers={"accept-encoding": "gzip;q=0"})
    small = await client.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.text == plain.text
    assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"
