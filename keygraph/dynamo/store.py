"""The interface to a store: requests are values, answers are items with their cost.

A `Store` serves one table, `table`. It has two methods: `send` answers one request, `close` frees its resources. Every
engine answers as DynamoDB would: the same order, the same pages, limits that count before the filter. `Query`, `Count`
and `Scan` answer one page; `pages` follows a `Query` or a `Scan` to the end. `BatchGet` and `BatchWrite` take any
number of keys or items and answer when all are done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from keygraph.dynamo.actions import Action, DeleteItem, PutItem, UpdateItem
from keygraph.dynamo.conditions import Condition, Path
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from keygraph.dynamo.table import Index, Key, KeyValue, Position, Table
from keygraph.dynamo.value import value

Answer = TypeVar("Answer", covariant=True)


class Request(Generic[Answer]):
    """A request to a store; the parameter is the type of its answer."""

    __slots__ = ()


# --- Ranges of a sort key -----------------------------------------------------------------------------


@value(frozen=True, slots=True)
class Equals:
    value: KeyValue


@value(frozen=True, slots=True)
class Prefix:
    value: str | bytes


@value(frozen=True, slots=True)
class Within:
    """Both bounds are included."""

    low: KeyValue
    high: KeyValue


@value(frozen=True, slots=True)
class AtLeast:
    value: KeyValue


@value(frozen=True, slots=True)
class AtMost:
    value: KeyValue


@value(frozen=True, slots=True)
class Above:
    value: KeyValue


@value(frozen=True, slots=True)
class Below:
    value: KeyValue


Range: TypeAlias = Equals | Prefix | Within | AtLeast | AtMost | Above | Below
"""The conditions that DynamoDB allows on a sort key, one at a time."""


# --- Answers ------------------------------------------------------------------------------------------


@value(frozen=True, slots=True)
class Cost:
    """The cost of a request: requests on the wire, capacity units."""

    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0

    @classmethod
    def of_reads(cls, requests: int, sizes: Iterable[int], *, consistent: bool) -> Cost:
        """Returns the cost of requests that read parts of these sizes, each rounded up: a page, or a batch's items."""
        return cls(requests, sum([read_units(size, consistent) for size in sizes], 0.0))

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.requests + other.requests,
            self.read_units + other.read_units,
            self.write_units + other.write_units,
        )


@value(frozen=True, slots=True)
class Page:
    """One page: the items that passed the filter, how many items were read, and where the next page starts.

    `last` is None at the end of the range.
    """

    items: list[Item]
    scanned: int
    last: Position | None
    cost: Cost
    nested: int = 0
    """The values in the lists, maps and sets of its items."""


@value(frozen=True, slots=True)
class Counted:
    """How many items of one page passed the filter; the rest is as for `Page`."""

    count: int
    scanned: int
    last: Position | None
    cost: Cost


@value(frozen=True, slots=True)
class Batch:
    """The items of a `BatchGet`, one for each key in the order of the request; None if there is none."""

    items: list[Item | None]
    cost: Cost
    nested: int = 0
    """The values in the lists, maps and sets of its items."""


@value(frozen=True, slots=True)
class Written:
    """Everything was written."""

    cost: Cost


@value(frozen=True, slots=True)
class Changed:
    """One item was written. `item` is the old item for a put or a delete, and the new one for an update."""

    item: Item | None
    cost: Cost


# --- Prices, in capacity units ------------------------------------------------------------------------
#
# "Read and write operations" in the DynamoDB developer guide. A Query adds up the sizes of its page and rounds the sum up; a
# BatchGetItem rounds each item up. Attributes that a projection leaves out, items that a filter leaves out, and items that are
# only counted cost the same. An index's items are as large as what it projects.


def read_units(size: int, consistent: bool) -> float:
    """Returns the units for reading so many bytes. A missing item, or an empty page, costs one unit too."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


TRANSACTION_UNITS = 2
"""The factor for the units of a write in a transaction."""


def write_units(size: int) -> int:
    """Returns the units for writing so many bytes. Deleting a missing item costs one unit too."""
    return max(1, -(-size // WRITE_UNIT_BYTES))


# --- Requests -----------------------------------------------------------------------------------------


@value(frozen=True, slots=True)
class Query(Request[Page]):
    """One page of one partition of the table or of an index, in the order of its sort key.

    `limit` counts items before the filter. `start` is the position after which the page begins; it need not be an item's.
    """

    partition: KeyValue
    index: str | None = None
    range: Range | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    forward: bool = True
    limit: int | None = None
    start: Position | None = None
    consistent: bool = False


@value(frozen=True, slots=True)
class Count(Request[Counted]):
    """How many items one page of a partition has (`Select=COUNT`)."""

    partition: KeyValue
    index: str | None = None
    range: Range | None = None
    filter: Condition | None = None
    limit: int | None = None
    start: Position | None = None
    consistent: bool = False


@value(frozen=True, slots=True)
class BatchGet(Request[Batch]):
    """The items with these table keys; equal keys are read once."""

    keys: tuple[Key, ...]
    projection: tuple[Path, ...] | None = None
    consistent: bool = False


@value(frozen=True, slots=True)
class Scan(Request[Page]):
    """One page of one of `segments` parts of the whole table."""

    segment: int = 0
    segments: int = 1
    limit: int | None = None
    start: Position | None = None
    consistent: bool = False


@value(frozen=True, slots=True)
class BatchWrite(Request[Written]):
    """Puts, then deletes, without conditions. If two have the same key, the last one wins."""

    puts: tuple[Item, ...] = ()
    deletes: tuple[Key, ...] = ()


@value(frozen=True, slots=True)
class Write(Request[Changed]):
    """Writes one item, if its condition holds.

    It is sent once: if no answer comes, it is not known whether it was written.
    """

    action: PutItem | UpdateItem | DeleteItem


@value(frozen=True, slots=True)
class Transaction(Request[Written]):
    """All of these actions or none; no two are for the same item.

    Sent again under the same token within ten minutes, it gets the same answer and writes nothing more.
    """

    actions: tuple[Action, ...]
    token: str


@value(frozen=True, slots=True)
class CreateTable(Request[None]):
    """Creates the table with its indexes, and waits until it can be used. Does nothing if it exists."""


@value(frozen=True, slots=True)
class DescribeTable(Request["Table | None"]):
    """The table as the store has it, or None if there is none."""


@value(frozen=True, slots=True)
class CreateIndex(Request["int | None"]):
    """Starts to create a global index, or goes on, while the table is in use. Send it again until the answer is None: the
    index can be read. Until then the answer is the number of items that were looked at, 0 if that is unknown.

    Does nothing if the table has an index of that name. Raises TableMissing.
    """

    index: Index


@value(frozen=True, slots=True)
class DeleteIndex(Request["int | None"]):
    """Starts to delete a global index. Send it again until the answer is None: there is none of that name. Raises
    TableMissing."""

    name: str


@value(frozen=True, slots=True)
class DescribeTimeToLive(Request["str | None"]):
    """The attribute by which DynamoDB deletes expired items, or None. The embedded engine deletes none."""


@value(frozen=True, slots=True)
class EnableTimeToLive(Request[None]):
    """Lets DynamoDB delete items by the time in this attribute."""

    attribute: str


@value(frozen=True, slots=True)
class ListTables(Request[tuple[str, ...]]):
    """The names of all tables in the store, not only the one that it was opened for."""


@value(frozen=True, slots=True)
class DeleteTable(Request[None]):
    """Deletes the table with everything in it. Does nothing if there is none."""


class Store(Protocol):
    """The interface of an engine."""

    @property
    def table(self) -> Table:
        """The table that the requests are for."""

    async def send(self, request: Request[Answer], /) -> Answer:
        """Returns the answer to a request. Raises StoreError if no answer comes, BadUserInput for a request that
        DynamoDB refuses.

        DynamoDB refuses a key that has another type, is empty or too large, an item above 400 KB, crossed bounds, a
        consistent read of a global index, a filter that is too long or uses a key of what is read, an attribute that
        the index does not project, an index that the table lacks, an update that does not fit the item. A `Write`
        raises ConditionFailed, a `Transaction` TransactionCanceled or TokenReused.
        """

    async def close(self) -> None:
        """Closes connections and files, and ends threads."""


async def pages(store: Store, request: Query | Scan) -> AsyncIterator[Page]:
    """Yields every page of the request, to the end of its range.

    A `limit` is the limit of each page.
    """
    while True:
        page: Page = await store.send(request)
        yield page
        if page.last is None:
            return
        request = replace(request, start=page.last)


@dataclass(slots=True, eq=False)
class PassingStore:
    """A store that passes requests on to another one; what is derived from it does something besides."""

    store: Store

    @property
    def table(self) -> Table:
        return self.store.table

    async def send(self, request: Request[Answer], /) -> Answer:
        return await self.store.send(request)

    async def close(self) -> None:
        await self.store.close()


@dataclass(slots=True)
class UnreadStore:
    """Replaces a store when nothing may be read, such as while an operation is explained."""

    table: Table

    async def send(self, request: Request[Answer], /) -> Answer:
        raise RuntimeError(f"nothing is read here: {request}")

    async def close(self) -> None:
        """Does nothing, because nothing is open."""
