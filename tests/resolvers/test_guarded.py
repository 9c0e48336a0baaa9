"""One answer for each viewer, under random rules. `tests.resolvers.guarded` asks more."""

from __future__ import annotations

from random import Random

import pytest

from keygraph import Graph
from keygraph.model.records import RecordType
from tests.resolvers.differential import model
from tests.resolvers.guarded import MODELS
from tests.resolvers.made_items import made_items
from tests.resolvers.made_rules import declared, made_rules


@pytest.mark.parametrize("name", MODELS)
def test_a_type_that_is_not_listed_is_told(name: str) -> None:
    schema, sample = model(name)
    graph, random = schema.graph, Random(name)
    rules = made_rules(graph, made_items(graph, sample, random, awkward=False), random, writes=True)
    rules.wall = []
    classes = [record.cls for record in graph.types.values()]
    with declared(graph, rules):
        for left_out in classes:
            others = [each for each in classes if each is not left_out]
            formats, type_attribute = graph.options.get("formats"), graph.type_attribute
            made = Graph(graph.table, *others, formats=formats, type_attribute=type_attribute)
            about = {each.where.partition(".")[0] for each in made.mistakes}
            named = {record.name for record in graph.types.values() if left_out in _classes_at(record)}
            assert named - {left_out.__name__} <= about


def _classes_at(record: RecordType) -> set[type]:
    return {member.cls for end in record.ends.values() for member in end.members}
