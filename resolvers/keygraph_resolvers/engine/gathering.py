"""Reads several parts by one Query: a node's item, and pages of its lists.

The parts are promised to the loaders before they are requested, so that requests for them wait for that Query. Parts
that it does not reach are read as if nothing had been promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol, cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import TimedOut
from keygraph.lists.gather import CombinedQuery, GatheredPart, adjacent, read_combined
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import Found
from keygraph_resolvers.engine.requests import Gathered
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.loaders import Arrived
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.run import Run


class Promises(Protocol):
    """The engine, as far as it is needed here."""

    def is_known(self, key: Key, /) -> bool: ...
    def hold(self, key: Key, round_trip: int, *, may_be_missed: bool) -> None: ...
    def promise(self, page: ListQuery, /) -> None: ...
    def keep_promise(self, page: ListQuery, answer: Any, place: str, round_trip: int, /) -> None: ...
    def release(self, key: Key, answer: Any, round_trip: int, /) -> None: ...
    def look_up_held(self, key: Key, round_trip: int, /) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None], /) -> None: ...


def gather(engine: Promises, op: Run, request: Gathered, place: str, round_trip: int) -> None:
    """Reads the parts that are not known, in that round trip, by as few Queries as possible."""
    places: dict[ListQuery | Key, str] = {}
    parts: list[GatheredPart] = []
    for part, suffix in request.parts:
        loads = engine if part.query is None else op.neighbours
        if part.subject not in places and not loads.is_known(part.subject):
            parts.append(part)
            places[part.subject] = place + suffix
    for combined in adjacent(op.graph, request.key, parts):
        for part in combined.parts:
            if part.query is None:
                engine.hold(part.subject, round_trip, may_be_missed=combined.is_behind_list(part))
            else:
                engine.promise(part.subject)
        of_parts = {part: places[part.subject] for part in combined.parts}
        engine.spawn(_read(engine, op, request.key, combined, of_parts, round_trip))


async def _read(
    engine: Promises,
    op: Run,
    key: Key,
    combined: CombinedQuery,
    places: Mapping[GatheredPart, str],
    round_trip: int,
) -> None:
    read = Read(tuple(dict.fromkeys(places.values())), round_trip)
    READ.set(read)
    found: Mapping[GatheredPart, Found | Item | Exception | None]
    try:
        found = await read_combined(op.reads, key, combined, op.attributes.projection)
    except asyncio.CancelledError:
        for part in combined.parts:
            if part.query is not None:
                given_up = TimedOut("the request to the store was given up")
                engine.keep_promise(part.subject, given_up, places[part], read.round_trip)
        raise
    except Exception as error:
        found = dict.fromkeys(combined.parts, as_value(error))
    for part in combined.parts:
        answer = found.get(part)
        if part.query is not None:
            is_read = part in found and not isinstance(answer, Exception)
            given = Arrived(answer, read.round_trip) if is_read else cast("Exception | None", answer)
            engine.keep_promise(part.subject, given, places[part], read.round_trip)
        elif part in found:
            is_gone = isinstance(answer, dict) and op.time.is_expired(answer)
            item = None if is_gone else cast("Item | Exception | None", answer)
            engine.release(part.subject, item, read.round_trip)
        else:
            engine.look_up_held(part.subject, read.round_trip)
