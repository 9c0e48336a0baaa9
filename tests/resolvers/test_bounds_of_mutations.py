"""What mutations cost is no more than their bound, whatever has to be read before they are written."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph.dynamo.actions import key_of
from keygraph.dynamo.store import Transaction
from tests.conftest import MakeStore
from tests.keygraph.histories.declared import graph
from tests.resolvers.worlds import World, world

ENDS = 'personName: "Ann", clubId: "c1"'
SEAT = "{ seat { row } }"
MANY = ", ".join(f"{{{ENDS.replace('c1', f'c{number}')}, row: {number}}}" for number in range(1, 9))


@pytest.fixture
async def club(make_store: MakeStore) -> World:
    """Three people, eight clubs, and some of what joins them."""
    made = world(graph, await make_store(graph.table))
    people = " ".join(
        f'{name}: createPerson(input: {{name: "{name}"}}) {{ person {{ name }} }}'
        for name in ("Ann", "Bob", "Cy")
    )
    clubs = " ".join(
        f'c{n}: createClub(input: {{clubId: "c{n}"}}) {{ club {{ clubId }} }}' for n in range(1, 9)
    )
    await made.ask(f"mutation {{ {people} {clubs} putSeat(input: {{{ENDS}, row: 1}}) {SEAT} }}")
    await made.ask(f"mutation {{ putMember(input: {{{ENDS}, since: 1}}) {{ member {{ since }} }} }}")
    await made.ask(
        'mutation { putFriend(input: {oneName: "Ann", otherName: "Bob", since: 1}) { friend { since } } }'
    )
    return made


DOCUMENTS = [
    f"putSeat(input: {{{ENDS}, row: 2}}) {SEAT}",
    f"updateSeat(input: {{{ENDS}, row: 2}}) {SEAT}",
    f"deleteSeat(input: {{{ENDS}}}) {{ clientMutationId }}",
    f'moveSeat(input: {{{ENDS}, to: {{personName: "Bob"}}}}) {SEAT}',
    f'moveStay(input: {{{ENDS}, to: {{personName: "Bob"}}}}) {{ stay {{ since }} }}',
    f"updateStay(input: {{{ENDS}, since: 2}}) {{ stay {{ since person {{ name }} }} }}",
    'putDeed(input: {personName: "Ann", at: 1}) { deed { at } }',
    'moveFriend(input: {oneName: "Ann", otherName: "Bob", to: {oneName: "Cy"}}) { friend { since } }',
    'updateFriend(input: {oneName: "Ann", otherName: "Bob", add: {rounds: 1}}) { friend { since } }',
    'upsertNote(input: {noteId: "n", title: "t", authorName: "Ann"}) { note { title author { name } } }',
    'deletePerson(input: {name: "Bob", onEdges: DETACH}) { deletedId detached }',
    'movePerson(input: {name: "Bob", to: {name: "Ben"}}) { person { name } }',
    f"putSeats(inputs: [{MANY}]) {{ results {{ seat {{ row }} }} }}",
    f"putSeats(inputs: [{MANY}], atomic: false) {{ results {{ seat {{ row }} }} }}",
    f"updateSeats(inputs: [{{{ENDS}, row: 3}}], atomic: false) {{ results {{ seat {{ row }} }} }}",
    f"write(actions: [{{updateSeat: {{{ENDS}, row: 3}}}}, {{deleteStay: {{{ENDS}}}}}]) {{ results {{ updateSeat {SEAT} }} }}",
]


@pytest.mark.parametrize("document", DOCUMENTS)
async def test_the_bound_is_one(club: World, document: str) -> None:
    """A mutation would be let through that costs more than is allowed."""
    answer: Any = await club.service.execute(f"mutation {{ {document} }}", with_cost=True)
    cost = answer["extensions"]["cost"]
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert cost["actual"][name] <= cost["bound"][name], (name, cost["requests"])


@pytest.mark.parametrize("document", DOCUMENTS[2:5] + DOCUMENTS[7:8])
async def test_what_is_explained_of_two_items_is_sent(club: World, document: str) -> None:
    """Whoever reads the plan would miss what becomes of the other item of an edge."""
    *_, write = club.service.explain(f"mutation {{ {document} }}").steps
    [transaction] = write.transactions
    shown = [(action.operation, action.keys.replace("{row}", "01")) for action in transaction.actions]
    club.forget()
    await club.ask(f"mutation {{ {document} }}")
    [sent] = [each for each in club.tracer.requests if isinstance(each, Transaction)]
    found = [(type(action).__name__, key_of(action, graph.table)) for action in sent.actions]
    names = {"CheckItem": "ConditionCheck"}
    assert shown == [
        (names.get(name, name.removesuffix("Item")), f"pk = {pk} AND sk = {sk}") for name, (pk, sk) in found
    ]
