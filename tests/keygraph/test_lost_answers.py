"""An answer that is lost: whoever sends a transaction again under its token has it done once, however it was lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.actions import AddNumber, UpdateItem
from keygraph.dynamo.store import BatchGet, CreateTable, Store, Transaction
from keygraph.engines.open import open_store
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.errors import TokenReused
from keygraph.writing.requests import Change
from keygraph.writing.sending.writer import write
from tests.conftest import LOCAL, MakeStore
from tests.keygraph.faulty import FaultyProxy
from tests.keygraph.histories.asking import beginning, person
from tests.keygraph.histories.declared import graph

TOKENS = [f"token {number}" for number in range(60)]
KEY = ("counted", "counted")


def adding(token: str, amount: int = 1) -> Transaction:
    return Transaction((UpdateItem(KEY, (AddNumber(("times",), Decimal(amount)),)),), token)


async def counted(store: Store, key: tuple[str, str], name: str) -> Any:
    [item] = (await store.send(BatchGet((key,), consistent=True))).items
    assert item is not None
    return item[name]


@pytest.mark.parametrize("engine", [LOCAL])
@pytest.mark.parametrize("fault", ["cut after", "half", "late"])
async def test_an_add_is_done_once_though_connections_are_cut(
    make_store: MakeStore, engine: str, local_endpoint: str, fault: str
) -> None:
    store = await make_store(graph.table)
    await write(graph, store, beginning())
    proxy = FaultyProxy(local_endpoint, fault, 0.5, (fault,))
    async with proxy.running() as url, open_store(url, graph.table, deadline=60.0) as through:
        writer = partial(write, graph, through)
        add = Change(person, ("Ann",), {}, {"log": ["x"], "tags": {"a"}})
        await asyncio.gather(*(writer([add]) for _ in range(20)))
    assert proxy.happened[fault] > 5
    key = ("PERSON#Ann", "PERSON#Ann")
    assert (await counted(store, key, "log"), await counted(store, key, "times")) == (["x"] * 20, 21)


# --- Several processes ----------------------------------------------------------------------------------


def send_all(path: Path, tokens: Sequence[str], seed: int) -> None:
    """Sends a transaction under each token, in an order of its own."""

    async def sends() -> None:
        async with open_sqlite(path, graph.table, locked_seconds=60.0) as store:
            shuffled = random.Random(seed).sample(tokens, len(tokens))
            await asyncio.gather(*(store.send(adding(token)) for token in shuffled))

    asyncio.run(sends())


@pytest.mark.long
async def test_an_add_is_done_once_though_processes_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    async with open_sqlite(path, graph.table, locked_seconds=60.0) as store:
        await store.send(CreateTable())
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        for seed in range(6):
            process = context.Process(target=send_all, args=(path, TOKENS, seed), daemon=True)
            process.start()
            await asyncio.to_thread(time.sleep, 0.02 * seed)
            process.kill()
            process.join()
        others = [context.Process(target=send_all, args=(path, TOKENS, seed)) for seed in (7, 8)]
        for process in others:
            process.start()
        await asyncio.gather(*(store.send(adding(token)) for token in TOKENS))
        for process in others:
            await asyncio.to_thread(process.join)
        assert [process.exitcode for process in others] == [0, 0]
        assert await counted(store, KEY, "times") == len(TOKENS)
        with pytest.raises(TokenReused):
            await store.send(adding(TOKENS[0], 2))
