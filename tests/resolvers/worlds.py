"""What the tests of the GraphQL layer ask: a service over a store that remembers its requests, and a library.

The library is a model made to be awkward: lists with equal sort keys, siblings in a range, shards, keys of several
fields, fields that stand in keys alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Request, Store
from keygraph.engines.dynamodb.requests import render
from keygraph_resolvers import Limits, Service
from keygraph_resolvers.engine.worst import MOST
from tests.conftest import MakeStore
from tests.documents.samples import sample_of
from tests.schemas import schema_of
from tests.tracing import TracingStore

SECRET = b"the secret of the tests' cursors"


@dataclass(repr=False)
class World:
    """A graph that is served from a store."""

    graph: Graph
    tracer: TracingStore
    service: Service

    async def ask(self, document: str, **variables: Any) -> Any:
        """The data of an answer without errors."""
        answer = await self.service.execute(document, variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def errors(self, document: str, **variables: Any) -> list[tuple[str, str]]:
        answer = await self.service.execute(document, variables)
        return [(error["extensions"]["code"], error["message"]) for error in answer.get("errors", [])]

    async def codes(self, document: str, **variables: Any) -> list[str]:
        return [code for code, _ in await self.errors(document, **variables)]

    async def put(self, *items: Item) -> None:
        """Writes items, and forgets that it did."""
        await self.tracer.store.send(BatchWrite(puts=items))

    def forget(self) -> None:
        self.tracer.requests.clear()

    @property
    def operations(self) -> dict[str, int]:
        """How many of DynamoDB's operations the requests were; those that only count are `Count`."""
        return dict(operations(self.tracer.requests, self.graph.table))

    def served(self, **limits: Any) -> World:
        return world(self.graph, self.tracer, **limits)


def operations(requests: Sequence[Request[Any]], table: Table) -> Counter[str]:
    """DynamoDB's operations that the requests become."""
    wires = [wire for request in requests for wire in render(request, table)]
    return Counter("Count" if wire.body.get("Select") == "COUNT" else wire.operation for wire in wires)


def within_bound(answer: Mapping[str, Any]) -> Any:
    """The cost that an answer reports, of which nothing exceeds its bound."""
    cost = answer["extensions"]["cost"]
    for name in ("requests", "roundTrips", "items", "readUnits"):
        assert cost["actual"][name] <= cost["bound"][name], (name, cost["requests"])
    # What a deletion finds has no bound. DynamoDB Local charges twice what DynamoDB does: tests/keygraph/test_writes.py.
    charged = 2 if "[local" in os.environ["PYTEST_CURRENT_TEST"] else 1
    most = charged * cost["bound"].get("writeUnits", MOST)
    assert cost["actual"].get("writeUnits", 0) <= most, cost["requests"]
    return cost


def limits_of(**limits: Any) -> Limits:
    """These limits, which may be lower than those of settings, and no limit on the cost unless it is given."""
    return Limits(cost_limit=0).model_copy(update=limits)


def world(graph: Graph, store: Store, *, secret: bytes = SECRET, **limits: Any) -> World:
    tracer = store if isinstance(store, TracingStore) else TracingStore(store)
    return World(graph, tracer, Service(schema_of(graph), tracer, secret=secret, limits=limits_of(**limits)))


def filled(graph: Graph, items: Iterable[Item] = ()) -> Any:
    """A fixture: the graph, served from a store with these items."""

    found = [*items]  # which may be made only once

    @pytest.fixture
    async def made(make_store: MakeStore) -> World:
        served = world(graph, await make_store(graph.table))
        if found:
            await served.put(*found)
        return served

    return made


# --- The shop -----------------------------------------------------------------------------------------


def shop_items() -> list[Item]:
    """The items of the commerce example: the article's, and those that it describes."""
    return sample_of("commerce")


# --- The library --------------------------------------------------------------------------------------

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")


class Medium(Enum):
    PAPER = "paper"
    AUDIO = "audio"


@node("MEMBER#{member_id}", gsi1("MEMBER", "{joined}"))
class Member:
    member_id: ID
    name: str
    joined: date | None

    loans: Many[Loan] = many()
    reservations: Many[Reservation] = many()
    visits: Many[Visit] = many()


@node("BOOK#{book_id}")
class Book:
    book_id: ID
    title: str

    loans: Many[Loan] = many()
    reservations: Many[Reservation] = many()
    copies: Many[Copy] = many()


@edge(
    "{member}",
    "{book}",
    gsi1("{book}", "{day}"),
    gsi2("BRANCH#{branch}#{shard}", "{day}", lists="loans", shards=3),
)
class Loan:
    """A member has a book. On one day many have it, so that index keys are equal."""

    member: Member
    book: Book
    day: date | None = stored(in_key=True)
    branch: str | None = stored(in_key=True)
    pages: int | None
    note: str | None
    rating: Decimal | None
    medium: Medium | None
    words: set[str] | None


@edge("{member}", "RESERVED#{book.book_id}", gsi1("{book}", "{day}"))
class Reservation:
    """Stands in the index among the loans of a book: a sibling."""

    member: Member
    book: Book
    day: date


@record("{book}", "COPY#{floor}#{shelf}")
class Copy:
    """Where a copy stands: a sort key of two fields, the first one without padding."""

    book: Book
    floor: int
    shelf: str


@record("{member}#ROOM#{room}", "VISIT#{day}#{minute:04d}")
class Visit:
    """A list with a required argument."""

    member: Member
    room: str
    day: date
    minute: int


library = Graph(
    Table("Library", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    Member,
    Book,
    Loan,
    Reservation,
    Copy,
    Visit,
    attribute_case="camel",
    type_attribute="kind",
    writes=True,
)


def member_item(member: str, **fields: Any) -> Item:
    key = f"MEMBER#{member}"
    return {"PK": key, "SK": key, "kind": "Member", "memberId": member, "name": f"Member {member}", **fields}


def book_item(book: str, **fields: Any) -> Item:
    key = f"BOOK#{book}"
    return {"PK": key, "SK": key, "kind": "Book", "bookId": book, "title": f"Book {book}", **fields}


def loan_item(member: str, book: str, day: str, shard: int = 0, branch: str = "main", **fields: Any) -> Item:
    """A loan whose day stands in the indexes' keys alone."""
    return {
        "PK": f"MEMBER#{member}",
        "SK": f"BOOK#{book}",
        "kind": "Loan",
        "memberId": member,
        "bookId": book,
        "GSI1PK": f"BOOK#{book}",
        "GSI1SK": day,
        "GSI2PK": f"BRANCH#{branch}#{shard}",
        "GSI2SK": day,
        **fields,
    }


def reservation_item(member: str, book: str, day: str) -> Item:
    return {
        "PK": f"MEMBER#{member}",
        "SK": f"RESERVED#{book}",
        "kind": "Reservation",
        "memberId": member,
        "bookId": book,
        "day": day,
        "GSI1PK": f"BOOK#{book}",
        "GSI1SK": day,
    }


def copy_item(book: str, floor: int, shelf: str) -> Item:
    return {
        "PK": f"BOOK#{book}",
        "SK": f"COPY#{floor}#{shelf}",
        "kind": "Copy",
        "bookId": book,
        "floor": Decimal(floor),
        "shelf": shelf,
    }


def visit_item(member: str, room: str, day: str, minute: int) -> Item:
    return {
        "PK": f"MEMBER#{member}#ROOM#{room}",
        "SK": f"VISIT#{day}#{minute:04d}",
        "kind": "Visit",
        "memberId": member,
        "room": room,
        "day": day,
        "minute": Decimal(minute),
    }


def member_ids(connection: Mapping[str, Any]) -> list[str]:
    return [edge["node"]["memberId"] for edge in connection["edges"]]
