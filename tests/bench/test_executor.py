"""How much is done for each object of an answer: counted in calls of Python functions, which no other work on a
machine changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from types import FrameType
from typing import Any, cast

import pytest

from keygraph import ID, Graph, Many, Table, edge, many, node, record
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Answer, Batch, BatchGet, Cost, Page, Query, Request
from keygraph.limits import Limits
from keygraph_resolvers import Service, build_schema

OBJECTS = 100
LEAVES = ("title", "size", "weight", "isNew", "colour")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@node("SHELF#{shelf_id}")
class Shelf:
    shelf_id: ID

    things: Many[Thing] = many()
    parts: Many[ShelfPart] = many()


@record("{shelf}", "THING#{code}")
class Thing:
    """What stands in the list itself."""

    shelf: Shelf
    code: ID
    title: str
    size: int
    weight: Decimal
    is_new: bool
    colour: Colour


@node("PART#{code}")
class Part:
    """What an edge of the list leads to."""

    code: ID
    title: str
    size: int
    weight: Decimal
    is_new: bool
    colour: Colour


@edge("{shelf}", "{part}")
class ShelfPart:
    shelf: Shelf
    part: Part


graph = Graph(
    Table("Shelves", partition_key="PK", sort_key="SK"),
    Shelf,
    Thing,
    Part,
    ShelfPart,
    attribute_case="camel",
    type_attribute="kind",
)


class OneShelf:
    """A store in memory: a shelf of things, and of edges to parts. It works as little as it can."""

    def __init__(self) -> None:
        self.table = graph.table
        shelf = {"PK": "SHELF#001", "SK": "SHELF#001", "kind": "Shelf", "shelfId": "001"}
        self.by_key: dict[Any, Item] = {(shelf["PK"], shelf["SK"]): shelf}
        self.lists: dict[str, list[Item]] = {"THING": [], "PART": []}
        for number in range(OBJECTS):
            code, part = f"{number:03d}", f"PART#{number:03d}"
            told: Item = {
                "code": code,
                "title": f"Number {number}",
                "size": Decimal(number % 40),
                "weight": Decimal(number) / 8,
                "isNew": number % 3 == 0,
                "colour": ("red", "blue")[number % 2],
            }
            self.by_key[part, part] = {"PK": part, "SK": part, "kind": "Part", **told}
            self.lists["THING"].append({"PK": shelf["PK"], "SK": f"THING#{code}", "kind": "Thing", **told})
            self.lists["PART"].append({"PK": shelf["PK"], "SK": part, "kind": "ShelfPart", "partCode": code})

    async def send(self, request: Request[Answer], /) -> Answer:
        asked: Any = request
        answer: Any
        match asked:
            case Query(range=span, limit=limit):
                found = self.lists[str(cast(Any, span).value).partition("#")[0]]
                page = found[:limit]
                last = None if len(page) == len(found) else graph.table.position_of(page[-1], None)
                answer = Page(page, len(page), last, Cost(1, 1.0))
            case BatchGet(keys):
                answer = Batch([self.by_key.get(key) for key in keys], Cost(1, 1.0))
            case _:
                raise LookupError(f"{type(asked).__name__} is not asked here")
        return cast(Answer, answer)

    async def close(self) -> None:
        """Nothing is open."""


class Calls:
    """Counts the Python functions that are called while it is entered."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event == "call"


@pytest.fixture(scope="module")
def service() -> Service:
    return Service(build_schema(graph), OneShelf(), secret=b"of a test", limits=Limits(max_page_size=OBJECTS))


async def calls_of(service: Service, field: str, count: int, leaves: Sequence[str]) -> int:
    """The calls that a list of so many objects takes, planned beforehand."""
    document = f'{{ shelf(shelfId: "001") {{ {field}(first: {count}) {{ edges {{ node {{ {" ".join(leaves)} }} }} }} }} }}'
    answer = await service.execute(document)
    assert len(answer["data"]["shelf"][field]["edges"]) == count
    with Calls() as calls:
        await service.execute(document)
    return calls.count


@pytest.mark.parametrize(("field", "most"), [("things", 1.9), ("parts", 1.9)])
async def test_calls_for_each_leaf(service: Service, field: str, most: float) -> None:
    one, five = await calls_of(service, field, 80, LEAVES[:1]), await calls_of(service, field, 80, LEAVES)
    assert (five - one) / 80 / 4 <= most


@pytest.mark.parametrize(("field", "most"), [("things", 12.0), ("parts", 36.0)])
async def test_calls_for_each_edge(service: Service, field: str, most: float) -> None:
    few, many = await calls_of(service, field, 20, LEAVES[:1]), await calls_of(service, field, 80, LEAVES[:1])
    assert (many - few) / 60 <= most
