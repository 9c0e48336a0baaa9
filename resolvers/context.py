"""What the resolvers of one request share: the graph, the loaders, the secret of the cursors, the limits."""

from __future__ import annotations

import asyncio
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
    filter, `count_pages` how many pages of 1 MB one `totalCount` may read, `concurrency` how many requests are in
    flight for one operation.
    """

    max_page_size: int = 100
    read_budget: int = 10_000
    count_pages: int = 20
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
    warnings: list[dict[str, Any]] = field(default_factory=list)
    """What the answer says beside its data: see `resolvers.errors`."""

    def __post_init__(self) -> None:
        self.nodes = NodeLoader(self.store)
        self.neighbours = NeighbourLoader(self.store, self.limits.concurrency)

    async def item_of(self, record: RecordType, identity: tuple[str, ...]) -> Item | None:
        """The item of a node, wherever it stands; None where there is none of that type."""
        keys = self.graph.table_keys(record, identity)
        items = await asyncio.gather(*map(self.nodes.get, keys))
        return next(
            (item for item in items if item is not None and self.graph.recognise(item) is record), None
        )


def context_of(info: Info) -> RequestContext:
    """The context of the request that a field is resolved for."""
    context: RequestContext = info.context
    return context
