"""Mutations over GraphQL: what they take, what they write, what they answer, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, new_id, node, record, version
from keygraph.writing.requests import Delete, Move, WriteRequest
from keygraph.writing.sending.describe import describe_write
from keygraph_resolvers import OperationRequest, Service, build_schema
from tests.conftest import MakeStore
from tests.resolvers.worlds import World, world

by_author = Index("by-author", "gp", "gs")


class Genre(Enum):
    NOVEL = "novel"
    POEM = "poem"


@node("AUTHOR#{name}")
class Author:
    name: ID
    born: int | None = None
    prizes: set[str] | None = None

    books: Many[Book]


@node("BOOK#{book_id}", by_author("{author}", "BOOK#{title}"))
class Book:
    book_id: ID = new_id()
    title: str
    """As it stands on the cover."""
    author: Author
    genre: Genre = Genre.NOVEL
    copies: int = 0
    revision: int = version()

    chapters: Many[Chapter]
    loans: Many[Loan]


@record("{book}", "CHAPTER#{number:03d}")
class Chapter:
    book: Book
    number: int
    heading: str


@node("SHELF#{room}#{shelf}", item=False)
class Shelf:
    room: ID
    shelf: ID


@edge("{book}", "ON#{shelf.room}#{shelf.shelf}", writes=["put", "delete"])
class Loan:
    book: Book
    shelf: Shelf
    place: int


graph = Graph(
    Table("Library", partition_key="pk", sort_key="sk", indexes=[by_author]),
    Author,
    Book,
    Chapter,
    Shelf,
    Loan,
    type_attribute="kind",
    writes=True,
).check()
schema = build_schema(graph)


class Library:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def data(self, document: str, **variables: Any) -> Any:
        answer = await self._service.execute(document, variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def errors(self, document: str, **variables: Any) -> list[Any]:
        answer = await self._service.execute(document, variables)
        return [
            (each["extensions"]["code"], each["message"], each["extensions"].get("path"))
            for each in answer["errors"]
        ]

    async def cost(self, document: str) -> Any:
        return (await self._service.execute(OperationRequest(document, with_cost=True)))["extensions"]["cost"]


@pytest.fixture
async def library(make_store: MakeStore) -> Library:
    library = Library(Service(schema, await make_store(graph.table), secret=b"secret" * 8))
    await library.data('mutation { createAuthor(input: {name: "Ann", prizes: ["A"]}) { author { name } } }')
    await library.data(
        """mutation { createBook(input: {bookId: "1", title: "One", authorName: "Ann", chapters: [
          {number: 1, heading: "In"}, {number: 2, heading: "Out"}]}) { book { bookId } } }"""
    )
    return library


async def test_a_payload_goes_on_to_any_depth(library: Library) -> None:
    created = await library.data(
        """mutation { createBook(input: {title: "Two", authorName: "Ann", genre: POEM, clientMutationId: "m",
            chapters: [{number: 7, heading: "All"}], loans: [{shelf: {room: "R", shelf: "S"}, place: 3}]}) {
          clientMutationId
          book { title genre revision author { name born books { nodes { title } } }
            chapters { nodes { number heading book { title } } } loans { edges { place node { room shelf } } } } } }"""
    )
    author = {"name": "Ann", "born": None, "books": {"nodes": [{"title": "One"}, {"title": "Two"}]}}
    assert created["createBook"] == {
        "clientMutationId": "m",
        "book": {
            "title": "Two",
            "genre": "POEM",
            "revision": 1,
            "author": author,
            "chapters": {"nodes": [{"number": 7, "heading": "All", "book": {"title": "Two"}}]},
            "loans": {"edges": [{"place": 3, "node": {"room": "R", "shelf": "S"}}]},
        },
    }


async def test_updates(library: Library) -> None:
    changed = await library.data(
        """mutation {
          a: updateBook(input: {bookId: "1", title: "Uno", add: {copies: 2}}) { book { title copies revision genre } }
          b: updateBook(input: {bookId: "1", add: {copies: -1}, expectedVersion: 2}) { book { title copies revision } }
          c: updateAuthor(input: {name: "Ann", born: 1970, add: {prizes: ["B", "C"]}}) { author { born prizes } }
          d: updateAuthor(input: {name: "Ann", born: null, remove: {prizes: ["A", "C"]}}) { author { born prizes
             books { nodes { title } } } }
          e: updateChapter(input: {bookId: "1", number: 2, heading: "Off"}) { chapter { heading number book { title } } }
        }"""
    )
    assert changed["a"]["book"] == {"title": "Uno", "copies": 2, "revision": 2, "genre": "NOVEL"}
    assert changed["b"]["book"] == {"title": "Uno", "copies": 1, "revision": 3}
    assert changed["c"]["author"] == {"born": 1970, "prizes": ["A", "B", "C"]}
    assert changed["d"]["author"] == {"born": None, "prizes": ["B"], "books": {"nodes": [{"title": "Uno"}]}}
    assert changed["e"]["chapter"] == {"heading": "Off", "number": 2, "book": {"title": "Uno"}}
    stale = 'mutation { updateBook(input: {bookId: "1", title: "X", expectedVersion: 1}) { book { title } } }'
    assert await library.errors(stale) == [
        ("CONFLICT", "This Book has changed: its version is 3.", ["input"]),
    ]


async def test_what_is_wrong_is_told_with_its_place(library: Library) -> None:
    assert await library.errors(
        """mutation { createBook(input: {bookId: "1", title: "X", authorName: "Nobody", chapters: [
             {number: 1, heading: "A"}, {number: 1, heading: "B"}]}) { book { bookId } } }"""
    ) == [
        (
            "BAD_USER_INPUT",
            "input.chapters.0 and input.chapters.1 write the same item: change it in one place.",
            ["input", "chapters", 1],
        )
    ]
    assert await library.errors(
        """mutation { createBook(input: {bookId: "1", title: "X", authorName: "Nobody", chapters: [
             {number: 1, heading: "A"}]}) { book { bookId } } }"""
    ) == [
        ("ALREADY_EXISTS", "There is already a Book with this key.", ["input"]),
        ("NOT_FOUND", "authorName: there is no Author with this key.", ["input", "authorName"]),
    ]
    assert await library.errors(
        'mutation { createBook(input: {bookId: "", title: "X", authorName: "Ann"}) { book { bookId } } }'
    ) == [("BAD_USER_INPUT", "bookId of Book is empty, and part of its key", ["input", "bookId"])]
    wrong = await library.errors(
        """mutation { write(input: {actions: [
             {createBook: {bookId: "", title: "", authorName: "", chapters: [{number: 1, heading: "A"}]}},
             {updateAuthor: {name: "", born: 1, prizes: []}},
             {updateAuthor: {name: "Ann", add: {prizes: ["A"]}, remove: {prizes: ["A"]}}},
             {deleteLoan: {bookId: "", shelf: {room: "", shelf: "1"}}}]}) { results { __typename } } }"""
    )
    assert [(message, path[2:]) for _, message, path in wrong] == [
        ("name of Author is empty, and part of its key", [0, "createBook", "authorName"]),
        ("bookId of Book is empty, and part of its key", [0, "createBook", "bookId"]),
        ("name of Author is empty, and part of its key", [1, "updateAuthor", "name"]),
        ("prizes is changed twice.", [2, "updateAuthor", "prizes"]),
        ("bookId of Book is empty, and part of its key", [3, "deleteLoan", "bookId"]),
        ("room of Shelf is empty, and part of its key", [3, "deleteLoan", "shelf"]),
        ("title of Book is empty, and part of its key in by-author", [0, "createBook", "title"]),
        ("prizes cannot be stored: it is an empty set.", [1, "updateAuthor", "prizes"]),
    ]
    assert await library.errors(
        """mutation { write(input: {actions: [{createAuthor: {name: "Bob"}}, {createAuthor: {name: "Cid"}},
             {deleteAuthor: {name: "Bob"}}]}) { results { __typename } } }"""
    ) == [
        (
            "BAD_USER_INPUT",
            "input.actions.0.createAuthor and input.actions.2.deleteAuthor write the same item: change it in one place.",
            ["input", "actions", 2, "deleteAuthor"],
        )
    ]
    assert await library.errors('mutation { deleteBook(input: {bookId: "9"}) { deletedId } }') == [
        ("NOT_FOUND", "There is no Book with this key.", ["input"])
    ]
    assert await library.errors(
        'mutation { putChapter(input: {bookId: "9", number: 1, heading: "A"}) { chapter { number } } }'
    ) == [("NOT_FOUND", "bookId: there is no Book with this key.", ["input", "bookId"])]


async def test_one_mutation_after_the_other(library: Library) -> None:
    answer = await library._service.execute(
        """mutation {
          a: createAuthor(input: {name: "Bob"}) { author { name } }
          b: createAuthor(input: {name: "Bob"}) { author { name } }
          c: createBook(input: {bookId: "2", title: "Two", authorName: "Bob"}) { book { author { name books { nodes { bookId } } } } }
          d: deleteBook(input: {bookId: "2"}) { deletedId }
          e: upsertAuthor(input: {name: "Bob", born: 1}) { author { born books { nodes { bookId } } } }
        }"""
    )
    assert [error["path"] for error in answer["errors"]] == [["b"]]
    data = answer["data"]
    assert data["b"] is None
    assert data["c"]["book"]["author"] == {"name": "Bob", "books": {"nodes": [{"bookId": "2"}]}}
    assert data["e"]["author"] == {"born": 1, "books": {"nodes": []}}
    assert (await library.data("query ($id: ID!) { node(id: $id) { id } }", id=data["d"]["deletedId"]))[
        "node"
    ] is None


async def test_what_mutations_cost(library: Library, engine: str) -> None:
    cost = await library.cost(
        """mutation { createBook(input: {bookId: "3", title: "T", authorName: "Ann", chapters: [{number: 1, heading: "H"}]}) {
          book { bookId title revision } } }"""
    )
    assert [(each["operation"], each["roundTrip"]) for each in cost["requests"]] == [
        ("TransactWriteItems", 1)
    ]
    assert (cost["bound"]["requests"], cost["bound"]["roundTrips"]) == (1, 1)
    # moto charges nothing. A transaction takes twice its writes: the book in the table and its index, a chapter, a check.
    units = {"sqlite": 8.0, "local": 12.0}.get(engine)
    assert cost["actual"].get("writeUnits") == cost["requests"][0].get("writeUnits") == units
    cost = await library.cost(
        """mutation { a: updateBook(input: {bookId: "3", title: "U"}) { book { title } }
          b: updateBook(input: {bookId: "3", copies: 1}) { book { title } } }"""
    )
    assert [(each["operation"], each["roundTrip"]) for each in cost["requests"]] == [
        ("GetItem", 1),
        ("TransactWriteItems", 2),
        ("GetItem", 3),
        ("TransactWriteItems", 4),
        ("GetItem", 5),
    ]
    assert cost["actual"]["readUnits"] <= cost["bound"]["readUnits"]
    assert (cost["bound"]["requests"], cost["bound"]["roundTrips"]) == (5, 5)


# --- Deletes and moves ----------------------------------------------------------------------------------


async def test_a_node_with_edges_is_deleted_as_the_client_says(library: Library) -> None:
    answer = await library._service.execute('mutation { deleteBook(input: {bookId: "1"}) { deletedId } }')
    [error] = answer["errors"]
    assert error["message"] == "This Book cannot be deleted. It is named by 2 Chapters (book)."
    assert error["extensions"] == {
        "code": "CONFLICT",
        "path": ["input"],
        "namedBy": [{"type": "Chapter", "field": "book", "atLeast": 2, "lists": ["chapters"]}],
    }
    library._service._suggestions = False  # as in production
    [error] = (await library._service.execute('mutation { deleteBook(input: {bookId: "1"}) { deletedId } }'))[
        "errors"
    ]
    assert error["message"] == "This Book cannot be deleted. It is named by 2 Chapters (…)."
    [named] = error["extensions"]["namedBy"]
    assert named == {"type": "Chapter", "field": "…", "atLeast": 2, "lists": ["…"]}
    library._service._suggestions = True
    assert await library.errors(
        'mutation { deleteAuthor(input: {name: "Ann", onEdges: DETACH}) { deletedId } }'
    ) == [("CONFLICT", "This Author cannot be deleted. It is named by 1 Book (author).", ["input"])]
    read = '{ book(bookId: "1") { title author { name } chapters { totalCount } } }'
    assert (await library.data(read))["book"] == {
        "title": "One",
        "author": {"name": "Ann"},
        "chapters": {"totalCount": 2},
    }
    deleted = await library.data(
        """mutation ($edges: OnEdges!) {
          deleteBook(input: {bookId: "1", onEdges: $edges, expectedVersion: 1}) { deletedId detached }
          deleteAuthor(input: {name: "Ann"}) { detached } }""",
        edges="DETACH",
    )
    assert (deleted["deleteBook"]["detached"], deleted["deleteAuthor"]) == (2, {"detached": 0})
    assert (await library.data('{ book(bookId: "1") { title } author(name: "Ann") { name } }')) == {
        "book": None,
        "author": None,
    }


async def test_moves(library: Library) -> None:
    moved = await library.data(
        """mutation { moveChapter(input: {bookId: "1", number: 2, to: {number: 3}, clientMutationId: "m"}) {
          clientMutationId chapter { number heading book { title chapters { nodes { number } } } } } }"""
    )
    assert moved["moveChapter"] == {
        "clientMutationId": "m",
        "chapter": {
            "number": 3,
            "heading": "Out",
            "book": {"title": "One", "chapters": {"nodes": [{"number": 1}, {"number": 3}]}},
        },
    }
    assert await library.errors(
        'mutation { moveChapter(input: {bookId: "1", number: 3, to: {bookId: "9"}}) { chapter { number } } }'
    ) == [("NOT_FOUND", "bookId: there is no Book with this key.", ["input", "to", "bookId"])]
    assert await library.errors(
        'mutation { moveChapter(input: {bookId: "1", number: 3, to: {number: 1}}) { chapter { number } } }'
    ) == [("ALREADY_EXISTS", "There is already a Chapter with this key.", ["input", "to"])]
    assert await library.errors(
        'mutation { moveBook(input: {bookId: "1", to: {bookId: "2"}}) { book { title } } }'
    ) == [("CONFLICT", "This Book cannot be moved. It is named by 2 Chapters (book).", ["input"])]
    renamed = await library.data(
        """mutation { createAuthor(input: {name: "Bob", born: 5}) { author { name } }
          moveAuthor(input: {name: "Bob", to: {name: "Rob"}}) { author { name born } } }"""
    )
    assert renamed["moveAuthor"]["author"] == {"name": "Rob", "born": 5}


async def test_what_a_delete_costs(library: Library) -> None:
    cost = await library.cost('mutation { deleteAuthor(input: {name: "Ann"}) { deletedId } }')
    assert [each["operation"] for each in cost["requests"]] == [
        "UpdateItem",
        "Query",
        "GetItem",
        "UpdateItem",
    ]
    assert cost["actual"]["requests"] <= cost["bound"]["requests"]
    assert cost["actual"]["readUnits"] <= cost["bound"]["readUnits"]


@dataclass
class Measure:
    width: int
    depth: int | None
    unit: str = "mm"


@node("PERSON#{name}")
class Person:
    name: ID
    measure: Measure | None = None

    friends: Many[Friend]


@edge("{one}", "FRIEND#{other.name}", mirror=True)
class Friend:
    one: Person
    other: Person
    since: int


friends = Graph(
    Table("Friends", partition_key="pk", sort_key="sk"),
    Person,
    Friend,
    attribute_case="camel",
    writes=True,
).check()


@pytest.fixture
async def people(make_store: MakeStore) -> World:
    made = world(friends, await make_store(friends.table))
    for name in ("Ann", "Bob"):
        await made.ask(f'mutation {{ createPerson(input: {{name: "{name}"}}) {{ person {{ name }} }} }}')
    put = 'mutation { putFriend(input: {oneName: "Ann", otherName: "Bob", since: 1}) { friend { since } } }'
    await made.ask(put)
    return made


async def test_an_object_that_leaves_fields_out(people: World) -> None:
    change = 'mutation { updatePerson(input: {name: "Ann", measure: %s}) { person { measure { width depth unit } } } }'
    for given, found in (
        ("{width: 1}", {"width": 1, "depth": None, "unit": "mm"}),
        ('{width: 1, depth: 2, unit: "cm"}', {"width": 1, "depth": 2, "unit": "cm"}),
    ):
        assert (await people.ask(change % given))["updatePerson"]["person"]["measure"] == found


async def test_an_edge_that_is_its_own_mirror(people: World) -> None:
    async def friendships(*names: str) -> list[list[tuple[str, int]]]:
        found = []
        for name in names:
            answer = await people.ask(
                f'{{ person(name: "{name}") {{ friends {{ edges {{ since node {{ name }} }} }} }} }}'
            )
            found.append(
                [(each["node"]["name"], each["since"]) for each in answer["person"]["friends"]["edges"]]
            )
        return found

    own = 'oneName: "Ann", otherName: "Ann"'
    for since in (2, 3):
        put = f"mutation {{ putFriend(input: {{ {own}, since: {since} }}) {{ friend {{ since }} }} }}"
        assert (await people.ask(put))["putFriend"]["friend"]["since"] == since
        assert await friendships("Ann", "Bob") == [[("Ann", since), ("Bob", 1)], [("Ann", 1)]]
    await people.ask(f"mutation {{ updateFriend(input: {{ {own}, since: 4 }}) {{ friend {{ since }} }} }}")
    assert await friendships("Ann", "Bob") == [[("Ann", 4), ("Bob", 1)], [("Ann", 1)]]
    between = 'oneName: "Ann", otherName: "Bob"'
    await people.ask(f"mutation {{ deleteFriend(input: {{ {between} }}) {{ deletedId }} }}")
    await people.ask(
        f'mutation {{ moveFriend(input: {{ {own}, to: {{ otherName: "Bob" }} }}) {{ friend {{ since }} }} }}'
    )
    assert await friendships("Ann", "Bob") == [[("Bob", 4)], [("Ann", 4)]]
    await people.ask(
        f'mutation {{ moveFriend(input: {{ {between}, to: {{ otherName: "Ann" }} }}) {{ friend {{ since }} }} }}'
    )
    assert await friendships("Ann", "Bob") == [[("Ann", 4)], []]
    for write, is_new, since in (("upsert", True, 5), ("upsert", False, 6), ("put", False, 7)):
        written = f"{write}Friend(input: {{ {between}, since: {since} }}) {{ created friend {{ since }} }}"
        answer = await people.ask(f"mutation {{ {written} }}")
        assert answer == {f"{write}Friend": {"created": is_new, "friend": {"since": since}}}
        assert await friendships("Ann", "Bob") == [[("Ann", 4), ("Bob", since)], [("Ann", since)]]
    for one, other in (("Ann", "Bob"), ("Bob", "Ann")):
        create = f'createFriend(input: {{ oneName: "{one}", otherName: "{other}", since: 8 }}) {{ clientMutationId }}'
        assert await people.codes(f"mutation {{ {create} }}") == ["ALREADY_EXISTS"]
    await people.ask(f"mutation {{ deleteFriend(input: {{ {between} }}) {{ deletedId }} }}")
    await people.ask(f"mutation {{ deleteFriend(input: {{ {own} }}) {{ deletedId }} }}")
    assert await friendships("Ann", "Bob") == [[], []]


def test_what_is_explained_of_an_edge_that_is_its_own_mirror() -> None:
    record = friends.types["Friend"]

    def written(request: WriteRequest) -> list[str]:
        [transaction] = describe_write(friends, [request]).transactions
        return sorted(each.operation for each in transaction.actions if each.operation != "ConditionCheck")

    assert written(Delete(record, ("Ann", "Ann"))) == ["Delete"]
    assert written(Delete(record, ("Ann", "Bob"))) == ["Delete", "Delete"]
    assert written(Move(record, ("Ann", "Ann"), {"other": ("Bob",)})) == ["Delete", "Put", "Put"]
    assert written(Move(record, ("Ann", "Bob"), {"other": ("Ann",)})) == ["Delete", "Delete", "Put"]
    assert written(Move(record, ("Ann", "Bob"), {"other": ("Cid",)})) == ["Delete", "Delete", "Put", "Put"]


async def test_a_mirrored_edge_that_stays_where_it_is(people: World) -> None:
    move = 'mutation { moveFriend(input: {oneName: "Ann", otherName: "Bob", to: {otherName: "Bob"}}) { friend { since } } }'
    assert await people.errors(move) == [("BAD_USER_INPUT", "The key of this Friend would stay the same.")]
