"""`keygraph hot`: what is counted, that it is right and bounded, and that its advice is a model."""

from __future__ import annotations

import io
import json
import sys
import types
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygraph.dynamo.store import BatchWrite, CreateTable, Query
from keygraph.engines.open import open_store
from keygraph_resolvers import OperationRequest, Service, build_schema, check
from keygraph_server.hot.advice import Advice, Adviser, Totals
from keygraph_server.http.graphql_http import HTTPObservation
from keygraph_server.http.requests import RequestHeaders
from keygraph_server.telemetry.hot_spots import HALF_LIFE, HotSpots
from keygraph_server.telemetry.sketch import Sketch
from tests.server.command_line import refused, run, shown_lines

MODEL = """
from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, copy, counts, edge, node, record

by_team = Index("GSI1", "GSI1PK", "GSI1SK")


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    motto: str = ""
    members: Many[Membership]
    goals: Many[Goal]


@node("PLAYER#{player_id}", by_team("PLAYER", "{name}"))
class Player:
    player_id: ID
    name: str
    shoe_size: int = 40


@edge("{team}", "{player}")
class Membership:
    team: Team
    player: Player
    shirt: int = 0


@record("{team}", "GOAL#{minute:03d}")
class Goal:
    team: Team
    minute: int


graph = Graph(Table("League", partition_key="PK", sort_key="SK", indexes=[by_team]), Team, Player, Membership, Goal)
"""

ITEMS = (
    {"PK": "TEAM#1", "SK": "TEAM#1", "motto": "Up"},
    *({"PK": "TEAM#1", "SK": f"PLAYER#{n}"} for n in range(3)),
    *({"PK": "TEAM#1", "SK": f"GOAL#00{n}"} for n in range(4)),
    *(
        {"PK": f"PLAYER#{n}", "SK": f"PLAYER#{n}", "name": f"N{n}", "GSI1PK": "PLAYER", "GSI1SK": f"N{n}"}
        for n in range(3)
    ),
)


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def league(source: str = MODEL) -> types.ModuleType:
    module = types.ModuleType("hot_league")
    sys.modules["hot_league"] = module
    exec(compile(source, "hot_league.py", "exec"), module.__dict__)
    return module


@pytest.fixture
def module() -> types.ModuleType:
    return league()


class Server:
    """Counts what is asked of a store."""

    def __init__(self, module: types.ModuleType, tmp_path: Any) -> None:
        self.graph, self.clock = module.graph, Clock()
        self.file = f"sqlite:{tmp_path / 'league.sqlite'}"
        self.spots = HotSpots(self.graph.table, b"secret", shows_keys=True, clock=self.clock)

    async def ask(self, *queries: str) -> None:
        async with open_store(self.file, self.graph.table) as store:
            await store.send(CreateTable())
            await store.send(BatchWrite(ITEMS))
            service = Service(build_schema(self.graph), store, secret=b"x" * 32)
            for query in queries:
                self.observed = HTTPObservation(headers=RequestHeaders({}, None, None))
                answer = await service.execute(OperationRequest(query, observation=self.observed))
                assert "errors" not in answer, answer
                self.observed.end()
                self.spots.report(self.observed)

    async def count(self, *requests: Query) -> list[dict[str, Any]]:
        """What is told of these requests, as if an operation had sent them."""
        await self.ask("{ players { nodes { name } } }")
        assert self.observed.meter is not None
        [sent] = self.observed.meter.sent
        self.observed.meter.sent[:] = [sent._replace(request=each) for each in requests]
        self.spots = HotSpots(self.graph.table, b"secret", shows_keys=True)
        self.spots.report(self.observed)
        found: list[dict[str, Any]] = self.spots.as_json()["partitions"]
        return found


@pytest.fixture
def server(module: types.ModuleType, tmp_path: Any) -> Server:
    return Server(module, tmp_path)


class TestSketch:
    @given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 100)), max_size=400), st.integers(1, 20))
    def test_sums_are_too_small_by_what_was_lost_at_most(
        self, added: list[tuple[int, int]], kept: int
    ) -> None:
        sketch, sums = Sketch[int](kept), Counter[int]()
        for key, amount in added:
            sketch.add(key, amount)
            sums[key] += amount
            assert len(sketch) <= 2 * kept
        found = dict(sketch.largest(1000))
        assert sketch.lost <= sums.total() / (kept + 1)
        for key, value in sums.items():
            assert value - sketch.lost <= found.get(key, 0.0) <= value


class TestCounting:
    async def test_fields_and_partitions_are_told_with_their_cost(self, server: Server) -> None:
        await server.ask(
            'query A { t: team(teamId: "1") { who: members { edges { player: node { name } } } count: members { totalCount } goals { nodes { minute } } } }'
        )
        server.clock.now = 1.0
        told = server.spots.as_json()
        # After a second, what was spent is what is spent in a second.
        fields = {(each["field"], each["kind"]): each for each in told["fields"]}
        assert {key: round(each["units"], 2) for key, each in fields.items()} == {
            ("Team.members", "Query"): 0.5,
            ("Team.members", "BatchGetItem"): 1.5,
            ("Team.members", "Count"): 0.5,
            ("Team.goals", "Query"): 0.5,
            ("Query.team", "GetItem"): 0.5,
        }
        assert "name" in fields["Team.members", "BatchGetItem"]["attributes"]
        partitions = {(each["field"], each["key"]): each["units"] for each in told["partitions"]}
        assert partitions.pop(("Team.members", "TEAM#1")) == pytest.approx(1.0, rel=0.01)
        assert partitions.pop(("Query.team", "TEAM#1")) == pytest.approx(0.5, rel=0.01)
        assert partitions.pop(("Team.goals", "TEAM#1")) == pytest.approx(0.5, rel=0.01)
        # A batch is counted for one of its keys.
        [(name, key)] = partitions
        assert name == "Team.members"
        assert key in {"PLAYER#0", "PLAYER#1", "PLAYER#2"}

    async def test_writes_are_counted_for_their_mutation(self, server: Server) -> None:
        await server.ask(
            'mutation { createPlayer(input: { playerId: "9", name: "Zoë" }) { player { name } } }'
        )
        server.clock.now = 1.0
        told = server.spots.as_json()
        written = [each for each in told["partitions"] if each["writes"]]
        assert [(each["field"], each["key"]) for each in written] == [("Mutation.createPlayer", "PLAYER#9")]
        assert written[0]["units"] > 1

    async def test_what_is_long_past_counts_for_little(self, server: Server) -> None:
        old, new = "{ players { nodes { name } } }", '{ team(teamId: "1") { motto } }'
        await server.ask(*[old] * 8)
        server.clock.now = 10 * HALF_LIFE
        await server.ask(new)
        server.clock.now += 1
        units = {each["field"]: each["units"] for each in server.spots.as_json()["fields"]}
        assert units["Query.team"] > 50 * units["Query.players"]
        assert units["Query.team"] == pytest.approx(0.5 / 432, rel=0.01)

    async def test_weights_start_again_before_they_overflow(self, server: Server) -> None:
        for _ in range(5):
            await server.ask('{ team(teamId: "1") { motto } }')
            server.clock.now += 300 * HALF_LIFE
        await server.ask('{ team(teamId: "1") { motto } }')
        [found] = server.spots.as_json()["fields"]
        assert found["units"] == pytest.approx(0.5 / 432, rel=0.01)

    async def test_some_of_very_many_requests_are_counted_for_all(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        added, add = list[None](), Sketch.add
        monkeypatch.setattr(Sketch, "add", lambda *given: (added.append(None), add(*given)))
        await server.count(*[Query(f"TEAM#{number}") for number in range(5_000)])
        [found] = server.spots.as_json()["fields"]
        assert len(added) == 501
        assert found["requests"] == pytest.approx(5_000, rel=0.1)

    async def test_any_key_can_be_told(self, server: Server) -> None:
        read = await server.count(Query("TEAM#\ud800"), Query("TEAM#é"), Query("T" * 3000))
        assert [each["key"] for each in read] == ["TEAM#?", "TEAM#é", "T" * 200 + "…"]
        orjson.dumps(server.spots.as_json())

    async def test_keys_are_hashes_unless_they_are_asked_for(self, server: Server) -> None:
        hidden = HotSpots(server.graph.table, b"secret", shows_keys=False)
        other = HotSpots(server.graph.table, b"another", shows_keys=False)
        hashes = []
        for server.spots in (hidden, other):
            await server.ask('{ team(teamId: "1") { motto } }')
            told = server.spots.as_json()
            assert "TEAM" not in json.dumps(told["partitions"])
            hashes.append(told["partitions"][0]["key"])
        assert len(set(hashes)) == 2, "a hash that needs no secret can be guessed"


def told(fields: list[dict[str, Any]], partitions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"seconds": 900.0, "fields": fields, "partitions": partitions}


def spent(name: str, kind: str, units: float, *attributes: str) -> dict[str, Any]:
    return {"field": name, "kind": kind, "units": units, "requests": units, "attributes": [*attributes]}


def partition(
    name: str, key: str, units: float, index: str | None = None, *, writes: bool = False
) -> dict[str, Any]:
    return {"field": name, "index": index, "key": key, "writes": writes, "units": units}


class TestAdvice:
    def advice(self, module: types.ModuleType, *workers: dict[str, Any]) -> list[Advice]:
        totals = Totals()
        totals.add(workers)
        return Adviser(module.graph, module).advice(totals)

    def test_a_busy_partition_gets_shards(self, module: types.ModuleType) -> None:
        worker = told(
            [spent("Query.players", "Query", 1200.0)], [partition("Query.players", "PLAYER", 1200.0, "GSI1")]
        )
        [advice] = self.advice(module, worker, worker)
        assert advice.lines == ('by_team("PLAYER#{shard}", "{name}", shards=3)  # on Player',)
        assert "takes 2,400 read and 0 write units per second" in advice.text
        assert "3 shards take about 800 units each" in advice.text
        assert "A page of the list then takes 3 requests" in advice.text
        self.assert_compiles('by_team("PLAYER", "{name}")', advice.lines[0])

    def test_so_does_one_that_is_written_much(self, module: types.ModuleType) -> None:
        worker = told(
            [spent("Team.goals", "Query", 900.0)], [partition("Team.goals", "TEAM#1", 600.0, writes=True)]
        )
        [advice] = self.advice(module, worker)
        assert advice.lines == (
            '@record("TEAM#{team.team_id}#{shard}", "GOAL#{minute:03d}", shards=2)  # Goal',
        )
        self.assert_compiles('@record("{team}", "GOAL#{minute:03d}")', advice.lines[0])

    def test_a_node_that_is_read_for_little_gets_a_copy(self, module: types.ModuleType) -> None:
        worker = told(
            [
                spent("Team.members", "Query", 40.0),
                spent("Team.members", "BatchGetItem", 60.0, "name", "PK", "SK"),
            ],
            [],
        )
        [advice] = self.advice(module, worker)
        assert advice.lines == ('player_name: str = copy("player.name")  # in Membership',)
        assert advice.text.startswith(
            "60.0 units per second (60% of all) are spent on reading each Player of Team.members"
        )
        self.assert_compiles("    shirt: int = 0", f"    {advice.lines[0]}")

    def test_a_copy_follows_if_a_key_finds_it(self) -> None:
        found = league(
            MODEL.replace(
                '@edge("{team}", "{player}")', '@edge("{team}", "{player}", by_team("{player}", "{team}"))'
            )
        )
        worker = told([spent("Team.members", "BatchGetItem", 60.0, "name", "PK", "SK")], [])
        [advice] = self.advice(found, worker)
        assert advice.lines == ('player_name: str = copy("player.name", follows=True)  # in Membership',)
        assert advice.text.endswith(
            "and changes with the Player. `keygraph verify --repair` copies what is there."
        )

    def test_a_count_that_is_read_gets_a_number(self, module: types.ModuleType) -> None:
        worker = told([spent("Team.goals", "Count", 60.0), spent("Query.players", "Count", 40.0)], [])
        [advice] = self.advice(module, worker)
        assert advice.lines == ('goals_count: int = counts("goals")  # in Team',)
        self.assert_compiles('    motto: str = ""', f"    {advice.lines[0]}")

    @pytest.mark.parametrize(
        "worker",
        [
            told([], []),
            told([spent("Query.team", "GetItem", 100.0, "motto"), spent("Team.goals", "Count", 4.0)], []),
            told([spent("Team.goals", "Query", 800.0)], [partition("Team.goals", "TEAM#1", 800.0)]),
            told([spent("(elsewhere)", "Query", 9000.0)], [partition("(elsewhere)", "X", 9000.0)]),
        ],
    )
    def test_nothing_is_said_where_nothing_helps(
        self, module: types.ModuleType, worker: dict[str, Any]
    ) -> None:
        assert self.advice(module, worker) == []

    def assert_compiles(self, before: str, after: str) -> None:
        """The line, in the place of the one that is there, makes a model without mistakes."""
        assert MODEL.count(before) == 1
        changed = MODEL.replace(before, after.rpartition("  # ")[0])
        check(league(changed).graph)


def answered(monkeypatch: pytest.MonkeyPatch, reports: object) -> list[str]:
    """Lets every server answer with these reports. Returns the addresses that are requested."""
    requested: list[str] = []

    def answer(url: str, timeout: float) -> io.BytesIO:
        requested.append(url)
        return io.BytesIO(json.dumps(reports).encode())

    monkeypatch.setattr("urllib.request.urlopen", answer)
    return requested


class TestCommand:
    @pytest.fixture(autouse=True)
    def model(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "league_hot.py").write_text(MODEL)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))

    def test_it_shows_what_costs_most_and_what_helps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        worker = told(
            [spent("Team.goals", "Count", 60.0), spent("Team.members", "Query", 40.0)],
            [partition("Team.goals", "5f2c0e11aa07", 60.0)],
        )
        asked = answered(monkeypatch, [worker, worker])
        result = run("hot", "--model", "league_hot", "--url", "http://one:1/", "--url", "http://two:2")
        assert result.exit_code == 0
        assert asked == ["http://one:1/hot", "http://two:2/hot"]
        lines = shown_lines(result.stdout)
        assert lines[0] == "400.0 units per second in the last 10 minutes, by 4 workers."
        assert any(each.split() == ["Team.goals", "Count", "240.0", "60%", "240.0"] for each in lines)
        assert any(each.split() == ["5f2c0e11aa07", "table", "240.0", "0.0", "Team.goals"] for each in lines)
        assert 'goals_count: int = counts("goals")  # in Team' in result.stdout
        told_json = json.loads(run("hot", "--model", "league_hot", "--url", "http://one:1", "--json").stdout)
        assert told_json["fields"][0] == {
            "field": "Team.goals",
            "kind": "Count",
            "units": 120.0,
            "requests": 120.0,
        }
        assert told_json["advice"][0]["lines"] == ['goals_count: int = counts("goals")  # in Team']

    def test_a_server_that_cannot_be_asked_is_one_line(self) -> None:
        assert refused("hot", "--model", "league_hot", "--url", "http://127.0.0.1:1").startswith(
            "http://127.0.0.1:1 does not report costs: "
        )
        problem = refused("hot", "--model", "league_hot")
        assert problem.startswith("no server is given. Name its metrics port: ")
        assert "set KEYGRAPH_METRICS_PORT" in problem

    def test_a_password_in_an_address_is_not_printed(self) -> None:
        result = run("hot", "--model", "league_hot", "--url", "http://user:hunter2@127.0.0.1")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(
            "keygraph: an address with a user name or a password cannot be used. "
        )
        assert "hunter2" not in result.stderr

    def test_what_is_no_report_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answered(monkeypatch, [{"seconds": "long"}])
        result = run("hot", "--model", "league_hot", "--url", "http://one:1")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)

    def test_no_text_of_a_key_is_obeyed_by_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that may name keys."""
        key = "TEAM#\x1b]0;\u202e"
        answered(
            monkeypatch,
            [told([spent("Team.goals", "Query", 9e3)], [partition("Team.goals", key, 9e3, writes=True)])],
        )
        for form in ([], ["--json"]):
            result = run("hot", "--model", "league_hot", "--url", "http://one:1", *form)
            assert result.stdout.count("TEAM#\\u001b]0;\\u202e") == 2
            assert not {"\x1b", "\u202e"} & {*result.stdout}
