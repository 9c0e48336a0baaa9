"""Deleting and moving nodes that others name: nothing is left that names a node that is no more."""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, node, record
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Request, Scan, Write, pages
from keygraph.errors import Reason, TransactionCanceled, Unavailable, WriteRefused
from keygraph.writing.marks import MARK
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Done,
    Move,
    OnEdges,
    Put,
    WriteRequest,
)
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore, on_exact_engines
from tests.keygraph.written import Written
from tests.tracing import CutStore
from tests.verified import verified

gsi = Index("gsi", "gp", "gs")
inverse = Index("inverse", "sk", "pk", projection="KEYS_ONLY")


@node("TEAM#{team_id}")
class Team:
    team_id: ID
    name: str | None = None

    members: Many[Membership]


@node("PERSON#{person_id}", gsi("TEAM#{favorite.team_id}", "FAN#{person_id}"))
class Person:
    person_id: ID
    favorite: Team | None = None

    teams: Many[Membership]


@node("BADGE#{badge_id}", gsi("{owner}", "BADGE#{badge_id}"))
class Badge:
    badge_id: ID
    owner: Person


@edge("{team}", "{person}")
class Membership:
    team: Team
    person: Person
    role: str = "player"


@edge("{one}", "KNOWS#{other.person_id}", mirror=True)
class Acquaintance:
    one: Person
    other: Person


@edge("{giver}", "GIFT#{taker.person_id}#{number:06d}", counterpart="Received")
class Given:
    giver: Person
    taker: Person
    number: int


@edge("{taker}", "GOT#{giver.person_id}#{number:06d}")
class Received:
    taker: Person
    giver: Person
    number: int


@record("{team}#{shard}", "NOTE#{number:06d}", gsi("{author}", "NOTE#{number:06d}"), shards=3)
class Note:
    team: Team
    number: int
    author: Person | None = None
    text: str = "…"


@record("LOG#{day}", "{number:04d}")
class Entry:
    day: ID
    number: int
    about: Team


graph = Graph(
    Table("Teams", partition_key="pk", sort_key="sk", indexes=[gsi, inverse]),
    Team,
    Person,
    Badge,
    Membership,
    Acquaintance,
    Given,
    Received,
    Note,
    Entry,
    type_attribute="kind",
).check()
types = graph.types
team, person, badge, membership = (types[name] for name in ("Team", "Person", "Badge", "Membership"))


class Teams(Written):
    """A store with a writer, and what is in it."""

    async def delete(self, name: str, key: str, on_edges: OnEdges = OnEdges.REFUSE) -> Done:
        [done] = await self.write(Delete(types[name], (key,), on_edges=on_edges))
        return done

    async def refused(self, *requests: WriteRequest) -> tuple[str, str, Any]:
        [refusal] = await self.refusals(*requests)
        return refusal.code, refusal.message, refusal.details

    async def code_of(self, request: WriteRequest) -> str:
        await asyncio.sleep(random.uniform(0, 0.004))
        try:
            await self.write(request)
        except WriteRefused as refused:
            return refused.refusals[0].code
        return "done"

    async def items(self) -> list[Item]:
        return [item async for page in pages(self.store, Scan(consistent=True)) for item in page.items]

    async def problems(self) -> list[str]:
        """What `verify` finds, and marks that are left."""
        found = [f"{kind.type}: {kind.what}" for kind, _ in (await verified(graph, self.store)).ordered()]
        return [*found, *(f"{item['pk']} is marked" for item in await self.items() if MARK in item)]


@pytest.fixture
async def teams(make_store: MakeStore) -> Teams:
    teams = Teams(graph, await make_store(graph.table))
    await teams.write(
        *[Create(team, {"team_id": key}) for key in ("red", "blue")],
        *[Create(person, {"person_id": key}) for key in ("ann", "bob", "cy")],
    )
    return teams


async def test_ends_that_only_an_index_or_the_other_item_finds(teams: Teams) -> None:
    naming: list[tuple[WriteRequest, WriteRequest, str]] = [
        (
            Put(membership, {"team": RED, "person": BOB}),
            Delete(membership, ("red", "bob")),
            "1 Membership (person)",
        ),
        (
            Put(types["Acquaintance"], {"one": ANN, "other": BOB}),
            Delete(types["Acquaintance"], ("ann", "bob")),
            "1 Acquaintance (one)",
        ),
        (
            Put(types["Given"], {"giver": ANN, "taker": BOB, "number": 7}),
            Delete(types["Given"], ("ann", "bob", "000007")),
            "1 Received (taker)",
        ),
        (
            Put(types["Note"], {"team": RED, "number": 1, "author": BOB}),
            Delete(types["Note"], ("red", "000001")),
            "1 Note (author)",
        ),
        (
            Create(badge, {"badge_id": "b", "owner": BOB}),
            Delete(badge, ("b",)),
            "1 Badge (owner)",
        ),
    ]
    for put, undo, named in naming:
        await teams.write(put)
        _, message, _ = await teams.refused(Delete(person, BOB))
        assert message == f"This Person cannot be deleted. It is named by {named}."
        await teams.write(undo)
    await teams.delete("Person", "bob")
    assert await teams.problems() == []


RED, BLUE, ANN, BOB, CY = ("red",), ("blue",), ("ann",), ("bob",), ("cy",)


def test_what_cannot_be_found_is_known() -> None:
    assert [each.name for each in graph.references["Team"] if not each.is_found] == ["Entry.about"]
    assert all(each.is_found for each in graph.references["Person"])
    assert not graph.references["Badge"]


async def test_detach_takes_everything_along_in_one_transaction(teams: Teams) -> None:
    await teams.write(
        Put(membership, {"team": RED, "person": BOB}),
        Put(types["Acquaintance"], {"one": BOB, "other": ANN}),
        Put(types["Acquaintance"], {"one": CY, "other": BOB}),
        Put(types["Acquaintance"], {"one": CY, "other": ANN}),
        Put(types["Given"], {"giver": ANN, "taker": BOB, "number": 7}),
        Put(types["Given"], {"giver": BOB, "taker": CY, "number": 8}),
        *[Put(types["Note"], {"team": RED, "number": number, "author": BOB}) for number in range(5)],
    )
    before = len(await teams.items())
    done = await teams.delete("Person", "bob", OnEdges.DETACH)
    # A membership, two acquaintances of two items, two gifts of two items, and an end of five notes that stay.
    assert done.detached == 1 + 2 + 2 + 5
    left = await teams.items()
    assert len(left) == before - 1 - 1 - 4 - 4
    assert not [item for item in left if "bob" in str(sorted(item.items(), key=str))]
    assert await teams.problems() == []


async def test_detach_stops_at_a_node_that_cannot_do_without(teams: Teams) -> None:
    await teams.write(
        Create(badge, {"badge_id": "b", "owner": BOB}),
        Put(membership, {"team": RED, "person": BOB}),
        Change(person, CY, {"favorite": RED}),
    )
    before = await teams.items()
    code, message, details = await teams.refused(Delete(person, BOB, on_edges=OnEdges.DETACH))
    assert (code, message) == (
        "CONFLICT",
        "This Person cannot be deleted. It is named by 1 Badge (owner).",
    )
    assert details == {"namedBy": [{"type": "Badge", "field": "owner", "atLeast": 1, "lists": []}]}
    assert sorted(map(str, await teams.items())) == sorted(map(str, before))
    assert (await teams.delete("Team", "red", OnEdges.DETACH)).detached == 2
    cy = await teams.item("PERSON#cy", "PERSON#cy")
    assert cy is not None
    assert not cy.keys() & {"gp", "gs", "favorite_id"}


async def test_what_the_same_write_takes_away_is_no_hindrance(teams: Teams) -> None:
    await teams.write(Put(membership, {"team": RED, "person": ANN}), Change(person, CY, {"favorite": RED}))
    await teams.write(
        Delete(membership, ("red", "ann")), Change(person, CY, {"favorite": BLUE}), Delete(team, RED)
    )
    assert await teams.item("TEAM#red", "TEAM#red") is None
    joined = [Delete(team, BLUE, on_edges=OnEdges.DETACH), Put(membership, {"team": BLUE, "person": ANN})]
    assert (await teams.refused(*joined))[0] == "NOT_FOUND"
    assert await teams.problems() == []


async def test_more_than_one_transaction_holds(teams: Teams) -> None:
    await many_notes(teams, 230)
    several = [Delete(team, RED, on_edges=OnEdges.DETACH), Create(team, {"team_id": "green"}, ("more",))]
    assert (await teams.refused(*several))[0] == "TRANSACTION_TOO_LARGE"
    assert len(await teams.items()) == 235
    assert (await teams.delete("Team", "red", OnEdges.DETACH)).detached == 230
    assert len(await teams.items()) == 4
    assert await teams.problems() == []


async def many_notes(teams: Teams, count: int) -> None:
    for start in range(0, count, 90):
        numbers = range(start, min(start + 90, count))
        await teams.write(
            *[Put(types["Note"], {"team": RED, "number": number, "author": ANN}) for number in numbers]
        )


@pytest.mark.parametrize("is_done", [False, True])
@on_exact_engines
@pytest.mark.long
async def test_a_crash_at_any_point_leaves_a_node_that_can_be_deleted(teams: Teams, is_done: bool) -> None:
    for at in range(1, 6):
        await many_notes(teams, 205)
        with pytest.raises(Unavailable):
            await write(
                graph,
                CutStore(teams.store, at, is_done=is_done),
                [Delete(team, RED, on_edges=OnEdges.DETACH)],
            )
        dangling = [each for each in await teams.problems() if "marked" not in each]
        assert dangling == []
        if await teams.item("TEAM#red", "TEAM#red") is not None:
            await teams.delete("Team", "red", OnEdges.DETACH)
        assert not [item for item in await teams.items() if "red" in str(item["pk"])]
        await teams.write(Create(team, {"team_id": "red"}))


@on_exact_engines
@pytest.mark.long
async def test_edges_put_while_their_node_is_deleted(teams: Teams) -> None:
    outcomes = set()
    for number in range(100):
        key = f"t{number}"
        await teams.write(Create(team, {"team_id": key}))

        put, deleted = await asyncio.gather(
            teams.code_of(Put(membership, {"team": (key,), "person": ANN})),
            teams.code_of(Delete(team, (key,), on_edges=random.choice([*OnEdges]))),
        )
        outcomes.add((put, deleted))
        edge_, node_ = [await teams.item(f"TEAM#{key}", sort) for sort in ("PERSON#ann", f"TEAM#{key}")]
        assert edge_ is None or node_ is not None, (put, deleted)
        assert (node_ is None) == (deleted == "done")
        assert "done" in (put, deleted)
    assert len(outcomes) > 1
    assert await teams.problems() == []


@on_exact_engines
async def test_deletes_of_one_node_at_the_same_time(teams: Teams) -> None:
    await many_notes(teams, 120)
    deletes = [teams.delete("Team", "red", OnEdges.DETACH) for _ in range(3)]
    answers = await asyncio.gather(*deletes, return_exceptions=True)
    done = [each for each in answers if isinstance(each, Done)]
    refused = [each.refusals[0].code for each in answers if isinstance(each, WriteRefused)]
    assert len(done) + len(refused) == 3
    assert len(done) == 1
    assert set(refused) == {"NOT_FOUND"}
    assert await teams.problems() == []


class Busy(CutStore):
    """A store that is at the item in a transaction of somebody else, the first times that a single item is written."""

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Write) and self.left > 0:
            self.left -= 1
            raise TransactionCanceled([Reason("TransactionConflict")])
        return await self.store.send(request)


async def test_a_transaction_of_somebody_else_is_waited_for(teams: Teams) -> None:
    writer = partial(write, graph, Busy(teams.store, 3, is_done=False))
    await writer([Delete(team, RED)])
    assert await teams.item("TEAM#red", "TEAM#red") is None
    await teams.write(Put(membership, {"team": BLUE, "person": ANN}))
    store = Busy(teams.store, 0, is_done=False)
    writer = partial(write, graph, store)
    with pytest.raises(WriteRefused):
        await writer([Delete(team, BLUE)])
    assert await teams.problems() == []


async def test_a_mark_that_was_left_behind(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygraph.writing.sending.sender._PAUSE", 0.0001)
    marked = await teams.item("TEAM#red", "TEAM#red")
    assert marked is not None
    await teams.store.send(Write(PutItem({**marked, MARK: f"1234#{int(time.time()) + 60}"})))
    put = Put(membership, {"team": RED, "person": ANN})
    told = "A node that this writes or names is being deleted or moved. Try again in 30 seconds."
    assert (await teams.refused(put))[:2] == ("CONFLICT", told)
    assert (await teams.refused(Change(person, ANN, {"favorite": RED})))[0] == "CONFLICT"
    assert (await teams.refused(put, Change(team, RED, {"name": "Red"})))[0] == "CONFLICT"
    await teams.write(Change(team, RED, {"name": "Red"}))
    # What would name it from another place is not found any more.
    named = {
        "pk": "PERSON#bob",
        "sk": "PERSON#bob",
        "kind": "Person",
        "person_id": "bob",
        "favorite_id": "red",
    }
    await teams.store.send(Write(PutItem(named)))
    moved = Move(person, ("bob",), {"person_id": "rob"})
    assert (await teams.refused(moved))[0] == "CONFLICT"
    old = {**marked, MARK: "1234#1700000000"}
    await teams.store.send(Write(PutItem(old)))
    await teams.write(put)
    await teams.write(moved)
    assert await teams.problems() == []


# --- Moves ----------------------------------------------------------------------------------------------


async def test_a_node_that_is_named_stays(teams: Teams) -> None:
    await teams.write(Put(membership, {"team": RED, "person": ANN}))
    code, message, _ = await teams.refused(Move(team, RED, {"team_id": "green"}))
    assert (code, message) == (
        "CONFLICT",
        "This Team cannot be moved. It is named by 1 Membership (team).",
    )
    assert (await teams.refused(Move(person, CY, {"person_id": "bob"})))[0] == "ALREADY_EXISTS"
    assert (await teams.refused(Move(person, CY, {"person_id": "cy"})))[0] == "BAD_USER_INPUT"
    assert (await teams.refused(Move(person, ("dee",), {"person_id": "d"})))[0] == "NOT_FOUND"
    assert await teams.problems() == []


async def test_an_edge_moves_with_its_other_item(teams: Teams) -> None:
    knows, note = types["Acquaintance"], types["Note"]
    await teams.write(
        Put(knows, {"one": ANN, "other": BOB}),
        Put(types["Given"], {"giver": ANN, "taker": BOB, "number": 7}),
        Put(note, {"team": RED, "number": 7, "text": "so"}),
    )
    await teams.write(Move(knows, ("bob", "ann"), {"other": CY}))
    assert await teams.item("PERSON#cy", "KNOWS#bob") is not None
    await teams.write(Move(types["Given"], ("ann", "bob", "000007"), {"number": 8, "taker": CY}))
    assert await teams.item("PERSON#cy", "GOT#ann#000008") is not None
    [moved] = await teams.write(Move(note, ("red", "000007"), {"team": BLUE}))
    assert moved.item is not None
    assert moved.item["text"] == "so"
    missing = await teams.refused(Move(knows, ("bob", "cy"), {"other": ("nobody",)}))
    assert missing[:2] == ("NOT_FOUND", "other_id: there is no Person with this key.")
    assert len(await teams.items()) == 5 + 2 + 2 + 1
    assert await teams.problems() == []


@on_exact_engines
async def test_a_change_during_a_move_is_not_lost(teams: Teams) -> None:
    for number in range(20):
        key = f"p{number}"
        await teams.write(Create(person, {"person_id": key}))

        changed, _ = await asyncio.gather(
            teams.code_of(Change(person, (key,), {"favorite": RED})),
            teams.write(Move(person, (key,), {"person_id": f"q{number}"})),
        )
        moved = await teams.item(f"PERSON#q{number}", f"PERSON#q{number}")
        assert moved is not None
        assert changed in ("done", "NOT_FOUND")
        assert ("favorite_id" in moved) is (changed == "done")
    assert await teams.problems() == []
