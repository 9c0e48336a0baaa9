"""One run of an operation: what its steps share, which are the graph, the loaders, the variables and the limits."""

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
    """What one request may ask for.

    `max_page_size` is the largest `first` and `last`, `max_ids` how many ids one argument may list, `read_budget` how
    many items one page may look at under a filter, `count_pages` how many pages of 1 MB one `totalCount` may read,
    `concurrency` how many requests are in flight for one operation, `answer_bytes` how large its answer may be, `where_terms`
    how many conditions a `where` may have, `work_seconds` how much processor time it may spend on pages of many items.
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
    """Made anew for each request. Its loaders and its scheduler are made when they are first used, inside the event loop."""

    graph: Graph
    store: Store
    cursors: Cursors
    limits: Limits
    variables: VariableValues
    attributes: Attributes
    """The attributes of the items that the operation asks for."""
    looked_for: frozenset[RecordType]
    """The types of the items that it may read by key."""
    budget: float | None = None
    """The read units that it may cost."""
    viewer: Viewer = field(default_factory=Viewer)
    """Whoever asks."""
    access: Permissions | None = field(init=False)
    """What they may do; None where the graph has no rules."""
    told: dict[object, Any] = field(default_factory=dict)
    """What fields' arguments say with these variables, as far as somebody has asked."""
    idempotency_key: str | None = None
    """What the client calls its mutations, if anything."""
    is_consistent: bool = False
    """Whether what is read is as the last write left it, but for indexes, which DynamoDB writes later."""
    context: Any = None
    """What somebody's own resolvers get as `info.context`; None for the run itself."""
    middleware: MiddlewareManager | None = None
    """What Strawberry's extensions do around these resolvers."""
    meter: MeteredStore = field(init=False)
    turns: int = field(default=0, init=False)
    """How many turns of the event loop its reading has taken, besides the first and those that waiting gave it."""
    is_large: bool = field(default=False, init=False)
    """Whether these were many."""

    def __post_init__(self) -> None:
        self.meter = MeteredStore(self.store, self.budget)
        self.access = Permissions(self.viewer, self._is_there) if self.graph.has_access_rules else None

    @property
    def resolvers_context(self) -> Any:
        """What somebody's own resolvers get as `info.context`."""
        return self if self.context is None else self.context

    @cached_property
    def now(self) -> Decimal:
        """The time at which the run reads: what has expired then is as if it were not there."""
        return now()

    @cached_property
    def reads(self) -> Store:
        """What everything is read from."""
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
        """What other items say of who may see something."""
        return Links(self.graph, self.access or Permissions(), self.nodes)

    def is_expired(self, item: Item) -> bool:
        """Whether an item that was read from the table is as if it were not there."""
        return self.graph.is_expired(item, self.now)

    def _is_there(self, item: Item, record: RecordType) -> bool:
        return self.graph.is_of(item, (record,)) and not self.is_expired(item)

    @cached_property
    def scheduler(self) -> Scheduler:
        return Scheduler(self.nodes, self.neighbours, self._next_turn)

    async def _next_turn(self) -> None:
        """Waits until the reading may go on for another turn of the event loop: of large operations, one at a time does."""
        self.turns += 1
        self.is_large = self.turns > _FEW_TURNS
        if self.is_large and self.meter.holding is not None:
            await self.meter.holding.wait_to_answer()

    def release(self, request: PageOf, read: Read) -> None:
        """Keeps nothing of a page: what is needed of it was taken, and nobody else asks for it."""
        self.neighbours.forget(request)
        if self.meter.holding is not None:
            self.meter.holding.give_back(read.held)
        read.held = 0

    def hold(self, items: Sequence[Item]) -> None:
        """Counts the items of a page that was released and that the answer shows."""
        if self.meter.holding is not None:
            self.meter.holding.take_items(items)

    def new_root(self) -> Object:
        """The object of the root."""
        return Object(cast(RecordType, None), ())

    def again(self) -> Run:
        """A run of the same operation that knows nothing of what was read before, and reads consistently."""
        made = Run(*_given(self))
        made.is_consistent = True
        made.meter = self.meter
        return made

    async def read(self, start: Callable[[Run, list[Object], tuple[()], int, str], None]) -> Object:
        """Runs the steps that `start` starts. Returns the root, with everything that was found below it.

        To be called once.
        """
        root = self.new_root()
        try:
            await self.scheduler.run(partial(start, self, [root], (), 1, ""))
        finally:
            # The answer is decided, or nobody waits for it.
            for task in (*self.nodes.tasks, *self.neighbours.tasks):
                task.cancel()
            # Parts that know each other go at once when the run is over, not when the garbage collector comes by.
            del self.scheduler
        return root


_given = attrgetter(*[each.name for each in fields(Run) if each.init])
"""What a run is made of."""
