"""One answer: what the planned execution answers, and what a naive one does that reads each field by itself.

`python -m tests.resolvers.differential 10000` asks so many random operations of random tables, one model after another, and
stops at the first that has two answers; `--seed` begins with another one, `--model` takes one model alone.

**What is compared.** `data` is equal, and so are the errors, as a set of (path, code). The specification leaves one
thing open (6.4.4): where a null has gone up from several places at once, which of their errors is told. So errors
whose path goes on below a null of the answer are compared as one error of that null, whatever their number and
codes; that there is one is compared, and that it is below that null.

In an answer that has nothing to report, no path is made: that would be work for each of its objects.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import Mock, patch

from graphql import DocumentNode, parse, print_ast

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    Answer,
    BatchGet,
    BatchWrite,
    CreateTable,
    DeleteTable,
    PassingStore,
    Request,
)
from keygraph.dynamo.table import Key
from keygraph.engines.open import open_store
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph_resolvers import NO_LIMITS, Service, build_schema
from keygraph_resolvers.answer import completion
from keygraph_resolvers.plan import validation
from keygraph_resolvers.schema.types import GraphSchema
from tests.documents.samples import NAMES, graph_of, sample_of
from tests.resolvers.alike_worlds import one_value, one_value_items, sharing, sharing_items
from tests.resolvers.everything import everything
from tests.resolvers.made_items import made_items
from tests.resolvers.made_operations import Choose, Maker, Words, words_of
from tests.resolvers.many_operations import main
from tests.resolvers.methodical import Extra, methodical, methodical_items
from tests.resolvers.naive import Naive
from tests.resolvers.several_worlds import several, several_items, told_by_keys_alone
from tests.resolvers.test_fields import ITEMS as EVERYTHING_ITEMS
from tests.resolvers.walk_worlds import walk_items, walks
from tests.resolvers.worlds import (
    SECRET,
    book_item,
    copy_item,
    library,
    loan_item,
    member_item,
    reservation_item,
    visit_item,
)

MADE = ("library", "everything", "methodical", "several", "several_by_keys", "walks", "sharing", "one_value")
MODELS = (*NAMES, *MADE)


@lru_cache
def model(name: str) -> tuple[GraphSchema, tuple[Item, ...]]:
    if name in NAMES:
        return build_schema(graph_of(name)), tuple(sample_of(name))
    graph, items = {
        "library": (library, library_items),
        "everything": (everything, lambda: EVERYTHING_ITEMS),
        "methodical": (methodical, methodical_items),
        "several": (several, several_items),
        "several_by_keys": (told_by_keys_alone, several_items),
        "walks": (walks, walk_items),
        "sharing": (sharing, sharing_items),
        "one_value": (one_value, one_value_items),
    }[name]
    return build_schema(graph, query=Extra if graph is methodical else None), tuple(items())


def library_items() -> list[Item]:
    """Members and books, their loans on few days so that index keys are equal, and what stands among them."""
    members, books = [f"m{n}" for n in range(6)], [f"b{n}" for n in range(5)]
    days = ["2024-01-01", "2024-01-02", "2024-02-01"]
    items = [
        member_item(each, GSI1PK="MEMBER", GSI1SK=days[number % 3]) for number, each in enumerate(members)
    ]
    items += [book_item(each) for each in books]
    for m, member in enumerate(members):
        for b, book in enumerate(books):
            if (m + b) % 3 == 0:
                items.append(loan_item(member, book, days[(m * b) % 3], m % 3, words=frozenset({"a", "b"})))
            if (m * b) % 4 == 1:
                items.append(reservation_item(member, book, days[b % 3]))
        items += [visit_item(member, "hall", days[m % 3], minute) for minute in (1, 20, 300)]
    items += [copy_item(book, floor, shelf) for book in books for floor in (1, 2, 10) for shelf in "ab"]
    return items


# --- The law ------------------------------------------------------------------------------------------


def errors_of(answer: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """The errors of an answer as far as the specification fixes them."""
    found: set[tuple[Any, ...]] = set()
    for error in answer.get("errors", ()):
        path, code = tuple(error.get("path", ())), error["extensions"]["code"]
        value = answer.get("data")
        for depth, key in enumerate(path):
            if value is None:
                found.add((path[:depth], "below"))
                break
            value = value[key]
        else:
            found.add((path, code))
    return found


def difference(planned: Mapping[str, Any], naive: Mapping[str, Any]) -> str | None:
    """In what the two answers differ; None where they are one."""
    if ("data" in planned) != ("data" in naive):
        return f"only one has data: {planned} / {naive}"
    if json.dumps(planned.get("data")) != json.dumps(naive.get("data")):  # keys in order, too
        return f"data:\n  planned {json.dumps(planned)}\n  naive   {json.dumps(naive)}"
    ours, theirs = errors_of(planned), errors_of(naive)
    if ours != theirs:
        return f"errors:\n  planned alone {ours - theirs}\n  naive alone   {theirs - ours}"
    return None


# --- Tables -------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Served:
    """A random table, served in two ways."""

    name: str
    schema: GraphSchema
    planned: Service
    naive: Naive
    words: Words

    async def check(self, choose: Choose) -> int:
        """Asks a random operation, then the same with cursors of its own answer, with other decisions and sizes.

        Gives how many were asked. Raises AssertionError where there are two answers.
        """
        operation = Maker(self.schema, self.words, choose).operation()
        document = parse(operation.document)
        answer = await self._ask(document, operation.document, operation.variables)
        if answer is None:
            return 0
        asked = 1
        for _ in range(2):
            variables = operation.changed(answer, choose)
            if variables is not None:
                asked += 1
                answer = cast("dict[str, Any]", await self._ask(document, operation.document, variables))
        return asked

    async def ask(self, text: str) -> bool:
        """Asks it; False if it is not valid. Raises AssertionError where there are two answers."""
        return await self._ask(parse(text), text, {}) is not None

    async def _ask(
        self, document: DocumentNode, text: str, variables: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        with paths_made() as paths:
            planned = await asyncio.wait_for(self.planned.execute(text, variables), 60)
        if any(
            error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED" for error in planned.get("errors", ())
        ):
            return None
        naive = await self.naive.execute(document, variables)
        found = difference(planned, naive)
        if found is None and paths.called and not ("errors" in planned or "extensions" in planned):
            found = "paths were made, with nothing to report"
        if found is not None:
            raise AssertionError(
                f"two answers on {self.name}\n{print_ast(document)}\nvariables {json.dumps(variables)}\n{found}"
            )
        return planned


@contextmanager
def paths_made() -> Iterator[Mock]:
    """Counts the paths in answers that are made while they are written: each begins at the root."""
    with patch.object(completion, "root_path", Mock(wraps=completion.root_path)) as made:
        yield made


@dataclass(eq=False)
class Refusing(PassingStore):
    """A store that refuses to get some items. Lists show them all the same."""

    refused: frozenset[Key]

    async def send(self, request: Request[Answer], /) -> Answer:
        if isinstance(request, BatchGet) and not self.refused.isdisjoint(request.keys):
            raise BadUserInput("refused")
        return await self.store.send(request)


def refused_keys(graph: Graph, items: Sequence[Item], random: Random) -> frozenset[Key]:
    """Some nodes that are read by their keys alone: whether one that a list has shown is got as well is not fixed, nor
    how many lists of ids a walk reads."""
    others = {record for path in graph.paths for record in path.records}
    others |= {record for record in graph.nodes if record.list_ends}
    keys = [graph.table.key_of(item) for item in items if graph.recognise(item) not in {*others, None}]
    return frozenset(random.sample(keys, len(keys) // 3))


@asynccontextmanager
async def served(name: str, seed: int, folder: Path) -> AsyncIterator[Served]:
    """A random table of a model; the seed says which. Every third one is without anything awkward."""
    schema, sample = model(name)
    random, awkward = Random(seed), seed % 3 != 0
    items = made_items(schema.graph, sample, random, awkward=awkward)
    refused = refused_keys(schema.graph, items, random) if awkward else frozenset()
    async with open_store(f"sqlite:{folder / f'{name}-{seed}.db'}", schema.graph.table) as store:
        await store.send(DeleteTable())
        await store.send(CreateTable())
        await store.send(BatchWrite(puts=tuple(items)))
        planned = Service(schema, Refusing(store, refused), secret=SECRET, limits=NO_LIMITS)
        naive = Naive(schema, items, SECRET, refused, planned.execute)
        yield Served(name, schema, planned, naive, words_of(schema, items))


MOST_FOUND = 100
"""A run ends with so many faults: what fails each time would never be asked often enough."""


# --- Many ---------------------------------------------------------------------------------------------


async def run(wanted: int, seed: int, names: Sequence[str], tell: Callable[[str], None]) -> list[str]:
    """Asks that many operations in all, and gives what was found."""
    return await run_served(served, wanted, seed, names, tell)


async def run_served(
    served: Callable[[str, int, Path], AbstractAsyncContextManager[Served]],
    wanted: int,
    seed: int,
    names: Sequence[str],
    tell: Callable[[str], None],
    of_each: int = 40,
) -> list[str]:
    """Asks that many operations of tables that are served in two ways, in so many turns of each. What validation compares
    is not limited either: the other way has no such limits."""
    found: list[str] = []
    asked, turn, began = 0, seed, time.monotonic()
    unlimited = patch.object(validation, "COMPARISONS", sys.maxsize)
    with unlimited, tempfile.TemporaryDirectory() as folder:
        while asked < wanted and len(found) < MOST_FOUND:
            name = names[turn % len(names)]
            async with served(name, turn, Path(folder)) as world:
                for number in range(of_each):
                    random = Random(f"{turn}/{number}")
                    try:
                        asked += await world.check(random.randrange)
                    except Exception as error:
                        found.append(f"[{name} {turn}/{number}] {type(error).__name__}: {error}")
                        tell(found[-1])
            turn += 1
            if turn % 25 == 0:
                tell(f"{asked} operations, {time.monotonic() - began:.0f} s, {len(found)} found")
    tell(f"{asked} operations over {turn - seed} tables, {len(found)} found")
    return found


if __name__ == "__main__":
    main(__doc__, MODELS, run)
