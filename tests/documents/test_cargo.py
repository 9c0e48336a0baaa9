"""The article on banana containers: its steps and its reverse lookups, each as one GraphQL query.

`ARTICLE` is asked of the article's own items alone, `SAMPLE` of them among what makes them one.
"""

from __future__ import annotations

from keygraph_examples.cargo import graph
from tests.conftest import MakeStore, in_one_world
from tests.documents.samples import files_of, serve
from tests.documents.served import Pattern, patterns

ARTICLE = """
A container by its id
{ container(containerId: "009998") { containerId operator } }
{"container": {"containerId": "009998", "operator": "TheBoatingCompany"}}
GetItem CONTAINER_009998 / CONTAINER_009998

Things of each kind may have one identifier
{ pallet(palletId: "B021002") { origin destination }
  other: pallet(palletId: "A03828") { origin }
  box(boxId: "A03828") { weightInKg isDangerous } }
{"pallet": {"origin": "BR", "destination": "DE"}, "other": null,
  "box": {"weightInKg": "20.56", "isDangerous": false}}

A container's pallets, with who linked them and when
{ container(containerId: "009998") { pallets {
  totalCount edges { linkedDatetime linkedBy linkedAtLocation node { palletId } } } } }
{"container": {"pallets": {"totalCount": 2, "edges": [{"linkedDatetime": "2022-07-19T17:59:58Z",
  "linkedBy": "MyLoadingCompany", "linkedAtLocation": "JPA.Docks", "node": {"palletId": "B021002"}},
  {"linkedDatetime": "2022-07-19T18:01:58Z", "linkedBy": "MyLoadingCompany", "linkedAtLocation": "JPA.Docks",
  "node": {"palletId": "B021003"}}]}}}
Count: objectId = CONTAINER_009998 AND relatedObjectId BETWEEN PALLET_\0 AND PALLET_\U0010ffff
GetItem CONTAINER_009998 / CONTAINER_009998
Query: objectId = CONTAINER_009998 AND begins_with(relatedObjectId, PALLET_)

A pallet that has no item of its own
{ container(containerId: "009998") { pallets {
  totalCount edges { linkedBy node { palletId origin } } nodes { palletId origin } } } }
{"container": {"pallets": {"totalCount": 2, "edges": [{"linkedBy": "MyLoadingCompany",
  "node": {"palletId": "B021002", "origin": "BR"}}, {"linkedBy": "MyLoadingCompany", "node": null}],
  "nodes": [{"palletId": "B021002", "origin": "BR"}]}}}

A pallet's boxes and its container
{ pallet(palletId: "B021002") {
  origin
  boxes { edges { linkedDatetime linkedAtLocation node { boxId weightInKg } } }
  container { linkedDatetime linkedBy node { containerId operator } } } }
{"pallet": {"origin": "BR", "boxes": {"edges": [
  {"linkedDatetime": "2022-07-19T10:13:12Z", "linkedAtLocation": "TheWarehouseBuilding",
  "node": {"boxId": "A03828", "weightInKg": "20.56"}},
  {"linkedDatetime": "2022-07-19T10:13:34Z", "linkedAtLocation": "TheWarehouseBuilding",
  "node": {"boxId": "A03829", "weightInKg": "21.2"}}]},
  "container": {"linkedDatetime": "2022-07-19T17:59:58Z", "linkedBy": "MyLoadingCompany",
  "node": {"containerId": "009998", "operator": "TheBoatingCompany"}}}}
BatchGetItem BOX_A03828 / BOX_A03828, BOX_A03829 / BOX_A03829, CONTAINER_009998 / CONTAINER_009998
GetItem PALLET_B021002 / PALLET_B021002
Query reverse-lookup-index: relatedObjectId = PALLET_B021002 AND begins_with(objectId, CONTAINER_)
Query: objectId = PALLET_B021002 AND begins_with(relatedObjectId, BOX_)

A box's pallet's container
{ box(boxId: "A03829") { pallet {
  linkedBy node { palletId container { linkedAtLocation node { containerId operator } } } } } }
{"box": {"pallet": {"linkedBy": "MyWarehouseCompany", "node": {"palletId": "B021002",
  "container": {"linkedAtLocation": "JPA.Docks", "node": {"containerId": "009998",
  "operator": "TheBoatingCompany"}}}}}}
GetItem BOX_A03829 / BOX_A03829
GetItem CONTAINER_009998 / CONTAINER_009998
Query reverse-lookup-index: relatedObjectId = BOX_A03829 AND begins_with(objectId, PALLET_)
Query reverse-lookup-index: relatedObjectId = PALLET_B021002 AND begins_with(objectId, CONTAINER_)

A container with its pallets and their boxes
{ container(containerId: "009998") { operator pallets { edges {
  linkedBy node { palletId boxes { edges { linkedBy node { boxId weightInKg isDangerous } } } } } } } }
{"container": {"operator": "TheBoatingCompany", "pallets": {"edges": [
  {"linkedBy": "MyLoadingCompany", "node": {"palletId": "B021002",
  "boxes": {"edges": [{"linkedBy": "MyWarehouseCompany", "node": {"boxId": "A03828", "weightInKg": "20.56",
  "isDangerous": false}}, {"linkedBy": "MyWarehouseCompany", "node": {"boxId": "A03829", "weightInKg": "21.2",
  "isDangerous": false}}]}}}, {"linkedBy": "MyLoadingCompany",
  "node": {"palletId": "B021003", "boxes": {"edges": []}}}]}}}
BatchGetItem BOX_A03828 / BOX_A03828, BOX_A03829 / BOX_A03829
GetItem CONTAINER_009998 / CONTAINER_009998
Query: objectId = CONTAINER_009998 AND begins_with(relatedObjectId, PALLET_)
Query: objectId = PALLET_B021002 AND begins_with(relatedObjectId, BOX_)
Query: objectId = PALLET_B021003 AND begins_with(relatedObjectId, BOX_)
"""

SAMPLE = """
What is in nothing has none
{ box(boxId: "A03833") { weightInKg pallet { linkedBy } }
  pallet(palletId: "B021005") { container { linkedBy } boxes { totalCount nodes { boxId } } } }
{"box": {"weightInKg": "20", "pallet": null}, "pallet": {"container": null,
  "boxes": {"totalCount": 0, "nodes": []}}}

Containers with their pallets and boxes
{ nodes(ids: ["WyJDb250YWluZXIiLCIwMDk5OTgiXQ", "WyJDb250YWluZXIiLCIwMDk5OTkiXQ"]) { ... on Container {
  operator pallets { nodes { palletId boxes { nodes { boxId weightInKg } } } } } } }
{"nodes": [{"operator": "TheBoatingCompany", "pallets": {"nodes": [
  {"palletId": "B021002", "boxes": {"nodes": [{"boxId": "A03828", "weightInKg": "20.56"},
  {"boxId": "A03829", "weightInKg": "21.2"}]}},
  {"palletId": "B021003", "boxes": {"nodes": [{"boxId": "A03830", "weightInKg": "19.85"}]}}]}},
  {"operator": "TheOtherBoatingCompany", "pallets": {"nodes": [
  {"palletId": "B021004", "boxes": {"nodes": [{"boxId": "A03831", "weightInKg": "20.1"},
  {"boxId": "A03832", "weightInKg": "22.75"}]}}]}}]}
BatchGetItem BOX_A03828 / BOX_A03828, BOX_A03829 / BOX_A03829, BOX_A03830 / BOX_A03830, BOX_A03831 / BOX_A03831, BOX_A03832 / BOX_A03832
BatchGetItem CONTAINER_009998 / CONTAINER_009998, CONTAINER_009999 / CONTAINER_009999
Query: objectId = CONTAINER_009998 AND begins_with(relatedObjectId, PALLET_)
Query: objectId = CONTAINER_009999 AND begins_with(relatedObjectId, PALLET_)
Query: objectId = PALLET_B021002 AND begins_with(relatedObjectId, BOX_)
Query: objectId = PALLET_B021003 AND begins_with(relatedObjectId, BOX_)
Query: objectId = PALLET_B021004 AND begins_with(relatedObjectId, BOX_)

The boxes of a container
{ container(containerId: "009998") { boxes { totalCount nodes { boxId } } } }
{"container": {"boxes": {"totalCount": 3, "nodes": [{"boxId": "A03828"}, {"boxId": "A03829"},
  {"boxId": "A03830"}]}}}

What is below a ship, and what is above a box
{ ship(shipId: "MARIA") {
  containers { nodes { containerId } }
  boxes { totalCount edges { distance node { boxId } } } }
  box(boxId: "A03831") { pallet { node { container { node { ship { node { name } } } } } } } }
{"ship": {"containers": {"nodes": [{"containerId": "009998"}, {"containerId": "009999"}]},
  "boxes": {"totalCount": 5, "edges": [{"distance": 3, "node": {"boxId": "A03828"}},
  {"distance": 3, "node": {"boxId": "A03829"}}, {"distance": 3, "node": {"boxId": "A03830"}},
  {"distance": 3, "node": {"boxId": "A03831"}}, {"distance": 3, "node": {"boxId": "A03832"}}]}},
  "box": {"pallet": {"node": {"container": {"node": {"ship": {"node": {"name": "Maria"}}}}}}}}
"""


@in_one_world("pattern", patterns(ARTICLE))
async def test_each_step_is_answered_from_the_article(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, "cargo.jsonl")).answers(pattern)


@in_one_world("pattern", patterns(SAMPLE))
async def test_each_step_is_answered_from_the_sample(make_store: MakeStore, pattern: Pattern) -> None:
    await (await serve(graph, make_store, *files_of("cargo"))).answers(pattern)
