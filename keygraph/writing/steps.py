"""The steps of one transaction: what each request does to the items of the table, and what a failure means.

What has to be known of stored items first is read once for all requests (`needed`). `StepMaker.steps` only computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.model.records import RecordType
from keygraph.writing.ground import Stored, named_in
from keygraph.writing.items import Refusals
from keygraph.writing.moves import MoveSteps
from keygraph.writing.requests import Change, Create, Delete, Done, Move, Put, Upsert, WriteRequest
from keygraph.writing.rules import (
    told_in_keys,
)
from keygraph.writing.step import TransactionStep, merged
from keygraph.writing.upserts import UpsertSteps

_NOTHING: Stored = {}


class StepMaker(UpsertSteps, MoveSteps):
    """Makes the steps of requests to one graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._is_looked_for = cache(self._may_be_elsewhere)

    def needed(
        self, request: WriteRequest, stored: Stored = _NOTHING, *, is_whole: bool = False
    ) -> list[Key]:
        """The keys of the items that must be known before the request can be carried out; `is_whole`: what it changes is.

        What is stored under some of them may name further ones.
        """
        keys, record = self.keys_of_ends(request), request.record
        item: Item | None = None
        if self.access is not None:
            is_whole = is_whole or self.access.must_read(self.maker(record), request)
        if isinstance(request, Create | Put | Upsert):
            is_read = self._is_looked_for(record) or isinstance(request, Upsert) or self.is_replaced(request)
            is_read = is_read or (is_whole and isinstance(request, Put))
            identity = None
            if is_read:
                item, identity = self.new(request)
        else:
            is_relied = is_whole or self._is_relied_on(request)
            is_read = bool(record.table_keys.shards) or self._partners.of(record) is not None or is_relied
            identity = request.identity
        if not is_read:
            return keys
        own = [] if identity is None else self._graph.table_keys(record, identity)
        there = [stored.get(key) for key in own]
        others = self._partners.keys(record, [item, *there]) if self._partners.is_read(request) else []
        return [*keys, *own, *others]

    def read_later(self, request: WriteRequest) -> RecordType | None:
        """The other type of an edge, if its item has to be read once the edge is; None for nothing to read."""
        partner = self._partners.of(request.record)
        if partner is None or not self._partners.is_read(request):
            return None
        is_told = isinstance(request, Create | Put | Upsert) and not partner.moving
        return None if is_told else partner.record

    def _may_be_elsewhere(self, record: RecordType) -> bool:
        """Whether a new record may be in another place than its key says, or go with an item that must be known."""
        partner = self._partners.of(record)
        return bool(record.table_keys.shards) or (partner is not None and partner.is_loose)

    def _is_relied_on(self, request: Change | Delete | Move) -> bool:
        """Whether what is there is a part of what will be."""
        if isinstance(request, Change):
            names = named_in(request)
            is_in_key = bool(request.record.rules and told_in_keys(request.record, names))
            return is_in_key or bool(self.maker(request.record).keys_that_follow(names))
        return isinstance(request, Move)

    def keys_of_ends(self, request: WriteRequest) -> list[Key]:
        """The keys of nodes that may stand in one of several places."""
        ends = self._spread_ends_of(request.record)
        return [key for _, keys, _ in self._named_nodes(request, ends) if len(keys) > 1 for key in keys]

    # --- Steps ------------------------------------------------------------------------------------------

    def steps(
        self, requests: Sequence[WriteRequest], stored: Stored, refusals: Refusals
    ) -> tuple[list[TransactionStep], list[Done]]:
        """The steps of all requests, none twice of one item, and what they make of each record."""
        steps: list[TransactionStep] = []
        done: list[Done] = []
        for request in requests:
            # What is wrong with one request says nothing of the others.
            mine = Refusals()
            match request:
                case Create() | Put():
                    made, outcome = self._written(request, stored, mine)
                case Upsert():
                    made, outcome = self._upserted(request, stored, mine)
                case Change():
                    made, outcome = self._changed(request, stored, mine)
                case Move():
                    made, outcome = self._moved(request, stored, mine)
                case _:
                    made, outcome = self._deleted(request, stored, mine)
            steps += [] if mine.found else made
            refusals.found += mine.found
            done.append(outcome)
        return merged(steps, self._graph.table, requests[0].where, refusals), done
