"""A DynamoDB that hangs, and more requests than can be served: what can be answered is answered at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from keygraph.engines.dynamodb import gate
from keygraph_resolvers.engine import engine
from keygraph_server.app import create_app
from keygraph_server.http import graphql_http
from keygraph_server.http.requests import GraphQLRequest
from tests.asgi import client_of
from tests.keygraph.faulty import Body, FaultyDynamoDB
from tests.server.library import library_settings

READ = {"query": 'query @consistent { book(isbn: "1") { title } }'}  # not one that operations share


class WithoutItems(FaultyDynamoDB):
    """A table of any keys in which there is nothing."""

    def GetItem(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        return {}


@pytest.mark.long
async def test_thousands_on_a_dynamodb_that_hangs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "_OUTAGE_SECONDS", 0.5)
    # The clients are in the same event loop, and take most of its time: what may run is sent at once all the same.
    monkeypatch.setattr(engine, "TURN_SECONDS", 30.0)
    dynamodb = WithoutItems(failing=1.0, faults=("hung",))
    async with dynamodb.running() as url:
        limits = {"deadline": 4.0, "max_running": 50, "max_waiting": 100}
        app = create_app(library_settings(folder, store=url, **limits))
        async with app.router.lifespan_context(app):
            clients = [client_of(app, address=address) for address in ("192.0.2.1", "192.0.2.2")]
            async with clients[0] as client, clients[1] as another:
                statuses: Counter[tuple[int, str]] = Counter()
                answered: Counter[str] = Counter()
                refused: list[httpx.Response] = []
                all_refused = asyncio.Event()

                async def ask(address: str, client: httpx.AsyncClient) -> None:
                    response = await client.post("/graphql", json=READ)
                    answered[address] += response.status_code == 200
                    [error] = response.json()["errors"]
                    statuses[response.status_code, error["extensions"]["code"]] += 1
                    if response.status_code == 503:
                        assert response.headers["retry-after"]
                        refused.append(response)
                        if len(refused) == 850:
                            all_refused.set()

                # The text is known, so that all begin at once.
                app.state.service.explain(READ["query"])
                asking = [asyncio.create_task(ask("first", client)) for _ in range(600)]
                asking += [asyncio.create_task(ask("second", another)) for _ in range(400)]
                # Others that need nothing from DynamoDB are answered meanwhile.
                await all_refused.wait()
                assert not any(code == "TIMEOUT" for _, code in statuses)
                other = await client.post("/graphql", json={"query": "{ __typename }"})
                assert other.json() == {"data": {"__typename": "Query"}}
                assert statuses.total() == 850
                await asyncio.gather(*asking)
                assert statuses == {(503, "UNAVAILABLE"): 850, (200, "TIMEOUT"): 150}
                lines = capsys.readouterr().err.splitlines()
                assert 40 < len(lines) < 100
                assert all(any(code in line for line in lines) for code in ("UNAVAILABLE", "TIMEOUT"))
                # Whoever comes first and asks for more leaves half to the other.
                assert answered == {"first": 75, "second": 75}
                # The fifty that ran were sent; those that waited learned of the outage at once.
                assert dynamodb.connections <= 52
                ready = await client.get("/readyz")
                assert ready.status_code == 503
                assert "did not answer" in ready.json()["reason"]
                dynamodb.failing = 0.0
                until = time.monotonic() + 10
                while (await client.post("/graphql", json=READ)).json() != {"data": {"book": None}}:
                    assert time.monotonic() < until
                    await asyncio.sleep(0.1)


async def test_large_bodies_of_one_client_wait_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(library_settings(folder))
    answers, refused, all_read, others_read = (asyncio.Event() for _ in range(4))
    read: list[int] = []
    parse_body = graphql_http.parse_body

    def parse(body: bytes, *limits: int) -> GraphQLRequest:
        read.append(len(body))
        if len(read) == 19:
            all_read.set()
        if len(read) == 19 + 3:
            others_read.set()
        return parse_body(body, *limits)

    async def execute(*_: object, **__: object) -> dict[str, Any]:
        await answers.wait()
        return {"data": {}}

    monkeypatch.setattr(graphql_http, "parse_body", parse)
    async with app.router.lifespan_context(app):
        monkeypatch.setattr(app.state.service, "execute", execute)
        large = {**READ, "variables": {"text": "x" * 100_000}}

        async def ask(address: str, body: dict[str, Any]) -> int:
            async with client_of(app, address=address) as client:
                status = (await client.post("/graphql", json=body)).status_code
            if status == 503:
                refused.set()
            return status

        # 2 MB are read at the same time, and 16 MB wait.
        asked = [asyncio.create_task(ask("192.0.2.1", large)) for _ in range(19 + 159 + 1)]
        async with asyncio.timeout(10):
            await asyncio.gather(refused.wait(), all_read.wait())
        assert len(read) == 19
        others = [("192.0.2.2", large), ("192.0.2.2", READ), ("192.0.2.1", READ)]
        asked += [asyncio.create_task(ask(*each)) for each in others]
        await others_read.wait()
        asked.pop(100).cancel()  # one of those that wait
        answers.set()
        assert Counter(await asyncio.gather(*asked)) == {200: 19 + 158 + 3, 503: 1}
        assert len(read) == 19 + 158 + 3
