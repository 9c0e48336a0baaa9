"""Models of one file, for tests that load one: books in a table whose names nothing else has, and nodes that not all may write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.engines.open import open_store
from keygraph_server.app import create_app
from keygraph_server.models import load_model
from keygraph_server.settings import Settings, read_settings
from tests.asgi import running

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


def library_settings(folder: Path, **given: Any) -> Settings:
    """The settings of a server of the books, whose model is written into the folder."""
    (folder / "library.py").write_text(MODEL)
    usual = {"model": "library", "store": "sqlite:library.sqlite", "secret": "s3cret" * 6}
    return read_settings(**usual | given)


async def make_table(settings: Settings, *items: Item) -> None:
    """Makes the table of the settings' model, with these items."""
    async with open_store(settings.store_address, load_model(settings.model).graph.table) as store:
        await store.send(CreateTable())
        await store.send(BatchWrite(items))


@asynccontextmanager
async def serving(settings: Settings, *items: Item, **functions: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server with these settings and functions, whose table has these items."""
    await make_table(settings, *items)
    async with running(create_app(settings, **functions)) as client:
        yield client
