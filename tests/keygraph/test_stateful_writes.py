"""Writes one after the other, found by hypothesis, do to a table what they do to a dict in memory."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from keygraph.dynamo.store import CreateTable, DeleteTable
from keygraph.engines.open import open_store
from keygraph.errors import WriteRefused
from keygraph.writing.requests import WriteRequest
from keygraph.writing.sending.writer import write
from tests.conftest import LOCAL
from tests.keygraph.histories.asking import Asking, beginning
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.plain import Refused, State, after
from tests.keygraph.histories.table import contents, mistakes


class Writes(RuleBasedStateMachine):
    """A table and a dict."""

    url: str | None = None
    """The store's address; None for a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory()
        self._stack = AsyncExitStack()
        self._plain: State = {}
        self._number = 0
        self._runner.run(self._open())

    async def _open(self) -> None:
        url = self.url or f"sqlite:{Path(self._folder.name) / 'held.db'}"
        self._store = await self._stack.enter_async_context(open_store(url, graph.table))
        await self._store.send(DeleteTable())
        await self._store.send(CreateTable())
        await self._write(beginning())

    @rule(data=st.data())
    def one_transaction(self, data: st.DataObject) -> None:
        self._number += 1

        def pick(options: Any) -> Any:
            return data.draw(st.sampled_from(options))

        asked = Asking(pick, f"s{self._number}", others=[("Zoe",)]).requests()
        self._runner.run(self._write(asked))

    async def _write(self, asked: list[WriteRequest]) -> None:
        try:
            expected, codes = after(self._plain, asked), set[str]()
        except Refused as refused:
            expected, codes = self._plain, refused.codes
        if not codes:
            await write(graph, self._store, asked)
        else:
            with pytest.raises(WriteRefused) as told:
                await write(graph, self._store, asked)
            assert {each.code for each in told.value.refusals} <= codes, told.value.refusals
        self._plain = expected

    @invariant()
    def table_and_dict_are_alike(self) -> None:
        assert self._runner.run(contents(self._store)) == self._plain

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self._runner.run(mistakes(self._store)) == []

    def teardown(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()
        self._folder.cleanup()


@pytest.mark.long
def test_on_the_embedded_engine() -> None:
    run_state_machine_as_test(
        Writes, settings=settings(max_examples=25, stateful_step_count=12, deadline=None)
    )


@pytest.mark.parametrize("engine", [LOCAL])
def test_on_dynamodb_local(engine: str, local_endpoint: str) -> None:
    class OnLocal(Writes):
        url = local_endpoint

    run_state_machine_as_test(
        OnLocal, settings=settings(max_examples=4, stateful_step_count=12, deadline=None)
    )
