"""How an answer is written out: as the GraphQL specification says, errors and nulls included."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import strawberry

from keygraph import ID, Graph, Table, field, node
from keygraph.errors import BadUserInput
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore
from tests.resolvers.methodical import Extra, methodical, methodical_items
from tests.resolvers.worlds import SECRET, World, world
from tests.tracing import TracingStore

pytestmark = pytest.mark.parametrize("engine", ["sqlite"])  # what was read, not from where


@pytest.fixture
async def teams(make_store: MakeStore) -> World:
    """Teams t0 to t7, whose rank is their number modulo five, none for t0 and t5."""
    made = world(methodical, await make_store(methodical.table))
    made.service = Service(build_schema(methodical, query=Extra), made.tracer, secret=SECRET)
    await made.put(*methodical_items())
    return made


def told(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (".".join(map(str, error["path"])), error["extensions"]["code"]) for error in answer.get("errors", [])
    ]


# --- Types ----------------------------------------------------------------------------------------------


async def test_typenames_cost_nothing(teams: World) -> None:
    teams.forget()
    document = """{ __typename matchesIn(hall: "a", first: 1) { __typename pageInfo { __typename }
      edges { __typename node { __typename team { __typename members(first: 1) { __typename edges { __typename
        node { __typename } } } } } } } }"""
    [edge] = (await teams.ask(document))["matchesIn"]["edges"]
    [member] = edge["node"]["team"]["members"]["edges"]
    assert edge["node"]["team"]["__typename"] == "Team"
    assert member == {"__typename": "TeamMembersEdge", "node": {"__typename": "Person"}}
    assert teams.operations == {"Query": 2}


# --- Nulls and errors -----------------------------------------------------------------------------------


async def test_a_null_goes_up_through_lists(teams: World) -> None:
    document = """query ($id: ID!) { team(teamId: $id) { squares } }"""
    assert await teams.ask(document, id="t2") == {"team": {"squares": [1, 4]}}
    answer = await teams.service.execute(document, {"id": "t3"})
    assert answer["data"] == {"team": {"squares": None}}
    assert told(answer) == [("team.squares.2", "INTERNAL")]
    answer = await teams.service.execute('{ team(teamId: "t4") { grid } }')
    assert answer["data"] == {"team": None}
    assert told(answer) == [("team.grid.1", "INTERNAL")]
    answer = await teams.service.execute('{ team(teamId: "t1") { points { x y } } }')
    assert answer["data"] == {"team": {"points": [{"x": 1, "y": 1}, None, None]}}
    assert told(answer) == [("team.points.2.x", "INTERNAL")]


async def test_paths_and_locations(teams: World) -> None:
    document = '{\n  t: team(teamId: "t2") {\n    slow: slowRank\n    ...F\n  }\n}\nfragment F on Team { slow: slowRank }'
    answer = await teams.service.execute(document)
    assert answer["data"] == {"t": {"slow": None}}
    [error] = answer["errors"]
    assert error["path"] == ["t", "slow"]
    assert error["locations"] == [{"line": 3, "column": 5}, {"line": 7, "column": 22}]
    assert (error["extensions"], error["message"]) == ({"code": "THROTTLED"}, "two")


async def test_methods_that_give_nodes(teams: World) -> None:
    document = """query ($id: ID!) { team(teamId: $id) { rival { teamId motto } name: rival { teamId } slowRival { motto } } }"""
    assert await teams.ask(document, id="t1") == {
        "team": {
            "rival": {"teamId": "t3", "motto": "a"},
            "name": {"teamId": "t3"},
            "slowRival": {"motto": "b"},
        }
    }
    answer = await teams.service.execute(document, {"id": "t4"})  # its rival would be t12
    assert answer["data"] == {"team": {"rival": None, "name": {"teamId": "t12"}, "slowRival": None}}
    assert told(answer) == [("team.slowRival", "INTERNAL")]
    answer = await teams.service.execute(document, {"id": "t5"})
    assert answer["data"]["team"]["slowRival"] is None
    assert told(answer) == [("team.slowRival", "BAD_USER_INPUT")]


# --- What somebody added to the root --------------------------------------------------------------------


async def test_added_fields_of_the_root(teams: World) -> None:
    data = await teams.ask('query ($n: Int!) { x: later(number: $n) team(teamId: "t1") { motto } now }', n=4)
    assert list(data.items()) == [("x", 20), ("team", {"motto": "b"}), ("now", "now in UTC")]


async def test_added_fields_run_beside_the_graph(teams: World) -> None:
    is_read = asyncio.Event()

    @strawberry.type
    class Query:
        @strawberry.field
        async def after_the_graph(self) -> bool:
            return await asyncio.wait_for(is_read.wait(), 5)

    class Noted(TracingStore):
        async def send(self, request: Any, /) -> Any:
            answer = await super().send(request)
            is_read.set()
            return answer

    schema = build_schema(methodical, query=Query)
    service = Service(schema, Noted(teams.tracer.store), secret=SECRET)
    answer = await service.execute('{ afterTheGraph team(teamId: "t1") { rank } }')
    assert answer == {"data": {"afterTheGraph": True, "team": {"rank": 1}}}


async def test_a_null_for_an_argument_that_may_not_be(teams: World) -> None:
    document = 'query ($number: Int) { team(teamId: "t1") { slowRank(times: $number) } }'
    answer = await teams.service.execute(document, {"number": None})
    assert told(answer) == [("team.slowRank", "BAD_USER_INPUT")]
    answer = await teams.service.execute("query ($zone: String) { now(zone: $zone) }", {"zone": None})
    assert told(answer) == [("now", "BAD_USER_INPUT")]


async def test_errors_are_told_in_the_order_of_the_answer(teams: World) -> None:
    document = """{
      b: team(teamId: "t5") { slowRival { motto } members(first: 3) { edges { n: node { greeting(word: "no") } } }
        certainRank shouted }
      a: team(teamId: "t4") { members { edges { years since } } slowRival { motto } shouted grid }
    }"""
    answer = await teams.service.execute(document)
    assert answer["data"] == {"b": None, "a": None}
    assert told(answer) == [
        ("b.slowRival", "BAD_USER_INPUT"),
        ("b.members.edges.0.n.greeting", "BAD_USER_INPUT"),
        ("b.members.edges.1.n.greeting", "BAD_USER_INPUT"),
        ("b.members.edges.2.n.greeting", "BAD_USER_INPUT"),
        ("b.certainRank", "INTERNAL"),
        ("a.members.edges.4.years", "INTERNAL"),
        ("a.slowRival", "INTERNAL"),
        ("a.shouted", "INTERNAL"),
    ]


async def test_added_fields_that_fail(teams: World) -> None:
    answer = await teams.service.execute('{ broken team(teamId: "t2") { slowRank motto } }')
    assert answer["data"] == {"broken": None, "team": {"slowRank": None, "motto": "c"}}
    assert told(answer) == [("broken", "BAD_USER_INPUT"), ("team.slowRank", "THROTTLED")]
    for number in (3, 4):  # it raises; it is null where it may not be
        document = 'query ($n: Int!) { s: sometimes(number: $n) team(teamId: "t1") { motto } }'
        answer = await teams.service.execute(document, {"n": number})
        assert answer["data"] is None
        assert told(answer) == [("s", "INTERNAL")]
    assert await teams.ask("{ sometimes(number: 5) }") == {"sometimes": 5}


async def test_mutations_run_one_after_another(teams: World) -> None:
    log: list[str] = []

    @strawberry.type
    class Changes:
        @strawberry.mutation
        async def write(self, name: str, wait: float) -> str | None:
            log.append(f"begin {name}")
            await asyncio.sleep(wait)
            log.append(f"end {name}")
            if name == "bad":
                raise BadUserInput("bad")
            return name

    service = Service(build_schema(methodical, mutation=Changes), teams.tracer, secret=SECRET)
    answer = await service.execute(
        'mutation { a: write(name: "slow", wait: 0.03) b: write(name: "bad", wait: 0) c: write(name: "last", wait: 0) }'
    )
    assert list(answer["data"].items()) == [("a", "slow"), ("b", None), ("c", "last")]
    assert told(answer) == [("b", "BAD_USER_INPUT")]
    assert log == ["begin slow", "end slow", "begin bad", "end bad", "begin last", "end last"]
    refused = await teams.service.execute('mutation { write(name: "a", wait: 0) }')
    assert "data" not in refused


# --- Values that are none -------------------------------------------------------------------------------


@node("THING#{thing_id}")
class Thing:
    thing_id: ID

    @field(needs=("thing_id",))
    def texts(self) -> list[str] | None:
        return _GIVEN[self.thing_id]  # type: ignore[return-value]  # that is the mistake

    @field(needs=("thing_id",))
    def number(self) -> int | None:
        return _GIVEN[self.thing_id]  # type: ignore[return-value]  # that is the mistake


_GIVEN: dict[str, object] = {
    "text": "abc",
    "mapping": {"a": 1},
    "number": 5,
    "tuple": ("a", "b"),
    "generator": (each for each in "xy"),
    "big": 2**40,
}
things = Graph(
    Table("Things", partition_key="PK", sort_key="SK"), Thing, attribute_case="camel", type_attribute="kind"
)


@pytest.mark.parametrize(
    ("name", "texts", "number"),
    [
        ("text", None, None),
        ("mapping", None, None),
        ("number", None, 5),
        ("tuple", ["a", "b"], None),
        ("generator", ["x", "y"], None),
        ("big", None, None),
    ],
)
async def test_values_that_do_not_fit(make_store: MakeStore, name: str, texts: Any, number: Any) -> None:
    key = f"THING#{name}"
    made = world(things, await make_store(things.table, {"PK": key, "SK": key, "kind": "Thing"}))
    for asked, value in (("texts", texts), ("number", number)):
        answer = await made.service.execute(f'{{ thing(thingId: "{name}") {{ {asked} }} }}')
        assert answer["data"] == {"thing": {asked: value}}
        assert told(answer) == ([] if value is not None else [(f"thing.{asked}", "INTERNAL")])


@pytest.mark.parametrize(
    "document",
    [
        '{ team(teamId: "t1") { teamId ... @defer { motto } } }',
        '{ team(teamId: "t1") { squares @stream(initialCount: 1) } }',
        "{ now ... @defer { later(number: 1) } }",
    ],
)
async def test_parts_of_an_answer_cannot_be_put_off(teams: World, document: str) -> None:
    teams.forget()
    answer = await teams.service.execute(document)
    assert "data" not in answer
    assert {error["extensions"]["code"] for error in answer["errors"]} == {"GRAPHQL_VALIDATION_FAILED"}
    assert not teams.operations
