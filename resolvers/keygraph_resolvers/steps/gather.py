"""Reads a node together with its lists by one Query, if the model says that its partition is small.

`keygraph.lists.gather` decides which parts one Query reads. Here they are promised to the loaders before they are
requested, so that requests for the node or one of the lists wait for that Query. Parts that it does not reach are read
as if nothing had been promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import PAGE_BYTES
from keygraph.dynamo.store import read_units
from keygraph.dynamo.table import Key
from keygraph.errors import TimedOut
from keygraph.lists.describe import described_requests
from keygraph.lists.gather import (
    Part,
    Together,
    item_part,
    list_part,
    neighbour_part,
    read_together,
    side_by_side,
)
from keygraph.lists.placeholders import shown_key
from keygraph.lists.reading import Found
from keygraph.model.records import RecordType
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.loaders import Arrived, PageOf
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import Explained, View
from keygraph_resolvers.steps.list_cost import keys_cost
from keygraph_resolvers.steps.lists import BoundList, ListStep
from keygraph_resolvers.steps.step import Priced, Starts, StepCost


class Gather:
    """Reads nodes of one selection together with their lists."""

    def __init__(self, record: RecordType, lists: Sequence[ListStep]) -> None:
        self._record = record
        self._lists = lists

    def promise(
        self,
        run: Run,
        owner: Object,
        lists: Sequence[BoundList],
        round_trip: int,
        place: str,
        *,
        is_wanted: bool,
    ) -> None:
        """Reads together the parts of a node's lists, and its item if that is wanted, that one Query reads."""
        [key] = run.graph.table_keys(self._record, owner.identity)
        places: dict[PageOf | Key, str] = {}
        parts: list[Part] = []

        def add(part: Part | None, place: str) -> None:
            if part is None or part.subject in places:
                return
            loads = run.scheduler if part.neighbours is None else run.neighbours
            if not loads.is_known(part.subject):
                parts.append(part)
                places[part.subject] = place

        if is_wanted:
            add(item_part(key, key), place)
        for bound in lists:
            connection, page = bound.connection, bound.connection.request
            if connection.is_closed or not _may_be_gathered(bound.step, connection.arguments):
                continue
            if connection.arguments.is_key_lookup:
                add(neighbour_part(page.neighbours, key), bound.place)
            else:
                add(list_part(page.neighbours, page.extent, key, page), bound.place)
        for together in side_by_side(run.graph, key, parts):
            for part in together.parts:
                if part.neighbours is None:
                    run.scheduler.hold(part.subject, round_trip, may_be_missed=together.is_behind_list(part))
                else:
                    run.scheduler.promise(part.subject)
            of_parts = {part: places[part.subject] for part in together.parts}
            run.scheduler.spawn(self._read(run, key, together, of_parts, round_trip))

    async def _read(
        self, run: Run, key: Key, together: Together, places: Mapping[Part, str], round_trip: int
    ) -> None:
        read = Read(tuple(dict.fromkeys(places.values())), round_trip)
        READ.set(read)
        scheduler = run.scheduler
        found: Mapping[Part, Found | Item | Exception | None]
        try:
            found = await read_together(run.reads, key, together, run.attributes.projection)
        except asyncio.CancelledError:
            for part in together.parts:
                if part.neighbours is not None:
                    given_up = TimedOut("the request to the store was given up")
                    scheduler.keep_promise(part.subject, given_up, places[part], read.round_trip)
            raise
        except Exception as error:
            found = dict.fromkeys(together.parts, error)
        for part in together.parts:
            answer = found.get(part)
            if part.neighbours is not None:
                is_read = part in found and not isinstance(answer, Exception)
                given = Arrived(answer, read.round_trip) if is_read else cast("Exception | None", answer)
                scheduler.keep_promise(part.subject, given, places[part], read.round_trip)
            elif part in found:
                is_gone = isinstance(answer, dict) and run.is_expired(answer)
                item = None if is_gone else cast("Item | Exception | None", answer)
                scheduler.release(part.subject, item, read.round_trip)
            else:
                scheduler.look_up_held(part.subject, read.round_trip)

    # --- What it costs ------------------------------------------------------------------------------------

    def reads_node(self, run: Run) -> bool:
        """Returns whether a node whose item is wanted is read with one of its lists."""
        return any(
            part.subject is None
            for together in self._together(run, None, is_wanted=True)
            for part in together.parts
        )

    def cost(
        self, run: Run, starts: Starts, *, is_wanted: bool
    ) -> tuple[StepCost, list[tuple[Priced, Starts]]]:
        """Returns the cost of the lists, and of the node if its item is wanted and read with one of them.

        A Query may not reach what comes after a list; that is read separately, one round trip later.
        """
        cost = StepCost()
        below: list[tuple[Priced, Starts]] = []
        gathered: set[ListStep] = set()
        for together in self._together(run, None, is_wanted=is_wanted):
            steps: list[tuple[Part, ListStep | None]] = [(part, part.subject) for part in together.parts]
            items = sum(together.most.values())
            sizes = {
                part.span: part.most * (self._record if step is None else step.path).item_bytes
                for part, step in steps
            }
            size = sum(sizes.values())
            names = tuple(step.suffix for _, step in steps if step is not None)
            cost.add(
                StepCost(
                    starts.count,
                    round_trips=max(starts.round_trips),
                    items=starts.times(items).count,
                    read_units=starts.count * read_units(size, consistent=False),
                )
            )
            cost.shared_with += names
            may_be_missed = size > PAGE_BYTES
            for part, step in steps:
                # The end of a list is known when all of it was read.
                may_be_missed = may_be_missed or (part.extent is not None and not part.extent.forward)
                after = starts.after(2 if may_be_missed else 1, at_least=1)
                if step is None:
                    if may_be_missed:
                        cost.add(keys_cost([self._record], starts.after()))
                    continue
                gathered.add(step)
                most = step.most(run)
                if may_be_missed:
                    apart, _ = most.page(run, starts.after())
                    cost.add(apart)
                size = min(most.size, part.most)
                if step.page is not None and size:
                    below.append((step.page, after.times(size)))
                cost.add(most.count(starts))
                may_be_missed = may_be_missed or part.neighbours is not None
        below += [(step, starts) for step in self._lists if step not in gathered]
        return cost, below

    def bound_key(self, run: Run) -> Hashable:
        """Returns what decides its cost, in addition to what decides the cost of its lists."""
        return tuple(
            tuple((part.subject, part.most) for part in together.parts)
            for is_wanted in (True, False)
            for together in self._together(run, None, is_wanted=is_wanted)
        )

    # --- How it is explained --------------------------------------------------------------------------------

    def explain(
        self, view: View, node: Explained | None, lists: Sequence[Explained], identity: tuple[str, ...] | None
    ) -> None:
        """Shows as one what one Query reads: a node, if it is given, and its lists."""
        for together in self._together(view.run, identity, is_wanted=node is not None):
            sources = [part.subject for part in together.parts]
            parts = [] if node is None or None not in sources else [node]
            parts += [each for each in lists if each.kind == "read list" and each.source in sources]
            if len(parts) < 2:
                continue
            key = shown_key(self._record, identity)
            request = together.request(key, view.run.attributes.projection)
            for part in parts:
                part.requests = ()
                part.together = tuple(each.where.place for each in parts if each is not part)
            parts[0].requests = (described_requests(view.run.graph, [request]),)

    def _together(self, run: Run, identity: tuple[str, ...] | None, *, is_wanted: bool) -> list[Together]:
        """Returns what is read together for a node, even an unknown one: its lists' steps, and None for the item."""
        key = shown_key(self._record, identity)
        parts = [item_part(key, None)] if is_wanted else []
        for step in self._lists:
            try:
                arguments = step.arguments(run)
                neighbours = arguments.shown(run, identity)
            except Exception:
                continue  # nothing is read; the answer says why
            if neighbours is None or arguments.has_cursor or not _may_be_gathered(step, arguments):
                continue
            if arguments.is_key_lookup:
                part = neighbour_part(neighbours, key, step)
            else:
                part = list_part(neighbours, arguments.extent, key, step)
            if part is not None:
                parts.append(part)
        return side_by_side(run.graph, key, parts, is_shown=True)


def _may_be_gathered(step: ListStep, arguments: ListArguments) -> bool:
    """Returns whether the page of a list may be read with its node: not if all of the list is read, to aggregate it."""
    if step.page is None or step.aggregates_items:
        return False
    return arguments.to is None and not arguments.is_read_apart
