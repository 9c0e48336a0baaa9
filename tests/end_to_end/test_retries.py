"""A mutation that is sent again, to another process, after the first one was killed before it could answer."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from keygraph.dynamo.store import DeleteTable
from keygraph.dynamo.table import Table
from keygraph.engines.open import open_store
from tests.conftest import ENGINES
from tests.end_to_end.processes import START_SECONDS, Start, wait_for

pytestmark = pytest.mark.long

MODEL = """
from __future__ import annotations

import asyncio
from pathlib import Path

from keygraph import ID, Graph, Table, field, new_id, node


@node("THING#{thing_id}")
class Thing:
    thing_id: ID = new_id()
    count: int = 0

    @field(needs=("thing_id",))
    async def slowly(self) -> str:
        Path("asked").touch()
        await asyncio.sleep(60)
        return self.thing_id


graph = Graph(Table("RetriedThings", partition_key="pk"), Thing)
"""
CREATE = "mutation { createThing(input: {count: 3}) { thing { thingId count %s } } }"


def send(address: str, key: str, extra: str = "") -> Any:
    headers = {"Idempotency-Key": f'"{key}"'}
    query = {"query": CREATE % extra}
    return httpx.post(f"{address}/graphql", json=query, headers=headers, timeout=START_SECONDS).json()


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_mutation_is_carried_out_once(
    start: Start, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "things.py").write_text(MODEL)
    store = "sqlite:things.db" if engine == "sqlite" else str(request.getfixturevalue(f"{engine}_endpoint"))
    words = ("--model", "things", "--store", store)
    assert start("table", "create", *words).ended() == 0
    killed = start("serve", *words, "--port", "0")
    address = killed.address()

    def ask_in_vain() -> None:
        with suppress(httpx.HTTPError):
            send(address, "k", "slowly")

    asking = threading.Thread(target=ask_in_vain)
    asking.start()
    wait_for(tmp_path / "asked")
    killed.stop(signal.SIGKILL)
    asking.join(START_SECONDS)

    one, other = start("serve", *words, "--port", "0"), start("serve", *words, "--port", "0")
    answers = [send(each.address(), "k") for each in (one, other, one)]
    created = answers[0]["data"]["createThing"]["thing"]
    assert created["count"] == 3
    assert answers[1:] == answers[:1] * 2
    assert send(other.address(), "l")["data"]["createThing"]["thing"]["thingId"] != created["thingId"]
    exported = start("export", "-", *words)
    assert exported.ended() == 0
    assert len(exported.lines["stdout"]) == 2
    if engine != "sqlite":
        async with open_store(store, Table("RetriedThings", partition_key="pk")) as opened:
            await opened.send(DeleteTable())
