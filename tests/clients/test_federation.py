"""Apollo's gateway: composes Keygraph with another subgraph that extends its users, and asks both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import SECONDS, Serve, run

pytestmark = pytest.mark.timeout(SECONDS + 100)


def test_a_supergraph(application: Callable[[str], Path], serve: Serve) -> None:
    """The schema would not compose, entities would not be found, or be asked for one by one."""
    address = serve(KEYGRAPH_FEDERATION="true").address()
    members, both = json.loads(run(application("federation"), "node", "gateway.mjs", address))
    del members["extensions"]  # what the gateway says of the one that does not exist
    assert members == {
        "data": {
            "members": [
                {"points": 7, "name": "John Doe", "orders": {"nodes": [{"orderId": "ORD001"}]}},
                {"points": 3, "name": "TechStore Inc", "orders": {"nodes": []}},
                None,
            ]
        },
        "sent": {"points": 1, "keygraph": 1},
    }
    assert both == {
        "data": {"user": {"name": "John Doe", "points": 7}, "order": {"customer": {"points": 7}}},
        "sent": {"keygraph": 1, "points": 2},
    }
