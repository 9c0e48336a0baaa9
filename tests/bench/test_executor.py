"""How much is done for each object of an answer: counted in calls of Python functions, which no other work on a
machine changes. `bench.executor` says what that takes in time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

from bench.executor import OBJECTS, Shelves, graph
from keygraph_resolvers import Service, build_schema

LEAVES = ("title", "size", "weight", "isNew", "colour")


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
    return Service(build_schema(graph), Shelves(), secret=b"of a test", max_page_size=OBJECTS)


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
    """Each value of an answer would go through a resolver, a coroutine or an info object of its own again."""
    one, five = await calls_of(service, field, 80, LEAVES[:1]), await calls_of(service, field, 80, LEAVES)
    assert (five - one) / 80 / 4 <= most


@pytest.mark.parametrize(("field", "most"), [("things", 12.0), ("parts", 36.0)])
async def test_calls_for_each_edge(service: Service, field: str, most: float) -> None:
    """Each object of a list would be a task of its own, or be looked at once more than it must."""
    few, many = await calls_of(service, field, 20, LEAVES[:1]), await calls_of(service, field, 80, LEAVES[:1])
    assert (many - few) / 60 <= most
