"""A DynamoDB that hangs, and more requests than can be served: what can be answered is answered at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from keygraph.engines.dynamodb import gate
from keygraph_server.app import create_app
from keygraph_server.settings import read_settings
from tests.keygraph.faulty import Body, FaultyDynamoDB
from tests.server.library import MODEL

READ = {"query": '{ book(isbn: "1") { title } }'}


class WithoutItems(FaultyDynamoDB):
    """A table of any keys in which there is nothing."""

    def GetItem(self, body: Body) -> Body:  # noqa: N802  # the operation's name
        return {}


async def test_thousands_on_a_dynamodb_that_hangs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All would wait for their deadline, take memory meanwhile, and keep those waiting that need no DynamoDB."""
    monkeypatch.setattr(gate, "_OUTAGE_SECONDS", 0.5)
    (folder / "library.py").write_text(MODEL)
    dynamodb = WithoutItems(failing=1.0, faults=("hung",))
    async with dynamodb.running() as url:
        app = create_app(
            read_settings(
                model="library",
                store=url,
                secret="s3cret" * 6,
                deadline=2.0,
                max_running=50,
                max_waiting=100,
                log_operations=False,
            )
        )
        async with app.router.lifespan_context(app):
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://keygraph")
            async with client:
                statuses: Counter[tuple[int, str]] = Counter()
                refused: list[httpx.Response] = []
                all_refused = asyncio.Event()

                async def ask() -> None:
                    response = await client.post("/graphql", json=READ)
                    [error] = response.json()["errors"]
                    statuses[response.status_code, error["extensions"]["code"]] += 1
                    if response.status_code == 503:
                        assert response.headers["retry-after"]
                        refused.append(response)
                        if len(refused) == 850:
                            all_refused.set()

                # The text is known, so that all begin at once.
                app.state.service.explain(READ["query"])
                asking = [asyncio.create_task(ask()) for _ in range(1_000)]
                # Others that need nothing from DynamoDB are answered meanwhile.
                await all_refused.wait()
                assert not any(code == "TIMEOUT" for _, code in statuses)
                before = time.monotonic()
                other = await client.post("/graphql", json={"query": "{ __typename }"})
                assert other.json() == {"data": {"__typename": "Query"}}
                assert time.monotonic() - before < 0.5
                await asyncio.gather(*asking)
                assert statuses == {(503, "UNAVAILABLE"): 850, (200, "TIMEOUT"): 150}
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
