"""The private names of aiobotocore that the client transport overrides."""

from __future__ import annotations

from threading import current_thread, main_thread
from typing import Any

import pytest
from aiobotocore.httpsession import AIOHTTPSession
from botocore.parsers import JSONParser

from keygraph.dynamo.store import Query
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.client import VerifyingSession
from keygraph.engines.dynamodb.engine import open_dynamodb
from tests.keygraph.faulty import FaultyDynamoDB


def test_a_host_is_checked_only_by_ours() -> None:
    """Where the first line fails, aiobotocore checks hosts by itself, and `VerifyingSession` can go."""
    assert not AIOHTTPSession()._get_ssl_context().check_hostname  # type: ignore[attr-defined]  # not in its stubs
    assert VerifyingSession()._get_ssl_context().check_hostname


async def test_a_large_answer_is_parsed_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiobotocore itself parses every answer in the event loop."""
    beside: list[bool] = []
    parse = JSONParser._handle_json_body  # type: ignore[attr-defined]  # not in its stubs

    def noted(parser: JSONParser, body: Any, shape: Any) -> Any:
        beside.append(current_thread() is not main_thread())
        return parse(parser, body, shape)

    monkeypatch.setattr(JSONParser, "_handle_json_body", noted)
    faulty, table = FaultyDynamoDB(), Table("Shop", partition_key="PK", sort_key="SK")
    async with faulty.running() as url, open_dynamodb(table, url, transport="aioboto3") as store:
        for size in (10, 100_000):
            faulty.items["A", "B"] = {"PK": {"S": "A"}, "SK": {"S": "B"}, "text": {"S": "x" * size}}
            assert (await store.send(Query("A"))).items == [{"PK": "A", "SK": "B", "text": "x" * size}]
    assert beside == [False, True]
