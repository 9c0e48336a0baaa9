"""Walks, paths and what is in common over lists that are spread over shards; NetworkX says what is right."""

from __future__ import annotations

from pathlib import Path
from random import Random

import networkx as nx
import pytest

from keygraph import ID, Graph, Index, Many, Ranked, Reach, Table, edge, many, node, ranked, reach
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.open import open_store
from keygraph_resolvers import OperationRequest
from tests.resolvers.worlds import within_bound, world

backward = Index("backward", "BPK", "BSK")


@node("PERSON#{name}")
class Person:
    name: ID
    knows: Many[Knows] = many(at="one")
    network: Reach[Person] = reach("knows", depth=3)
    second: Ranked[Person] = ranked("knows", "knows", include_first=True)


@edge(
    "{one}#{shard}",
    "KNOWS#{other.name}",
    backward("{other}#{shard}", "BY#{one.name}", shards=2),
    shards=3,
)
class Knows:
    one: Person
    other: Person


graph = Graph(
    Table("Sharded", partition_key="PK", sort_key="SK", indexes=[backward]), Person, Knows, paths=True
)
DOCUMENT = """query ($one: ID!, $other: ID!) {
  person(name: $one) {
    network(first: 100) { totalCount edges { distance node { name } } }
    second(first: 100) { edges { score node { name } } }
    knows(alsoOf: [$other], first: 100) { totalCount nodes { name } }
  }
  path(from: $one, to: $other, via: [PERSON_KNOWS], maxLength: 6) { length nodes { ... on Person { name } } }
}"""


@pytest.mark.parametrize("budget", [60, 10_000])
async def test_what_is_spread_is_walked(tmp_path: Path, budget: int) -> None:
    random = Random(budget)
    drawn = nx.gnp_random_graph(20, 0.15, seed=budget, directed=True)
    drawn.add_edges_from((each, each) for each in (1, 4))
    async with open_store(f"sqlite:{tmp_path}/sharded.db", graph.table) as store:
        await store.send(CreateTable())
        people = world(graph, store, read_budget=budget)
        items: list[Item] = [{"PK": f"PERSON#{one}", "SK": f"PERSON#{one}"} for one in drawn]
        for one, other in drawn.edges:
            keys = {"PK": f"PERSON#{one}#{random.randrange(3)}", "SK": f"KNOWS#{other}"}
            items.append({**keys, "BPK": f"PERSON#{other}#{random.randrange(2)}", "BSK": f"BY#{one}"})
        await people.put(*items)
        for _ in range(4):
            one, other = random.sample([*drawn], 2)
            answer = await people.service.execute(
                OperationRequest(DOCUMENT, {"one": str(one), "other": str(other)}, with_cost=True)
            )
            within_bound(answer)
            if budget < 10_000:
                continue
            person, path = answer["data"]["person"], answer["data"]["path"]
            near = nx.single_source_shortest_path_length(drawn, one, cutoff=3)
            found = [(each["node"]["name"], each["distance"]) for each in person["network"]["edges"]]
            assert sorted(found) == sorted((str(name), far) for name, far in near.items() if far)
            assert person["network"]["totalCount"] == len(near) - 1
            ways = [
                each for between in drawn[one] if between != one for each in drawn[between] if each != one
            ]
            scores = {each["node"]["name"]: each["score"] for each in person["second"]["edges"]}
            assert scores == {str(each): ways.count(each) for each in ways}
            common = sorted(str(each) for each in {*drawn[one]} & {*drawn[other]})
            assert [each["name"] for each in person["knows"]["nodes"]] == common
            assert person["knows"]["totalCount"] == len(common)
            if nx.has_path(drawn, one, other) and nx.shortest_path_length(drawn, one, other) <= 6:
                names = [each["name"] for each in path["nodes"]]
                assert path["length"] == nx.shortest_path_length(drawn, one, other) == len(names) - 1
                assert nx.is_path(drawn, [int(each) for each in names])
            else:
                assert path is None
