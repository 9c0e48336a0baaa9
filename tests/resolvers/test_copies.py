"""Copies in mutations: clients do not give them, whoever may write the end may have it copied, and plans show what is read."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Table, copy, node, read, record, rule, stored, write
from keygraph_resolvers import OperationRequest
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, within_bound, world

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
    made = await books(make_store)
    assert await made.ask(f"mutation {{ {PUT} }}") == {
        "putPlace": {"place": {"title": "Zero", "book": {"title": "Zero"}}}
    }
    given = 'putPlace(input: {name: "red", number: 1, bookId: "1", title: "One"}) { clientMutationId }'
    assert await made.codes(f"mutation {{ {given} }}") == ["GRAPHQL_VALIDATION_FAILED"]


async def test_the_plan_of_a_copy(make_store: MakeStore) -> None:
    made = await books(make_store)
    read_first, *_ = made.service.explain(f"mutation {{ {PUT} }}").steps
    assert [each.keys for each in read_first.requests] == ["PK = BOOK#1 AND SK = BOOK#1"]
    answer: Any = await made.service.execute(OperationRequest(f"mutation {{ {PUT} }}", with_cost=True))
    within_bound(answer)


async def test_a_missing_node(make_store: MakeStore) -> None:
    made = await books(make_store)
    other = PUT.replace('"1"', '"2"')
    assert await made.errors(f"mutation {{ {other} }}") == [
        ("NOT_FOUND", "bookId: there is no Book with this key.")
    ]


def loans(guard: str | None) -> Graph:
    access = RULES if guard in ("rules", "hidden") else ()
    seen = [read(where={"name": {"ne": "Bob"}}), write()] if guard == "hidden" else access
    checks = [rule({"name": {"ne": ""}, "title": {"ne": ""}}, "no name")] if guard == "check" else ()

    @node("NOVEL#{novel_id}", access=access)
    class Novel:
        novel_id: ID
        title: str
        language: str | None

    @node("READER#{reader_id}", access=seen)
    class Reader:
        reader_id: ID
        name: str

    @record("{book}", "LOAN#{number}", access=access, check=checks)
    class Loan:
        book: Novel
        number: int
        reader: Reader
        guest: Reader | None
        title: str = copy("book.title")
        language: str | None = copy("book.language")
        name: str = copy("reader.name")

    return Graph(Table("Loans", partition_key="PK", sort_key="SK"), Novel, Reader, Loan).check()


@pytest.mark.parametrize("guard", [None, "rules", "check"])
async def test_all_missing_nodes_are_named_at_once(make_store: MakeStore, guard: str | None) -> None:
    """Also where rules are about what is copied."""
    graph = loans(guard)
    made = world(graph, await make_store(graph.table))
    put = """mutation { putLoan(input: {bookId: 1, number: 1, readerId: 2, guestId: 3}) {
        loan { title language name } } }"""
    every = [["input", "bookId"], ["input", "readerId"], ["input", "guestId"]]
    nodes = (
        'createReader(input: {readerId: 2, name: "Ada"})',
        'createNovel(input: {novelId: 1, title: "Emma"})',
        'createReader(input: {readerId: 3, name: "Bob"})',
    )
    for there, missing in enumerate(([0, 1, 2], [0, 2], [2])):
        answer = await made.service.execute(OperationRequest(put, with_cost=True))
        assert [each["extensions"]["path"] for each in answer["errors"]] == [every[each] for each in missing]
        cost = answer["extensions"]["cost"]
        assert cost["actual"]["requests"] <= cost["bound"]["requests"]
        await made.ask(f"mutation {{ {nodes[there]} {{ clientMutationId }} }}")
    assert await made.ask(put) == {"putLoan": {"loan": {"title": "Emma", "language": None, "name": "Ada"}}}


async def test_a_hidden_node_is_named_as_a_missing_one(make_store: MakeStore) -> None:
    graph = loans("hidden")
    made = world(graph, await make_store(graph.table))
    reader = {"PK": "READER#3", "SK": "READER#3", "name": "Bob"}
    await made.put(reader, {**reader, "PK": "READER#2", "SK": "READER#2", "name": "Ada"})
    answer = await made.service.execute(
        "mutation { putLoan(input: {bookId: 1, number: 1, readerId: 2, guestId: 3}) { clientMutationId } }"
    )
    paths = [each["extensions"]["path"] for each in answer["errors"]]
    assert paths == [["input", "bookId"], ["input", "guestId"]]


def test_a_copy_of_what_not_everybody_reads_has_rules() -> None:
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
