"""Writes above DynamoDB's limits: refused before anything is sent, at the place in the input that is to blame."""

from __future__ import annotations

from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, node, record
from keygraph.dynamo.store import Request, Scan, Store
from keygraph.errors import Refusal, WriteRefused
from keygraph.writing.requests import Change, Create, Put, Upsert, WriteRequest
from keygraph.writing.sending.writer import write
from tests.conftest import ENGINES, MakeStore
from tests.tracing import TracingStore

pytestmark = pytest.mark.parametrize("engine", ENGINES)
KB = 1024
by_size = Index("by-size", "pk", "size", local=True)


@node("PAGE#{name}", by_size())
class Page:
    name: ID
    text: str = ""
    note: str = ""
    size: str | None = None
    tags: set[str] | None = None

    lines: Many[Line]


@record("{page}", "LINE#{number:05d}")
class Line:
    page: Page
    number: int
    text: str = ""


graph = Graph(Table("Pages", partition_key="pk", sort_key="sk", indexes=[by_size]), Page, Line).check()
page, line = graph.types.values()


@pytest.fixture
async def pages(make_store: MakeStore) -> TracingStore:
    return TracingStore(await make_store(graph.table))


async def refused(store: Store, *requests: WriteRequest) -> list[Refusal]:
    with pytest.raises(WriteRefused) as refused:
        await write(graph, store, requests)
    return [*refused.value.refusals]


def sent(store: TracingStore) -> list[Request[Any]]:
    """What it was asked since this was asked last."""
    found = list(store.requests)
    store.requests.clear()
    return found


async def test_an_item_that_is_too_large_is_told_at_its_largest_field(pages: TracingStore) -> None:
    large = {"name": "a", "text": "x" * 100 * KB, "note": "y" * 310 * KB}
    more = {"page": ("a",), "number": 1, "text": "z" * 401 * KB}
    found = await refused(pages, Create(page, large, ("input",)), Put(line, more, ("input", "lines", 0)))
    assert [(each.code, each.message, each.path) for each in found] == [
        ("ITEM_TOO_LARGE", "The item is larger than 400 KB.", ("input", "note")),
        ("ITEM_TOO_LARGE", "The item is larger than 400 KB.", ("input", "lines", 0, "text")),
    ]
    assert sent(pages) == []


async def test_what_an_item_takes_in_a_local_index_counts(pages: TracingStore) -> None:
    large = {"name": "a", "text": "x" * 210 * KB, "size": "L"}
    [found] = await refused(pages, Create(page, large, ("input",)))
    assert (found.code, found.path) == ("ITEM_TOO_LARGE", ("input", "text"))
    assert found.message == "The item is larger than 400 KB, with its entries in local indexes."
    assert sent(pages) == []


@pytest.mark.parametrize(
    "request_",
    [
        Change(page, ("a",), {"note": "y" * 200 * KB}, where=("input",)),
        Upsert(page, {"name": "a", "note": "y" * 200 * KB}, ("input",)),
        Change(page, ("a",), {"note": "y" * 200 * KB, "tags": {"small"}}, where=("input",)),
    ],
)
async def test_a_change_that_makes_an_item_too_large(pages: TracingStore, request_: WriteRequest) -> None:
    await write(graph, pages, [Create(page, {"name": "a", "text": "x" * 300 * KB})])
    before = (await pages.store.send(Scan(consistent=True))).items
    [found] = await refused(pages, request_)
    assert (found.code, found.path) == ("ITEM_TOO_LARGE", ("input", "note"))
    assert (await pages.store.send(Scan(consistent=True))).items == before


async def test_too_many_items_are_told_with_their_count(pages: TracingStore) -> None:
    lines = [Put(line, {"page": ("a",), "number": n}, ("input", "lines", n)) for n in range(100)]
    [found] = await refused(pages, Create(page, {"name": "a"}, ("input",)), *lines)
    assert (found.code, found.path) == ("TRANSACTION_TOO_LARGE", ("input",))
    assert found.details == {"count": 101, "limit": 100}
    assert found.message == (
        "The transaction is of 101 items, with those that it only checks; DynamoDB allows 100."
    )
    await write(graph, pages, [Create(page, {"name": "a"}), *lines[1:]])


async def test_too_many_bytes(pages: TracingStore) -> None:
    lines = [Put(line, {"page": ("a",), "number": n, "text": "x" * 390 * KB}) for n in range(11)]
    [found] = await refused(pages, Create(page, {"name": "a"}, ("input",)), *lines)
    assert (found.code, found.path) == ("TRANSACTION_TOO_LARGE", ("input",))
    assert found.details["limit"] == 4 * KB * KB
    assert found.details["bytes"] > 11 * 390 * KB
