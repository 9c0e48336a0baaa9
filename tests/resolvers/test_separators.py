"""Ranges over texts behind which more of the key stands, whose separator sorts after what a value may go on with."""

from __future__ import annotations

from enum import Enum

import pytest

from keygraph import ID, Graph, Index, Many, Table, many, node, record
from keygraph.dynamo.store import BatchWrite
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore, in_one_world

inverted = Index("inverted", "SK", "PK")

by_name = Index("by-name", "GPK", "GSK", projection=["name"])


@node("T_{tool_id}")
class Tool:
    tool_id: ID
    versions: Many[Version] = many()


@record("{tool}", "v_{version}_{build:03d}")
class Version:
    tool: Tool
    version: str
    build: int


@record("{tool}#{shard}", "L#{at}", shards=3)
class Log:
    tool: Tool
    at: str


graph = Graph(Table("Tools", partition_key="PK", sort_key="SK", indexes=[inverted]), Tool, Version, Log)

VERSIONS = [("1", 5), ("10", 1), ("1.5", 2), ("1-beta", 3), ("2", 4), ("3", 999), ("3", 1000)]


@pytest.fixture
async def service(make_store: MakeStore) -> Service:
    store = await make_store(graph.check().table)
    tool = {"PK": "T_a", "SK": "T_a", "tool_id": "a"}
    versions = [{"PK": "T_a", "SK": f"v_{version}_{build:03d}"} for version, build in VERSIONS]
    await store.send(BatchWrite((tool, *versions)))  # type: ignore[arg-type]  # plain texts
    return Service(build_schema(graph), store, secret=b"a secret")


@in_one_world(
    ("said", "wanted"),
    [
        ('{from: "1", to: "1"}', {"1"}),
        ('{from: "10"}', {"10", "2", "3"}),
        ('{to: "1.5"}', {"1", "1-beta", "1.5"}),
        ('{from: "1-", to: "1z"}', {"10", "1.5", "1-beta"}),
        ('{eq: "1"}', {"1"}),
        ('{beginsWith: "1"}', {"1", "10", "1.5", "1-beta"}),
    ],
)
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
async def test_a_range_has_the_values_that_are_in_it(
    service: Service, said: str, wanted: set[str], direction: str
) -> None:
    answer = await service.execute(
        f'{{ tool(toolId: "a") {{ versions(version: {said}, direction: {direction}) '
        "{ totalCount nodes { version } } } }"
    )
    found = answer["data"]["tool"]["versions"]
    assert {node["version"] for node in found["nodes"]} == wanted
    assert found["totalCount"] == len(found["nodes"])


async def test_a_bound_with_more_digits_than_the_format(service: Service) -> None:
    answer = await service.execute(
        '{ tool(toolId: "a") { versions(version: {eq: "3"}, build: {from: 5, to: 1000}) { nodes { build } } } }'
    )
    assert {"build": 999} in answer["data"]["tool"]["versions"]["nodes"]


class Stage(Enum):
    NEW = "new"
    NEW_AGAIN = "new_again"


@node("J_{stage}", "J")
class Job:
    stage: Stage
    runs: Many[Run] = many()
    steps: Many[Step] = many()


@record("J_{job.stage}", "run_{kind}_{run_id}")
class Run:
    job: Job
    kind: Stage
    run_id: ID


@record("STEPS", "step_{job.stage}_{step_id}", lists=False)
class Step:
    job: Job
    step_id: ID


jobs = Graph(Table("Jobs", partition_key="PK", sort_key="SK"), Job, Run, Step)
JOBS = [
    {"PK": "J_new", "SK": "J"},
    {"PK": "J_new", "SK": "run_new_1"},
    {"PK": "J_new", "SK": "run_new_again_2"},
    {"PK": "STEPS", "SK": "step_new_1"},
    {"PK": "STEPS", "SK": "step_new_again_2"},
]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("runs(kind: {eq: NEW}) { totalCount nodes { said: runId } }", ["1"]),
        ("runs(kind: {eq: NEW_AGAIN}) { totalCount nodes { said: runId } }", ["2"]),
        ("runs { totalCount nodes { said: runId } }", ["1", "2"]),
        ("steps { totalCount nodes { said: stepId } }", ["1"]),
    ],
)
async def test_a_choice_that_begins_another_one(make_store: MakeStore, asked: str, wanted: list[str]) -> None:
    store = await make_store(jobs.check().table)
    await store.send(BatchWrite(tuple(JOBS)))  # type: ignore[arg-type]  # plain texts
    answer = await Service(build_schema(jobs), store, secret=b"a secret").execute(
        f"{{ job(stage: NEW) {{ asked: {asked} }} }}"
    )
    assert "errors" not in answer, answer
    found = answer["data"]["job"]["asked"]
    assert ([node["said"] for node in found["nodes"]], found["totalCount"]) == (wanted, len(wanted))


def test_shards_beside_an_inverted_index() -> None:
    assert graph.check() is graph
    assert "shard" not in build_schema(graph).as_str().lower()


def test_a_list_at_the_root_in_an_index_that_projects_less() -> None:
    @node("S_{shop_id}")
    class Shop:
        shop_id: ID
        shelves: Many[Shelf] = many()

    @node("H_{shelf_id}", "H", by_name("SHELVES", "{name}"))
    class Empty:
        shelf_id: ID
        name: str

    @record("{shop}", "SHELF_{name}", by_name("ALL", "{name}", lists="all_shelves"))
    class Shelf:
        shop: Shop
        name: str
        width: int

    table = Table("Shops", partition_key="PK", sort_key="SK", indexes=[by_name])
    schema = build_schema(Graph(table, Shop, Shelf, Empty)).as_str()
    assert "input ShelfWhere {" in schema
    assert "input AllShelvesWhere {" in schema
