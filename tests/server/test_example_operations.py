"""Examples: those of the model's author, and those made from the schema."""

from __future__ import annotations

import json
from pathlib import Path

from graphql import build_schema, parse, validate

from keygraph_server.models import load_model
from keygraph_server.playground.examples import examples_of, queries_to_try, written_examples
from tests.server.library import MODEL

WRITTEN = """\
# A comment about the file.

# What is read,
#   and by whom.
query Readers { book(isbn: "1", with: {a: [1, 2]}) { title } }

fragment F on Book { title }

{ books { totalCount } }
query Second($n: Int!) {
  books(first: $n) { totalCount }
}
query Third { books { totalCount } }
query Fourth { books { totalCount } }
"""


def test_written_operations_stand_alone_with_their_comments_and_fragments() -> None:
    document = WRITTEN + "query Fifth { books { nodes { ...G } } }\nfragment G on Book { ...F isbn }\n"
    examples = written_examples(document)
    assert [(each.name, each.kind, each.first_field, each.description) for each in examples] == [
        ("Readers", "query", 'book(isbn: "1", with: { a: [1, 2] })', "What is read, and by whom."),
        ("Second", "query", "books(first: $n)", ""),
        ("Third", "query", "books", ""),
        ("Fourth", "query", "books", ""),
        ("Fifth", "query", "books", ""),
    ]
    assert examples[2].document == "query Third { books { totalCount } }\n"
    assert examples[4].document == (
        "query Fifth { books { nodes { ...G } } }\n\n"
        "fragment F on Book { title }\n\nfragment G on Book { ...F isbn }\n"
    )


def test_three_queries_are_to_be_tried(folder: Path) -> None:
    (folder / "library.py").write_text(MODEL)
    (folder / "library.graphql").write_text(
        "mutation A { a } query B { b } query C { c } query D { d } query E { e }"
    )
    model = load_model("library")
    assert [each.name for each in queries_to_try(model)] == ["B", "C", "D"]
    assert "schema" not in vars(model)
    (folder / "library.graphql").write_text("query B { b }")
    assert [each.name for each in queries_to_try(model)] == ["B", "Books", "Book"]


def test_a_file_that_is_no_graphql_keeps_no_server_from_starting() -> None:
    assert written_examples("query {") == []
    assert written_examples("") == []


def test_made_examples_can_be_asked(folder: Path) -> None:
    (folder / "library.py").write_text(MODEL)
    model = load_model("library")
    schema = build_schema(model.schema.as_str())
    examples = examples_of(model)
    for each in examples:
        assert validate(schema, parse(each.document)) == []
    assert "\n".join(each.document for each in examples) == (
        "query Books {\n  books(first: 5) {\n    nodes {\n      isbn\n      title\n    }\n  }\n}\n\n"
        "query Book($isbn: ID!) {\n  book(isbn: $isbn) {\n    isbn\n    title\n  }\n}\n\n"
        "mutation CreateBook($isbn: ID!, $title: String!) {\n"
        "  createBook(input: { isbn: $isbn, title: $title }) {\n"
        "    book {\n      isbn\n      title\n    }\n  }\n}\n"
    )
    assert json.loads(examples[2].variables) == {"isbn": "isbn", "title": "title"}


def test_a_written_example_takes_the_place_of_a_made_one(folder: Path) -> None:
    (folder / "library.py").write_text(MODEL)
    (folder / "library.graphql").write_text("query Book { books { totalCount } }\n")
    assert [(each.name, each.is_made) for each in examples_of(load_model("library"))] == [
        ("Book", False),
        ("Books", True),
        ("CreateBook", True),
    ]


def test_each_edge_has_an_example_of_its_put(folder: Path) -> None:
    (folder / "cup.py").write_text(
        "from keygraph_examples.league import Membership, Player, Team\n"
        "from keygraph import Graph, Table\n"
        'graph = Graph(Table("League", partition_key="PK", sort_key="SK"), Team, Player, Membership)\n'
    )
    [put] = [each for each in examples_of(load_model("cup")) if each.name == "PutMembership"]
    assert (
        put.first_field
        == "putMembership(input: {teamId: $teamId, playerId: $playerId, shirtNumber: $shirtNumber})"
    )
    assert json.loads(put.variables) == {"teamId": "teamId", "playerId": "playerId", "shirtNumber": 10}
