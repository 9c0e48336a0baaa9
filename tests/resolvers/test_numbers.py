"""Counts and sums that nodes keep answer `totalCount` and aggregates of their lists, where they say the same as reading would."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Long, Many, Table, counts, node, read, record, sums, viewer
from keygraph.dynamo.actions import Remove, UpdateItem
from keygraph.dynamo.store import Transaction, Write
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

by_kind = Index("by-kind", "kp", "ks")


@node("JAR#{name}", by_kind("JAR", "{name}", lists="jars"))
class Jar:
    name: ID

    coins: Many[Coin]
    notes: Many[Note]
    marks: Many[Mark]
    coins_count: Long = counts("coins")
    worth: Decimal = sums("coins.value")
    dust: float = sums("coins.dust")
    notes_count: int | None = counts("notes")


@record("{jar}", "COIN#{number:03d}")
class Coin:
    jar: Jar
    number: int
    value: Decimal
    weight: int = 1
    dust: float = 6.5e-8


@record("{jar}", "NOTE#{number:03d}")
class Note:
    jar: Jar
    number: int


@record("{jar}", "MARK#{number:03d}")
class Mark:
    jar: Jar
    number: int
    value: Decimal
    dust: float


TABLE = Table("Jars", partition_key="PK", sort_key="SK", indexes=[by_kind])
graph = Graph(TABLE, Jar, Coin, Note, Mark, type_attribute="Type", writes=True)
FILL = """mutation { createJars(input: {inputs: [{name: "blue"}, {name: "red"}]}) { results { jar { name } } }
  putCoins(input: {inputs: [{jarName: "red", number: 1, value: "0.5"}, {jarName: "red", number: 2, value: "1.25", weight: 3}]})
  { results { coin { number } } }
  putNote(input: {jarName: "red", number: 1}) { note { number } } }"""


@pytest.fixture
async def jars(make_store: MakeStore) -> World:
    """A jar with two coins and a note, and an empty one."""
    made = world(graph, await make_store(graph.table))
    await made.ask(FILL)
    made.forget()
    return made


async def of_red(jars: World, asked: str, **variables: Any) -> Any:
    """What is answered of the full jar, and what is sent for it."""
    jars.forget()
    declared = "($field: CoinAggregateField!) " if variables else ""
    answer = await jars.ask(f'query {declared}{{ jar(name: "red") {{ {asked} }} }}', **variables)
    return answer["jar"], dict(jars.operations)


async def test_a_count_and_a_sum_are_read_with_their_node(jars: World) -> None:
    asked = "coins { totalCount aggregate { all: count sum(field: VALUE) dust: sum(field: DUST) } }"
    assert await of_red(jars, asked) == (
        {"coins": {"totalCount": 2, "aggregate": {"all": 2, "sum": "1.75", "dust": "0.00000013"}}},
        {"GetItem": 1},
    )
    page = "coins(first: 1, direction: DESC) { nodes { number } totalCount }"
    assert await of_red(jars, page) == (
        {"coins": {"nodes": [{"number": 2}], "totalCount": 2}},
        {"GetItem": 1, "Query": 1},
    )


async def test_the_numbers_of_listed_nodes_take_no_request(jars: World) -> None:
    answer = await jars.ask(
        "{ jars { nodes { name coins { totalCount aggregate { sum(field: VALUE) } } } } }"
    )
    assert answer["jars"]["nodes"] == [
        {"name": "blue", "coins": {"totalCount": 0, "aggregate": {"sum": "0"}}},
        {"name": "red", "coins": {"totalCount": 2, "aggregate": {"sum": "1.75"}}},
    ]
    assert dict(jars.operations) == {"Query": 1}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("coins(where: {weight: {gt: 1}}) { totalCount }", {"totalCount": 1}),
        ("coins(number: {from: 2}) { totalCount }", {"totalCount": 1}),
        ("coins { aggregate { count max(field: VALUE) } }", {"aggregate": {"count": 2, "max": "1.25"}}),
        ("coins { aggregate { sum(field: WEIGHT) } }", {"aggregate": {"sum": "4"}}),
        ("coins: notes { totalCount }", {"totalCount": 1}),
    ],
)
async def test_what_no_number_says_is_read(jars: World, asked: str, expected: Any) -> None:
    answer, sent = await of_red(jars, asked)
    assert answer == {"coins": expected}
    assert sent.get("Count", 0) + sent.get("Query", 0) == 1


async def test_a_payload_has_the_numbers_after_the_write(jars: World) -> None:
    asked = "jar { coins { totalCount aggregate { sum(field: VALUE) } } }"
    answer = await jars.ask(
        f'mutation {{ putCoin(input: {{jarName: "red", number: 3, value: "2"}}) {{ coin {{ {asked} }} }} '
        f'createJar(input: {{name: "green", coins: [{{number: 1, value: "4"}}]}}) {{ {asked} }} }}'
    )
    assert answer["putCoin"]["coin"]["jar"]["coins"] == {"totalCount": 3, "aggregate": {"sum": "3.75"}}
    assert answer["createJar"]["jar"]["coins"] == {"totalCount": 1, "aggregate": {"sum": "4"}}
    sent = [each for each in jars.tracer.requests if isinstance(each, Transaction)]
    assert [len(each.actions) for each in sent] == [2, 2]


async def test_a_number_that_is_missing_is_told(jars: World) -> None:
    update = UpdateItem(("JAR#red", "JAR#red"), (Remove(("coins_count",)),))
    await jars.tracer.store.send(Write(update))
    answer: Any = await jars.service.execute('{ jar(name: "red") { coins { totalCount nodes { number } } } }')
    assert answer["data"]["jar"]["coins"]["totalCount"] is None
    assert len(answer["data"]["jar"]["coins"]["nodes"]) == 2
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["CORRUPT_ITEM"]


async def test_a_viewer_who_does_not_see_everything_is_not_told_how_much_there_is(
    make_store: MakeStore,
) -> None:
    @node("BOX#{name}", access=[read()])
    class Box:
        name: ID
        things: Many[Thing]
        things_count: int = counts("things", access=[read(role="clerk")])

    @record(
        "{box}",
        "THING#{number:03d}",
        access=[read(where={"of": viewer("sub")})],
    )
    class Thing:
        box: Box
        number: int
        of: str

    hidden = Graph(Table("Boxes", partition_key="PK", sort_key="SK"), Box, Thing, type_attribute="Type")
    boxes = world(hidden, await make_store(hidden.table))
    await boxes.put({"PK": "BOX#a", "SK": "BOX#a", "Type": "Box", "name": "a", "things_count": Decimal(2)})
    for number, of in ((1, "Ann"), (2, "Bob")):
        own = {"Type": "Thing", "number": Decimal(number), "of": of, "box_name": "a"}
        await boxes.put({"PK": "BOX#a", "SK": f"THING#{number:03d}", **own})
    answer: Any = await boxes.service.execute(
        OperationRequest(
            '{ box(name: "a") { things { totalCount aggregate { count } } } }', viewer={"sub": "Ann"}
        )
    )
    assert answer == {"data": {"box": {"things": {"totalCount": 1, "aggregate": {"count": 1}}}}}


@pytest.mark.parametrize(
    ("values", "asked", "expected"),
    [
        (["1e-130", "0", "0"], "avg", "0"),
        (["-1e-130", "1e-130", "5e-130"], "avg", "1." + "6" * 36 + "7E-130"),
        (["9.9e125", "9.9e125"], "avg", "9.9E+125"),
        (["9" * 38, "1e-38"], "avg", "5" + "0" * 37),
        (["9.9e125", "9.9e125"], "sum", None),
        (["1.5e-130", "-1.4e-130"], "sum", None),
        (["9" * 38, "0.1"], "sum", None),
    ],
)
async def test_an_aggregate_at_the_ends_of_numbers(
    jars: World, values: list[str], asked: str, expected: str | None
) -> None:
    for number, value in enumerate(values):
        await jars.ask(
            f'mutation {{ putMark(input: {{jarName: "blue", number: {number}, value: "{value}", dust: 1.0}}) {{ created }} }}'
        )
    document = f'{{ jar(name: "blue") {{ marks {{ aggregate {{ {asked}(field: VALUE) }} }} }} }}'
    answer = await jars.service.execute(document)
    found = [error["extensions"]["code"] for error in answer.get("errors", [])]
    value = answer["data"]["jar"]["marks"]["aggregate"][asked]
    assert (found, value) == (["BAD_USER_INPUT"] if expected is None else [], expected)


async def test_a_sum_of_floats_beyond_all_numbers(jars: World) -> None:
    for number in range(2):
        await jars.ask(
            f'mutation {{ putMark(input: {{jarName: "red", number: {number}, value: "0", dust: 9.9e125}}) {{ created }} }}'
        )
    answer = await jars.service.execute(
        '{ jar(name: "red") { marks { aggregate { sum(field: DUST) avg(field: DUST) } } } }'
    )
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_USER_INPUT"]
    assert answer["data"]["jar"]["marks"]["aggregate"] == {"sum": None, "avg": "9.9E+125"}
