"""Ends of several types: what is answered, and what it takes to answer it."""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph_resolvers import OperationRequest, build_schema
from keygraph_resolvers.naming.global_ids import global_id
from tests.resolvers.union_worlds import (
    company_item,
    membership_item,
    note_item,
    org_item,
    person_item,
    project_item,
    repository_item,
    team_item,
    told_by_keys,
    told_by_reading,
    user_item,
)
from tests.resolvers.worlds import World, filled

SNAPSHOT = Path(__file__).parent / "snapshots" / "unions.graphql"

owned = filled(
    told_by_keys,
    [
        *map(user_item, ["ann", "bob"]),
        *map(org_item, ["acme"]),
        *map(team_item, ["red", "blue"]),
        project_item("p1", "USER#ann"),
        project_item("p2", "ORG#acme", ReviewedBy="USER#bob"),
        project_item("p3", "ORG#acme", ReviewedBy="ORG#acme"),
        project_item("p4", "ORG#gone"),
        note_item("USER#ann", "2024-01-01", "ORG#acme"),
        note_item("USER#ann", "2024-01-02"),
        note_item("ORG#acme", "2024-01-03", "USER#bob"),
        note_item("BOT#x#0007", "2024-01-04"),
        membership_item("red", "USER#ann", "lead"),
        membership_item("red", "ORG#acme", "sponsor"),
        membership_item("red", "TEAM#blue", "part"),
        membership_item("blue", "USER#ann", "guest"),
        {"PK": "BADGE#USER#ann", "SK": "BADGE#USER#ann", "Type": "Badge", "colour": "green"},
    ],
)
"""Types that are told by their keys."""


def node_id(type_: str, *identity: str) -> str:
    return global_id(told_by_keys.types[type_], identity)


async def test_what_the_key_tells_is_not_read(owned: World) -> None:
    owned.forget()
    found = await owned.ask("""{ user(userId: "ann") { projects { nodes {
      owner { __typename ... on User { id userId } ... on Organization { name } } } } } }""")
    assert found["user"]["projects"]["nodes"] == [
        {"owner": {"__typename": "User", "id": node_id("User", "ann"), "userId": "ann"}}
    ]
    assert owned.operations == {"GetItem": 1, "Query": 1}


async def test_only_the_types_are_read_of_which_more_is_selected(owned: World) -> None:
    owned.forget()
    found = await owned.ask("""query { notes: allNotes {
      nodes { day author { ...name ... on User { userId } ... on Bot { vendor number } } } } }
      fragment name on Organization { name }""")
    assert [each["author"] for each in found["notes"]["nodes"]] == [
        {"vendor": "x", "number": 7},
        {"name": "Name of acme"},
        {"userId": "ann"},
        {"userId": "ann"},
    ]
    assert owned.operations == {"Query": 1, "GetItem": 1}


async def test_the_far_end_of_an_edge(owned: World) -> None:
    document = """query ($to: [ID!]) { team(teamId: "red") { members(to: $to) { totalCount edges { role node {
      __typename ... on User { name } ... on Organization { orgId }
    } } } } }"""
    edges = [
        {"role": "sponsor", "node": {"__typename": "Organization", "orgId": "acme"}},
        {"role": "lead", "node": {"__typename": "User", "name": "Name of ann"}},
    ]
    ids = [node_id("User", "ann"), node_id("Organization", "acme"), node_id("Team", "red")]
    found = await owned.ask(document, to=ids)
    assert found["team"]["members"] == {"totalCount": 2, "edges": edges}
    assert await owned.errors(document, to=[node_id("Badge", "USER#ann")]) == [
        ("BAD_USER_INPUT", "to: expected ids of User or Organization or Team, and this is one of Badge")
    ]


async def test_in_an_argument_it_is_a_global_id(owned: World) -> None:
    document = "query ($owner: ID!) { badge(ownerId: $owner) { colour id owner { __typename } } }"
    found = await owned.ask(document, owner=node_id("User", "ann"))
    assert found["badge"] == {
        "colour": "green",
        "id": node_id("Badge", "USER#ann"),
        "owner": {"__typename": "User"},
    }
    again = await owned.ask(
        "query ($id: ID!) { node(id: $id) { ... on Badge { colour } } }", id=found["badge"]["id"]
    )
    assert again == {"node": {"colour": "green"}}
    assert (await owned.ask(document, owner=node_id("Organization", "ann")))["badge"] is None
    assert await owned.errors(document, owner="ann") == [
        (
            "BAD_USER_INPUT",
            "ownerId: 'ann' is not a global id. Pass the value of an `id` field, or look the node up by its key.",
        )
    ]
    assert await owned.errors(document, owner=node_id("Team", "red")) == [
        ("BAD_USER_INPUT", "ownerId: expected an id of Organization or User")
    ]


async def test_along_a_sort_key(owned: World) -> None:
    document = """query ($author: ID, $about: ID) {
      allNotes(authorId: {eq: $author}) { nodes { day } }
      user(userId: "ann") { notes(day: {eq: "2024-01-01"}, aboutId: {eq: $about}) {
        nodes { about { __typename } } } }
    }"""
    found = await owned.ask(document, author=node_id("User", "ann"), about=node_id("Organization", "acme"))
    assert found["allNotes"]["nodes"] == [{"day": "2024-01-01"}, {"day": "2024-01-02"}]
    assert found["user"]["notes"]["nodes"] == [{"about": {"__typename": "Organization"}}]
    found = await owned.ask(document, author=node_id("Bot", "x", "0007"), about=node_id("User", "acme"))
    assert found["allNotes"]["nodes"] == [{"day": "2024-01-04"}]
    assert found["user"]["notes"]["nodes"] == []


async def test_where_compares_nodes(owned: World) -> None:
    document = """query ($where: ProjectWhere) {
      organization(orgId: "acme") { projects(where: $where) { nodes { projectId } } } }"""

    async def found(**where: object) -> list[str]:
        answer = await owned.ask(document, where=where)
        return [each["projectId"] for each in answer["organization"]["projects"]["nodes"]]

    bob, acme = node_id("User", "bob"), node_id("Organization", "acme")
    assert await found(reviewerId={"eq": bob}) == ["p2"]
    assert await found(reviewerId={"ne": bob}) == ["p3"]
    assert await found(reviewerId={"in": [bob, acme]}) == ["p2", "p3"]
    assert await found(reviewerId={"exists": False}) == []
    assert await found(ownerId={"eq": acme}) == ["p2", "p3"]
    assert await found(ownerId={"eq": node_id("User", "acme")}) == []
    assert await owned.errors(document, where={"reviewerId": {"eq": node_id("Team", "red")}}) == [
        ("BAD_USER_INPUT", "where.reviewerId.eq: expected an id of Organization or User")
    ]


async def test_methods_see_and_give_nodes(owned: World) -> None:
    found = await owned.ask("""{
      a: project(projectId: "p1") { ownerWord contact { ... on User { name } } }
      b: project(projectId: "p2") { ownerWord contact { __typename ... on User { userId } } }
    }""")
    assert found == {
        "a": {"ownerWord": "User", "contact": {"name": "Name of ann"}},
        "b": {"ownerWord": "Organization", "contact": {"__typename": "User", "userId": "bob"}},
    }


@pytest.mark.parametrize("held", ["ann", "TEAM#red", "USER#"])
async def test_a_key_of_no_member(owned: World, held: str) -> None:
    await owned.put(project_item("bad", "USER#ann", ReviewedBy=held))
    document = '{ project(projectId: "bad") { title reviewer { __typename } } }'
    assert await owned.errors(document) == [
        ("CORRUPT_ITEM", "Project.reviewer of an item is not a key of User or Organization")
    ]


# --- Keys that are alike ------------------------------------------------------------------------------


accounts = filled(
    told_by_reading,
    [
        person_item("ann"),
        company_item("acme"),
        repository_item("ann", "one", forkedByLogin="acme"),
        repository_item("acme", "two"),
        repository_item("gone", "three"),
    ],
)


async def test_alike_keys_are_told_by_reading(accounts: World) -> None:
    accounts.forget()
    document = """{
      a: repository(ownerLogin: "ann", name: "one") { owner { __typename ... on Person { name } }
        forkedBy { __typename } }
      b: repository(ownerLogin: "acme", name: "two") { owner { ... on Company { country } ... on Person { name } } }
      c: repository(ownerLogin: "gone", name: "three") { owner { __typename } }
    }"""
    assert await accounts.ask(document) == {
        "a": {
            "owner": {"__typename": "Person", "name": "Name of ann"},
            "forkedBy": {"__typename": "Company"},
        },
        "b": {"owner": {"country": "IS"}},
        "c": {"owner": None},
    }
    # The owners stand in the keys of what is asked for, and so are asked for with it; the fork's owner is one of them.
    assert accounts.operations == {"BatchGetItem": 1}


async def test_alike_keys_in_lists_and_methods(accounts: World) -> None:
    found = await accounts.ask("""{
      person(login: "ann") { repositories { nodes { name address sameOwner { ... on Person { login } } } } }
      company(login: "acme") { repositories(where: {forkedByLogin: {exists: false}}) { nodes { name } } }
      other: person(login: "acme") { login }
    }""")
    one = {"name": "one", "address": "https://example.com/ann/one", "sameOwner": {"login": "ann"}}
    assert found == {
        "person": {"repositories": {"nodes": [one]}},
        "company": {"repositories": {"nodes": [{"name": "two"}]}},
        "other": None,
    }


async def test_what_telling_a_type_costs(accounts: World) -> None:
    document = """{ repository(ownerLogin: "ann", name: "one") { forkedBy { ... on Person { login
      repositories { nodes { name } } } ... on Company { login repositories { nodes { name } } } } } }"""
    cost = (await accounts.service.execute(OperationRequest(document, with_cost=True)))["extensions"]["cost"]
    # The repository; whoever forked it; their repositories, which count for each type that it can be.
    assert (cost["bound"]["requests"], cost["bound"]["roundTrips"]) == (4, 3)
    assert (cost["actual"]["requests"], cost["actual"]["roundTrips"]) == (3, 3)


def test_the_schema() -> None:
    assert build_schema(told_by_keys).as_str() + "\n" == SNAPSHOT.read_text("utf-8")
