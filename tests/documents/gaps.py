"""What the five documents' models need and the mechanism does not do yet: each test fails until it does.

pytest collects this file only if it is named: `pytest tests/documents/gaps.py`. A test that passes belongs beside its
subject in the suite.
"""

from __future__ import annotations

import pytest

from examples import billing, cargo, education, social, talent
from keygraph import ID, Graph, Many, Table, edge, many, node
from resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents.round_trips import RoundTrips
from tests.documents.samples import files_of, serve
from tests.documents.served import Served


async def test_a_number_that_is_a_key_attribute_of_texts(make_store: MakeStore) -> None:
    """`people(where: {nodeId: …})` would find nobody, and a method that needs the number would fail.

    `node_id: int` is stored as `NodeId`, which is the table's partition key, of type S: what stands there is the
    key's text, not a number. A field whose attribute is a key attribute is what its template says there.
    """
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    assert await sample.ask("{ people(where: {nodeId: {eq: 13}}) { nodes { name } } }") == {
        "people": {"nodes": [{"name": "Mei Tanaka"}]}
    }


async def test_a_number_that_is_a_key_attribute_of_texts_is_read(make_store: MakeStore) -> None:
    """The same in `RecordType.value`, which methods, `verify` and exports ask."""
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    person = talent.graph.types["Person"]
    item = sample.graph.types["Person"].instance({"NodeId": "1", "TypeTarget": "NAME|1|PERSON", "Data": "J"})
    assert (item.node_id, person.name) == (1, "Person")


async def test_to_where_the_ends_are_not_the_whole_key(make_store: MakeStore) -> None:
    """DESIGN 4: "else one Query each". What a place is to a person would need all of the place's people."""
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    jonas = (await sample.ask("{ person(nodeId: 9) { id } }"))["person"]["id"]
    assert await sample.ask(
        f'{{ place(nodeId: 3) {{ people(to: ["{jonas}"]) {{ edges {{ bond }} }} }} }}'
    ) == {"place": {"people": {"edges": [{"bond": "WORK"}]}}}


def test_mirrors() -> None:
    """DESIGN 2.2: `mirror=True`. The friendships of `examples/social.py` are reciprocal and cannot say so."""

    @node("USER#{user_id}", "PROFILE")
    class User:
        user_id: ID
        friends: Many[Friendship] = many()

    @edge("{user}", "FRIEND#{friend.user_id}", mirror=True)  # type: ignore[call-arg,untyped-decorator,unused-ignore]
    class Friendship:
        user: User
        friend: User

    graph = Graph(Table("Users", partition_key="PK", sort_key="SK"), User, Friendship)
    assert graph.check() is graph


@pytest.mark.parametrize(
    ("graph", "name", "query"),
    [
        (billing.graph, "billing", '{ invoice(invoiceId: "92551") { customer bills { nodes { billId } } } }'),
        (cargo.graph, "cargo", '{ box(boxId: "A03828") { weightInKg pallet { node { palletId } } } }'),
        (
            education.graph,
            "education",
            '{ student(studentId: "S1") { name courses { nodes { courseId } } } }',
        ),
        (social.graph, "social", '{ user(userId: "Alice") { name friends { nodes { userId } } } }'),
    ],
)
async def test_a_node_and_its_list_are_one_round_trip(
    graph: Graph, name: str, query: str, make_store: MakeStore
) -> None:
    """DESIGN 5: what depends only on a key starts as soon as the key is known; the list waits for the node."""
    served = await serve(graph, make_store, *files_of(name))
    trips = RoundTrips(served.store)
    await Served(graph, trips).ask(query)
    assert [len(requests) for requests in trips.rounds] == [2]


def test_a_list_at_the_root_has_a_description() -> None:
    """Fields by key have one ("The Person with this key."); `people`, `peopleByDate` show nothing in GraphiQL."""
    fields = build_schema(talent.graph)._schema.query_type.fields  # type: ignore[union-attr]
    assert [name for name, field in fields.items() if not field.description] == []
