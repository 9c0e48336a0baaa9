"""Finds the records that name a node: on every path that leads to it, whether or not the model declares a list.

The table and its local indexes are read consistently. A global index cannot be: each item that it leads to is read from
the table, so no outdated item is found, but a write of a moment ago may not have reached the index yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Query
from keygraph.graph import Graph
from keygraph.lists.listing import bind
from keygraph.lists.reading import requests_of_all
from keygraph.model.record_keys import Texts
from keygraph.model.references import EndReference
from keygraph.writing.sending.sender import TransactionSender

_AT_A_TIME = 100


class NamingRecord(NamedTuple):
    """A record that names the node, and its reference to it."""

    reference: EndReference
    identity: Texts
    """The identity of the node."""
    item: Item


@dataclass(frozen=True, slots=True)
class Range:
    """The rest of one partition that must be read for one reference."""

    reference: EndReference
    identity: Texts
    query: Query


def ranges(graph: Graph, references: Iterable[EndReference], identity: Texts) -> list[Range]:
    """Returns everything that must be read to find the records that name a node at these references."""
    found = []
    for reference in references:
        if reference.path is None:
            continue
        neighbours = bind(graph, reference.path, identity)
        requests = requests_of_all(neighbours, _AT_A_TIME)
        found += [Range(reference, identity, query) for query in requests]
    return found


async def look(sender: TransactionSender, wanted: Sequence[Range]) -> tuple[list[NamingRecord], list[Range]]:
    """Returns the records in the next page of each range, and the ranges left to read.

    The pages are read at once, and then all items to which indexes lead.
    """
    graph = sender.graph
    pages = await asyncio.gather(*(sender.send(each.query) for each in wanted))
    led = dict.fromkeys(
        graph.table.key_of(item)
        for each, page in zip(wanted, pages, strict=True)
        if each.query.projection is not None
        for item in page.items
    )
    whole = (await sender.send(BatchGet(tuple(led), consistent=True))).items if led else ()
    there = dict(zip(led, whole, strict=True))
    found: list[NamingRecord] = []
    rest: list[Range] = []
    for each, page in zip(wanted, pages, strict=True):
        items: Iterable[Item | None] = page.items
        if each.query.projection is not None:
            items = [there[graph.table.key_of(item)] for item in page.items]
        found += [
            NamingRecord(each.reference, each.identity, item)
            for item in sender.live(items)
            if item is not None
            and graph.recognise(item) is each.reference.record
            and each.reference.names(item, each.identity)
        ]
        if page.last is not None:
            rest.append(replace(each, query=replace(each.query, start=page.last)))
    return found, rest
