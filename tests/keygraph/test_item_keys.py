"""Keys held against the attributes of their item."""

from __future__ import annotations

import importlib
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from keygraph import ID, Format, Graph, Index, Table, edge, field, node, record, stored
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.order import LAST
from keygraph.tables.interchange import Interchange
from keygraph.tables.item_fields import item_fields
from keygraph.tables.item_keys import ItemKeys

by_state = Index("ByState", "StatePK", "StateSK")
by_plan = Index("ByPlan", "plan", "PK")
by_score = Index("ByScore", "Board", ("Score", "N"))


@node(
    "USER#{user_id}",
    by_state("{state_key}", "{name:lower}#{created_at}", lists=False),
    by_plan(lists=False),
)
class User:
    user_id: ID
    name: str
    created_at: datetime
    is_open: bool
    plan: str | None

    @field(needs=("is_open",))
    def state_key(self) -> str:
        return "OPEN" if self.is_open else "CLOSED"


@record(
    "{user}",
    "ACT#{day}",
    by_state("ACTS#{day:%Y-%m}#{shard}", "{boss?}#{day}", shards=3, lists=False),
)
class Act:
    user: User
    boss: User | None
    day: date


@edge("{user}#S{shard}", "PLAYS#{game}", by_score("{game}", "{score}"), shards=2)
class Plays:
    user: User
    game: Game
    score: int = stored("Score")


@node("GAME#{game_id}")
class Game:
    game_id: ID


graph = Graph(
    Table("Net", partition_key="PK", sort_key="SK", indexes=[by_state, by_plan, by_score]),
    User,
    Act,
    Plays,
    Game,
    type_attribute="type",
    formats={"lower": Format(str.lower)},
)

USER: Item = {
    "PK": "USER#1",
    "SK": "USER#1",
    "type": "User",
    "user_id": "1",
    "name": "Kim",
    "created_at": "2024-02-03T10:00:00Z",
    "is_open": True,
    "plan": "gold",
    "StatePK": "OPEN",
    "StateSK": "kim#2024-02-03T10:00:00Z",
}
ACT: Item = {
    "PK": "USER#1",
    "SK": "ACT#2024-02-03",
    "type": "Act",
    "boss_id": "9",
    "StatePK": "ACTS#2024-02#2",
    "StateSK": "USER#9#2024-02-03",
}
PLAYS: Item = {
    "PK": "USER#1#S1",
    "SK": "PLAYS#GAME#g",
    "type": "Plays",
    "Board": "GAME#g",
    "Score": Decimal(7),
}


def problems(item: Item, change: dict[str, Value], *without: str) -> list[str]:
    """What is said of the keys of an item that was changed."""
    changed = {name: value for name, value in {**item, **change}.items() if name not in without}
    type_ = graph.check().recognise(changed)
    assert type_ is not None, graph.why_refused(changed)
    return list(ItemKeys(type_).problems(changed))


SAMPLES = Path(__file__).parents[2] / "examples" / "keygraph_examples"
ODD: list[Value] = ["undefined", "a b", f"a{LAST}", "a#b", "", "7", Decimal(7), Decimal("-1.5"), None, True]


@pytest.mark.parametrize("example", ["cargo", "commerce", "education", "league", "social"])
def test_keys_that_are_as_rendered_have_no_problem(example: str) -> None:
    """The quick look at an item passes over nothing that the thorough one finds, whatever an attribute becomes."""
    declared: Graph = importlib.import_module(f"keygraph_examples.{example}").graph.check()
    dice, fields, quick = random.Random(example), item_fields(declared), 0
    read = Interchange(declared).read
    items = [read(line) for line in (SAMPLES / f"{example}.jsonl").read_text("utf-8").splitlines()]
    for item in dice.sample(items, min(len(items), 30)):
        for number in range(20):
            name, other = dice.choice([*item]), dice.choice(items)
            made = {**item, name: dice.choice([*ODD, *other.values()])} if number else item
            if number % 5 == 1:
                del made[name]
            record = declared.recognise(made)
            if record is not None:
                keys = fields[record.name].keys
                is_right = keys.are_certainly_right(made)
                quick += is_right
                found = [what for *_, several in keys._checked(made) for what in several]
                of_fields = fields[record.name].of_fields
                assert not (is_right and found), (made, found)
                assert [*of_fields(made, are_keys_right=is_right)] == [*of_fields(made)], made
    assert quick >= 20


@pytest.mark.parametrize("item", [USER, ACT, PLAYS], ids=["node", "record", "edge"])
def test_right_keys_are_passed_over(item: Item) -> None:
    assert problems(item, {}) == []


@pytest.mark.parametrize(
    ("item", "change", "expected"),
    [
        (USER, {"user_id": "2"}, ["PK does not match user_id", "SK does not match user_id"]),
        (USER, {"name": "Lee"}, ["ByState: StateSK does not match name"]),
        # A number that is to be padded, a date in another format, a text in other letters: all are rendered.
        (USER, {"name": "KIM"}, []),
        (USER, {"created_at": "2025-01-01T00:00:00Z"}, ["ByState: StateSK does not match created_at"]),
        # A method's text follows what the method needs.
        (USER, {"is_open": False}, ["ByState: StatePK does not match state_key"]),
        (ACT, {"StatePK": "ACTS#2024-03#2"}, ["ByState: StatePK does not match day"]),
        (ACT, {"boss_id": "8"}, ["ByState: StateSK does not match boss_id"]),
        (ACT, {"StatePK": "ACTS#2024-02#3"}, ["ByState: StatePK has a shard outside 0 to 2"]),
        (ACT, {"StatePK": "ACTS"}, ["ByState: StatePK does not match ACTS#{day:%Y-%m}#{shard}"]),
        (PLAYS, {"PK": "USER#1#S2"}, ["PK has a shard outside 0 to 1"]),
        (PLAYS, {"Board": "GAME#h"}, ["ByScore: Board does not match game_id"]),
        (PLAYS, {"user_id": "2"}, ["PK does not match user_id"]),
    ],
)
def test_a_key_that_its_attributes_do_not_make_is_named(
    item: Item, change: dict[str, Value], expected: list[str]
) -> None:
    assert problems(item, change) == expected


def test_an_item_that_is_not_in_an_index_is_named() -> None:
    assert problems(USER, {}, "StatePK") == ["ByState: the item is not in the index: it has no StatePK"]
    assert problems(USER, {}, "StatePK", "StateSK") == [
        "ByState: the item is not in the index: it has no StatePK and no StateSK"
    ]
    assert problems(PLAYS, {}, "Board") == ["ByScore: the item is not in the index: it has no Board"]


def test_a_sparse_index_lacks_what_has_no_value() -> None:
    assert problems(USER, {}, "plan") == []
    # The boss is optional in the key itself.
    assert problems(ACT, {"StateSK": "#2024-02-03"}, "boss_id") == []
    # Where a field stands in the index's key alone and that is missing, nothing says what it should be.
    assert problems(USER, {}, "created_at", "StatePK", "StateSK") == []


def test_what_stands_in_keys_alone_is_believed() -> None:
    assert problems(USER, {}, "user_id", "created_at") == []
    # It may be that nobody has scored yet.
    assert problems(PLAYS, {}, "Score") == [
        "ByScore: the item is not in the index: it has Board, but no Score"
    ]
    assert problems(PLAYS, {}, "Score", "Board") == []


def test_an_attribute_that_does_not_fit_says_nothing_of_keys() -> None:
    assert problems(USER, {"created_at": "yesterday", "name": Decimal(1)}) == []


def test_the_shards_of_two_keys_are_each_its_own() -> None:
    @node("N#{shard}", "{name}", by_state("S#{shard}", "{name}", shards=4, lists=False), shards=4)
    class Spread:
        name: str

    both = Graph(Table("Net", partition_key="PK", sort_key="SK", indexes=[by_state]), Spread).check()
    item: Item = {"PK": "N#1", "SK": "a", "StatePK": "S#3", "StateSK": "a"}
    assert list(ItemKeys(both.types["Spread"]).problems(item)) == []
