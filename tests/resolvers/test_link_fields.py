"""Fields that only those see whom another item lets see them, of records that others see too."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, node, read, update, viewer, write
from keygraph.dynamo.items import Item
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
MEMBER = {"members": {"user": viewer("sub")}, "closed": False}


@node("USER#{user_id}", access=[read()])
class User:
    user_id: ID


@node(
    "GROUP#{group_id}",
    gsi1("GROUPS", "{group_id}", lists="groups"),
    access=[read(fields=["name"]), read(where=MEMBER), update(where=MEMBER, fields=["plan"])],
)
class Group:
    group_id: ID
    name: str
    plan: str
    closed: bool = False
    members: Many[Member]


@edge(
    "{group}",
    "MEMBER#{user.user_id}",
    access=[read(where={"user": viewer("sub")}), write(where={"user": viewer("sub")})],
)
class Member:
    group: Group
    user: User


graph = Graph(Table("Groups", partition_key="PK", sort_key="SK", indexes=[gsi1]), User, Group, Member).check()


def group(name: str) -> Item:
    key = f"GROUP#{name}"
    return {"PK": key, "SK": key, "GSI1PK": "GROUPS", "GSI1SK": name, "name": name, "plan": f"plan {name}"}


@pytest.fixture
async def club(make_store: MakeStore) -> Shop:
    made = world(graph, await make_store(graph.table, group("a"), group("b"), {**group("c"), "closed": True}))
    await made.put(*({"PK": f"GROUP#{name}", "SK": "MEMBER#ann"} for name in "bc"))
    return Shop(made)


ANN = {"sub": "ann"}


async def test_a_member_reads_more_of_their_group(club: Shop) -> None:
    asked = """{ group(groupId: "b") { name plan } groups { totalCount nodes { name plan members { totalCount } } } }"""
    for claims, plan in ((ANN, "plan b"), ({"sub": "bob"}, None), ({}, None)):
        answer = await club.answer(asked, claims)
        own: dict[str, Any] = {
            "name": "b",
            "plan": plan,
            "members": None if plan is None else {"totalCount": 1},
        }
        others = [{"name": name, "plan": None, "members": None} for name in "ac"]
        assert answer["data"]["group"] == {"name": "b", "plan": plan}
        assert answer["data"]["groups"] == {"totalCount": 3, "nodes": [others[0], own, others[1]]}
        assert {error["extensions"]["code"] for error in answer["errors"]} == {"FORBIDDEN"}


async def test_nothing_is_looked_up_for_whoever_cannot_be_one(club: Shop) -> None:
    for claims, most in ((ANN, 2), ({}, 1)):
        answer = await club.world.service.execute(
            OperationRequest('{ group(groupId: "b") { name } }', {}, with_cost=True, viewer=claims)
        )
        assert answer["data"] == {"group": {"name": "b"}}
        assert answer["extensions"]["cost"]["bound"]["items"] == most


async def test_a_member_writes_it(club: Shop) -> None:
    changed = 'mutation { updateGroup(input: {groupId: "b", plan: "new"}) { group { plan } } }'
    assert [code for _, code in await club.errors(changed, {"sub": "bob"})] == ["FORBIDDEN"]
    assert await club.ask(changed, ANN) == {"updateGroup": {"group": {"plan": "new"}}}


async def test_a_later_mutation_decides_nothing_of_an_earlier_payload(club: Shop) -> None:
    change = 'updateGroup(input: {groupId: "b", plan: "%s"}) { group { plan } }'
    leave = 'deleteMember(input: {groupId: "b", userId: "ann"}) { group { plan } }'
    document = f"mutation {{ first: {change % 'one'} left: {leave} }}"
    answer = await club.answer(document, ANN)
    assert answer["data"]["first"] == {"group": {"plan": "one"}}
    assert answer["data"]["left"] == {"group": {"plan": None}}


async def test_a_payload_is_decided_by_what_its_mutation_wrote(club: Shop) -> None:
    await club.world.put({"PK": "USER#eve", "SK": "USER#eve"})
    join = 'mutation { putMember(input: {groupId: "b", userId: "eve"}) { member { group { plan } } } }'
    assert await club.ask(join, {"sub": "eve"}) == {"putMember": {"member": {"group": {"plan": "plan b"}}}}
