"""Finds the records that name a node: on every path that leads to it, whether or not the model declares a list.

The table and its local indexes are read consistently. A global index cannot be: each item that it leads to is read from
the table, so no outdated item is found, but a write of a moment ago may not have reached the index yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keygraph.dynamo.items import Item, greatest_size
from keygraph.dynamo.limits import TRANSACTION_BYTES
from keygraph.dynamo.store import Query
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.lists.query import ListForm
from keygraph.lists.reading import requests_of_all
from keygraph.model.references import EndReference
from keygraph.resolve.derived import Follower
from keygraph.writing.context import WriteContext
from keygraph.writing.records import identity_of
from keygraph.writing.requests import Change, Delete, Move, OnEdges, Upsert, WriteRequest
from keygraph.writing.step import TransactionStep

_AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class Search:
    """The rest of one partition that must be read for the records that name a node at one reference."""

    request: Delete | Move | Change
    """What removes the node, or changes fields of it that copies follow."""
    reference: EndReference
    query: Query

    @property
    def is_blocking(self) -> bool:
        """Whether the node is not removed if anything is found."""
        if isinstance(self.request, Change):
            return False
        is_detached = isinstance(self.request, Delete) and self.request.on_edges is OnEdges.DETACH
        return not is_detached or (self.reference.record.is_node and not self.reference.is_removable)


class NamingRecord(NamedTuple):
    """A record that names a node."""

    of: Search
    item: Item


def named_nodes(graph: Graph, requests: Iterable[WriteRequest]) -> list[Delete | Move]:
    """Returns the requests that delete or move nodes whose naming records can be searched for.

    If no keys lead to the records that name a node, a mark would protect no search, so the node needs none.
    """
    return [
        request
        for request in requests
        if isinstance(request, Delete | Move)
        and any(each.path is not None for each in graph.references.get(request.record.name, ()))
    ]


def copied_nodes(write: WriteContext, requests: Iterable[WriteRequest]) -> list[Change]:
    """Returns the changes of fields that copies follow. An upsert is one if its node exists."""
    found = list[Change]()
    for request in requests:
        if request.record.name in write.graph.followers and isinstance(request, Change | Upsert):
            identity = identity_of(write, request)
            change = request if isinstance(request, Change) else request.as_change(identity or ())
            if identity is not None and followers(write, change):
                found.append(change)
    return found


def followers(write: WriteContext, request: Change) -> list[Follower]:
    """Returns the copies that follow the fields of a node that a request changes."""
    names = write.changed_names(request)
    return [each for each in write.graph.followers.get(request.record.name, ()) if each.is_of(names)]


def searches(write: WriteContext, nodes: Iterable[Delete | Move | Change]) -> list[Search]:
    """Returns everything that must be read to find the records that name these nodes, or that copy what changes."""
    found = list[Search]()
    for request in nodes:
        # What is no node, and so has neither, can have a mark all the same.
        references = (
            [each.reference for each in followers(write, request)]
            if isinstance(request, Change)
            else write.graph.references[request.record.name]
        )
        for reference in references:
            if reference.path is not None:
                form = ListForm(write.graph, reference.path).of(request.identity)
                found += [Search(request, reference, query) for query in requests_of_all(form, _AT_A_TIME)]
    return found


# --- What is written for them -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordSteps:
    """The steps that change one record that names a node."""

    steps: Sequence[TransactionStep]
    same: Sequence[NamingRecord]
    """The record, once for each end that names such a node."""
    written: frozenset[Key]
    """The record's items."""
    decided_by: frozenset[Key] = frozenset()
    """The other items that decide whether the viewer may detach it."""

    @property
    def keys(self) -> frozenset[Key]:
        """The items that are written, added to and checked."""
        added_to = {key for step in self.steps for each in step.additions for key in each.keys[:1]}
        return self.written | self.decided_by | added_to


@dataclass(slots=True)
class RecordBatch:
    """The records that are changed in one transaction."""

    records: list[RecordSteps] = field(default_factory=list)
    size: int = 0
    keys: set[Key] = field(default_factory=set)
    """The items that it writes, adds to and checks."""

    @property
    def steps(self) -> list[TransactionStep]:
        return [step for each in self.records for step in each.steps]


def batches(records: Iterable[RecordSteps], most: int) -> list[RecordBatch]:
    """Returns the steps of records in as few transactions as possible, each of at most that many actions."""
    found = list[RecordBatch]()
    for each in records:
        size, keys = greatest_size(each.same[0].item) * len(each.steps), each.keys
        batch = found[-1] if found else None
        if batch is None or len(batch.keys | keys) > most or batch.size + size > TRANSACTION_BYTES:
            batch = RecordBatch()
            found.append(batch)
        batch.records.append(each)
        batch.size += size
        batch.keys |= keys
    return found
