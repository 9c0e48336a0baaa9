"""Ends of nodes that several fields identify, of which a key holds a part: the rest stands in attributes of the item.

Family trees: a person is told by the owner of the tree and a number in it. A parenthood stands in the owner's partition
and is found from the child by the child's number alone; the child's owner is the attribute of the parent's. A visit leads
to a person of another tree, whose owner stands in an attribute alone.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Query
from keygraph_resolvers import check
from keygraph_resolvers.naming.global_ids import global_id
from tests.conftest import in_one_world
from tests.keygraph.checked import mistakes
from tests.resolvers.worlds import World, filled, world

by_child = Index("by-child", "ChildKey", "Since")
by_host = Index("by-host", "HostKey", "SK", projection=["HostOwner", "Type"])


@node("{owner}", "PERSON#{person_id}")
class Person:
    owner: ID
    person_id: ID
    name: str

    children: Many[Parenthood] = many(at="parent")
    parents: Many[Parenthood] = many(at="child")
    visits: Many[Visit] = many(at="guest")
    guests: Many[Visit] = many(at="host")


@edge(
    "{parent.owner}",
    "PERSON#{parent.person_id}#CHILD#{child.person_id}",
    by_child("PERSON#{child.person_id}"),
)
class Parenthood:
    parent: Person = stored(owner="UserId", person_id="ParentId")
    child: Person = stored(owner="UserId", person_id="ChildId")
    since: str


@edge("{guest.owner}", "PERSON#{guest.person_id}#VISIT#{host.person_id}", by_host("PERSON#{host.person_id}"))
class Visit:
    guest: Person
    host: Person
    year: int | None


TABLE = Table("Trees", partition_key="PK", sort_key="SK", indexes=[by_child, by_host])
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
        "HostKey": f"PERSON#{host[1]}",
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
    visit(("u1", "2"), ("u1", "3"), 2003),
    visit(("u1", "3"), ("u2", "3"), 2004),
]
ADA = 'person(owner: "u1", personId: "1")'

trees = filled(GRAPH, ITEMS)


@in_one_world(
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
    assert await trees.ask(f"{{ {ADA} {{ {asked} }} }}") == {"person": {asked.split()[0]: wanted}}


async def test_what_the_key_tells_is_not_asked_for(trees: World) -> None:
    told = world(check(Graph(TABLE, Person, Parenthood, Visit, **FORMS, separator="#")), trees.tracer)
    await told.ask(f"{{ {ADA} {{ children {{ nodes {{ name }} }} }} }}")
    [query] = [request for request in trees.tracer.requests if isinstance(request, Query)]
    assert query.projection == (("PK",), ("SK",), ("Type",))


@in_one_world(
    ("person", "asked", "wanted"),
    [
        ('owner: "u1", personId: "3"', "parents", ["Ada"]),
        ('owner: "u2", personId: "3"', "parents", ["Dora"]),
        ('owner: "u2", personId: "2"', "parents", []),
        ('owner: "u2", personId: "3"', "guests", ["Ada", "Cy"]),
        ('owner: "u1", personId: "3"', "guests", ["Ben"]),
    ],
)
async def test_an_index_under_a_part_of_the_identity(
    trees: World, person: str, asked: str, wanted: list[str]
) -> None:
    answer = await trees.ask(f"""{{ person({person}) {{ {asked} {{
        totalCount nodes {{ name }} edges {{ node {{ name }} }} }} }} }}""")
    named = [{"name": name} for name in wanted]
    found = {"totalCount": len(wanted), "nodes": named, "edges": [{"node": each} for each in named]}
    assert answer == {"person": {asked: found}}


async def test_pages_of_a_list_under_a_part_of_the_identity(trees: World) -> None:
    document = """query ($after: String) { person(owner: "u2", personId: "3") {
        guests(first: 1, after: $after) { edges { cursor year node { name } } pageInfo { hasNextPage } } } }"""
    seen, after = [], None
    for more in (True, False):
        page = (await trees.ask(document, after=after))["person"]["guests"]
        [edge] = page["edges"]
        assert page["pageInfo"] == {"hasNextPage": more}
        seen.append((edge["node"]["name"], edge["year"]))
        after = edge["cursor"]
    assert seen == [("Ada", 2002), ("Cy", 2004)]


async def test_edges_to_named_nodes_under_a_part_of_the_identity(trees: World) -> None:
    asked = """query ($to: [ID!]) { person(owner: "u2", personId: "3") { parents(to: $to) { nodes { name } } } }"""
    ada, dora = (global_id(GRAPH.types["Person"], node) for node in [("u1", "1"), ("u2", "2")])
    assert await trees.ask(asked, to=[ada, dora]) == {"person": {"parents": {"nodes": [{"name": "Dora"}]}}}


def test_an_index_that_lacks_the_rest_of_the_identity_is_no_path() -> None:
    by_guest = Index("by-guest", "GuestKey", "SK", projection="KEYS_ONLY")

    @node("{owner}", "PERSON#{person_id}")
    class Person:
        owner: ID
        person_id: ID
        stays: Many[Stay] = many(at="guest", index=by_guest)

    @edge("STAY#{host.person_id}", "{guest.person_id}", by_guest("PERSON#{guest.person_id}"))
    class Stay:
        guest: Person
        host: Person

    table = Table("Trees", partition_key="PK", sort_key="SK", indexes=[by_guest])
    [told] = mistakes(Person, Stay, table=table)
    assert told == (
        "Person.stays: there is no path to Stay: its key in by-guest (PERSON#{guest.person_id} / {guest.person_id}) "
        "lacks {guest.owner}, so all of Person that differ only there would have the same list. "
        "Put {guest.owner} into the partition template, or at the beginning of the sort template."
    )


def test_the_first_parts_of_an_identity_alone_are_no_path() -> None:
    @node("{owner}", "PERSON#{person_id}")
    class Person:
        owner: ID
        person_id: ID
        notes: Many[Note] = many()

    @record("{person.owner}", "NOTE#{day}#{person.person_id}")
    class Note:
        person: Person
        day: date

    [told] = mistakes(Person, Note)
    assert told == (
        "Person.notes: there is no path to Note: in its table key ({person.owner} / NOTE#{day}#{person.person_id}), "
        "{person.person_id} comes after {day}, which is not known. Put it before that, or give Note an index whose "
        "partition template contains {person}."
    )
