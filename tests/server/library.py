"""Models of one file, for tests that load one: books in a table whose names nothing else has, and nodes that not all may write."""

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


WRITES = """
from __future__ import annotations
from keygraph import ID, Graph, Many, Table, edge, node, read, write
@node("A#{a_id}", access=[read(), write(role="staff")])
class A:
    a_id: ID
    name: str
@node("B#{b_id}", access=[read(), write()])
class B:
    b_id: ID
    name: str
    near: A | None
    links: Many[Link]
@edge("{b}", "{a}", access=[read(), write()])
class Link:
    b: B
    a: A
graph = Graph(Table("Writes", partition_key="PK", sort_key="SK"), A, B, Link)
"""
"""A node that only staff may write, one with an end that all may write, and an edge that has no attribute to change."""


def book(isbn: str, title: str) -> Item:
    return {"pk": f"book_{isbn}", "sk": f"book_{isbn}", "isbn": isbn, "title": title, "kind": "BOOK"}
