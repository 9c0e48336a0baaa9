"""The requests that access paths become, as text."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from keygraph import Graph
from keygraph.engines.dynamodb.requests import render
from keygraph.lists.describe import path_request
from keygraph.lists.extent import Extent
from keygraph.lists.query import ListForm
from keygraph.lists.ranges import KeyArguments
from keygraph.lists.reading import read
from keygraph.model.paths import AccessPath

GRAPHS: list[Graph] = [
    import_module(f"keygraph_examples.{name}").graph for name in ("billing", "cargo", "commerce", "education")
]


@pytest.mark.parametrize(
    ("graph", "path"), [pytest.param(graph, path, id=repr(path)) for graph in GRAPHS for path in graph.paths]
)
def test_the_description_is_what_is_sent(graph: Graph, path: AccessPath) -> None:
    owner = tuple("7" for _ in path.owner.identity) if path.owner else None
    keys = KeyArguments({each.name: "7" for each in path.required})
    requests = next(read(ListForm(graph, path, keys, extent=Extent(1)).of(owner)))
    [wire] = render(requests[0], graph.table)
    described = path_request(graph, path)

    def filled(text: str | None) -> str | None:
        return None if text is None else re.sub(r"{\w+}", "7", text.replace("{shard}", "0"))

    def written(name: str) -> str | None:
        text = wire.body.get(name)
        for short, attribute in wire.body["ExpressionAttributeNames"].items():
            text = text and re.sub(rf"{short}\b", attribute, text)
        for short, typed in wire.body["ExpressionAttributeValues"].items():
            text = text and re.sub(rf"{short}\b", typed["S"], text)
        return text

    assert described.operation == wire.operation
    assert described.index == wire.body.get("IndexName")
    assert filled(described.keys) == written("KeyConditionExpression")
    assert filled(described.filter) == written("FilterExpression")
    assert described.times == len(requests)
