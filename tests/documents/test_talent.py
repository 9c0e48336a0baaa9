"""The guide's materialized graph: people by what their items say, over shards, and what people have in common.

The guide shows its items in figures alone, so those of the sample are made from its words.
"""

from __future__ import annotations

from typing import Any

import pytest

from keygraph_examples.talent import graph
from tests.conftest import MakeStore
from tests.documents.samples import files_of, serve, types_of
from tests.documents.served import Served


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("talent"))


def queries(set_: str, shards: int, condition: str = "") -> list[str]:
    """The Queries of the index on names, one for each shard of a set."""
    return [f"Query by-data: DataSet = {set_}|{shard}{condition}" for shard in range(shards)]


def leading_to(target: str) -> list[str]:
    """The Queries for the edges that lead to a node, one for each shard."""
    return [
        f"Query by-type-target: TargetSet = {shard} AND begins_with(TypeTarget, {target}|)"
        for shard in range(4)
    ]


def test_every_item_is_of_a_declared_type() -> None:
    assert files_of("talent") == ["talent.described.jsonl"]
    assert types_of(graph, *files_of("talent")) == {
        "Person": 5,
        "Day": 5,
        "Place": 5,
        "Skill": 3,
        "PersonDate": 7,
        "PersonPlace": 7,
        "PersonSkill": 6,
    }


class TestPeopleByTheOverloadedIndex:
    async def test_by_the_beginning_of_their_name(self, sample: Served) -> None:
        assert await sample.ask('{ people(name: {beginsWith: "J"}) { nodes { nodeId name } } }') == {
            "people": {
                "nodes": [
                    {"nodeId": 9, "name": "Jonas Berg"},
                    {"nodeId": 1, "name": "Jorge Souza"},
                    {"nodeId": 5, "name": "Julia Novak"},
                ]
            }
        }
        assert sample.sent == queries("NAME", 2, " AND begins_with(Data, J)")

    async def test_all_of_them(self, sample: Served) -> None:
        assert await sample.ask("{ people(direction: DESC) { totalCount nodes { name } } }") == {
            "people": {
                "totalCount": 5,
                "nodes": [
                    {"name": name}
                    for name in ("Mei Tanaka", "Julia Novak", "Jorge Souza", "Jonas Berg", "Amara Okafor")
                ],
            }
        }

    async def test_by_birth_date(self, sample: Served) -> None:
        assert await sample.ask("""{
          peopleByDate(occasion: BIRTH, when: {from: "1980-01-01", to: "1989-12-31"}) {
            totalCount nodes { when person { nodeId name } day { nodeId } }
          }
        }""") == {
            "peopleByDate": {
                "totalCount": 3,
                "nodes": [
                    {
                        "when": "1980-12-19",
                        "person": {"nodeId": 1, "name": "Jorge Souza"},
                        "day": {"nodeId": 2},
                    },
                    {
                        "when": "1985-07-04",
                        "person": {"nodeId": 5, "name": "Julia Novak"},
                        "day": {"nodeId": 6},
                    },
                    {
                        "when": "1985-07-04",
                        "person": {"nodeId": 13, "name": "Mei Tanaka"},
                        "day": {"nodeId": 6},
                    },
                ],
            }
        }
        range_ = " AND Data BETWEEN 1980-01-01 AND 1989-12-31"
        assert [line for line in sample.sent if line.startswith("Query")] == queries("DATE|BIRTH", 3, range_)

    async def test_by_another_occasion(self, sample: Served) -> None:
        assert await sample.ask("""{ peopleByDate(occasion: HIRED, when: {from: "2015-01-01"}) {
          nodes { when occasion person { nodeId } }
        } }""") == {
            "peopleByDate": {
                "nodes": [
                    {"when": "2015-09-01", "occasion": "HIRED", "person": {"nodeId": 9}},
                    {"when": "2015-09-01", "occasion": "HIRED", "person": {"nodeId": 1}},
                ]
            }
        }

    async def test_by_place(self, sample: Served) -> None:
        """All have the same index key; DynamoDB does not say in which order those come."""
        answer = await sample.ask("""{ peopleByPlace(location: {eq: "USA|WA|Seattle"}) {
          totalCount nodes { bond person { nodeId name } }
        } }""")
        nodes = sorted(answer["peopleByPlace"]["nodes"], key=lambda node: node["person"]["nodeId"])
        assert answer["peopleByPlace"]["totalCount"] == 3
        assert nodes == [
            {"bond": "HOME", "person": {"nodeId": 1, "name": "Jorge Souza"}},
            {"bond": "HOME", "person": {"nodeId": 5, "name": "Julia Novak"}},
            {"bond": "WORK", "person": {"nodeId": 9, "name": "Jonas Berg"}},
        ]
        assert set(queries("PLACE", 2, " AND Data = USA|WA|Seattle")) <= set(sample.sent)

    async def test_by_region(self, sample: Served) -> None:
        assert await sample.ask("""{ peopleByPlace(
          location: {beginsWith: "USA|WA|"}, where: {bond: {eq: HOME}}
        ) { nodes { location person { nodeId } } } }""") == {
            "peopleByPlace": {
                "nodes": [
                    {"location": "USA|WA|Seattle", "person": {"nodeId": 5}},
                    {"location": "USA|WA|Seattle", "person": {"nodeId": 1}},
                    {"location": "USA|WA|Spokane", "person": {"nodeId": 13}},
                    {"location": "USA|WA|Tacoma", "person": {"nodeId": 9}},
                ]
            }
        }

    async def test_by_skill(self, sample: Served) -> None:
        assert await sample.ask("""{ peopleBySkill(skillName: {eq: "Java"}) {
          nodes { skillName level person { name } }
        } }""") == {
            "peopleBySkill": {
                "nodes": [
                    {"skillName": "Java", "level": "NOVICE", "person": {"name": "Mei Tanaka"}},
                    {"skillName": "Java", "level": "SKILLED", "person": {"name": "Julia Novak"}},
                    {"skillName": "Java", "level": "EXPERT", "person": {"name": "Jorge Souza"}},
                ]
            }
        }
        assert sample.sent == [
            "BatchGetItem 1 / NAME|1|PERSON, 13 / NAME|13|PERSON, 5 / NAME|5|PERSON",
            *queries("SKILL", 4, " AND Data = Java"),
        ]

    @pytest.mark.parametrize(
        ("list_", "item"),
        [
            ("people", "name"),
            ("peopleByDate(occasion: BIRTH)", "when person { nodeId }"),
            ("peopleByPlace", "location bond person { nodeId }"),
            ("peopleBySkill", "skillName person { nodeId }"),
        ],
    )
    @pytest.mark.parametrize("direction", ["ASC", "DESC"])
    async def test_page_by_page(self, sample: Served, list_: str, item: str, direction: str) -> None:
        name, _, arguments = list_.partition("(")

        async def page(first: int, after: str | None) -> Any:
            given = f"first: {first}, direction: {direction}" + (f', after: "{after}"' if after else "")
            asked = f"{name}({arguments.removesuffix(')')} {given})"
            fields = f"edges {{ node {{ {item} }} }} pageInfo {{ hasNextPage endCursor }}"
            return (await sample.ask(f"{{ {asked} {{ {fields} }} }}"))[name]

        whole = (await page(100, None))["edges"]
        found: list[Any] = []
        after, more = None, True
        while more:
            part = await page(2, after)
            found += part["edges"]
            after, more = part["pageInfo"]["endCursor"], part["pageInfo"]["hasNextPage"]
        assert found == whole
        assert len(found) >= 5


class TestAPersonsEdges:
    async def test_of_each_kind(self, sample: Served) -> None:
        assert await sample.ask("""{ person(nodeId: 1) {
          name
          dates { edges { occasion when node { nodeId } } }
          places { edges { bond location node { nodeId } } }
          skills { edges { level skillName node { nodeId } } }
        } }""") == {
            "person": {
                "name": "Jorge Souza",
                "dates": {
                    "edges": [
                        {"occasion": "HIRED", "when": "2015-09-01", "node": {"nodeId": 16}},
                        {"occasion": "BIRTH", "when": "1980-12-19", "node": {"nodeId": 2}},
                    ]
                },
                "places": {
                    "edges": [
                        {"bond": "HOME", "location": "USA|WA|Seattle", "node": {"nodeId": 3}},
                        {"bond": "BIRTH", "location": "BRA|SP|São Paulo", "node": {"nodeId": 7}},
                    ]
                },
                "skills": {"edges": [{"level": "EXPERT", "skillName": "Java", "node": {"nodeId": 4}}]},
            }
        }
        assert sample.sent == [
            "GetItem 1 / NAME|1|PERSON",
            "Query: NodeId = 1 AND begins_with(TypeTarget, DATE|)",
            "Query: NodeId = 1 AND begins_with(TypeTarget, PLACE|)",
            "Query: NodeId = 1 AND begins_with(TypeTarget, SKILL|)",
        ]

    async def test_to_one_place(self, sample: Served) -> None:
        asked = "places(placeNodeId: {eq: 3}) { edges { bond location } }"
        assert await sample.ask(
            f"{{ jonas: person(nodeId: 9) {{ {asked} }} mei: person(nodeId: 13) {{ {asked} }} }}"
        ) == {
            "jonas": {"places": {"edges": [{"bond": "WORK", "location": "USA|WA|Seattle"}]}},
            "mei": {"places": {"edges": []}},
        }


class TestWhatIsShared:
    async def test_who_shares_a_place_or_a_skill_with_a_person(self, sample: Served) -> None:
        jorge = {"node": {"nodeId": 1, "name": "Jorge Souza"}}
        julia = {"node": {"nodeId": 5, "name": "Julia Novak"}}
        jonas = {"node": {"nodeId": 9, "name": "Jonas Berg"}}
        mei = {"node": {"nodeId": 13, "name": "Mei Tanaka"}}
        assert await sample.ask("""{ person(nodeId: 1) {
          places { edges { location node { people { edges { bond node { nodeId name } } } } } }
          skills { edges { skillName node { people { edges { level node { nodeId name } } } } } }
        } }""") == {
            "person": {
                "places": {
                    "edges": [
                        {
                            "location": "USA|WA|Seattle",
                            "node": {
                                "people": {
                                    "edges": [
                                        {"bond": "HOME", **jorge},
                                        {"bond": "HOME", **julia},
                                        {"bond": "WORK", **jonas},
                                    ]
                                }
                            },
                        },
                        {
                            "location": "BRA|SP|São Paulo",
                            "node": {"people": {"edges": [{"bond": "BIRTH", **jorge}]}},
                        },
                    ]
                },
                "skills": {
                    "edges": [
                        {
                            "skillName": "Java",
                            "node": {
                                "people": {
                                    "edges": [
                                        {"level": "EXPERT", **jorge},
                                        {"level": "NOVICE", **mei},
                                        {"level": "SKILLED", **julia},
                                    ]
                                }
                            },
                        }
                    ]
                },
            }
        }
        assert sample.sent == sorted(
            [
                "BatchGetItem 13 / NAME|13|PERSON, 5 / NAME|5|PERSON, 9 / NAME|9|PERSON",
                "GetItem 1 / NAME|1|PERSON",
                "Query: NodeId = 1 AND begins_with(TypeTarget, PLACE|)",
                "Query: NodeId = 1 AND begins_with(TypeTarget, SKILL|)",
                *leading_to("PLACE|3"),
                *leading_to("PLACE|7"),
                *leading_to("SKILL|4"),
            ]
        )

    async def test_who_shares_a_birthday(self, sample: Served) -> None:
        assert await sample.ask("""{ day(nodeId: 6) { day people { totalCount edges {
          occasion node { name }
        } } } }""") == {
            "day": {
                "day": "1985-07-04",
                "people": {
                    "totalCount": 2,
                    "edges": [
                        {"occasion": "BIRTH", "node": {"name": "Julia Novak"}},
                        {"occasion": "BIRTH", "node": {"name": "Mei Tanaka"}},
                    ],
                },
            }
        }


class TestNeighboursState:
    async def test_a_nodes_neighbours_with_their_state(self, sample: Served) -> None:
        assert await sample.ask("""{ place(nodeId: 3) { location people { edges {
          bond node { nodeId name skills { edges { level skillName } } }
        } } } }""") == {
            "place": {
                "location": "USA|WA|Seattle",
                "people": {
                    "edges": [
                        {
                            "bond": "HOME",
                            "node": {
                                "nodeId": 1,
                                "name": "Jorge Souza",
                                "skills": {"edges": [{"level": "EXPERT", "skillName": "Java"}]},
                            },
                        },
                        {
                            "bond": "HOME",
                            "node": {
                                "nodeId": 5,
                                "name": "Julia Novak",
                                "skills": {
                                    "edges": [
                                        {"level": "SKILLED", "skillName": "Java"},
                                        {"level": "EXPERT", "skillName": "Python"},
                                    ]
                                },
                            },
                        },
                        {
                            "bond": "WORK",
                            "node": {
                                "nodeId": 9,
                                "name": "Jonas Berg",
                                "skills": {"edges": [{"level": "NOVICE", "skillName": "Python"}]},
                            },
                        },
                    ]
                },
            }
        }
        assert sample.sent == sorted(
            [
                "BatchGetItem 1 / NAME|1|PERSON, 5 / NAME|5|PERSON, 9 / NAME|9|PERSON",
                "GetItem 3 / NAME|3|PLACE",
                *(f"Query: NodeId = {person} AND begins_with(TypeTarget, SKILL|)" for person in (1, 5, 9)),
                *leading_to("PLACE|3"),
            ]
        )
