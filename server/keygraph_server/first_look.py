"""A look at some items when the server starts: fields that no item has are named in the log, once for each type."""

from __future__ import annotations

import logging
from collections import Counter

from keygraph import Graph, StoreError
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.tables.sample import sample
from keygraph_server.settings import Settings
from keygraph_server.stores import open_configured_store

_log = logging.getLogger(__name__)
_ITEMS = 200
_CERTAIN = 20
"""A field that is absent from fewer items of a type may be absent by chance, unless another attribute has its name."""


async def look_at_items(settings: Settings, graph: Graph) -> None:
    """Log which fields no item of a sample has. Never raises StoreError: the server runs without a sample too."""
    try:
        async with open_configured_store(settings, graph.table) as store:
            items = await sample(store, _ITEMS)
    except StoreError as error:
        _log.info("No sample of the items could be read: %s", error)
        return
    counter = AttributeCounter(graph)
    found: Counter[str] = Counter()
    for item in items:
        record = graph.recognise(item)
        if record is not None:
            counter.add(record, item)
            found[record.name] += 1
    every = list(unmatched(graph, counter.counts))
    for name, count in found.items():
        fields = [each for each in every if each.type == name and each.field is not None]
        said = [each for each in fields if each.meant is not None or count >= _CERTAIN]
        if said:
            # An optional field may be absent everywhere. With a name that was meant, it is hardly by intention.
            level = logging.WARNING if any(each.meant is not None for each in said) else logging.INFO
            _log.log(level, "%s, in a sample of %d: %s.", name, count, ". ".join(map(str, said)))
