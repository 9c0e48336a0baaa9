"""What the resolvers of one request share: the graph, the loaders, the secret of the cursors, the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strawberry.types.info import Info

from keygraph.graph import Graph
from keygraph.items import Item
from keygraph.records import RecordType
from keygraph.store import Store
from resolvers.loaders import NeighbourLoader, NodeLoader


@dataclass(frozen=True)
class Limits:
    """What one request may ask for.

    `max_page_size` is the largest `first` and `last`, `read_budget` how many items one page may look at under a
    filter, `concurrency` how many requests are in flight for one operation.
    """

    max_page_size: int = 100
    read_budget: int = 10_000
    concurrency: int = 64


@dataclass
class RequestContext:
    """Made anew for each request, inside the running event loop."""

    graph: Graph
    store: Store
    secret: bytes
    limits: Limits
    nodes: NodeLoader = field(init=False)
    neighbours: NeighbourLoader = field(init=False)
    selections: dict[Any, frozenset[str]] = field(default_factory=dict)
    """What was found to be selected below a field, which is one answer for all its parents."""

    def __post_init__(self) -> None:
        self.nodes = NodeLoader(self.store)
        self.neighbours = NeighbourLoader(self.store, self.limits.concurrency)

    async def item_of(
        self, records: Sequence[RecordType], identity: tuple[str, ...]
    ) -> tuple[RecordType, Item] | None:
        """The item of a node of one of these types, whose keys are alike, wherever it stands, and which it is of.

        None where there is none.
        """
        keys = self.graph.table_keys(records[0], identity)
        items = await asyncio.gather(*map(self.nodes.get, keys))
        found = ((self.graph.recognise(item), item) for item in items if item is not None)
        return next(
            ((record, item) for record, item in found if record in records and record is not None), None
        )


def context_of(info: Info) -> RequestContext:
    """The context of the request that a field is resolved for."""
    context: RequestContext = info.context
    return context
