"""The documents' items, made anew from the values of their fields: attribute by attribute the same."""

from __future__ import annotations

import pytest

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.model.records import RecordType
from keygraph.writing.items import ItemMaker, Refusals
from tests.documents.samples import NAMES, graph_of, in_any_shard, sample_of, without_counted


@pytest.mark.parametrize("name", NAMES)
def test_an_item_that_is_written_is_the_documents_own(name: str) -> None:
    graph = graph_of(name)
    for item in sample_of(name):
        record = graph.recognise(item)
        assert record is not None
        made = without_counted(record, _made(graph, record, item))
        assert in_any_shard(record, made) == in_any_shard(record, item), item


def _made(graph: Graph, record: RecordType, item: Item) -> Item:
    """The item of the values that this one has."""
    values = {field.name: record.reader(field)(item) for field in record.fields.values()}
    values |= {end.name: record.end_identity(item, end) for end in record.ends.values()}
    refusals = Refusals()
    maker, at = ItemMaker(graph, record), refusals.at(())
    made, _ = maker.with_keys(maker.attributes(values, at), at)
    refusals.stop()
    return made
