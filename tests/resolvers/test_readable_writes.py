"""A write makes nothing that cannot be read, whatever is stored; it is refused with its place in the input."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, JSON, Graph, Long, Many, Table, node, record, stored, sums
from keygraph_resolvers import Service, build_schema
from tests.conftest import MakeStore, on_exact_engines
from tests.resolvers.plans import UnreadStore
from tests.resolvers.worlds import SECRET, World, world


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    tags: set[str]
    spare: set[str] | None
    inside: set[str] = stored("box", "tags")
    wins: int = 0
    money: Decimal = Decimal(0)
    steps: Long = 0
    extra: JSON | None
    log: list[JSON] | None

    goals: Many[Goal]
    points: int = sums("goals.points")
    value: Decimal = sums("goals.value")


@record("{team}", "GOAL#{number}")
class Goal:
    team: Team
    number: int
    points: int = 0
    value: Decimal = Decimal(0)


TEAMS = Graph(
    Table("Teams", partition_key="PK", sort_key="SK"), Team, Goal, type_attribute="Type", writes=True
).check()
MOST = 2**31 - 1
DIGITS = "9" * 38


@pytest.fixture
async def teams(make_store: MakeStore) -> World:
    """A team near every limit."""
    made = world(TEAMS, await make_store(TEAMS.table))
    numbers = {"wins": MOST - 1, "money": Decimal(DIGITS), "steps": Decimal(DIGITS), "points": MOST - 1}
    await made.put(
        {
            "PK": "TEAM#1",
            "SK": "TEAM#1",
            "Type": "Team",
            "tags": frozenset({"a", "b"}),
            "box": {"tags": frozenset({"a", "b"})},
            "spare": frozenset({"a"}),
            "value": Decimal("9.9e125"),
            **{name: Decimal(value) for name, value in numbers.items()},
        }
    )
    return made


UPDATE = 'mutation { updateTeam(input: {teamId: "1", %s}) { team { tags inside spare wins money steps } } }'
PUT = 'mutation { putGoal(input: {teamId: "1", number: 1, %s}) { goal { team { points value } } } }'


@on_exact_engines
@pytest.mark.parametrize(
    ("document", "path"),
    [
        (UPDATE % "add: {wins: 2}", ["input", "add", "wins"]),
        (UPDATE % "add: {wins: 1}", None),
        (UPDATE % "add: {wins: -2147483648}", None),
        (UPDATE % 'add: {money: "0.1"}', ["input", "add", "money"]),
        (UPDATE % 'add: {money: "9e125"}', ["input", "add", "money"]),
        (UPDATE % 'add: {money: "-1"}', None),
        (UPDATE % f"add: {{steps: {DIGITS}}}", ["input", "add", "steps"]),
        (UPDATE % 'remove: {tags: ["a", "b"]}', ["input", "remove", "tags"]),
        (UPDATE % 'remove: {tags: ["a", "c"]}', None),
        (UPDATE % 'remove: {inside: ["a", "b"]}', ["input", "remove", "inside"]),
        (UPDATE % 'remove: {inside: ["a"]}', None),
        (UPDATE % 'remove: {spare: ["a"]}', None),
        (UPDATE % 'extra: {a: {_: [1]}}', None),
        (PUT % "points: 1", None),
        (PUT % "points: 2", ["input"]),
        (PUT % 'value: "1e125"', ["input"]),
        (PUT % 'value: "1e87"', ["input"]),
        (PUT % 'value: "-9.9e125"', None),
        ('mutation { write(input: {actions: [{putGoal: {teamId: "1", number: 1, value: "1e99"}}, '
         '{putGoal: {teamId: "1", number: 2, value: "1e-99"}}]}) { clientMutationId } }', ["input", "actions", 1, "putGoal"]),
    ],
)  # fmt: skip
async def test_what_could_not_be_read_is_refused(teams: World, document: str, path: Any) -> None:
    answer = await teams.service.execute(document)
    errors = [(each["extensions"]["code"], each["extensions"]["path"]) for each in answer.get("errors", [])]
    assert errors == ([] if path is None else [("BAD_USER_INPUT", path)]), answer


async def test_a_plan_names_what_only_a_read_determines() -> None:
    service = Service(build_schema(TEAMS), UnreadStore(TEAMS.table), secret=SECRET)
    report = service.explain(
        'mutation { updateGoal(input: {teamId: "1", number: 1, points: 3}) { goal { number } } }'
    )
    [conditions] = [
        [action.condition or "" for each in step.transactions for action in each.actions]
        for step in report.steps
        if step.transactions
    ]
    bounds = f"points BETWEEN {-(2**31)} - {{what is read}} AND {MOST} - {{what is read}}"
    assert [bounds in condition for condition in conditions] == [False, True]


@on_exact_engines
async def test_the_last_member_of_a_required_set_stays(teams: World) -> None:
    """One that is removed by its own write needs no read before it."""
    remove = UPDATE % 'remove: {tags: ["%s"]}'
    await teams.ask(remove % "a")
    assert teams.operations == {"TransactWriteItems": 1, "GetItem": 1}
    assert await teams.codes(remove % "b") == ["BAD_USER_INPUT"]
    assert await teams.codes(remove % "c") == []


@on_exact_engines
@pytest.mark.parametrize("value", ['{"": 1}', '{"a": [{"": 1}]}', '{"a": ' * 40 + "1" + "}" * 40])
async def test_json_that_no_item_holds_is_refused(teams: World, value: str) -> None:
    """DynamoDB refuses a name without characters, and more than 32 levels."""
    given = json.loads(value)
    document = """mutation ($extra: JSON, $log: [JSON!]) {
      update: updateTeam(input: {teamId: "1", extra: $extra}) { team { teamId } }
      add: updateTeam(input: {teamId: "1", add: {log: $log}}) { team { teamId } }
      create: createTeam(input: {teamId: "2", tags: ["a"], inside: ["a"], extra: $extra}) { team { teamId } } }"""
    answer = await teams.service.execute(document, {"extra": given, "log": [given]})
    errors = [(each["extensions"]["code"], each["extensions"]["path"]) for each in answer["errors"]]
    assert errors == [
        ("BAD_USER_INPUT", ["input", "extra"]),
        ("BAD_USER_INPUT", ["input", "add", "log"]),
        ("BAD_USER_INPUT", ["input", "extra"]),
    ]
