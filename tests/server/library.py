"""A model of one file, for tests that load one: books in a table whose names nothing else has."""

from __future__ import annotations

from keygraph.dynamo.items import Item

MODEL = """
from __future__ import annotations

from keygraph import ID, Graph, Index, Table, node

by_kind = Index("by_kind", "kind", "title")


@node("book_{isbn}", by_kind("BOOK", "{title}"))
class Book:
    isbn: ID
    title: str


graph = Graph(Table("Library", partition_key="pk", sort_key="sk", indexes=[by_kind]), Book)
"""


def book(isbn: str, title: str) -> Item:
    return {"pk": f"book_{isbn}", "sk": f"book_{isbn}", "isbn": isbn, "title": title, "kind": "BOOK"}
