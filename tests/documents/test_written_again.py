"""The documents' items, made anew from the values of their fields: attribute by attribute the same."""

from __future__ import annotations

import importlib

import pytest

from keygraph import Graph
from keygraph.dynamo.items import Item
from keygraph.model.records import RecordType
from keygraph.tables.interchange import Interchange
from keygraph.writing.items import ItemMaker, Refusals
from tests.documents.samples import files_of, in_any_shard, without_counted
from tests.documents.served import lines_of

MODELS = ("billing", "cargo", "commerce", "education", "social", "talent")


@pytest.mark.parametrize("name", MODELS)
def test_an_item_that_is_written_is_the_documents_own(name: str) -> None:
    graph: Graph = importlib.import_module(f"keygraph_examples.{name}").graph
    for line in lines_of(*files_of(name)):
        item = Interchange(graph).read(line)
        record = graph.recognise(item)
        assert record is not None
        made = without_counted(record, _made(graph, record, item))
        assert in_any_shard(record, made) == in_any_shard(record, item), line


def _made(graph: Graph, record: RecordType, item: Item) -> Item:
    """The item of the values that this one has."""
    values = {field.name: record.reader(field)(item) for field in record.fields.values()}
    values |= {end.name: record.end_identity(item, end) for end in record.ends.values()}
    refusals = Refusals()
    maker, at = ItemMaker(graph, record), refusals.at(())
    made, _ = maker.with_keys(maker.attributes(values, at), at)
    refusals.stop()
    return made
