"""The guide's materialized graph: people by what their items say, over shards, and what people have in common.

The guide shows its items in figures alone, so those of the sample are made from its words.
"""

from __future__ import annotations

from typing import Any

import pytest

from keygraph_examples.talent import graph
from tests.conftest import MakeStore, in_one_world
from tests.documents.samples import files_of, serve
from tests.documents.served import Pattern, Served, patterns

SAMPLE = """
People by the beginning of their name
{ people(name: {beginsWith: "J"}) { nodes { nodeId name } } }
{"people": {"nodes": [{"nodeId": 9, "name": "Jonas Berg"}, {"nodeId": 1, "name": "Jorge Souza"},
  {"nodeId": 5, "name": "Julia Novak"}]}}
Query by-data: DataSet = NAME|0 AND begins_with(Data, J)
Query by-data: DataSet = NAME|1 AND begins_with(Data, J)

All people
{ people(direction: DESC) { totalCount nodes { name } } }
{"people": {"totalCount": 5, "nodes": [{"name": "Mei Tanaka"}, {"name": "Julia Novak"},
  {"name": "Jorge Souza"}, {"name": "Jonas Berg"}, {"name": "Amara Okafor"}]}}

People by birth date
{ peopleByDate(occasion: BIRTH, when: {from: "1980-01-01", to: "1989-12-31"}) {
  totalCount nodes { when person { nodeId name } day { nodeId } } } }
{"peopleByDate": {"totalCount": 3, "nodes": [
  {"when": "1980-12-19", "person": {"nodeId": 1, "name": "Jorge Souza"}, "day": {"nodeId": 2}},
  {"when": "1985-07-04", "person": {"nodeId": 5, "name": "Julia Novak"}, "day": {"nodeId": 6}},
  {"when": "1985-07-04", "person": {"nodeId": 13, "name": "Mei Tanaka"}, "day": {"nodeId": 6}}]}}
BatchGetItem 1 / NAME|1|PERSON, 13 / NAME|13|PERSON, 5 / NAME|5|PERSON
Count by-data: DataSet = DATE|BIRTH|0 AND Data BETWEEN 1980-01-01 AND 1989-12-31, of these Type = DATE AND begins_with(TypeTarget, DATE|)
Count by-data: DataSet = DATE|BIRTH|1 AND Data BETWEEN 1980-01-01 AND 1989-12-31, of these Type = DATE AND begins_with(TypeTarget, DATE|)
Count by-data: DataSet = DATE|BIRTH|2 AND Data BETWEEN 1980-01-01 AND 1989-12-31, of these Type = DATE AND begins_with(TypeTarget, DATE|)
Query by-data: DataSet = DATE|BIRTH|0 AND Data BETWEEN 1980-01-01 AND 1989-12-31
Query by-data: DataSet = DATE|BIRTH|1 AND Data BETWEEN 1980-01-01 AND 1989-12-31
Query by-data: DataSet = DATE|BIRTH|2 AND Data BETWEEN 1980-01-01 AND 1989-12-31

People by another occasion than their birth
{ peopleByDate(occasion: HIRED, when: {from: "2015-01-01"}) { nodes { when occasion person { nodeId } } } }
{"peopleByDate": {"nodes": [{"when": "2015-09-01", "occasion": "HIRED", "person": {"nodeId": 9}},
  {"when": "2015-09-01", "occasion": "HIRED", "person": {"nodeId": 1}}]}}

People by region
{ peopleByPlace(
  location: {beginsWith: "USA|WA|"}, where: {bond: {eq: HOME}}
  ) { nodes { location person { nodeId } } } }
{"peopleByPlace": {"nodes": [{"location": "USA|WA|Seattle", "person": {"nodeId": 5}},
  {"location": "USA|WA|Seattle", "person": {"nodeId": 1}}, {"location": "USA|WA|Spokane",
  "person": {"nodeId": 13}}, {"location": "USA|WA|Tacoma", "person": {"nodeId": 9}}]}}

People by skill
{ peopleBySkill(skillName: {eq: "Java"}) { nodes { skillName level person { name } } } }
{"peopleBySkill": {"nodes": [{"skillName": "Java", "level": "NOVICE", "person": {"name": "Mei Tanaka"}},
  {"skillName": "Java", "level": "SKILLED", "person": {"name": "Julia Novak"}},
  {"skillName": "Java", "level": "EXPERT", "person": {"name": "Jorge Souza"}}]}}
BatchGetItem 1 / NAME|1|PERSON, 13 / NAME|13|PERSON, 5 / NAME|5|PERSON
Query by-data: DataSet = SKILL|0 AND Data = Java
Query by-data: DataSet = SKILL|1 AND Data = Java
Query by-data: DataSet = SKILL|2 AND Data = Java
Query by-data: DataSet = SKILL|3 AND Data = Java

A person's edges of each kind
{ person(nodeId: 1) {
  name
  dates { edges { occasion when node { nodeId } } }
  places { edges { bond location node { nodeId } } }
  skills { edges { level skillName node { nodeId } } } } }
{"person": {"name": "Jorge Souza", "dates": {"edges": [{"occasion": "HIRED", "when": "2015-09-01",
  "node": {"nodeId": 16}}, {"occasion": "BIRTH", "when": "1980-12-19", "node": {"nodeId": 2}}]},
  "places": {"edges": [{"bond": "HOME", "location": "USA|WA|Seattle", "node": {"nodeId": 3}},
  {"bond": "BIRTH", "location": "BRA|SP|São Paulo", "node": {"nodeId": 7}}]},
  "skills": {"edges": [{"level": "EXPERT", "skillName": "Java", "node": {"nodeId": 4}}]}}}
GetItem 1 / NAME|1|PERSON
Query: NodeId = 1 AND begins_with(TypeTarget, DATE|)
Query: NodeId = 1 AND begins_with(TypeTarget, PLACE|)
Query: NodeId = 1 AND begins_with(TypeTarget, SKILL|)

A person's edges to one place
{ jonas: person(nodeId: 9) { places(placeNodeId: {eq: 3}) { edges { bond location } } }
  mei: person(nodeId: 13) { places(placeNodeId: {eq: 3}) { edges { bond location } } } }
{"jonas": {"places": {"edges": [{"bond": "WORK", "location": "USA|WA|Seattle"}]}},
  "mei": {"places": {"edges": []}}}

Who shares a place or a skill with a person
{ person(nodeId: 1) {
  places { edges { location node { people { edges { bond node { nodeId name } } } } } }
  skills { edges { skillName node { people { edges { level node { nodeId name } } } } } } } }
{"person": {"places": {"edges": [{"location": "USA|WA|Seattle",
  "node": {"people": {"edges": [{"bond": "HOME", "node": {"nodeId": 1, "name": "Jorge Souza"}},
  {"bond": "HOME", "node": {"nodeId": 5, "name": "Julia Novak"}},
  {"bond": "WORK", "node": {"nodeId": 9, "name": "Jonas Berg"}}]}}},
  {"location": "BRA|SP|São Paulo", "node": {"people": {"edges": [
  {"bond": "BIRTH", "node": {"nodeId": 1, "name": "Jorge Souza"}}]}}}]},
  "skills": {"edges": [{"skillName": "Java", "node": {"people": {"edges": [
  {"level": "EXPERT", "node": {"nodeId": 1, "name": "Jorge Souza"}},
  {"level": "NOVICE", "node": {"nodeId": 13, "name": "Mei Tanaka"}},
  {"level": "SKILLED", "node": {"nodeId": 5, "name": "Julia Novak"}}]}}}]}}}
BatchGetItem 13 / NAME|13|PERSON, 5 / NAME|5|PERSON, 9 / NAME|9|PERSON
GetItem 1 / NAME|1|PERSON
Query by-type-target: TargetSet = 0 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 0 AND begins_with(TypeTarget, PLACE|7|)
Query by-type-target: TargetSet = 0 AND begins_with(TypeTarget, SKILL|4|)
Query by-type-target: TargetSet = 1 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 1 AND begins_with(TypeTarget, PLACE|7|)
Query by-type-target: TargetSet = 1 AND begins_with(TypeTarget, SKILL|4|)
Query by-type-target: TargetSet = 2 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 2 AND begins_with(TypeTarget, PLACE|7|)
Query by-type-target: TargetSet = 2 AND begins_with(TypeTarget, SKILL|4|)
Query by-type-target: TargetSet = 3 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 3 AND begins_with(TypeTarget, PLACE|7|)
Query by-type-target: TargetSet = 3 AND begins_with(TypeTarget, SKILL|4|)
Query: NodeId = 1 AND begins_with(TypeTarget, PLACE|)
Query: NodeId = 1 AND begins_with(TypeTarget, SKILL|)

Who shares a birthday
{ day(nodeId: 6) { day people { totalCount edges { occasion node { name } } } } }
{"day": {"day": "1985-07-04", "people": {"totalCount": 2, "edges": [
  {"occasion": "BIRTH", "node": {"name": "Julia Novak"}}, {"occasion": "BIRTH",
  "node": {"name": "Mei Tanaka"}}]}}}

A node's neighbours with their state
{ place(nodeId: 3) { location people { edges {
  bond node { nodeId name skills { edges { level skillName } } } } } } }
{"place": {"location": "USA|WA|Seattle", "people": {"edges": [
  {"bond": "HOME", "node": {"nodeId": 1, "name": "Jorge Souza",
  "skills": {"edges": [{"level": "EXPERT", "skillName": "Java"}]}}},
  {"bond": "HOME", "node": {"nodeId": 5, "name": "Julia Novak",
  "skills": {"edges": [{"level": "SKILLED", "skillName": "Java"},
  {"level": "EXPERT", "skillName": "Python"}]}}}, {"bond": "WORK",
  "node": {"nodeId": 9, "name": "Jonas Berg", "skills": {"edges": [
  {"level": "NOVICE", "skillName": "Python"}]}}}]}}}
BatchGetItem 1 / NAME|1|PERSON, 5 / NAME|5|PERSON, 9 / NAME|9|PERSON
GetItem 3 / NAME|3|PLACE
Query by-type-target: TargetSet = 0 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 1 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 2 AND begins_with(TypeTarget, PLACE|3|)
Query by-type-target: TargetSet = 3 AND begins_with(TypeTarget, PLACE|3|)
Query: NodeId = 1 AND begins_with(TypeTarget, SKILL|)
Query: NodeId = 5 AND begins_with(TypeTarget, SKILL|)
Query: NodeId = 9 AND begins_with(TypeTarget, SKILL|)

Peers, by how many skills they share
{ person(nodeId: 1) {
  peers { edges { score paths node { nodeId } } }
  skills { nodes { people { nodes { nodeId } } } } } }
{"person": {"peers": {"edges": [{"score": 1.0, "paths": 1, "node": {"nodeId": 13}},
  {"score": 1.0, "paths": 1, "node": {"nodeId": 5}}]}, "skills": {"nodes": [
  {"people": {"nodes": [{"nodeId": 1}, {"nodeId": 13}, {"nodeId": 5}]}}]}}}
"""


@pytest.fixture
async def sample(make_store: MakeStore) -> Served:
    return await serve(graph, make_store, *files_of("talent"))


@in_one_world("pattern", patterns(SAMPLE))
async def test_each_question_is_answered(sample: Served, pattern: Pattern) -> None:
    await sample.answers(pattern)


async def test_people_by_place(sample: Served) -> None:
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
    assert {
        "Query by-data: DataSet = PLACE|0 AND Data = USA|WA|Seattle",
        "Query by-data: DataSet = PLACE|1 AND Data = USA|WA|Seattle",
    } <= set(sample.sent)


@in_one_world(
    ("list_", "item"),
    [
        ("people", "name"),
        ("peopleByDate(occasion: BIRTH)", "when person { nodeId }"),
        ("peopleByPlace", "location bond person { nodeId }"),
        ("peopleBySkill", "skillName person { nodeId }"),
    ],
)
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
async def test_page_by_page(sample: Served, list_: str, item: str, direction: str) -> None:
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
