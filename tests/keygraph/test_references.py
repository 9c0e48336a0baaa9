"""Where nodes are named: by ends of several types, in keys of several parts, in indexes that lack some, and until they expire."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Table, node, record, ttl
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.store import BatchGet, Store, Write
from keygraph.errors import WriteRefused
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.writing.marks import MARK
from keygraph.writing.requests import Create, Delete, Move, OnEdges, Put, WriteRequest
from keygraph.writing.sending.writer import write
from tests.conftest import MakeStore

gsi = Index("gsi", "gp", "gs")


@node("USER#{user_id}")
class User:
    user_id: ID


@node("ORG#{org_id}")
class Org:
    org_id: ID


@node("PROJECT#{project_id}", gsi("{owner}", "PROJECT#{project_id}"))
class Project:
    project_id: ID
    owner: User | Org


@node("REPO#{user.user_id}#{name}", gsi("{user}", "REPO#{name}"))
class Repo:
    user: User
    name: ID


@record("REPO#{repo.user.user_id}#{repo.name}", "ISSUE#{number:04d}")
class Issue:
    repo: Repo
    number: int


@node("TICKET#{ticket_id}", gsi("{assignee}", "{closed_on}"))
class Ticket:
    ticket_id: ID
    assignee: User
    closed_on: date | None = None


@record("{user}", "SESSION#{number}")
class Session:
    user: User
    number: int
    until: datetime = ttl("ttl")


graph = Graph(
    Table("Forge", partition_key="pk", sort_key="sk", indexes=[gsi]),
    User,
    Org,
    Project,
    Repo,
    Issue,
    Ticket,
    Session,
    separator="#",
).check()
types = graph.types
ANN, ACME, REPO = ("ann",), ("acme",), ("ann", "site")


@pytest.fixture
async def store(make_store: MakeStore) -> Store:
    store = await make_store(graph.table)
    nodes = [Create(types["User"], {"user_id": "ann"}), Create(types["Org"], {"org_id": "acme"})]
    await write(graph, store, nodes)
    return store


async def refusal(store: Store, request: WriteRequest) -> Any:
    with pytest.raises(WriteRefused) as refused:
        await write(graph, store, [request])
    [found] = refused.value.refusals
    return found.code, found.message


def test_every_end_is_known_with_what_finds_it() -> None:
    found = {
        name: [(each.name, each.path and each.path.keys.index_name, each.is_found) for each in references]
        for name, references in graph.references.items()
    }
    assert found == {
        "User": [
            ("Project.owner", "gsi", True),
            ("Repo.user", "gsi", True),
            ("Ticket.assignee", "gsi", False),
            ("Session.user", None, True),
        ],
        "Org": [("Project.owner", "gsi", True)],
        "Project": [],
        "Repo": [("Issue.repo", None, True)],
        "Ticket": [],
    }


async def test_an_end_of_several_types(store: Store) -> None:
    owner = types["Project"].ends["owner"]
    [at_acme] = [owner.identity_of(types["Org"], ACME)]
    writer = partial(write, graph, store)
    await writer([Create(types["Project"], {"project_id": "p", "owner": at_acme})])
    told = "This Org cannot be deleted. It is named by 1 Project (owner)."
    assert await refusal(store, Delete(types["Org"], ACME)) == ("CONFLICT", told)
    assert await refusal(store, Delete(types["Org"], ACME, on_edges=OnEdges.DETACH)) == ("CONFLICT", told)
    await writer([Delete(types["User"], ANN)])


async def test_a_node_whose_key_is_another_nodes(store: Store) -> None:
    writer = partial(write, graph, store)
    await writer(
        [
            Create(types["Repo"], {"user": ANN, "name": "site"}),
            Put(types["Issue"], {"repo": REPO, "number": 7}),
            Create(types["User"], {"user_id": "bob"}),
        ]
    )
    assert (await refusal(store, Delete(types["User"], ANN, on_edges=OnEdges.DETACH)))[0] == "CONFLICT"
    assert (await refusal(store, Move(types["Repo"], REPO, {"user": ("bob",)})))[0] == "CONFLICT"
    [done] = await writer([Delete(types["Repo"], REPO, on_edges=OnEdges.DETACH)])
    assert done.detached == 1
    await writer([Create(types["Repo"], {"user": ANN, "name": "site"})])
    [done] = await writer([Move(types["Repo"], REPO, {"user": ("bob",)})])
    assert done.item == {
        "pk": "REPO#bob#site",
        "sk": "REPO#bob#site",
        "gp": "USER#bob",
        "gs": "REPO#site",
        "user_id": "bob",
        "name": "site",
    }
    await writer([Delete(types["User"], ANN)])


async def test_what_has_expired_is_no_hindrance(store: Store) -> None:
    writer = partial(write, graph, store)
    for number, age in ((1, -1), (2, 1)):
        until = datetime.now(UTC) + timedelta(hours=age)
        await writer([Put(types["Session"], {"user": ANN, "number": number, "until": until})])
    told = "This User cannot be deleted. It is named by 1 Session (user)."
    assert await refusal(store, Delete(types["User"], ANN)) == ("CONFLICT", told)
    await writer([Delete(types["Session"], ("ann", "2"))])
    await writer([Delete(types["User"], ANN)])


async def test_a_mark_is_no_attribute_of_the_node(store: Store) -> None:
    [item] = (await store.send(BatchGet((("USER#ann", "USER#ann"),)))).items
    marked = {**(item or {}), MARK: "x#1"}
    await store.send(Write(PutItem(marked)))
    counter = AttributeCounter(graph)
    counter.add(types["User"], marked)
    assert list(unmatched(graph, counter.counts)) == []
    [done] = await write(graph, store, [Move(types["User"], ANN, {"user_id": "anna"})])
    assert done.item is not None
    assert MARK not in done.item
