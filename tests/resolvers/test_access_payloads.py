"""Payloads of mutations under rules: they are decided by what stands there when all is written."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from keygraph import ID, Graph, Many, Table, create, delete, edge, many, node, read, viewer
from keygraph.dynamo.store import Answer, Request, Store, Transaction
from keygraph.errors import Unavailable
from keygraph.model.permissions import Permissions
from keygraph.writing.requests import Delete, OnEdges
from keygraph.writing.sending.writer import Writer
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

MEMBER = {"members": {"person": viewer("sub")}}
TABLE = Table("Clubs", partition_key="PK", sort_key="SK")


@node("P#{person_id}", access=[read()])
class Person:
    person_id: ID
    members: Many[Member] = many()


@node(
    "CLUB#{club_id}",
    access=[
        read(fields=["club_id", "members"]),
        read(where=MEMBER, fields=["code"]),
        create(),
        delete(),
    ],
)
class Club:
    club_id: ID
    code: str | None
    members: Many[Member] = many()


@edge("{club}", "M#{person.person_id}", access=[read(), create(), delete()])
class Member:
    club: Club
    person: Person


graph = Graph(TABLE, Person, Club, Member).check()
A = {"sub": "000"}


@dataclass
class Failing:
    """A store that fails at a transaction of many actions, after the first of them."""

    store: Store
    sent: int = 0

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Transaction) and len(request.actions) > 50:
            self.sent += 1
            if self.sent > 1:
                raise Unavailable("The store is away.")
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()


async def clubs(store: Store, members: int) -> Shop:
    made = world(graph, store)
    await made.put({"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1", "code": "42"})
    await made.put(*({"PK": f"P#{name}", "SK": f"P#{name}", "person_id": name} for name in ("000", "001")))
    await made.put(*({"PK": "CLUB#1", "SK": f"M#{number:03d}"} for number in range(members)))
    return Shop(made)


async def test_a_delete_that_fails_in_the_middle(make_store: MakeStore) -> None:
    """Whoever is a member no more, by a delete that failed after its first transaction, would see what members see in
    payloads that were written before."""
    store = Failing(await make_store(TABLE))
    await clubs(store, 250)
    permissions, key = Permissions(A), {"PK": "CLUB#1", "SK": "M#000"}
    club, item = graph.types["Club"], {"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1", "code": "42"}
    permissions.learn(TABLE.key_of(key), key)
    assert permissions.of_item(club, ("1",), item, "read", "code")
    with pytest.raises(Unavailable):
        await Writer(graph, store, permissions).write([Delete(club, ("1",), on_edges=OnEdges.DETACH)])
    assert store.sent == 2
    assert not permissions.of_item(club, ("1",), item, "read", "code")


async def test_a_nested_write_that_makes_its_viewer_a_member(make_store: MakeStore) -> None:
    """Whoever makes a club with themselves in it would not see it in the payload, or whoever makes one of others would."""
    shop = await clubs(await make_store(TABLE), 3)
    document = """mutation { createClub(input: {clubId: "2", code: "7", members: [{personId: "%s"}]}) {
      club { clubId code } } }"""
    refused = await shop.answer(document % "001", A)
    assert refused["data"] == {"createClub": {"club": {"clubId": "2", "code": None}}}
    assert [each["extensions"]["code"] for each in refused["errors"]] == ["FORBIDDEN"]
    made = await shop.ask((document % "000").replace('"2"', '"3"'), A)
    assert made == {"createClub": {"club": {"clubId": "3", "code": "7"}}}
