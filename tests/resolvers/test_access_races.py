"""Rules hold of what is there when a write is carried out, whatever somebody else writes after it was read."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

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
    read,
    record,
    update,
    viewer,
    write,
)
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Scan
from keygraph.dynamo.table import Key
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.races import Interrupted
from tests.resolvers.worlds import world

by_state = Index("by-state", "stateKey", "stateSort")
TABLE = Table("Raced", partition_key="PK", sort_key="SK", indexes=[by_state])
ME = {"memberships": {"user": viewer("sub")}}
EDITOR = {"memberships": {"user": viewer("sub"), "note": "editor"}}


@node("USER#{user_id}", access=[read()])
class User:
    user_id: ID
    memberships: Many[Membership] = many(needs=("group_id",))


@node("GROUP#{group_id}", access=[read()])
class Group:
    group_id: ID
    memberships: Many[Membership]


@edge("{group}", "{user}", access=[read(), create(role="maker"), update(), delete()])
class Membership:
    group: Group
    user: User
    note: str = ""


@node("POST#{post_id}", access=[read(where={"group": ME}), write(where={"group": ME})])
class Post:
    """Only its item tells the group, whose members may write it."""

    post_id: ID
    group: Group
    text: str = ""


@node(
    "DOC#{doc_id}",
    by_state("STATE#{state}", "{doc_id}"),
    access=[read(where={"state": {"ne": "hidden"}}), write()],
)
class Doc:
    """Only the key of an index tells whether it is hidden."""

    doc_id: ID
    state: str


@node(
    "CASE#{case_id}", by_state("CASE#{state}", "{case_id}"), access=[read(where={"state": "open"}), write()]
)
class Case:
    """Only the key of an index tells whether it is open."""

    case_id: ID
    state: str


@edge("{case}", "{doc}", access=[read(), write()])
class Attached:
    case: Case
    doc: Doc


@edge("{group}", "BY#{post.post_id}", counterpart="PostGroup", access=[read(), write()])
class GroupPost:
    group: Group
    post: Post
    amount: int


@edge(
    "{post}",
    "IN#{group.group_id}",
    counterpart="GroupPost",
    access=[read(), write(where={"group": ME, "amount": {"lte": 9}})],
)
class PostGroup:
    post: Post
    group: Group
    amount: int


@record("{post}", "REPLY#{number}", access=[read(), create(where={"group": EDITOR})])
class Reply:
    post: Post
    number: int
    group: Group


graph = Graph(
    TABLE,
    User,
    Group,
    Membership,
    Post,
    Doc,
    Case,
    Attached,
    GroupPost,
    PostGroup,
    Reply,
    store_key_fields=False,
    writes=True,
).check()


def user(name: str) -> Item:
    return {"PK": f"USER#{name}", "SK": f"USER#{name}"}


def group(name: str) -> Item:
    return {"PK": f"GROUP#{name}", "SK": f"GROUP#{name}"}


def member(group_id: str, name: str) -> Item:
    return {"PK": f"GROUP#{group_id}", "SK": f"USER#{name}"}


def post(group_id: str) -> Item:
    return {"PK": "POST#p", "SK": "POST#p", "group_id": group_id, "text": "t"}


def doc(name: str, state: str) -> Item:
    return {"PK": f"DOC#{name}", "SK": f"DOC#{name}", "stateKey": f"STATE#{state}", "stateSort": name}


def case(name: str, state: str) -> Item:
    return {"PK": f"CASE#{name}", "SK": f"CASE#{name}", "stateKey": f"CASE#{state}", "stateSort": name}


def pair(amount: int) -> list[Item]:
    one = {"PK": "GROUP#g", "SK": "BY#p", "amount": Decimal(amount)}
    return [one, {"PK": "POST#p", "SK": "IN#g", "amount": Decimal(amount)}]


ITEMS = [
    *map(user, "ab"),
    *map(group, "gh"),
    member("g", "a"),
    post("g"),
    doc("d", "open"),
    case("c", "open"),
]
A = {"sub": "a"}


async def raced(
    make_store: MakeStore,
    document: str,
    puts: Sequence[Item] = (),
    deletes: Sequence[Key] = (),
    items: Sequence[Item] = ITEMS,
) -> tuple[list[Any], bool]:
    """What a mutation is told when that is written after it has read; and whether it has written nothing."""
    store = await make_store(TABLE, *items)
    happens = BatchWrite(puts=tuple(puts), deletes=tuple(deletes)) if puts or deletes else None
    left = {TABLE.key_of(item): item for item in (*items, *puts)}
    for key in deletes:
        del left[key]
    late = Interrupted(store, happens)
    answer = await world(graph, late).service.execute(
        OperationRequest(f"mutation {{ {document} }}", viewer=A)
    )
    assert late.happens is None
    after = {TABLE.key_of(item): item for item in (await store.send(Scan())).items}
    return [error["extensions"]["code"] for error in answer.get("errors", ())], after == left


WRITES = {
    "update": 'updatePost(input: {postId: "p", text: "x"}) { post { text } }',
    "delete": 'deletePost(input: {postId: "p"}) { deletedId }',
    "upsert": 'upsertPost(input: {postId: "p", groupId: "g", text: "x"}) { post { text } }',
    "move": 'movePost(input: {postId: "p", to: {postId: "q"}}) { post { text } }',
    "several": 'updatePosts(input: {inputs: [{postId: "p", text: "x"}], atomic: true}) { results { post { text } } }',
}


@pytest.mark.parametrize("write", WRITES.values(), ids=[*WRITES])
async def test_a_record_that_goes_to_another_group(make_store: MakeStore, write: str) -> None:
    codes, is_unwritten = await raced(make_store, write, [post("h")])
    assert (len(codes), is_unwritten) == (1, True)
    assert codes[0] in ("NOT_FOUND", "FORBIDDEN")


async def test_a_put_that_finds_nothing_any_more(make_store: MakeStore) -> None:
    put = 'putMembership(input: {groupId: "g", userId: "a", note: "x"}) { membership { note } }'
    assert await raced(make_store, put, deletes=[("GROUP#g", "USER#a")]) == (["FORBIDDEN"], True)
    assert (await raced(make_store, put))[0] == []


async def test_two_rules_ask_for_one_edge(make_store: MakeStore) -> None:
    """Each member sees the post, and an editor replies: that was forgotten where both are told by one item."""
    put = 'putReply(input: {postId: "p", number: 1, groupId: "g"}) { reply { number } }'
    items = [*ITEMS, {**member("g", "a"), "note": "editor"}]
    assert await raced(make_store, put, [member("g", "a")], items=items) == (["FORBIDDEN"], True)
    assert (await raced(make_store, put, items=items))[0] == []


async def test_nodes_that_are_named(make_store: MakeStore) -> None:
    put = 'putAttached(input: {caseId: "c", docId: "d"}) { attached { doc { docId } } }'
    assert (await raced(make_store, put))[0] == []
    for hidden in (doc("d", "hidden"), case("c", "done")):
        assert await raced(make_store, put, [hidden]) == (["NOT_FOUND"], True)
        assert await raced(make_store, put, items=[*ITEMS, hidden]) == (["NOT_FOUND"], True)


@pytest.mark.parametrize(
    "write",
    [
        'putGroupPost(input: {groupId: "g", postId: "p", amount: 2}) { groupPost { amount } }',
        'updateGroupPost(input: {groupId: "g", postId: "p", amount: 2}) { groupPost { amount } }',
        'deleteGroupPost(input: {groupId: "g", postId: "p"}) { group { groupId } }',
    ],
)
async def test_the_counterpart_that_others_change(make_store: MakeStore, write: str) -> None:
    items = [*ITEMS, *pair(1)]
    assert await raced(make_store, write, pair(20), items=items) == (["FORBIDDEN"], True)
    gone: Key = ("GROUP#g", "USER#a")
    # Who names the post besides is told that it is not there: it is hidden then.
    [told, *_], _ = early = await raced(
        make_store, write, items=[each for each in items if TABLE.key_of(each) != gone]
    )
    assert told == "FORBIDDEN"
    assert await raced(make_store, write, deletes=[gone], items=items) == early
    assert (await raced(make_store, write, items=items))[0] == []
