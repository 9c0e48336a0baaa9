"""What the examples reach and rank: related products, a category's subtree, a container's boxes, a ship's, peers, people one may know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.engines.open import open_store
from keygraph.tables.interchange import Interchange
from tests.documents.pages import graph_of
from tests.documents.samples import files_of
from tests.documents.served import Served, lines_of


@pytest.fixture
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """The example of that name with its sample."""
    graph = graph_of(request.param)
    async with open_store(f"sqlite:{tmp_path}/sample.db", graph.table) as store:
        await store.send(CreateTable())
        interchange = Interchange(graph)
        items = tuple(interchange.read(line) for line in lines_of(*files_of(request.param)))
        await store.send(BatchWrite(items))
        yield Served(graph, store)


def ranked(found: Any, name: str) -> list[tuple[Any, ...]]:
    return [(each["node"][name], each["score"], each["paths"]) for each in found["edges"]]


@pytest.mark.parametrize("served", ["commerce"], indirect=True)
async def test_bought_together_and_below(served: Served) -> None:
    found = await served.ask("""{
      product(productId: "ABC123") { boughtTogether { edges { score paths node { productId } } } }
      category(categoryId: "electronics") { descendants { edges { distance node { categoryId } } } }
    }""")
    assert ranked(found["product"]["boughtTogether"], "productId") == [("JKL012", 3.0, 2)]
    assert [
        (each["node"]["categoryId"], each["distance"]) for each in found["category"]["descendants"]["edges"]
    ] == [
        ("accessories", 1),
        ("headphones", 1),
        ("speakers", 1),
        ("cables", 2),
        ("studio-headphones", 2),
        ("wireless-headphones", 2),
    ]


@pytest.mark.parametrize("served", ["cargo"], indirect=True)
async def test_boxes_of_a_container(served: Served) -> None:
    found = await served.ask('{ container(containerId: "009998") { boxes { totalCount nodes { boxId } } } }')
    assert found["container"]["boxes"] == {
        "totalCount": 3,
        "nodes": [{"boxId": name} for name in ("A03828", "A03829", "A03830")],
    }


@pytest.mark.parametrize("served", ["cargo"], indirect=True)
async def test_below_a_ship(served: Served) -> None:
    found = await served.ask("""{
      ship(shipId: "MARIA") {
        containers { nodes { containerId } }
        boxes { totalCount edges { distance node { boxId } } }
      }
      box(boxId: "A03831") { pallet { node { container { node { ship { node { name } } } } } } }
    }""")
    assert found["ship"] == {
        "containers": {"nodes": [{"containerId": "009998"}, {"containerId": "009999"}]},
        "boxes": {
            "totalCount": 5,
            "edges": [
                {"distance": 3, "node": {"boxId": name}}
                for name in ("A03828", "A03829", "A03830", "A03831", "A03832")
            ],
        },
    }
    assert found["box"]["pallet"]["node"]["container"]["node"]["ship"]["node"] == {"name": "Maria"}


@pytest.mark.parametrize("served", ["talent"], indirect=True)
async def test_peers(served: Served) -> None:
    found = await served.ask("""{ person(nodeId: 1) {
      peers { edges { score paths node { nodeId } } }
      skills { nodes { people { nodes { nodeId } } } }
    } }""")
    people = [
        each["nodeId"] for skill in found["person"]["skills"]["nodes"] for each in skill["people"]["nodes"]
    ]
    counted = sorted((-people.count(one), str(one), one) for one in {*people} if one != 1)
    assert [
        (-score, str(one), one) for one, score, _ in ranked(found["person"]["peers"], "nodeId")
    ] == counted
    assert len(counted) == 2


@pytest.mark.parametrize("served", ["social"], indirect=True)
async def test_people_one_may_know(served: Served) -> None:
    found = await served.ask("""{ user(userId: "Bob") {
      peopleYouMayKnow { edges { score paths node { name } } }
      network { edges { distance node { userId } } }
    } }""")
    assert ranked(found["user"]["peopleYouMayKnow"], "name") == [("Charlie Chaplin", 1.0, 1)]
    assert [(each["node"]["userId"], each["distance"]) for each in found["user"]["network"]["edges"]] == [
        ("Alice", 1),
        ("David", 1),
        ("Eve", 1),
        ("Charlie", 2),
    ]
