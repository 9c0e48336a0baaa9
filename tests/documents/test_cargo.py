"""The article on banana containers: its steps and its reverse lookups, each as one GraphQL query.

`article` has the article's own items alone, `sample` has them among what makes them one.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from keygraph_examples.cargo import graph
from tests.conftest import MakeStore
from tests.documents.samples import files_of, read_as_json, serve, types_of
from tests.documents.served import Served, counted

CONTAINER = "GetItem CONTAINER_009998 / CONTAINER_009998"
PALLET = "GetItem PALLET_B021002 / PALLET_B021002"
PALLETS = "Query: objectId = CONTAINER_009998 AND begins_with(relatedObjectId, PALLET_)"
BOXES = "Query: objectId = PALLET_B021002 AND begins_with(relatedObjectId, BOX_)"

DOCUMENT = [
    {
        "objectId": "CONTAINER_009998",
        "relatedObjectId": "CONTAINER_009998",
        "Operator": "TheBoatingCompany",
    },
    {
        "objectId": "CONTAINER_009998",
        "relatedObjectId": "PALLET_B021002",
        "LinkedDatetime": "2022-07-19T17:59:58Z",
        "LinkedBy": "MyLoadingCompany",
        "LinkedAtLocation": "JPA.Docks",
    },
    {
        "objectId": "CONTAINER_009998",
        "relatedObjectId": "PALLET_B021003",
        "LinkedDatetime": "2022-07-19T18:01:58Z",
        "LinkedBy": "MyLoadingCompany",
        "LinkedAtLocation": "JPA.Docks",
    },
    {
        "objectId": "PALLET_B021002",
        "relatedObjectId": "PALLET_B021002",
        "Origin": "BR",
        "Destination": "DE",
    },
    {
        "objectId": "PALLET_B021002",
        "relatedObjectId": "BOX_A03828",
        "LinkedDatetime": "2022-07-19T10:13:12Z",
        "LinkedBy": "MyWarehouseCompany",
        "LinkedAtLocation": "TheWarehouseBuilding",
    },
    {
        "objectId": "PALLET_B021002",
        "relatedObjectId": "BOX_A03829",
        "LinkedDatetime": "2022-07-19T10:13:34Z",
        "LinkedBy": "MyWarehouseCompany",
        "LinkedAtLocation": "TheWarehouseBuilding",
    },
    {
        "objectId": "BOX_A03828",
        "relatedObjectId": "BOX_A03828",
        "WeightInKg": Decimal("20.56"),
        "IsDangerous": False,
    },
    {
        "objectId": "BOX_A03829",
        "relatedObjectId": "BOX_A03829",
        "WeightInKg": Decimal("21.20"),
        "IsDangerous": False,
    },
]


@pytest.fixture
async def article(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, "cargo.jsonl")


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("cargo"))


def test_the_items_are_the_articles() -> None:
    items = read_as_json("cargo.jsonl")
    assert items == DOCUMENT
    assert str(items[-1]["WeightInKg"]) == "21.20"


def test_every_item_is_of_a_declared_type() -> None:
    assert types_of(graph, "cargo.jsonl") == {
        "Container": 1,
        "Pallet": 1,
        "Box": 2,
        "ContainerPallet": 2,
        "PalletBox": 2,
    }
    assert types_of(graph, "cargo.described.jsonl") == {
        "Ship": 1,
        "Port": 1,
        "Container": 1,
        "Pallet": 3,
        "Box": 4,
        "PortCall": 1,
        "ShipContainer": 2,
        "ContainerPallet": 1,
        "PalletBox": 3,
    }


class TestTheArticlesSteps:
    async def test_a_container_by_its_id(self, article: Served) -> None:
        assert await article.ask('{ container(containerId: "009998") { containerId operator } }') == {
            "container": {"containerId": "009998", "operator": "TheBoatingCompany"}
        }
        assert article.sent == [CONTAINER]

    async def test_things_of_each_kind_may_have_one_identifier(self, article: Served) -> None:
        assert await article.ask("""{
          pallet(palletId: "B021002") { origin destination }
          other: pallet(palletId: "A03828") { origin }
          box(boxId: "A03828") { weightInKg isDangerous }
        }""") == {
            "pallet": {"origin": "BR", "destination": "DE"},
            "other": None,
            "box": {"weightInKg": "20.56", "isDangerous": False},
        }

    async def test_a_containers_pallets_with_who_linked_them_and_when(self, article: Served) -> None:
        assert await article.ask("""{ container(containerId: "009998") { pallets {
          totalCount edges { linkedDatetime linkedBy linkedAtLocation node { palletId } }
        } } }""") == {
            "container": {
                "pallets": {
                    "totalCount": 2,
                    "edges": [
                        {
                            "linkedDatetime": "2022-07-19T17:59:58Z",
                            "linkedBy": "MyLoadingCompany",
                            "linkedAtLocation": "JPA.Docks",
                            "node": {"palletId": "B021002"},
                        },
                        {
                            "linkedDatetime": "2022-07-19T18:01:58Z",
                            "linkedBy": "MyLoadingCompany",
                            "linkedAtLocation": "JPA.Docks",
                            "node": {"palletId": "B021003"},
                        },
                    ],
                }
            }
        }
        assert article.sent == [counted(PALLETS), CONTAINER, PALLETS]

    async def test_a_pallet_that_has_no_item_of_its_own(self, article: Served) -> None:
        assert await article.ask("""{ container(containerId: "009998") { pallets {
          totalCount edges { linkedBy node { palletId origin } } nodes { palletId origin }
        } } }""") == {
            "container": {
                "pallets": {
                    "totalCount": 2,
                    "edges": [
                        {"linkedBy": "MyLoadingCompany", "node": {"palletId": "B021002", "origin": "BR"}},
                        {"linkedBy": "MyLoadingCompany", "node": None},
                    ],
                    "nodes": [{"palletId": "B021002", "origin": "BR"}],
                }
            }
        }


class TestReverseLookups:
    async def test_a_pallets_boxes_and_its_container(self, article: Served) -> None:
        assert await article.ask("""{ pallet(palletId: "B021002") {
          origin
          boxes { edges { linkedDatetime linkedAtLocation node { boxId weightInKg } } }
          container { linkedDatetime linkedBy node { containerId operator } }
        } }""") == {
            "pallet": {
                "origin": "BR",
                "boxes": {
                    "edges": [
                        {
                            "linkedDatetime": "2022-07-19T10:13:12Z",
                            "linkedAtLocation": "TheWarehouseBuilding",
                            "node": {"boxId": "A03828", "weightInKg": "20.56"},
                        },
                        {
                            "linkedDatetime": "2022-07-19T10:13:34Z",
                            "linkedAtLocation": "TheWarehouseBuilding",
                            "node": {"boxId": "A03829", "weightInKg": "21.2"},
                        },
                    ]
                },
                "container": {
                    "linkedDatetime": "2022-07-19T17:59:58Z",
                    "linkedBy": "MyLoadingCompany",
                    "node": {"containerId": "009998", "operator": "TheBoatingCompany"},
                },
            }
        }
        assert len(article.sent) == 4
        assert {
            PALLET,
            BOXES,
            "Query reverse-lookup-index: relatedObjectId = PALLET_B021002 AND begins_with(objectId, CONTAINER_)",
        } <= set(article.sent)

    async def test_a_boxs_pallets_container(self, article: Served) -> None:
        assert await article.ask("""{ box(boxId: "A03829") { pallet {
          linkedBy node { palletId container { linkedAtLocation node { containerId operator } } }
        } } }""") == {
            "box": {
                "pallet": {
                    "linkedBy": "MyWarehouseCompany",
                    "node": {
                        "palletId": "B021002",
                        "container": {
                            "linkedAtLocation": "JPA.Docks",
                            "node": {"containerId": "009998", "operator": "TheBoatingCompany"},
                        },
                    },
                }
            }
        }
        assert article.sent == [
            "GetItem BOX_A03829 / BOX_A03829",
            CONTAINER,
            "Query reverse-lookup-index: relatedObjectId = BOX_A03829 AND begins_with(objectId, PALLET_)",
            "Query reverse-lookup-index: relatedObjectId = PALLET_B021002 AND begins_with(objectId, CONTAINER_)",
        ]

    async def test_what_is_in_nothing_has_none(self, sample: Served) -> None:
        assert await sample.ask("""{
          box(boxId: "A03833") { weightInKg pallet { linkedBy } }
          pallet(palletId: "B021005") { container { linkedBy } boxes { totalCount nodes { boxId } } }
        }""") == {
            "box": {"weightInKg": "20", "pallet": None},
            "pallet": {"container": None, "boxes": {"totalCount": 0, "nodes": []}},
        }


class TestNested:
    async def test_a_container_with_its_pallets_and_their_boxes(self, article: Served) -> None:
        assert await article.ask("""{ container(containerId: "009998") { operator pallets { edges {
          linkedBy node { palletId boxes { edges { linkedBy node { boxId weightInKg isDangerous } } } }
        } } } }""") == {
            "container": {
                "operator": "TheBoatingCompany",
                "pallets": {
                    "edges": [
                        {
                            "linkedBy": "MyLoadingCompany",
                            "node": {
                                "palletId": "B021002",
                                "boxes": {
                                    "edges": [
                                        {
                                            "linkedBy": "MyWarehouseCompany",
                                            "node": {
                                                "boxId": "A03828",
                                                "weightInKg": "20.56",
                                                "isDangerous": False,
                                            },
                                        },
                                        {
                                            "linkedBy": "MyWarehouseCompany",
                                            "node": {
                                                "boxId": "A03829",
                                                "weightInKg": "21.2",
                                                "isDangerous": False,
                                            },
                                        },
                                    ]
                                },
                            },
                        },
                        {
                            "linkedBy": "MyLoadingCompany",
                            "node": {"palletId": "B021003", "boxes": {"edges": []}},
                        },
                    ]
                },
            }
        }
        assert article.sent == [
            "BatchGetItem BOX_A03828 / BOX_A03828, BOX_A03829 / BOX_A03829",
            CONTAINER,
            PALLETS,
            BOXES,
            "Query: objectId = PALLET_B021003 AND begins_with(relatedObjectId, BOX_)",
        ]

    async def test_containers_with_their_pallets_and_boxes(self, sample: Served) -> None:
        first, second = await id_of(sample, "009998"), await id_of(sample, "009999")
        assert await sample.ask(f"""{{ nodes(ids: ["{first}", "{second}"]) {{ ... on Container {{
          operator pallets {{ nodes {{ palletId boxes {{ nodes {{ boxId weightInKg }} }} }} }}
        }} }} }}""") == {
            "nodes": [
                {
                    "operator": "TheBoatingCompany",
                    "pallets": {
                        "nodes": [
                            {
                                "palletId": "B021002",
                                "boxes": {
                                    "nodes": [
                                        {"boxId": "A03828", "weightInKg": "20.56"},
                                        {"boxId": "A03829", "weightInKg": "21.2"},
                                    ]
                                },
                            },
                            {
                                "palletId": "B021003",
                                "boxes": {"nodes": [{"boxId": "A03830", "weightInKg": "19.85"}]},
                            },
                        ]
                    },
                },
                {
                    "operator": "TheOtherBoatingCompany",
                    "pallets": {
                        "nodes": [
                            {
                                "palletId": "B021004",
                                "boxes": {
                                    "nodes": [
                                        {"boxId": "A03831", "weightInKg": "20.1"},
                                        {"boxId": "A03832", "weightInKg": "22.75"},
                                    ]
                                },
                            }
                        ]
                    },
                },
            ]
        }
        operations = [wire.operation for wire in sample.wires]
        assert sorted(operations) == ["BatchGetItem"] * 2 + ["Query"] * 5


async def id_of(served: Served, container: str) -> str:
    """The global id of a container."""
    answer = await served.ask(f'{{ container(containerId: "{container}") {{ id }} }}')
    return str(answer["container"]["id"])
