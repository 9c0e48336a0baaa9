"""Rules that another item decides: whoever is a member of a group sees it, and what is in it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Table,
    create,
    delete,
    edge,
    many,
    node,
    one,
    read,
    record,
    stored,
    ttl,
    update,
    viewer,
    write,
)
from keygraph.declare.decorators import One
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Scan
from keygraph.model.permissions import Permissions
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.plan.explained import steps_text
from keygraph_resolvers.read.meter import Memory
from tests.conftest import MakeStore
from tests.resolvers.races import Interrupted
from tests.resolvers.test_access import Shop
from tests.resolvers.worlds import world

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
ME = viewer("sub")
MEMBER = {"memberships": {"user": ME}}
ADMIN = {"memberships": {"user": ME, "role": "admin"}}


@node("USER#{user_id}", access=[read()])
class User:
    user_id: ID

    memberships: Many[Membership] = many()


@node(
    "GROUP#{group_id}",
    gsi1("GROUPS", "{group_id}", lists="groups"),
    access=[
        read(where={"open": True}),
        read(where=MEMBER),
        read(role="staff"),
        update(where=ADMIN),
        delete(where=ADMIN),
    ],
)
class Group:
    group_id: ID
    name: str
    open: bool = False

    memberships: Many[Membership] = many()
    posts: Many[Post] = many()
    welcome: One[Post] = one()


@edge(
    "{group}",
    "MEMBER#{user.user_id}",
    gsi1("{user}", "MEMBER#{group.group_id}"),
    access=[
        read(where={"user": ME}),
        read(where={"group": MEMBER}),
        create(where={"group": ADMIN}),
        delete(where={"user": ME}),
    ],
)
class Membership:
    group: Group
    user: User
    role: str = "member"


@record(
    "{group}",
    "POST#{number:03d}",
    access=[
        read(where={"group": MEMBER}),
        create(where={"group": MEMBER}),
        update(where={"group": MEMBER, "author": ME}),
    ],
)
class Post:
    group: Group
    number: int
    author: User
    text: str


@node(
    "NOTE#{note_id}",
    gsi1("NOTES", "{note_id}", lists="notes"),
    access=[read(where={"group": MEMBER}), create()],
)
class Note:
    """A node that only its item says the group of."""

    note_id: ID
    group: Group = stored("ofGroup")


TABLE = Table("Groups", partition_key="PK", sort_key="SK", indexes=[gsi1])
graph = Graph(TABLE, User, Group, Membership, Post, Note, writes=True).check()


def user(name: str) -> Item:
    return {"PK": f"USER#{name}", "SK": f"USER#{name}", "user_id": name}


def group(name: str, **values: Any) -> Item:
    key = f"GROUP#{name}"
    return {
        "PK": key,
        "SK": key,
        "GSI1PK": "GROUPS",
        "GSI1SK": name,
        "group_id": name,
        "name": name,
        "open": False,
        **values,
    }


def member(group_id: str, name: str, role: str = "member") -> Item:
    keys = {
        "PK": f"GROUP#{group_id}",
        "SK": f"MEMBER#{name}",
        "GSI1PK": f"USER#{name}",
        "GSI1SK": f"MEMBER#{group_id}",
    }
    return {**keys, "group_id": group_id, "user_id": name, "role": role}


def post(group_id: str, number: int, author: str = "a") -> Item:
    keys = {"PK": f"GROUP#{group_id}", "SK": f"POST#{number:03d}"}
    return {
        **keys,
        "group_id": group_id,
        "number": Decimal(number),
        "author_id": author,
        "text": f"{group_id}{number}",
    }


def note(name: str, group_id: str) -> Item:
    key = f"NOTE#{name}"
    return {"PK": key, "SK": key, "GSI1PK": "NOTES", "GSI1SK": name, "note_id": name, "ofGroup": group_id}


GROUPS = [f"g{number}" for number in range(9)]
ITEMS = [
    *map(user, "abc"),
    *(group(name, open=name == "g8") for name in GROUPS),
    *(member(name, "a", "admin" if name == "g0" else "member") for name in ("g0", "g3", "g6")),
    *(member(name, "b") for name in GROUPS[:8]),
    *(post(name, number) for name in GROUPS for number in range(3)),
    *(note(f"n{number}", name) for number, name in enumerate(GROUPS)),
]
A, B, C = ({"sub": name} for name in "abc")
STAFF = {"roles": ["staff"]}


@pytest.fixture
async def club(make_store: MakeStore) -> Shop:
    made = world(graph, await make_store(TABLE, *ITEMS))
    return Shop(made)


async def test_members_see_their_group(club: Shop) -> None:
    document = '{ group(groupId: "g0") { name } }'
    assert await club.ask(document, A) == {"group": {"name": "g0"}}
    assert club.world.operations == {"BatchGetItem": 1}
    for claims in (
        C,
        None,
        {"sub": None},
        {"sub": ["x", "y"]},
        {"sub": 5},
        {"sub": "a#b"},
        {"sub": "x" * 5000},
    ):
        assert await club.ask(document, claims) == {"group": None}
    assert await club.ask(document, {"sub": ["x", "a"]}) == {"group": {"name": "g0"}}
    assert await club.ask(document, STAFF) == {"group": {"name": "g0"}}
    assert club.world.operations == {"GetItem": 1}
    assert await club.ask('{ group(groupId: "g8") { name } }', C) == {"group": {"name": "g8"}}


async def test_a_level_takes_one_batch(club: Shop) -> None:
    document = (
        '{ user(userId: "b") { memberships { nodes { name } edges { node { groupId } } totalCount } } }'
    )
    found = await club.ask(document, A)
    assert [each["name"] for each in found["user"]["memberships"]["nodes"]] == ["g0", "g3", "g6"]
    # The memberships, which the groups decide, with one batch for all of them; the groups themselves are the second.
    assert club.world.operations["BatchGetItem"] == 2
    assert found["user"]["memberships"]["totalCount"] == 3


async def test_lists_of_groups_are_filled_and_counted(club: Shop) -> None:
    document = """query ($after: String) { groups(first: 2, after: $after) { totalCount nodes { groupId }
      pageInfo { hasNextPage hasPreviousPage endCursor } } }"""
    found: list[str] = []
    after, pages = None, 0
    while pages < 5:
        answer = (await club.ask(document, A, after=after))["groups"]
        assert answer["totalCount"] == 4
        assert answer["pageInfo"]["hasPreviousPage"] is (pages > 0)
        found += [each["groupId"] for each in answer["nodes"]]
        after, pages = answer["pageInfo"]["endCursor"], pages + 1
        if not answer["pageInfo"]["hasNextPage"]:
            break
    assert (found, pages) == (["g0", "g3", "g6", "g8"], 2)
    assert (await club.ask(document, C))["groups"]["nodes"] == [{"groupId": "g8"}]
    assert (await club.ask(document, STAFF))["groups"]["totalCount"] == 9
    last = await club.ask("{ groups(last: 2) { nodes { groupId } pageInfo { hasPreviousPage } } }", A)
    assert last["groups"] == {
        "nodes": [{"groupId": "g6"}, {"groupId": "g8"}],
        "pageInfo": {"hasPreviousPage": True},
    }


async def test_what_is_in_a_group_is_decided_once(club: Shop) -> None:
    document = (
        '{ group(groupId: "%s") { posts { totalCount nodes { text author { userId } } } welcome { text } } }'
    )
    found = (await club.ask(document % "g3", A))["group"]
    assert [each["text"] for each in found["posts"]["nodes"]] == ["g30", "g31", "g32"]
    assert found["posts"]["totalCount"] == 3
    assert found["welcome"] == {"text": "g30"}
    assert Counter(club.world.operations)["BatchGetItem"] == 1
    found = (await club.ask(document % "g8", A))["group"]
    assert found == {"posts": {"totalCount": 0, "nodes": []}, "welcome": None}
    assert club.world.operations == {"BatchGetItem": 1}
    found = (await club.ask(document % "g3", STAFF))["group"]
    assert found == {"posts": {"totalCount": 0, "nodes": []}, "welcome": None}
    # The list of groups has decided about the posts of each.
    found = (await club.ask("{ groups { nodes { groupId posts(first: 1) { totalCount } } } }", A))["groups"][
        "nodes"
    ]
    assert {each["groupId"]: each["posts"]["totalCount"] for each in found}["g3"] == 3


async def test_what_only_the_item_tells_takes_a_second_look(club: Shop) -> None:
    document = "{ notes { totalCount nodes { noteId group { name } } } }"
    found = (await club.ask(document, A))["notes"]
    assert [each["noteId"] for each in found["nodes"]] == ["n0", "n3", "n6"]
    assert found["totalCount"] == 3
    assert await club.ask('{ a: note(noteId: "n3") { noteId } b: note(noteId: "n4") { noteId } }', A) == {
        "a": {"noteId": "n3"},
        "b": None,
    }
    assert club.world.operations == {"BatchGetItem": 2}


async def test_edges_to_named_nodes(club: Shop) -> None:
    ids = {name: (await club.ask(f'{{ user(userId: "{name}") {{ id }} }}'))["user"]["id"] for name in "ab"}
    document = """query ($to: [ID!]!) { group(groupId: "%s") { memberships(to: $to) { totalCount nodes { userId } } } }"""
    found = await club.ask(document % "g3", A, to=[*ids.values()])
    assert found["group"]["memberships"] == {"totalCount": 2, "nodes": [{"userId": "a"}, {"userId": "b"}]}
    found = await club.ask(document % "g8", C, to=[*ids.values()])
    assert found["group"]["memberships"] == {"totalCount": 0, "nodes": []}


async def test_a_group_that_is_not_there_is_never_shown(club: Shop) -> None:
    await club.world.put(member("gone", "b"), member("gone", "a"))
    document = "{ user(userId: %s) { memberships(groupId: {eq: %s}) { nodes { groupId } totalCount } } }"
    alone = await club.ask(document % ('"b"', '"gone"'), A)
    assert alone["user"]["memberships"]["nodes"] == []
    twice = """{ user(userId: "b") { memberships(groupId: {eq: "gone"}) { edges { node { memberships { nodes { userId memberships {
      nodes { groupId } } } } } } nodes { groupId } } } other: user(userId: "a") { memberships { nodes { groupId } } } }"""
    found = await club.ask(twice, A)
    assert found["user"]["memberships"]["nodes"] == []
    assert {"groupId": "gone"} not in found["other"]["memberships"]["nodes"]


async def test_the_bound_holds_and_explain_shows_the_lookup(club: Shop) -> None:
    documents = [
        '{ group(groupId: "g3") { name posts(first: 2) { totalCount nodes { text } } welcome { text } } }',
        "{ groups(first: 2) { totalCount nodes { name posts { nodes { text } } } pageInfo { hasNextPage } } }",
        '{ user(userId: "b") { memberships { nodes { name memberships { nodes { userId } } } } } }',
        "{ notes(first: 3) { totalCount nodes { noteId group { name posts { nodes { number } } } } } }",
    ]
    for document in documents:
        for claims in (A, B, C, None, STAFF):
            explained = club.world.service.explain(document, viewer=claims)
            club.world.forget()
            answer = await club.world.service.execute(
                OperationRequest(document, viewer=claims, with_cost=True)
            )
            bound, cost = explained.bound.total, answer["extensions"]["cost"]
            assert club.requests <= bound.requests, document
            assert "errors" not in answer
            assert cost["bound"]["requests"] == bound.requests
    text = str(club.world.service.explain('{ group(groupId: "g3") { name } }', viewer=A))
    assert "memberships[user_id: a]" in text
    assert text.count("GetItem") == 2


async def test_each_value_of_a_claim_is_a_lookup_of_the_bound(club: Shop) -> None:
    """Also where the bound of the same document is known of a viewer with fewer values."""
    found = []
    for number in (1, 50):
        claims = {"sub": ["a", *map(str, range(number - 1))]}
        request = OperationRequest('{ group(groupId: "g3") { name } }', viewer=claims, with_cost=True)
        answer = await club.world.service.execute(request)
        assert answer["data"] == {"group": {"name": "g3"}}
        found.append(answer["extensions"]["cost"]["bound"]["items"])
    assert found == [2, 51]


async def test_what_a_list_looks_up_for_claims_is_limited_while_it_runs(club: Shop, engine: str) -> None:
    """Fifty values for each of forty items, of which the bound counts one. DynamoDB Local takes 0 for missing keys."""
    await club.world.put(*(note(f"n{number}", f"g{number}") for number in range(40)))
    document, claims = "{ notes(first: 3) { nodes { noteId } } }", {"sub": [*map(str, range(50))]}
    for limits, bytes_, code in (
        ({}, 10_000_000, None),
        *([({"cost_limit": 700}, 10_000_000, "COST_LIMIT")] * (engine != "local")),
        ({}, 500_000, "ANSWER_LIMIT"),
    ):
        service = club.world.served(read_budget=40, **limits).service
        assert service.explain(document, viewer=claims).bound.total.read_units < 700
        with Memory(bytes_).holding() as holding:
            answer = await service.execute(OperationRequest(document, viewer=claims, holding=holding))
        found = [error["extensions"]["code"] for error in answer.get("errors", ())]
        assert found == ([code] if code else []), answer
    ids = [global_id(graph.types["Note"], (f"n{number}",)) for number in range(40)]
    request = OperationRequest(f"{{ nodes(ids: {orjson.dumps(ids).decode()}) {{ id }} }}", viewer=claims)
    with Memory(500_000).holding() as request.holding:
        answer = await club.world.service.execute(request)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["ANSWER_LIMIT"]


def test_more_lookups_than_a_rule_makes_allow_nothing(caplog: pytest.LogCaptureFixture) -> None:
    @record("{group}", "SECRET#{number}", access=[read(where={"not": {"group": MEMBER}})])
    class Secret:
        group: Group
        number: int

    types = Graph(TABLE, User, Group, Membership, Post, Note, Secret).check().types
    for number in (50, 51):
        found = Permissions({"sub": [*map(str, range(number))]})
        decisions = [found.decision(types[name]) for name in ("Post", "Secret")]
        assert [each is False for each in decisions] == [number > 50] * 2
        assert len(caplog.records) == 2 * (number > 50)
    Permissions({"sub": [*map(str, range(60))]}).decision(types["Post"])
    problem = "a viewer has claims of more values than the 50 that a rule looks up in group.memberships"
    assert caplog.messages == [
        f"Access to {name}: {problem}: it allows them nothing" for name in ("Post", "Secret")
    ]


# --- Writes -----------------------------------------------------------------------------------------------

UPDATE = 'mutation { updateGroup(input: {groupId: "%s", name: "new"}) { group { name } } }'


async def test_writes_are_held_by_what_other_items_say(club: Shop) -> None:
    assert await club.ask(UPDATE % "g0", A) == {"updateGroup": {"group": {"name": "new"}}}
    assert [code for _, code in await club.errors(UPDATE % "g3", A)] == ["FORBIDDEN"]
    # One that is hidden is as one that is not there.
    assert [(await club.answer(UPDATE % name, A))["errors"][0]["message"] for name in ("g1", "x")] == [
        "You may not update this Group."
    ] * 2
    create_post = (
        'mutation { putPost(input: {groupId: "%s", number: 9, authorId: "a", text: "t"}) { post { text } } }'
    )
    assert await club.ask(create_post % "g3", A) == {"putPost": {"post": {"text": "t"}}}
    for claims in (C, None):
        assert len(await club.errors(create_post % "g3", claims)) == 1
    invite = 'mutation { putMembership(input: {groupId: "%s", userId: "c"}) { membership { role } } }'
    assert (await club.errors(invite % "g3", A))[0][1] == "FORBIDDEN"
    assert (await club.ask(invite % "g0", A))["putMembership"] == {"membership": {"role": "member"}}
    document = 'mutation { updatePost(input: {groupId: "g3", number: %d, text: "t"}) { post { text } } }'
    assert "errors" not in await club.answer(document % 1, A)
    assert [(await club.answer(document % n, C))["errors"][0]["extensions"]["code"] for n in (1, 99)] == [
        "NOT_FOUND"
    ] * 2
    again = (
        'mutation { putPost(input: {groupId: "g3", number: 1, authorId: "a", text: "%s"}) { post { text } } }'
    )
    assert await club.ask(again % "again", A) == {"putPost": {"post": {"text": "again"}}}
    assert (await club.answer(again % "mine", B))["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    named = 'mutation { createNote(input: {noteId: "%s", groupId: "%s"}) { note { noteId } } }'
    answers = [await club.answer(named % (f"new{n}", name), A) for n, name in enumerate(("g3", "g1", "x"))]
    assert "errors" not in answers[0]
    assert [each["errors"][0]["extensions"]["code"] for each in answers[1:]] == ["NOT_FOUND"] * 2
    assert answers[1]["errors"] == answers[2]["errors"]


async def test_nobody_gets_in_between(club: Shop) -> None:
    store = Interrupted(club.world.tracer, BatchWrite(puts=(member("g0", "a"),)))
    late = Shop(world(graph, store))
    assert [code for _, code in await late.errors(UPDATE % "g0", A)] == ["FORBIDDEN"]
    assert await club.ask('{ group(groupId: "g0") { name } }', A) == {"group": {"name": "g0"}}


async def test_something_else_in_the_place_of_an_edge(make_store: MakeStore) -> None:
    typed = Graph(TABLE, User, Group, Membership, Post, Note, type_attribute="type", writes=True).check()
    stranger = {"PK": "GROUP#g8", "SK": "MEMBER#c", "type": "Stranger"}
    made = world(typed, await make_store(TABLE, {**group("g8", open=True), "type": "Group"}, stranger))
    asked = 'mutation { createNote(input: {noteId: "n", groupId: "g8"}) { clientMutationId } }'
    assert await Shop(made).ask(asked, C) == {"createNote": {"clientMutationId": None}}


async def test_somebody_leaves(club: Shop) -> None:
    leave = 'mutation { deleteMembership(input: {groupId: "g3", userId: "%s"}) { user { userId } } }'
    assert [code for _, code in await club.errors(leave % "b", A)] == ["FORBIDDEN"]
    assert "errors" not in await club.answer(leave % "a", A)
    assert await club.ask('{ group(groupId: "g3") { name } }', A) == {"group": None}


async def test_a_plan_shows_the_condition_on_the_other_item(club: Shop) -> None:
    plan = club.world.service.explain(UPDATE % "g0", viewer=A)
    shown = steps_text(plan.steps)
    assert "ConditionCheck: PK = GROUP#g0 AND SK = MEMBER#a" in shown
    assert "role = admin" in shown
    assert "memberships[" not in shown


async def test_who_has_left_sees_nothing_more(club: Shop) -> None:
    document = '{ group(groupId: "g3") { name posts { totalCount } } }'
    assert (await club.ask(document, A))["group"]["posts"]["totalCount"] == 3
    assert "errors" not in await club.answer(
        'mutation { deleteMembership(input: {groupId: "g3", userId: "a"}) { user { userId } } }', A
    )
    assert (await club.ask(document, A))["group"] is None
    groups = (await club.ask("{ groups { nodes { groupId } } }", A))["groups"]["nodes"]
    assert [each["groupId"] for each in groups] == ["g0", "g6", "g8"]


async def test_a_payload_is_decided_by_all_that_its_mutation_wrote(make_store: MakeStore) -> None:
    friendship = {"friends": {"friend": ME}}

    @node(
        "P#{person_id}",
        access=[read(fields=["person_id", "friends"]), read(where=friendship, fields=["email"])],
    )
    class Person:
        person_id: ID
        email: str | None
        friends: Many[Friend] = many()

    @edge(
        "{person}",
        "F#{friend.person_id}",
        mirror=True,
        access=[read(), delete(where={"friend": friendship})],
    )
    class Friend:
        person: Person
        friend: Person

    made = world(Graph(TABLE, Person, Friend, writes=True).check(), await make_store(TABLE))
    for name, other in ("ab", "ba"):
        await made.put(
            {"PK": f"P#{name}", "SK": f"P#{name}", "person_id": name, "email": f"{name}@x"},
            {"PK": f"P#{name}", "SK": f"F#{other}"},
        )
    shop = Shop(made)
    assert await shop.ask('{ person(personId: "b") { email } }', A) == {"person": {"email": "b@x"}}
    document = (
        'mutation { deleteFriend(input: {personId: "a", friendId: "b"}) { friend { personId email } } }'
    )
    answer = await shop.answer(document, A)
    assert answer["data"] == {"deleteFriend": {"friend": {"personId": "b", "email": None}}}
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["FORBIDDEN"]


def test_rules_of_two_types_that_are_written_alike() -> None:
    permissions = Permissions(A)
    for name in ("Post", "Note", "Post"):
        [found] = permissions.links(graph.types[name], permissions.decision(graph.types[name]))
        assert found.link.owner is graph.types[name]


@pytest.mark.parametrize("count", [3, 250])
async def test_edges_that_decide_whether_others_go(make_store: MakeStore, count: int) -> None:
    owner = {"members": {"person": ME}}

    @node("P#{person_id}", access=[read()])
    class Person:
        person_id: ID

    @node("CLUB#{club_id}", access=[read(), delete()])
    class Club:
        club_id: ID
        members: Many[Member] = many()

    @edge("{club}", "M#{person.person_id}", access=[read(), delete(where={"club": owner})])
    class Member:
        club: Club
        person: Person

    made = world(Graph(TABLE, Person, Club, Member, writes=True).check(), await make_store(TABLE))
    names = [f"{number:03d}" for number in range(count)]
    await made.put({"PK": "CLUB#1", "SK": "CLUB#1", "club_id": "1"})
    await made.put(*({"PK": "CLUB#1", "SK": f"M#{name}"} for name in names))
    shop = Shop(made)

    async def items() -> list[Item]:
        return (await made.tracer.store.send(Scan())).items

    document = 'mutation { deleteClub(input: {clubId: "1", onEdges: DETACH}) { detached } }'
    refused = await shop.answer(document, {"sub": "somebody"})
    assert [each["extensions"]["code"] for each in refused["errors"]] == ["FORBIDDEN"]
    assert len(await items()) == count + 1
    assert await shop.ask(document, {"sub": names[1]}) == {"deleteClub": {"detached": count}}
    assert not await items()


async def test_a_membership_that_is_over_when_it_is_written(make_store: MakeStore) -> None:
    inside = {"passes": {"person": ME}}

    @node("P#{person_id}", access=[read()])
    class Person:
        person_id: ID

    @node("ROOM#{room_id}", access=[read(fields=["room_id", "passes"]), read(where=inside, fields=["code"])])
    class Room:
        room_id: ID
        code: str | None
        passes: Many[Pass] = many()

    @edge("{room}", "PASS#{person.person_id}", access=[read(), write(where={"person": ME})])
    class Pass:
        room: Room
        person: Person
        until: datetime | None = ttl()

    made = world(Graph(TABLE, Person, Room, Pass, writes=True).check(), await make_store(TABLE))
    await made.put({"PK": "ROOM#1", "SK": "ROOM#1", "room_id": "1", "code": "42"})
    await made.put({"PK": "P#a", "SK": "P#a", "person_id": "a"})
    shop = Shop(made)
    change = (
        'mutation { putPass(input: {roomId: "1", personId: "a", until: "%s"}) { pass { room { code } } } }'
    )
    over = await shop.answer(change % "2001-01-01T00:00:00Z", A)
    assert [each["extensions"]["code"] for each in over["errors"]] == ["FORBIDDEN"]
    valid = await shop.ask(change % "2096-01-01T00:00:00Z", A)
    assert valid == {"putPass": {"pass": {"room": {"code": "42"}}}}


async def test_who_leaves_sees_nothing_more_in_the_payload(club: Shop) -> None:
    leave = 'mutation { deleteMembership(input: {groupId: "g3", userId: "a"}) { group { name } } }'
    left = await club.answer(leave, A)
    assert left["data"] == {"deleteMembership": {"group": None}}
    both = """mutation { deleteMemberships(input: {inputs: [{groupId: "g6", userId: "a"}, {groupId: "g0", userId: "a"}],
      atomic: true}) { results { group { name } } } }"""
    assert (await club.answer(both, A))["data"] == {"deleteMemberships": {"results": [{"group": None}] * 2}}
