"""Looks up the other items that decide about the items of lists, together for all lists with a page in progress.

A page of a list whose items depend on links (`keygraph.model.links`) comes with their values, so that it is filled,
counted and continued as if a filter had decided it. The other items of all such pages in progress at one time are one
BatchGetItem; no page waits for anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from keygraph.access.grants import Decision
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.store import Page, Query, Store
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.lists.checks import split_condition
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import KnownRecord, ListConditions, Permissions
from keygraph.turns import step_by_step
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.loaders import NodeLoader
from keygraph_resolvers.read.meter import READ, MeteredStore, Read

Decided: TypeAlias = tuple[KnownRecord, Decision]


@dataclass(eq=False)
class Links:
    """The other items of one run. Use it inside the run's event loop."""

    _graph: Graph
    _access: Permissions
    _nodes: NodeLoader
    _meter: MeteredStore
    _reading: int = 0
    _waiting: dict[Key, Read | None] = field(default_factory=dict)
    """The keys that are not sent yet, with one of the reads that need them."""
    _sent: asyncio.Future[None] | None = None
    """Done when the waiting keys are sent."""
    _sending: asyncio.Task[None] | None = None

    async def page(self, store: Store, query: Query, path: AccessPath, conditions: ListConditions) -> Page:
        """Returns a page of a list, its items with the values of the links that their decisions need."""
        self._reading += 1
        try:
            page = await store.send(query)
            decisions, wanted = list[Decided | None](), dict[Key, None]()
            await step_by_step(map(decisions.append, self.decisions(path, page.items, conditions)))
            await step_by_step(map(wanted.update, map(self.unknown, decisions)))
            self._meter.take_lookups(len(wanted))
            for key in wanted:
                self._waiting.setdefault(key, READ.get())
            sent = self._sent
            if wanted and sent is None:
                sent = self._sent = asyncio.get_running_loop().create_future()
        finally:
            self._reading -= 1
            if not self._reading and self._sent is not None:
                self._leave(self._sent)
        if wanted and sent is not None:
            await sent
            await self._learn([*wanted])
        items = list[Item]()
        await step_by_step(map(items.append, map(self.with_values, page.items, decisions)))
        return replace(page, items=items)

    def with_values(self, item: Item, decided: Decided | None) -> Item:
        """Returns an item with the values of the links that its decision needs."""
        return item if decided is None else {**item, **cast(Item, self._access.link_values(*decided))}

    def unknown(self, decided: Decided | None) -> dict[Key, None]:
        """Returns what must be looked up for an item that was read in a list."""
        access = self._access
        return {} if decided is None else access.unknown_keys(decided[0], access.with_item(*decided))

    def decisions(
        self, path: AccessPath, items: Sequence[Item], conditions: ListConditions
    ) -> Iterator[Decided | None]:
        """Yields each item of a list as a record, with the decision whether the viewer sees it; None if no link decides.
        The decision leaves out what the store decided: an item need not have the attributes for that."""
        graph = self._graph
        decisions = {
            each.record: left
            for each, decision in conditions.items()
            if not isinstance(decision, bool)
            and (left := split_condition(decision, each, graph)[1]) is not None
        }
        for item in items:
            named = graph.identified(item, path.keys)
            if named is None or named[0] not in decisions:
                yield None
            else:
                yield KnownRecord(*named, item), decisions[named[0]]

    def _leave(self, sent: asyncio.Future[None]) -> None:
        waiting, self._waiting, self._sent = self._waiting, {}, None

        async def send() -> None:
            try:
                await step_by_step(self._batches(waiting))
            except Exception as error:
                if not sent.done():
                    sent.set_exception(as_value(error))
            if not sent.done():
                sent.set_result(None)

        self._sending = asyncio.ensure_future(send())

    def _batches(self, waiting: Mapping[Key, Read | None]) -> Iterator[None]:
        """Sends these keys, a batch in each step."""
        keys = [*waiting]
        places = tuple(dict.fromkeys(place for read in waiting.values() if read for place in read.places))
        for start in range(0, len(keys), BATCH_GET_KEYS):
            batch = keys[start : start + BATCH_GET_KEYS]
            trip = max((read.round_trip for key in batch if (read := waiting[key])), default=1)
            token = READ.set(Read(places, trip))
            try:
                self._nodes.load_batch(batch)
            finally:
                READ.reset(token)
            yield

    async def _learn(self, wanted: Sequence[Key]) -> None:
        """Waits for the other items, and records them. Raises the error of reading one."""
        read = READ.get()
        if read is not None:
            if read.begins is not None:
                read.begins(read, read.round_trip)
            read.round_trip += 1
        for start in range(0, len(wanted), BATCH_GET_KEYS):
            futures = {key: self._nodes.load(key) for key in wanted[start : start + BATCH_GET_KEYS]}
            await asyncio.wait(futures.values())
            items = [each.result() for each in futures.values()]
            await step_by_step(map(self._access.learn, futures, items))
