"""Where nodes are named: by ends of several types, in keys of several parts, in indexes that lack some, and until they expire."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Table, node, record, ttl
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.store import BatchGet, Store, Write
from keygraph.errors import WriteRefused
from keygraph.tables.attributes import AttributeCounter, unmatched
from keygraph.writing.marks import MARK
from keygraph.writing.requests import Create, Delete, Move, OnEdges, Put, WriteRequest
from keygraph.writing.sending.writer import Writer
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
    """A user and an organization."""
    store = await make_store(graph.table)
    nodes = [Create(types["User"], {"user_id": "ann"}), Create(types["Org"], {"org_id": "acme"})]
    await Writer(graph, store).write(nodes)
    return store


async def refusal(store: Store, request: WriteRequest) -> Any:
    with pytest.raises(WriteRefused) as refused:
        await Writer(graph, store).write([request])
    [found] = refused.value.refusals
    return found.code, found.message


def test_every_end_is_known_with_what_finds_it() -> None:
    """A node would be deleted while something names it, or a list of what is not found would lie."""
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
    """The owner of another type would be taken for this one, or would not be found."""
    owner = types["Project"].ends["owner"]
    [at_acme] = [owner.identity_of(types["Org"], ACME)]
    writer = Writer(graph, store)
    await writer.write([Create(types["Project"], {"project_id": "p", "owner": at_acme})])
    told = "This Org cannot be deleted. It is named by 1 Project (owner)."
    assert await refusal(store, Delete(types["Org"], ACME)) == ("CONFLICT", told)
    assert await refusal(store, Delete(types["Org"], ACME, on_edges=OnEdges.DETACH)) == ("CONFLICT", told)
    await writer.write([Delete(types["User"], ANN)])


async def test_a_node_whose_key_is_another_nodes(store: Store) -> None:
    """A repository would be left without its user, or an issue without its repository."""
    writer = Writer(graph, store)
    await writer.write(
        [
            Create(types["Repo"], {"user": ANN, "name": "site"}),
            Put(types["Issue"], {"repo": REPO, "number": 7}),
            Create(types["User"], {"user_id": "bob"}),
        ]
    )
    assert (await refusal(store, Delete(types["User"], ANN, on_edges=OnEdges.DETACH)))[0] == "CONFLICT"
    assert (await refusal(store, Move(types["Repo"], REPO, {"user": ("bob",)})))[0] == "CONFLICT"
    [done] = (await writer.write([Delete(types["Repo"], REPO, on_edges=OnEdges.DETACH)])).done
    assert done.detached == 1
    await writer.write([Create(types["Repo"], {"user": ANN, "name": "site"})])
    [done] = (await writer.write([Move(types["Repo"], REPO, {"user": ("bob",)})])).done
    assert done.item == {
        "pk": "REPO#bob#site",
        "sk": "REPO#bob#site",
        "gp": "USER#bob",
        "gs": "REPO#site",
        "user_id": "bob",
        "name": "site",
    }
    await writer.write([Delete(types["User"], ANN)])


async def test_what_has_expired_is_no_hindrance(store: Store) -> None:
    """A user could not be deleted for a session that nobody can see."""
    writer = Writer(graph, store)
    for number, age in ((1, -1), (2, 1)):
        until = datetime.now(UTC) + timedelta(hours=age)
        await writer.write([Put(types["Session"], {"user": ANN, "number": number, "until": until})])
    told = "This User cannot be deleted. It is named by 1 Session (user)."
    assert await refusal(store, Delete(types["User"], ANN)) == ("CONFLICT", told)
    await writer.write([Delete(types["Session"], ("ann", "2"))])
    await writer.write([Delete(types["User"], ANN)])


async def test_a_mark_is_no_attribute_of_the_node(store: Store) -> None:
    """`verify` would tell of a field that is missing in the model."""
    [item] = (await store.send(BatchGet((("USER#ann", "USER#ann"),)))).items
    marked = {**(item or {}), MARK: "x#1"}
    await store.send(Write(PutItem(marked)))
    counter = AttributeCounter(graph)
    counter.add(types["User"], marked)
    assert list(unmatched(graph, counter.counts)) == []
    [done] = (await Writer(graph, store).write([Move(types["User"], ANN, {"user_id": "anna"})])).done
    assert done.item is not None
    assert MARK not in done.item
