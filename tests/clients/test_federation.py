"""Apollo's gateway: composes Keygraph with another subgraph that extends its users, and asks both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.conftest import SECONDS, Serve, run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(SECONDS + 100)


def asked(application: Callable[[str], Path], address: str, *queries: str) -> list[dict[str, Any]]:
    """What the gateway answers to queries, and how many requests it sent for each."""
    answers: list[dict[str, Any]] = json.loads(
        run(application("federation"), "node", "gateway.mjs", address, *queries)
    )
    return answers


def test_a_supergraph(application: Callable[[str], Path], serve: Serve) -> None:
    members, both = asked(
        application,
        serve(KEYGRAPH_FEDERATION="true").address(),
        '{ members(ids: ["12345", "67890", "none"]) { points name orders(first: 1) { nodes { orderId } } } }',
        '{ user(userId: "12345") { name points } order(orderId: "ORD001") { customer { points } } }',
    )
    assert members["data"] is not None, members
    assert members["data"]["members"] == [
        {"points": 7, "name": "John Doe", "orders": {"nodes": [{"orderId": "ORD001"}]}},
        {"points": 3, "name": "TechStore Inc", "orders": {"nodes": []}},
        None,
    ]
    assert members["sent"] == {"points": 1, "keygraph": 1}
    assert both == {
        "data": {"user": {"name": "John Doe", "points": 7}, "order": {"customer": {"points": 7}}},
        "sent": {"keygraph": 1, "points": 2},
    }


def test_a_method_of_another_servers_field(application: Callable[[str], Path], serve: Serve) -> None:
    model = {
        "KEYGRAPH_MODEL": "tests.clients.federation.model:graph",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    address = serve(KEYGRAPH_FEDERATION="true", **model).address()
    write = 'mutation { createUser(input: {userId: "ann", name: "Ann"}) { user { name } } }'
    assert httpx.post(f"{address}/graphql", json={"query": write}).json()["data"]["createUser"]
    query = '{ user(userId: "ann") { greeting } members(ids: ["ann"]) { greeting } }'
    [answer] = asked(application, address, query)
    greeting = {"greeting": "Ann has 9 points"}
    assert answer["data"] == {"user": greeting, "members": [greeting]}
