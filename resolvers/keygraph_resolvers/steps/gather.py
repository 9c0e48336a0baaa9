"""Reads a node together with its lists by one Query, if the model says that its partition is small.

`keygraph.lists.gather` decides which parts one Query reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from keygraph.dynamo.limits import PAGE_BYTES
from keygraph.dynamo.store import read_units
from keygraph.dynamo.table import Key
from keygraph.lists.describe import DescribedRequest, described_requests
from keygraph.lists.gather import (
    CombinedQuery,
    GatheredPart,
    adjacent,
    item_part,
    list_part,
    neighbour_part,
)
from keygraph.lists.placeholders import placeholder_key
from keygraph.lists.query import ListQuery
from keygraph.model.records import RecordType
from keygraph_resolvers.engine.requests import Gathered
from keygraph_resolvers.engine.worst import (
    KeyLookups,
    Missed,
    NodeEnd,
    QueryRequests,
    StepStart,
    Worst,
)
from keygraph_resolvers.read.connection import Connection, ListArguments
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.lists import ListStep


class Gather:
    """Reads nodes of one selection together with their lists."""

    def __init__(self, record: RecordType, lists: Sequence[ListStep]) -> None:
        self._record = record
        self.lists = lists

    def read(
        self, op: Run, owner: Object, lists: Sequence[tuple[ListStep, Connection]], *, is_wanted: bool
    ) -> Gathered:
        """Returns the request for a node's lists, and its item if that is wanted, as far as one Query reads several."""
        [key] = op.graph.table_keys(self._record, owner.identity)
        parts = [(item_part(key, key), "")] if is_wanted else []
        for step, connection in lists:
            arguments, query = connection.arguments, connection.query
            part = None if connection.is_closed else _part(step, arguments, query, key)
            if part is not None:
                parts.append((part, step.suffix))
        return Gathered(key, parts)

    # --- What it costs ------------------------------------------------------------------------------------

    def reads_node(self, run: Run) -> bool:
        """Returns whether a node whose item is wanted is read with one of its lists."""
        return any(
            part.subject is None
            for combined in self._combined(run, None, is_wanted=True)
            for part in combined.parts
        )

    def worst(self, run: Run, *, is_wanted: bool) -> Worst:
        """Yields the requests for the lists, and for the node if its item is wanted and read with one of them.

        A Query may not reach what comes after a list; that is read separately, one round trip later.
        """
        gathered: dict[ListStep, tuple[GatheredPart, bool]] = {}
        """The lists that are read so, with their part, and whether the Query may not reach it."""
        for combined in self._combined(run, None, is_wanted=is_wanted):
            steps: list[tuple[GatheredPart, ListStep | None]] = [
                (part, part.subject) for part in combined.parts
            ]
            sizes = {
                part.span: part.most * (self._record if step is None else step.path).item_bytes
                for part, step in steps
            }
            size = sum(sizes.values())
            units = read_units(size, consistent=False)
            places = _places_of(combined)
            yield QueryRequests(
                1, sum(combined.most.values()), units, places=places, combined=self._described
            )
            may_be_missed = size > PAGE_BYTES
            for part, step in steps:
                # The end of a list is known when all of it was read.
                may_be_missed = may_be_missed or (part.query is not None and not part.query.extent.forward)
                if step is None:
                    if may_be_missed:
                        yield KeyLookups((self._record,), within=(1, 1), is_usual=False)
                    continue
                gathered[step] = part, may_be_missed
                may_be_missed = may_be_missed or part.query is not None
        for each in self.lists:
            if each not in gathered:
                yield StepStart(each)
                continue
            part, may_be_missed = gathered[each]
            most = each.most(run)
            yield each.page_node
            if may_be_missed:
                yield Missed(tuple(most.page()))
            size = min(most.size, part.most)
            if each.page is not None and size:
                yield StepStart(each.page, size, (1, 2 if may_be_missed else 1), each.page.end_key)
            yield from most.count(begins=bool(most.own_links))
            yield NodeEnd()

    def _described(
        self, run: Run, identity: tuple[str, ...] | None
    ) -> dict[tuple[str, ...], DescribedRequest]:
        """Returns each Query of a run, with the node's item and without, by the places that it is for."""
        key, projection = placeholder_key(self._record, identity), run.attributes.projection
        return {
            _places_of(each): described_requests(run.graph, [each.request(key, projection)])
            for is_wanted in (False, True)
            for each in self._combined(run, identity, is_wanted=is_wanted)
        }

    def _combined(
        self, run: Run, identity: tuple[str, ...] | None, *, is_wanted: bool
    ) -> list[CombinedQuery]:
        """Returns what is read together for a node, even an unknown one: its lists' steps, and None for the item."""
        key = placeholder_key(self._record, identity)
        parts = [item_part(key, None)] if is_wanted else []
        for step in self.lists:
            try:
                arguments = step.arguments(run)
                query = arguments.described(run, identity)
            except Exception:
                continue  # nothing is read; the answer says why
            if query is None or arguments.has_cursor:
                continue
            part = _part(step, arguments, query, key, step)
            if part is not None:
                parts.append(part)
        return adjacent(run.graph, key, parts, is_described=True)


def _part(
    step: ListStep, arguments: ListArguments, query: ListQuery, key: Key, subject: ListStep | None = None
) -> GatheredPart | None:
    """Returns the page of a list as a part of what is read with its node; None if it is read separately, or if all of the
    list is read, to aggregate it."""
    if step.page is None or step.aggregates_items or arguments.to is not None or arguments.is_read_alone:
        return None
    return neighbour_part(query, key, subject) if arguments.is_key_lookup else list_part(query, key, subject)


def _places_of(combined: CombinedQuery) -> tuple[str, ...]:
    """Returns what is read together, by what it adds to the place of the node in the query: nothing, or a list's name."""
    return tuple("" if part.subject is None else part.subject.suffix for part in combined.parts)
