"""Payloads of mutations under rules: they are decided by what stands there when all is written."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from keygraph import ID, Graph, Many, Table, create, delete, edge, many, node, read, viewer
from keygraph import write as may_write
from keygraph.dynamo.store import Answer, PassingStore, Request, Store, Transaction
from keygraph.errors import Unavailable
from keygraph.model.permissions import KnownRecord, Permissions
from keygraph.writing.requests import Delete, OnEdges
from keygraph.writing.sending.writer import write
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

MEMBER = {"members": {"person": viewer("sub")}}
TABLE = Table("Clubs", partition_key="PK", sort_key="SK")


@node("P#{person_id}", access=[read()])
class Person:
    person_id: ID
    members: Many[Member] = many(needs=("club_id",))


@node(
    "CLUB#{club_id}",
    access=[read(fields=["club_id", "members"]), read(where=MEMBER, fields=["code"]), create(), delete()],
)
class Club:
    club_id: ID
    code: str | None
    members: Many[Member] = many()


@edge("{club}", "M#{person.person_id}", access=[read(), may_write()])
class Member:
    club: Club
    person: Person
    note: str | None = None


graph = Graph(TABLE, Person, Club, Member, writes=True).check()
A = {"sub": "000"}


@dataclass
class Failing(PassingStore):
    """A store that fails at a transaction of many actions, after the first of them."""

    sent: int = 0

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, Transaction) and len(request.actions) > 50:
            self.sent += 1
            if self.sent > 1:
                raise Unavailable("The store is away.")
        return await self.store.send(request)


async def clubs(store: Store, members: int) -> Shop:
    made = world(graph, store)
    await made.put({"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1", "code": "42"})
    await made.put(*({"PK": f"P#{name}", "SK": f"P#{name}", "person_id": name} for name in ("000", "001")))
    await made.put(*({"PK": "CLUB#1", "SK": f"M#{number:03d}"} for number in range(members)))
    return Shop(made)


async def test_a_delete_that_fails_in_the_middle(make_store: MakeStore) -> None:
    store = Failing(await make_store(TABLE))
    await clubs(store, 250)
    permissions, key = Permissions(A), {"PK": "CLUB#1", "SK": "M#000"}
    club, item = graph.types["Club"], {"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1", "code": "42"}
    permissions.learn(TABLE.key_of(key), key)
    assert permissions.allows(KnownRecord(club, ("1",), item), "read", "code")
    with pytest.raises(Unavailable):
        await write(graph, store, [Delete(club, ("1",), on_edges=OnEdges.DETACH)], permissions=permissions)
    assert store.sent == 2
    assert not permissions.allows(KnownRecord(club, ("1",), item), "read", "code")


async def test_a_nested_write_that_makes_its_viewer_a_member(make_store: MakeStore) -> None:
    shop = await clubs(await make_store(TABLE), 3)
    document = """mutation { createClub(input: {clubId: "2", code: "7", members: [{personId: "%s"}]}) {
      club { clubId code } } }"""
    refused = await shop.answer(document % "001", A)
    assert refused["data"] == {"createClub": {"club": {"clubId": "2", "code": None}}}
    assert [each["extensions"]["code"] for each in refused["errors"]] == ["FORBIDDEN"]
    made = await shop.ask((document % "000").replace('"2"', '"3"'), A)
    assert made == {"createClub": {"club": {"clubId": "3", "code": "7"}}}


async def test_a_write_that_changes_the_item_by_which_its_viewer_is_a_member(make_store: MakeStore) -> None:
    shop = await clubs(await make_store(TABLE), 0)
    await shop.world.put({"PK": "CLUB#2", "SK": "M#000"})
    document = """mutation { write(input: {actions: [{createClub: {clubId: "2", code: "7"}},
      {updateMember: {clubId: "2", personId: "000", note: "new"}}]}) { results { createClub { club { code } } } } }"""
    shop.world.tracer.requests.clear()
    answer = await shop.world.served().service.execute(
        OperationRequest(document, {}, with_cost=True, viewer=A)
    )
    made = {"createClub": {"club": {"code": "7"}}}
    assert answer["data"] == {"write": {"results": [made, {"createClub": None}]}}
    assert len(shop.world.tracer.requests) == answer["extensions"]["cost"]["bound"]["requests"] == 2
