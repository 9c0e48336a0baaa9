"""Nodes that are read together with their lists, where the model says that their partitions are small.

Which parts one Query reads is the rule of `keygraph.lists.gather`. Here they are promised to the loaders before anybody
asks for them, so that whoever wants the node or one of the lists waits for that Query; what it does not come to is
read as if nothing had been promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.lists.gather import Part, Together, list_part, node_part, read_together, side_by_side
from keygraph.lists.reading import Found
from keygraph_resolvers.read.context import RequestContext
from keygraph_resolvers.read.items_by_key import ItemsByKey
from keygraph_resolvers.read.loaders import PageOf
from keygraph_resolvers.read.meter import ORIGIN, ListKind, Origin
from keygraph_resolvers.read.visits import BegunList
from keygraph_resolvers.read.work import Work


class ReadsTogether:
    """The nodes of one operation that are read with their lists."""

    def __init__(
        self,
        context: RequestContext,
        items: ItemsByKey,
        work: Work,
    ) -> None:
        self._context = context
        self._items = items
        self._work = work

    def promise(
        self, key: Key, lists: Sequence[BegunList], round_trip: int, place: str, *, is_wanted: bool
    ) -> None:
        """Reads of a node's lists, and its item if that is wanted, what one Query reads together."""
        parts: dict[Part, PageOf | None] = {}
        kinds: dict[PageOf, ListKind] = {}
        if is_wanted and not self._items.is_known(key):
            parts[node_part(key)] = None
        places = {place: None}
        for begun in lists:
            connection = begun.connection
            if not begun.needs.has_page or connection.to is not None:
                continue
            page = connection.request
            part = list_part(page.neighbours, page.extent, key)
            if (
                part is not None
                and page not in parts.values()
                and not self._context.neighbours.is_asked(page)
            ):
                parts[part] = page
                kinds[page] = begun.kind
                places[begun.place] = None
        for together in side_by_side(self._context.graph, key, list(parts)):
            if len(together.parts) > 1:
                promised = {part: parts[part] for part in together.parts}
                self._work.spawn(
                    self._read(key, together, promised, kinds, Origin(tuple(places), round_trip))
                )
                for promise in promised.values():
                    if promise is None:
                        self._items.hold(key)
                    else:
                        self._context.neighbours.promise(promise)

    async def _read(
        self,
        key: Key,
        together: Together,
        promised: Mapping[Part, PageOf | None],
        kinds: Mapping[PageOf, ListKind],
        origin: Origin,
    ) -> None:
        ORIGIN.set(origin)
        found: Mapping[Part, Found | Item | Exception | None] = {}
        try:
            found = await read_together(
                self._context.meter, key, together, self._context.attributes.projection
            )
            origin.lists = {
                kinds[page]: (len(part_found.items), len(part_found.items) < page.extent.count)
                for part, page in promised.items()
                if page is not None and isinstance(part_found := found.get(part), Found)
            }
        except asyncio.CancelledError:
            raise
        except Exception as error:
            found = dict.fromkeys(together.parts, error)
        finally:
            for part, page in promised.items():
                if page is not None:
                    self._context.neighbours.keep(page, cast("Found | Exception | None", found.get(part)))
                elif part in found:
                    self._items.came(key, cast("Item | Exception | None", found[part]), origin.round_trip)
                else:
                    self._items.was_passed_over(key, origin.round_trip)
        self._items.gathering.depart()
