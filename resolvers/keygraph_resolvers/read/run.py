"""One run of an operation: the graph, the loaders, the variables and the limits that its steps share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, cast

from graphql import MiddlewareManager
from graphql.execution.values import VariableValues

from keygraph.access.claims import Viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Store
from keygraph.graph import Graph
from keygraph.lists.projection import Attributes
from keygraph.model.expiry import now
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.read.consistent import ConsistentStore
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.links import Links
from keygraph_resolvers.read.loaders import NeighbourLoader, NodeLoader, PageOf
from keygraph_resolvers.read.meter import MeteredStore, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.scheduler import Scheduler

_FEW_TURNS = 3
"""An operation that needs more turns is large: it has made thousands of objects, in 15 milliseconds."""


@dataclass(frozen=True)
class Limits:
    """The limits of one request.

    `max_page_size` is the largest `first` and `last`, `max_ids` how many ids one argument may list, `read_budget` how
    many items one page may examine under a filter, `count_pages` how many pages of 1 MB one `totalCount` may read,
    `concurrency` how many lists one operation reads at the same time, `answer_bytes` how large its answer may be,
    `where_terms` how many conditions a `where` may have, `work_seconds` its processor time for pages of many items.
    """

    max_page_size: int = 100
    max_ids: int = 100
    read_budget: int = 10_000
    count_pages: int = 20
    concurrency: int = 256
    answer_bytes: int = 8_000_000
    where_terms: int = 50
    work_seconds: float = 5.0


@dataclass
class Run:
    """One run, made for each request. Its loaders and its scheduler are made on first use, inside the event loop."""

    graph: Graph
    store: Store
    cursors: Cursors
    limits: Limits
    variables: VariableValues
    attributes: Attributes
    """The attributes of the items that the operation requests."""
    looked_for: frozenset[RecordType]
    """The types of the items that it may read by key."""
    budget: float | None = None
    """The read units that it may cost."""
    viewer: Viewer = field(default_factory=Viewer)
    """The viewer that sent the request."""
    access: Permissions | None = field(init=False)
    """The viewer's permissions; None if the graph has no rules."""
    told: dict[object, Any] = field(default_factory=dict)
    """The values of fields' arguments with these variables, as far as they were computed."""
    idempotency_key: str | None = None
    """The client's name for its mutations, if it sent one."""
    is_consistent: bool = False
    """Whether reads see the last write, except in indexes, which DynamoDB writes later."""
    context: Any = None
    """The `info.context` of an application's resolvers; None for the run itself."""
    middleware: MiddlewareManager | None = None
    """The middleware of Strawberry's extensions around these resolvers."""
    meter: MeteredStore = field(init=False)
    turns: int = field(default=0, init=False)
    """How many turns of the event loop its reading has taken, without the first one and those during waiting."""
    is_large: bool = field(default=False, init=False)
    """Whether these were many."""

    def __post_init__(self) -> None:
        self.meter = MeteredStore(self.store, self.budget)
        self.access = Permissions(self.viewer, self._is_there) if self.graph.has_access_rules else None

    @property
    def resolvers_context(self) -> Any:
        """The `info.context` of an application's resolvers."""
        return self if self.context is None else self.context

    @cached_property
    def now(self) -> Decimal:
        """The time at which the run reads: items that have expired then count as absent."""
        return now()

    @cached_property
    def reads(self) -> Store:
        """The store for all reads."""
        return ConsistentStore(self.meter) if self.is_consistent else self.meter

    @cached_property
    def nodes(self) -> NodeLoader:
        is_expired = self.is_expired if self.graph.expires else None
        return NodeLoader(self.reads, self.attributes.projection, is_expired)

    @cached_property
    def neighbours(self) -> NeighbourLoader:
        return NeighbourLoader(self.reads, self.limits.concurrency)

    @cached_property
    def links(self) -> Links:
        """The other items that decide who may see something."""
        return Links(self.graph, self.access or Permissions(), self.nodes)

    def is_expired(self, item: Item) -> bool:
        """Returns whether an item that was read from the table counts as absent."""
        return self.graph.is_expired(item, self.now)

    def _is_there(self, item: Item, record: RecordType) -> bool:
        return self.graph.is_of(item, (record,)) and not self.is_expired(item)

    @cached_property
    def scheduler(self) -> Scheduler:
        return Scheduler(self.nodes, self.neighbours, self._next_turn)

    async def _next_turn(self) -> None:
        """Waits until reading may continue for another turn of the event loop: large operations do so one at a time."""
        self.turns += 1
        self.is_large = self.turns > _FEW_TURNS
        if self.is_large and self.meter.holding is not None:
            await self.meter.holding.wait_to_answer()

    def release(self, request: PageOf, read: Read) -> None:
        """Releases a page: the needed parts were taken, and it is not requested again."""
        self.neighbours.forget(request)
        if self.meter.holding is not None:
            self.meter.holding.give_back(read.held)
        read.held = 0

    def hold(self, items: Sequence[Item]) -> None:
        """Counts the items of a released page that the answer shows."""
        if self.meter.holding is not None:
            self.meter.holding.take_items(items)

    def new_root(self) -> Object:
        """Returns the object of the root."""
        return Object(cast(RecordType, None), ())

    def again(self) -> Run:
        """Returns a run of the same operation without anything that was read before, which reads consistently."""
        made = Run(*_given(self))
        made.is_consistent = True
        made.meter = self.meter
        return made

    async def read(self, start: Callable[[Run, list[Object], tuple[()], int, str], None]) -> Object:
        """Runs the steps that `start` starts. Returns the root, with everything that was found below it.

        Call it only once.
        """
        root = self.new_root()
        try:
            await self.scheduler.run(partial(start, self, [root], (), 1, ""))
        finally:
            # The answer is complete, or nobody waits for it.
            for task in (*self.nodes.tasks, *self.neighbours.tasks):
                task.cancel()
            # Parts that reference each other are freed at once when the run is over, not by the garbage collector.
            del self.scheduler
        return root


_given = attrgetter(*[each.name for each in fields(Run) if each.init])
"""The arguments of a run."""
