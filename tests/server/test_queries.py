"""Queries to try: those of the model's author, or ones made from the schema."""

from __future__ import annotations

from pathlib import Path

from graphql import build_schema, parse, validate

from keygraph_server.models import load_model
from keygraph_server.queries import QueryToTry, document_to_try, queries_to_try
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


def test_written_queries_are_shown_with_their_comments() -> None:
    """The server would not say what its author thinks worth asking."""
    assert queries_to_try(WRITTEN) == [
        QueryToTry("Readers", 'book(isbn: "1", with: { a: [1, 2] })', "What is read, and by whom."),
        QueryToTry("Second", "books(first: $n)", ""),
        QueryToTry("Third", "books", ""),
    ]


def test_a_file_that_is_no_graphql_keeps_no_server_from_starting() -> None:
    """A server would not start for a mistake in a file that is only shown."""
    assert queries_to_try("query {") == []
    assert queries_to_try("") == []


def test_made_queries_can_be_asked(folder: Path) -> None:
    """A playground would offer queries that the server refuses."""
    (folder / "library.py").write_text(MODEL)
    model = load_model("library")
    document = document_to_try(model)
    assert validate(build_schema(model.schema.as_str()), parse(document)) == []
    assert document == (
        "query Books {\n  books(first: 5) {\n    nodes {\n      isbn\n      title\n    }\n  }\n}\n\n"
        "query Book($isbn: ID!) {\n  book(isbn: $isbn) {\n    isbn\n    title\n  }\n}\n\n"
        "mutation CreateBook($isbn: ID!, $title: String!) {\n"
        "  createBook(input: { isbn: $isbn, title: $title }) {\n"
        "    book {\n      isbn\n      title\n    }\n  }\n}\n"
    )
