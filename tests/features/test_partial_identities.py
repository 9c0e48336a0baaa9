"""Ends of nodes that several fields identify, of which a key holds a part: the rest stands in attributes of the item.

Family trees: a person is told by the owner of the tree and a number in it. A parenthood stands in the owner's partition
and is found from the child by the child's number alone; the child's owner is the attribute of the parent's. A visit leads
to a person of another tree, whose owner stands in an attribute alone.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from keygraph import ID, Graph, Many, Table, edge, many, node, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query
from keygraph_resolvers import check
from keygraph_resolvers.schema.global_ids import global_id
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world


@node("{owner}", "PERSON#{person_id}")
class Person:
    owner: ID
    person_id: ID
    name: str

    children: Many[Parenthood] = many(at="parent")
    visits: Many[Visit] = many(at="guest")


@edge("{parent.owner}", "PERSON#{parent.person_id}#CHILD#{child.person_id}")
class Parenthood:
    parent: Person = stored(owner="UserId", person_id="ParentId")
    child: Person = stored(owner="UserId", person_id="ChildId")
    since: str | None


@edge("{guest.owner}", "PERSON#{guest.person_id}#VISIT#{host.person_id}")
class Visit:
    guest: Person
    host: Person
    year: int | None


TABLE = Table("Trees", partition_key="PK", sort_key="SK")
FORMS: dict[str, Any] = {"attribute_case": "pascal", "type_attribute": "Type"}
GRAPH = check(Graph(TABLE, Person, Parenthood, Visit, **FORMS))


def person(owner: str, number: str, name: str) -> Item:
    return {"PK": owner, "SK": f"PERSON#{number}", "Type": "Person", "Name": name}


def parenthood(owner: str, parent: str, child: str) -> Item:
    return {
        "PK": owner,
        "SK": f"PERSON#{parent}#CHILD#{child}",
        "Type": "Parenthood",
        "ChildKey": f"PERSON#{child}",
        "UserId": owner,
        "ParentId": parent,
        "ChildId": child,
        "Since": "1990",
    }


def visit(guest: tuple[str, str], host: tuple[str, str], year: int) -> Item:
    return {
        "PK": guest[0],
        "SK": f"PERSON#{guest[1]}#VISIT#{host[1]}",
        "Type": "Visit",
        "GuestOwner": guest[0],
        "HostOwner": host[0],
        "Year": Decimal(year),
    }


ITEMS = [
    person("u1", "1", "Ada"),
    person("u1", "2", "Ben"),
    person("u1", "3", "Cy"),
    person("u2", "2", "Dora"),
    person("u2", "3", "Ed"),
    parenthood("u1", "1", "2"),
    parenthood("u1", "1", "3"),
    parenthood("u2", "2", "3"),
    visit(("u1", "1"), ("u2", "2"), 2001),
    visit(("u1", "1"), ("u2", "3"), 2002),
]
ADA = 'person(owner: "u1", personId: "1")'


@pytest.fixture
async def trees(make_store: MakeStore) -> World:
    made = world(GRAPH, await make_store(TABLE))
    await made.put(*ITEMS)
    return made


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("children { nodes { name } }", {"nodes": [{"name": "Ben"}, {"name": "Cy"}]}),
        (
            "children { edges { node { name } } }",
            {"edges": [{"node": {"name": "Ben"}}, {"node": {"name": "Cy"}}]},
        ),
        ("visits { nodes { name } }", {"nodes": [{"name": "Dora"}, {"name": "Ed"}]}),
        (
            "visits { edges { node { owner name } } }",
            {"edges": [{"node": {"owner": "u2", "name": "Dora"}}, {"node": {"owner": "u2", "name": "Ed"}}]},
        ),
    ],
)
async def test_the_far_end_is_known(trees: World, asked: str, wanted: Any) -> None:
    """A list would be empty, or its nodes null, because nobody asked for the attribute that tells whose person it is."""
    assert await trees.ask(f"{{ {ADA} {{ {asked} }} }}") == {"person": {asked.split()[0]: wanted}}


async def test_what_the_key_tells_is_not_asked_for(trees: World) -> None:
    """Each page would carry an attribute of which the key tells the value."""
    await trees.ask(f"{{ {ADA} {{ children {{ nodes {{ name }} }} }} }}")
    [query] = [request for request in trees.tracer.requests if isinstance(request, Query)]
    assert query.projection == (("PK",), ("SK",), ("Type",))


async def test_edges_to_named_nodes_lead_to_them(trees: World) -> None:
    """Somebody of the same number in another tree would be taken for the one who was asked for."""
    asked = f"query ($to: [ID!]) {{ {ADA} {{ visits(to: $to) {{ totalCount nodes {{ name }} }} }} }}"
    ids = [global_id(GRAPH.types["Person"], node) for node in [("u2", "2"), ("u1", "3")]]
    answer = await trees.ask(asked, to=ids)
    assert answer == {"person": {"visits": {"totalCount": 1, "nodes": [{"name": "Dora"}]}}}
