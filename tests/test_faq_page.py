"""docs/faq.md: its recipe is a schema that works."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Table
from keygraph_examples import league
from keygraph_resolvers import Service

FAQ = Path(__file__).parents[1] / "docs/faq.md"


async def test_a_presigned_url_is_a_mutation(
    monkeypatch: pytest.MonkeyPatch, make_store: Callable[[Table], Awaitable[Store]]
) -> None:
    store = await make_store(league.graph.table)
    [source] = [part.split("```")[0] for part in FAQ.read_text("utf-8").split("```python\n")[1:]]
    boto3: Any = ModuleType("boto3")
    boto3.client = lambda name: SimpleNamespace(
        generate_presigned_url=lambda operation, Params, ExpiresIn: f"https://{name}/{Params['Key']}"  # noqa: N803
    )
    module = ModuleType("photos")
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    monkeypatch.setitem(sys.modules, "league", league)
    monkeypatch.setitem(sys.modules, "photos", module)
    exec(source, vars(module))
    service = Service(vars(module)["schema"], store, secret=b"a secret")
    answer = await service.execute('mutation { uploadUrl(playerId: "P7") }')
    assert answer == {"data": {"uploadUrl": "https://s3/players/P7"}}
