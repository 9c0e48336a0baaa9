"""Numbers keep all their digits from the request's JSON to the table and back, and in sums; or they are refused."""

from __future__ import annotations

import json
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, JSON, Graph, Many, Table, node, record, sums
from keygraph_resolvers.schema.json_numbers import as_long_json
from keygraph_resolvers.schema.scalars import SCALAR_MAP
from keygraph_server.http.requests import read_json
from tests.conftest import on_exact_engines
from tests.resolvers.worlds import World, filled


@node("JAR#{jar_id}")
class Jar:
    jar_id: ID
    price: Decimal = Decimal(0)
    weight: float = 0.0
    extra: JSON | None

    coins: Many[Coin]
    worth: Decimal = sums("coins.value")


@record("{jar}", "COIN#{number}")
class Coin:
    jar: Jar
    number: int
    value: Decimal


JARS = Graph(Table("Jars", partition_key="PK", sort_key="SK"), Jar, Coin, type_attribute="Type").check()
CREATE = """mutation ($price: Decimal, $weight: Float, $extra: JSON) {
  createJar(input: { jarId: "1", price: $price, weight: $weight, extra: $extra }) { jar { price weight extra } } }"""


jars = filled(JARS)


async def answer(jars: World, query: str, variables: str = "{}") -> Any:
    """The answer to a request whose variables are this JSON, as a client with exact numbers reads it."""
    body = read_json(f'{{"query": {json.dumps(query)}, "variables": {variables}}}'.encode(), "the body")
    response = await jars.service.execute(body["query"], body["variables"])
    return json.loads(as_long_json(response), parse_float=Decimal, parse_int=Decimal)


def test_only_what_a_long_integer_is_in_is_copied() -> None:
    response = {"data": {"rows": [[1] * 1_000 for _ in range(200)], "longest": [2**64]}}
    tracemalloc.start()
    try:
        text = as_long_json(response)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert json.loads(text) == response


NUMBERS = [
    "0.1",
    "-7",
    "0.30000000000000004",
    "12345678901234567890.123456789012345678",
    "0.12345678901234567890123456789012345678",
    "99999999999999999999999999999999999999",
    "1e-130",
    "-9.9999999999999999999999999999999999999e125",
]


@on_exact_engines
@pytest.mark.parametrize("number", NUMBERS)
async def test_a_number_is_answered_as_it_came(jars: World, number: str) -> None:
    made = await answer(
        jars, CREATE, f'{{"price": {number}, "weight": 0.12345678901234567890, "extra": {{"a": [{number}]}}}}'
    )
    exact, jar = Decimal(number), made["data"]["createJar"]["jar"]
    assert (Decimal(jar["price"]), jar["extra"]) == (exact, {"a": [exact]})
    assert float(jar["weight"]) == 0.12345678901234567890
    update = 'mutation { updateJar(input: {jarId: "1", price: %s, extra: {b: %s}}) { jar { price extra } } }'
    changed = (await answer(jars, update % (number, number)))["data"]["updateJar"]["jar"]
    assert (Decimal(changed["price"]), changed["extra"]) == (exact, {"b": exact})


@on_exact_engines
@pytest.mark.parametrize("number", ["1e-400", "1e-131", "1e126", "1" * 39, "0." + "1" * 39])
async def test_a_number_that_no_table_holds_is_refused(jars: World, number: str) -> None:
    for name in ("price", "extra"):
        refused = (await answer(jars, CREATE, f'{{"{name}": {number}}}'))["errors"]
        assert [each["extensions"]["code"] for each in refused] == ["BAD_USER_INPUT"]


@on_exact_engines
async def test_sums_are_exact(jars: World) -> None:
    """Python's own addition keeps 28 digits."""
    coins = [
        Decimal("10000000000000000000.000000000000000001"),
        Decimal("0.1"),
        Decimal(-10000000000000000000),
    ]
    made = await answer(jars, CREATE)
    assert "errors" not in made
    for number, value in enumerate(coins):
        put = 'mutation { putCoin(input: {jarId: "1", number: %d, value: "%s"}) { coin { number } } add: updateJar(input: {jarId: "1", add: {price: "%s"}}) { jar { jarId } } }'
        assert "errors" not in await answer(jars, put % (number, value, value))
    asked = '{ jar(jarId: "1") { price worth coins { aggregate { sum(field: VALUE) } } } }'
    exact = "0.100000000000000001"
    assert (await answer(jars, asked))["data"]["jar"] == {
        "price": exact,
        "worth": exact,
        "coins": {"aggregate": {"sum": exact}},
    }


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        ("Decimal", "1_000", "and this is not a number"),
        ("Decimal", "１２", "and this is not a number"),
        ("Decimal", " 1", "and this is not a number"),
        ("Decimal", "Infinity", "and this is not a number"),
        ("Decimal", "1e300", r"and this is a number outside the range that DynamoDB holds \(1E-130 up to 1E126\)"),
        ("Decimal", "1" * 39, "and this is a number of more than 38 digits"),
        ("DateTime", "2024-01-20", "an ISO 8601 date and time"),
        ("Long", "1_000", "an integer"),
    ],
)  # fmt: skip
def test_what_is_no_number_or_time_is_refused(type_: str, text: str, why: str) -> None:
    """Python reads more than the specifications of the scalars allow."""
    [scalar] = [each for each in SCALAR_MAP.values() if each.name == type_]
    with pytest.raises(Exception, match=f"{type_}: expected .*{why}"):
        scalar.parse_value(text)
