"""What a step requests, as values. Each says what it is answered with.

A step waits for the answers of `GetItems`, `Load`, `All`, `Await` and `Pause`: it is a generator, which is
sent them. `Start`, `LoadEach`, `Beside`, `Gathered` and `Work`, and lists of these, are begun, and nothing waits for
them. A step that waits for nothing returns such a list.

A request that is waited for names its wait: `Step.worst` yields a `Wait` of that name before what the step requests then.

So a new kind of step has a generator that yields these requests (`run`), and one that yields the most of each in the
same order, with the same waits (`worst`). One that yields too little there gets batches that leave without its keys.
`keygraph_resolvers.plan.compile` makes the step for a kind of selected field.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from keygraph.dynamo.table import Key
from keygraph.lists.gather import GatheredPart
from keygraph_resolvers.read.loaders import NeighbourRequest


class GetItems(NamedTuple):
    """Items by their keys: what each is wanted for, with its item, its error, or None. They come in any order."""

    wanted: Sequence[tuple[Any, Key]]
    wait: str = "items"


class Load(NamedTuple):
    """A part of a list, its count, or its edges to a node: what was read, or its error."""

    request: NeighbourRequest
    wait: str = "page"
    goes_on: bool = False
    """Whether it may take several requests, one after the other."""
    with_size: bool = False
    """Whether the answer comes with the number of bytes that are held for it: it may be forgotten."""


class LoadEach(NamedTuple):
    """A part of a list for each of several subjects: the step's `take` continues with those that have come together, each
    with what was read, or its error. Nothing waits for it."""

    loads: Sequence[tuple[Any, NeighbourRequest, bool]]
    """The subjects, each with its part, and whether that may take several requests, one after the other."""
    wait: str = "page"


class Pause(NamedTuple):
    """Lets other operations have their turn."""


class All(NamedTuple):
    """Several generators or requests at the same time: what each returns, or is answered with, in their order."""

    reads: Sequence[Generator[Any, Any, Any] | Request]


class Startable(Protocol):
    """A step, as far as the engine knows it."""

    suffix: str
    breadth: int

    def run(self, op: Any, objects: Sequence[Any], /) -> Generator[Any, Any, Any] | list[Any]: ...


class Start(NamedTuple):
    """Starts another step for objects. Nothing waits for it."""

    step: Startable
    objects: Sequence[Any]


class Beside(NamedTuple):
    """Starts another part of the same step, or a part of another one. Nothing waits for it."""

    reads: Generator[Any, Any, Any] | list[Any]
    step: Startable | None = None


class Gathered(NamedTuple):
    """Starts as few Queries as possible for several parts: a node's item, pages of lists. Requests for these parts wait
    for them; the step does not."""

    key: Key
    """The key of the node whose partition they read."""
    parts: Sequence[tuple[GatheredPart, str]]
    """The parts, each with what it adds to the place in the query."""


class Await(NamedTuple):
    """Waits for a function of the application: what it returned, or its error."""

    answer: Awaitable[Any]


class Work(NamedTuple):
    """Starts work that reads nothing and gives the event loop back between its parts. Nothing waits for it."""

    work: Coroutine[Any, Any, None]


ReturnedT = TypeVar("ReturnedT")
Request: TypeAlias = GetItems | Load | LoadEach | Pause | All | Start | Beside | Gathered | Await | Work
Begun: TypeAlias = list[Request]
"""What is begun, and nothing waits for."""
Reads: TypeAlias = Generator[Request | Begun, Any, ReturnedT]
"""A step that waits for something, or a part of one, and what it returns."""
Running: TypeAlias = Reads[Any] | Begun
"""A step that runs."""
