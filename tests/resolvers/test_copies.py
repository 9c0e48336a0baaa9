"""Copies in mutations: clients do not give them, whoever may write the end may have it copied, and plans show what is read."""

from __future__ import annotations

from typing import Any

from keygraph import ID, Graph, Table, copy, node, read, record, stored, write
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

RULES = [read(), write()]


@node("BOOK#{book_id}", access=RULES)
class Book:
    book_id: ID
    title: str


@record("SHELF#{name}", "PLACE#{number:03d}", access=[read(), write(fields=["name", "number", "book"])])
class Place:
    name: ID
    number: int
    book: Book
    title: str = copy("book.title")


graph = Graph(Table("Books", partition_key="PK", sort_key="SK"), Book, Place, type_attribute="Type")
PUT = 'putPlace(input: {name: "red", number: 1, bookId: "1"}) { place { title book { title } } }'


async def books(make_store: MakeStore) -> World:
    made = world(graph, await make_store(graph.table))
    await made.ask('mutation { createBook(input: {bookId: "1", title: "Zero"}) { book { title } } }')
    made.forget()
    return made


async def test_a_copy_is_no_field_of_an_input(make_store: MakeStore) -> None:
    """Clients could give a title that is none, or would have to give the one that is there."""
    made = await books(make_store)
    assert await made.ask(f"mutation {{ {PUT} }}") == {
        "putPlace": {"place": {"title": "Zero", "book": {"title": "Zero"}}}
    }
    given = 'putPlace(input: {name: "red", number: 1, bookId: "1", title: "One"}) { clientMutationId }'
    assert await made.codes(f"mutation {{ {given} }}") == ["GRAPHQL_VALIDATION_FAILED"]


async def test_the_plan_of_a_copy(make_store: MakeStore) -> None:
    """Whoever reads the plan would not see that the node is read, or that it costs a request more than its bound."""
    made = await books(make_store)
    read_first, *_ = made.service.explain(f"mutation {{ {PUT} }}").steps
    assert [each.keys for each in read_first.requests] == ["PK = BOOK#1 AND SK = BOOK#1"]
    answer: Any = await made.service.execute(f"mutation {{ {PUT} }}", with_cost=True)
    cost = answer["extensions"]["cost"]
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert cost["actual"][name] <= cost["bound"][name], name


async def test_a_missing_node(make_store: MakeStore) -> None:
    """The error would be about a field that clients cannot give."""
    made = await books(make_store)
    other = PUT.replace('"1"', '"2"')
    assert await made.errors(f"mutation {{ {other} }}") == [
        ("NOT_FOUND", "bookId: there is no Book with this key.")
    ]


def test_a_copy_of_what_not_everybody_reads_has_rules() -> None:
    """Whoever may write the end would read a field by its copy that they may not read."""

    def mistakes(access: Any, own: Any = (), of_type: Any = RULES) -> list[str]:
        @node("PERSON#{name}", access=of_type)
        class Person:
            name: ID
            email: str = stored(access=own)

        @record("SHELF#{shelf}", "NOTE#{number}", access=RULES)
        class Note:
            shelf: ID
            number: int
            person: Person
            email: str = copy("person.email", access=access)

        return [each.problem for each in Graph(graph.table, Person, Note).mistakes]

    staff, public = read(role="staff"), read(fields=["name"])
    for own, of_type in ([[staff], RULES], [[], [public, staff]]):
        assert mistakes([], own, of_type) == [
            "it copies Person.email, which has access rules, and has none itself."
        ]
        assert mistakes([read()], own, of_type) == mistakes([staff], own, of_type) == []
    assert mistakes([]) == mistakes([], [read()]) == []
