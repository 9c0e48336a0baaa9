"""A store with a writer, and what is in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Store
from keygraph.errors import Refusal, WriteRefused
from keygraph.writing.requests import Done, WriteRequest
from keygraph.writing.sending.writer import write
from tests.keygraph.verified_net import told
from tests.verified import verified


class Written:
    """What tests of writing ask and look at."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self.graph = graph
        self.store = store

    async def write(self, *requests: WriteRequest) -> Sequence[Done]:
        return await write(self.graph, self.store, requests)

    async def refusals(self, *requests: WriteRequest) -> list[Refusal]:
        with pytest.raises(WriteRefused) as refused:
            await self.write(*requests)
        return list(refused.value.refusals)

    async def wrong(self) -> list[str]:
        """What a verification finds."""
        return told(await verified(self.graph, self.store, segments=1))

    async def item(self, *key: str) -> Item | None:
        [item] = (await self.store.send(BatchGet((key,), consistent=True))).items
        return item
