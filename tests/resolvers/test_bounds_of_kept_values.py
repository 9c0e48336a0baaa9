"""The bounds of mutations that read nodes and lists for what nodes keep: index keys of numbers, first and last items."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.keygraph.test_keys_of_numbers import graph as talks
from tests.keygraph.test_list_ends import graph as shops
from tests.resolvers.worlds import World, within_bound, world

PLACES = [
    'a: createShop(input: {name: "a"}) { shop { name } }',
    'b: createShop(input: {name: "b"}) { shop { name } }',
    *(f't{n}: createThing(input: {{thingId: "{n}"}}) {{ thing {{ thingId }} }}' for n in range(3)),
    'o1: putOffer(input: {shopName: "a", thingId: "1", price: 5}) { offer { price } }',
    'o2: putOffer(input: {shopName: "a", thingId: "2", price: 9}) { offer { price } }',
    'q1: putQuote(input: {shopName: "a", day: 1, amount: "1"}) { quote { day } }',
    'q2: putQuote(input: {shopName: "a", day: 2, amount: "2"}) { quote { day } }',
]
OF_SHOPS = [
    'createOffer(input: {shopName: "b", thingId: "0", price: 7}) { offer { shop { cheapest dearest } } }',
    'putOffer(input: {shopName: "a", thingId: "1", price: 5}) { offer { shop { cheapest } } }',
    'upsertQuote(input: {shopName: "a", day: 2, amount: "3"}) { quote { shop { lastQuote } } }',
    'upsertQuote(input: {shopName: "b", day: 2, amount: "3"}) { quote { shop { lastQuote } } }',
    'updateQuote(input: {shopName: "a", day: 2, amount: "4"}) { quote { shop { lastQuote quoted } } }',
    'deleteQuote(input: {shopName: "a", day: 2}) { clientMutationId }',
    'deleteOffer(input: {shopName: "a", thingId: "1", price: 5}) { clientMutationId }',
    'moveOffer(input: {shopName: "a", thingId: "1", price: 5, to: {price: 12}}) { offer { shop { cheapest } } }',
    'moveQuote(input: {shopName: "a", day: 2, to: {shopName: "b"}}) { quote { shop { lastQuote } } }',
    'deleteQuotes(input: {inputs: [{shopName: "a", day: 2}, {shopName: "a", day: 1}], atomic: true}) '
    "{ clientMutationId }",
    'deleteShop(input: {name: "a", onEdges: DETACH}) { deletedId }',
]
HALL = [
    'one: createTalk(input: {talkId: "1", room: "A"}) { talk { talkId } }',
    'two: createTalk(input: {talkId: "2"}) { talk { talkId } }',
    *(f'{name}: createPerson(input: {{name: "{name}"}}) {{ person {{ name }} }}' for name in ("Ann", "Bob")),
    'g1: putGuest(input: {talkId: "1", personName: "Ann"}) { guest { talk { guestsCount } } }',
    'n1: putNote(input: {talkId: "1", number: 1, stars: 4}) { note { stars } }',
]
OF_TALKS = [
    'putGuest(input: {talkId: "1", personName: "Bob"}) { guest { talk { guestsCount } } }',
    'updateNote(input: {talkId: "1", number: 1, stars: 2}) { note { talk { stars } } }',
    'updateTalk(input: {talkId: "1", room: "B"}) { talk { room notesCount } }',
    'createTalk(input: {talkId: "3", room: "A", notes: [{number: 1}, {number: 2, stars: 3}]}) { talk { stars } }',
    'deleteTalk(input: {talkId: "1", onEdges: DETACH}) { deletedId }',
]


async def bound_is_one(made: World, setting: list[str], document: str) -> Any:
    await made.ask(f"mutation {{ {' '.join(setting)} }}")
    answer: Any = await made.service.execute(OperationRequest(f"mutation {{ {document} }}", with_cost=True))
    assert "errors" not in answer, answer
    within_bound(answer)
    return answer["data"]


@pytest.mark.parametrize("document", OF_SHOPS)
async def test_the_bound_of_first_and_last_items_is_one(document: str, make_store: MakeStore) -> None:
    await bound_is_one(world(shops, await make_store(shops.table)), PLACES, document)


@pytest.mark.parametrize("document", OF_TALKS)
async def test_the_bound_of_keys_of_numbers_is_one(document: str, make_store: MakeStore) -> None:
    await bound_is_one(world(talks, await make_store(talks.table)), HALL, document)
