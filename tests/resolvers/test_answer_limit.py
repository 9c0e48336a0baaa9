"""The size of answers: one that is too large is not written, and none that fits is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from graphql import OperationDefinitionNode, OperationType, parse

import keygraph_examples
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.answer.completion import _size_of_any
from tests.resolvers.worlds import World

DOCUMENT = (Path(keygraph_examples.__file__).parent / "commerce.graphql").read_text("utf-8")
OPERATIONS = [
    definition.name.value
    for definition in parse(DOCUMENT).definitions
    if isinstance(definition, OperationDefinitionNode)
    and definition.name is not None
    and definition.operation is OperationType.QUERY
]
TEXT = "x" * 300_000


def too_large(limit: int) -> dict[str, Any]:
    message = (
        f"The answer is larger than {limit:,} bytes: ask for fewer fields, or for smaller pages. "
        "The changes of a mutation are not undone."
    )
    return {"data": None, "errors": [{"message": message, "extensions": {"code": "ANSWER_LIMIT"}}]}


async def put_product(shop: World, description: str) -> None:
    key = "PRODUCT#LONG"
    await shop.put(
        {
            "PK": key,
            "SK": key,
            "Type": "Product",
            "productId": "LONG",
            "name": "Long",
            "description": description,
            "price": Decimal(1),
        }
    )


def aliases(count: int) -> str:
    fields = " ".join(f"a{number}: description" for number in range(count))
    return f'{{ product(productId: "LONG") {{ {fields} }} }}'


async def test_aliases_of_one_text(shop: World) -> None:
    await put_product(shop, TEXT)
    small = shop.served(answer_limit=3_000_000)
    found = (await small.ask(aliases(9)))["product"]
    assert len(found) == 9
    # What is asked for several times is kept once.
    assert len({id(text) for text in found.values()}) == 1
    assert await small.service.execute(aliases(10)) == too_large(3_000_000)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_what_fits_is_answered(shop: World, name: str) -> None:
    answer = await shop.service.execute(OperationRequest(DOCUMENT, None, name))
    small = shop.served(answer_limit=len(orjson.dumps(answer["data"])))
    assert await small.service.execute(OperationRequest(DOCUMENT, None, name)) == answer
    smaller = shop.served(answer_limit=len(orjson.dumps(answer["data"])) // 2)
    assert await smaller.service.execute(OperationRequest(DOCUMENT, None, name)) == too_large(
        len(orjson.dumps(answer["data"])) // 2
    )


async def test_a_text_is_counted_to_its_end(shop: World) -> None:
    await put_product(shop, TEXT)
    document = '{ product(productId: "LONG") { description } }'
    size = len(orjson.dumps(await shop.ask(document)))
    assert "errors" not in await shop.served(answer_limit=size).service.execute(document)
    assert await shop.served(answer_limit=size - 10).service.execute(document) == too_large(size - 10)


async def test_a_text_is_counted_as_it_is_sent(shop: World) -> None:
    await put_product(shop, "\x01" * 300_000)
    small = shop.served(answer_limit=3_000_000)
    assert "errors" not in await small.service.execute(aliases(1))
    assert await small.service.execute(aliases(2)) == too_large(3_000_000)


async def test_names_are_counted(shop: World) -> None:
    alias = "a" * 1_000
    document = f"{{ users(first: 100) {{ nodes {{ {alias}: __typename }} }} }}"
    count = len((await shop.ask(document))["users"]["nodes"])
    assert count > 3
    assert await shop.served(answer_limit=1_000 * count).service.execute(document) == too_large(1_000 * count)


async def test_errors_are_counted(shop: World) -> None:
    line = {"PK": "ORDER#ORD001", "Type": "OrderItem", "orderId": "ORD001", "totalPrice": Decimal(1)}
    await shop.put(*({**line, "SK": f"PRODUCT#Z{n}", "productId": f"Z{n}"} for n in range(90)))
    alias = "a" * 100
    document = f'{{ order(orderId: "ORD001") {{ items(first: 100) {{ edges {{ {alias}: quantity unitPrice }} }} }} }}'
    answer = await shop.service.execute(document)
    assert len(answer["errors"]) == 90
    assert await shop.served(answer_limit=20_000).service.execute(document) == too_large(20_000)


async def test_json_is_counted_with_all_that_is_in_it() -> None:
    for value in (
        {"a": ["b", {"c": "d" * 50}]},
        [],
        {},
        ["x"] * 10,
        {"k" * 9: None},
        "text",
        12,
        [[[]]],
        None,
    ):
        assert _size_of_any([value]) == len(orjson.dumps(value))


async def test_a_mutation_whose_answer_is_too_large(shop: World) -> None:
    small = shop.served(answer_limit=1_000)
    value = "y" * 2_000
    document = (
        'mutation ($text: String!) { updateProduct(input: {productId: "ABC123", description: $text}) '
        "{ product { description } } }"
    )
    assert await small.service.execute(document, {"text": value}) == too_large(1_000)
    assert await shop.ask('{ product(productId: "ABC123") { description } }') == {
        "product": {"description": value}
    }
