"""Numbers over shards: a query reads the node and its shards together, and adds them up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Long,
    Many,
    Table,
    average,
    counts,
    node,
    read,
    record,
    sums,
    write,
)
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, within_bound, world

by_kind = Index("by-kind", "kp", "ks")


@node("JAR#{name}", by_kind("JAR", "{name}", lists="jars"))
class Jar:
    name: ID
    label: str | None = None

    coins: Many[Coin]
    coins_count: Long = counts("coins", shards=4)
    worth: Decimal = sums("coins.value", shards=4)
    mean: float | None = average("coins.value", shards=4)


@record("{jar}", "COIN#{number:03d}")
class Coin:
    jar: Jar
    number: int
    value: Decimal


TABLE = Table("Jars", partition_key="PK", sort_key="SK", indexes=[by_kind])
graph = Graph(TABLE, Jar, Coin, type_attribute="Type", writes=True)
COINS = ", ".join(f'{{jarName: "red", number: {number}, value: "{number}.5"}}' for number in range(20))


@pytest.fixture
async def jars(make_store: MakeStore) -> World:
    """A jar with twenty coins, written one by one so that most shards have some, and an empty one."""
    made = world(graph, await make_store(graph.table))
    await made.ask(
        'mutation { createJars(input: {inputs: [{name: "blue"}, {name: "red"}]}) { results { jar { name } } } }'
    )
    await made.ask(
        f"mutation {{ putCoins(input: {{inputs: [{COINS}], atomic: false}}) {{ results {{ coin {{ number }} }} }} }}"
    )
    made.forget()
    return made


async def test_a_node_and_its_shards_are_one_request(jars: World) -> None:
    answer = await jars.ask('{ jar(name: "red") { name label coinsCount worth mean } }')
    assert answer["jar"] == {"name": "red", "label": None, "coinsCount": 20, "worth": "200", "mean": 10.0}
    assert dict(jars.operations) == {"BatchGetItem": 1}


async def test_shards_are_read_only_for_their_numbers(jars: World) -> None:
    assert await jars.ask('{ jar(name: "red") { label } }') == {"jar": {"label": None}}
    assert dict(jars.operations) == {"GetItem": 1}


async def test_the_shards_of_a_page_of_nodes_are_one_request(jars: World) -> None:
    answer = await jars.ask("{ jars { nodes { name coinsCount worth } } }")
    nodes = [
        {"name": "blue", "coinsCount": 0, "worth": "0"},
        {"name": "red", "coinsCount": 20, "worth": "200"},
    ]
    assert answer == {"jars": {"nodes": nodes}}
    assert dict(jars.operations) == {"Query": 1, "BatchGetItem": 1}


async def test_a_payload_has_the_whole_number(jars: World) -> None:
    put = 'putCoin(input: {jarName: "red", number: 30, value: "1"}) { coin { jar { coinsCount worth } } }'
    answer = await jars.ask(f"mutation {{ {put} }}")
    assert answer == {"putCoin": {"coin": {"jar": {"coinsCount": 21, "worth": "201"}}}}
    created = await jars.ask('mutation { createJar(input: {name: "new"}) { jar { coinsCount mean } } }')
    assert created == {"createJar": {"jar": {"coinsCount": 0, "mean": None}}}


async def test_a_missing_node_has_no_number(jars: World) -> None:
    assert await jars.ask('{ jar(name: "none") { coinsCount } }') == {"jar": None}


async def test_lists_are_counted_by_reading_them(jars: World) -> None:
    answer = await jars.ask(
        '{ jar(name: "red") { coins(first: 1) { totalCount aggregate { sum(field: VALUE) } } } }'
    )
    assert answer == {"jar": {"coins": {"totalCount": 20, "aggregate": {"sum": "200"}}}}


async def test_no_argument_is_about_a_number_over_shards(jars: World) -> None:
    text = jars.service.schema.as_str()
    where = text.partition("input JarWhere")[2].partition("}")[0]
    assert "label" in where
    assert "coinsCount" not in where
    assert "worth" not in where
    assert "WORTH" not in text


async def test_the_bound_counts_the_shards(jars: World) -> None:
    for document, requests, items in (
        ('{ jar(name: "red") { coinsCount } }', 1, 5),
        ("{ jars(first: 2) { nodes { coinsCount } } }", 2, 10),
    ):
        answer = await jars.service.execute(OperationRequest(document, with_cost=True))
        bound = within_bound(answer)["bound"]
        assert (bound["requests"], bound["items"]) == (requests, items)


async def test_the_bound_of_a_mutation_counts_a_missing_shard(jars: World) -> None:
    """The first transaction is refused then, and the second one makes the shard."""
    create = 'createJar(input: {name: "new"}) { jar { name } }'
    await jars.ask(f"mutation {{ {create} }}")
    put = 'putCoin(input: {jarName: "new", number: 1, value: "1"}) { coin { number } }'
    answer = await jars.service.execute(OperationRequest(f"mutation {{ {put} }}", with_cost=True))
    assert within_bound(answer)["actual"]["requests"] == 4
    delete = 'deleteJar(input: {name: "new"}) { deletedId }'
    refused = await jars.service.execute(OperationRequest(f"mutation {{ {delete} }}", with_cost=True))
    within_bound(refused)


async def test_explain_names_the_shards(jars: World) -> None:
    explained = jars.service.explain('{ jar(name: "red") { worth coinsCount } }')
    assert "the shards of worth and coins_count" in str(explained)


async def test_rules_are_those_of_other_fields(make_store: MakeStore) -> None:
    """A viewer who may not read a number causes no read of its shards."""

    @node("CLUB#{name}", access=[read(), write()])
    class Club:
        name: ID
        label: str | None = None
        visits: Many[Visit]
        visits_count: Long | None = counts("visits", shards=4, access=[read(role="door")])

    @record("{club}", "VISIT#{number:03d}", access=[read(), write()])
    class Visit:
        club: Club
        number: int

    guarded = Graph(Table("Clubs", partition_key="PK", sort_key="SK"), Club, Visit)
    clubs = world(guarded, await make_store(guarded.table))
    await clubs.ask('mutation { createClub(input: {name: "a"}) { club { name } } }')
    for number in range(4):
        await clubs.ask(
            f'mutation {{ putVisit(input: {{clubName: "a", number: {number}}}) {{ visit {{ number }} }} }}'
        )
    for roles, found, requests in ((("door",), 4, {"BatchGetItem": 1}), ((), None, {"GetItem": 1})):
        clubs.forget()
        asked = OperationRequest('{ club(name: "a") { label visitsCount } }', viewer={"roles": [*roles]})
        answer: Any = await clubs.service.execute(asked)
        assert answer["data"] == {"club": {"label": None, "visitsCount": found}}
        assert dict(clubs.operations) == requests
