"""Items by their keys: what an operation looks for, each read once, gathered into batches by `keygraph_resolvers.read.gathering`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.model.records import RecordType
from keygraph_resolvers.read.connection import Edge
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.gathering import Gathering
from keygraph_resolvers.read.meter import ORIGIN, Origin
from keygraph_resolvers.read.visits import Visit
from keygraph_resolvers.read.work import Work


@dataclass(slots=True, eq=False)
class Wanted:
    """An item that is looked for under some keys, and what goes on with it."""

    subject: Visit | Edge | None
    """What the item is wanted for, if that is one thing."""
    record: RecordType
    """The type that it is taken to be of."""
    records: tuple[RecordType, ...]
    """The types that the item may be of; none where the key was read from an item of it."""
    keys: Sequence[Key]
    place: str
    round_trip: int
    """The round trip in which the item is read; when it is there, that after it."""
    forecast: int
    then: Callable[[list[Wanted]], None]
    left: int = 0
    """How many of the keys have not been read yet."""
    item: Item | None = None
    error: Exception | None = None


class ItemsByKey:
    """What one operation looks for by key."""

    def __init__(self, context: RequestContext, work: Work) -> None:
        self.gathering = Gathering(self._leave)
        self._context = context
        self._work = work
        self._waiting: dict[Key, list[Wanted]] = {}
        self._sent: set[Key] = set()

    def is_known(self, key: Key) -> bool:
        """Whether an item was read, or is about to be."""
        return key in self._waiting or self._context.nodes.is_read(key)

    def want(self, wanted: Sequence[Wanted]) -> None:
        """Looks for items: what was read goes on at once, what is on its way with that, the rest is gathered."""
        nodes, ready = self._context.nodes, []
        if wanted:
            # They are of one type: those of one plan, or the items of one list.
            self._context.meter.wanted[wanted[0].record] += len(wanted)
        for each in wanted:
            for key in each.keys:
                if key not in self._waiting and nodes.is_read(key):
                    continue
                each.left += 1
                self._waiting.setdefault(key, []).append(each)
                if key not in self._sent:
                    self.gathering.add(each.round_trip, key)
            if not each.left:
                ready.append(each)
            elif each.forecast:
                self.gathering.expect(each.forecast)
        self._finish(ready)

    def _leave(self, round_trip: int, keys: list[Key]) -> None:
        self._sent.update(keys)
        self._work.spawn(self._get(round_trip, keys))

    async def _get(self, round_trip: int, keys: list[Key]) -> None:
        waiting = [self._waiting[key] for key in keys]
        places = {each.place: None for group in waiting for each in group}
        # What several places wait for counts at the first.
        counted = Counter((group[0].place, group[0].record) for group in waiting)
        origin = Origin(tuple(places), round_trip, keys=counted)
        ORIGIN.set(origin)
        for answer in self._context.nodes.load_together(keys):
            if not answer.done():  # with the first all others of its batch have come
                await asyncio.wait({answer})
        self._arrived(keys, origin.round_trip)
        self.gathering.depart()

    def _arrived(self, keys: Sequence[Key], round_trip: int) -> None:
        """Goes on with whoever waits for these keys; what is asked for next is part of that round trip."""
        self._sent.difference_update(keys)
        ready = []
        for key in keys:
            for each in self._waiting.pop(key):
                each.left -= 1
                if not each.left:
                    each.round_trip = max(each.round_trip + 1, round_trip)
                    if each.forecast:
                        self.gathering.arrived(each.forecast)
                    ready.append(each)
        self._finish(ready)

    # --- What somebody else reads ---------------------------------------------------------------------

    def hold(self, key: Key) -> None:
        """Somebody reads the item with others: whoever looks for it waits for that."""
        self._sent.add(key)
        self._waiting.setdefault(key, [])

    def came(self, key: Key, found: Item | Exception | None, round_trip: int) -> None:
        """The item that was held has been read."""
        self._context.nodes.prime(key, cast("Item | None", found))
        for each in self._waiting[key]:
            # It is not got by key, so that it says nothing of how many of those that are looked for are.
            self._context.meter.wanted[each.record] -= 1
        self._arrived([key], round_trip)

    def was_passed_over(self, key: Key, round_trip: int) -> None:
        """The item that was held was not come to: it is got like any other, in that round trip."""
        self._sent.discard(key)
        if self._waiting[key]:
            self.gathering.add(round_trip, key)
        else:
            del self._waiting[key]

    def _finish(self, ready: Sequence[Wanted]) -> None:
        """Goes on with what has been looked for."""
        groups: dict[Callable[[list[Wanted]], None], list[Wanted]] = {}
        answer, is_of = self._context.nodes.answer, self._context.graph.is_of
        for each in ready:
            for key in each.keys:
                found = answer(key)
                if isinstance(found, Exception):
                    each.error = found
                elif found is not None and (not each.records or is_of(found, each.records)):
                    each.item = found
            groups.setdefault(each.then, []).append(each)
        for then, group in groups.items():
            then(group)
