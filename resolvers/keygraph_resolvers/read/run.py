"""One run of an operation: the graph, the loaders, the variables and the limits that its steps share."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Any

from graphql import MiddlewareManager
from graphql.execution.values import VariableValues

from keygraph.access.claims import Viewer
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Store
from keygraph.graph import Graph
from keygraph.limits import Limits
from keygraph.lists.projection import Attributes
from keygraph.model.expiry import now
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.changes import RecordChange, WantedChanges
from keygraph_resolvers.read.cursors import Cursors
from keygraph_resolvers.read.links import Links
from keygraph_resolvers.read.loaders import NeighbourLoader, NodeLoader
from keygraph_resolvers.read.meter import ConsistentStore, MeteredStore

_FEW_TURNS = 7
"""An operation that needs more turns is large: it has made thousands of objects, in 15 milliseconds."""


class ReadTime:
    """The time at which a run reads: items that have expired then count as absent.

    It references nothing else of the run, because the run's parts reference it.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def now(self) -> Decimal:
        """The time, in seconds since 1970."""
        return now()

    def is_expired(self, item: Item) -> bool:
        """Returns whether an item that was read from the table counts as absent."""
        return self._graph.is_expired(item, self.now)

    def is_there(self, item: Item, record: RecordType) -> bool:
        """Returns whether an item that was read by its key is of this type, and not absent."""
        return self._graph.is_of(item, (record,)) and not self.is_expired(item)


@dataclass
class Run:
    """One run, made for each request. Its loaders are made on first use, inside the event loop."""

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
    cached: dict[object, Any] = field(default_factory=dict)
    """The values of fields' arguments with these variables, as far as they were computed."""
    sent: Callable[[], Container[str]] | None = None
    """Returns the words that the client has sent, if errors name nothing else of the schema."""
    idempotency_key: str | None = None
    """The client's name for its mutations, if it sent one."""
    is_consistent: bool = False
    """Whether reads see the last write, except in indexes, which DynamoDB writes later."""
    context: Any = None
    """The `info.context` of an application's resolvers; None for the run itself."""
    change: RecordChange | None = None
    wants_changes: Callable[[WantedChanges], None] | None = None
    """Takes the changes that the operation is to be run for."""
    middleware: MiddlewareManager | None = None
    """The middleware of Strawberry's extensions around these resolvers."""
    key_trips: Mapping[object, Mapping[str, frozenset[int]]] = field(default_factory=dict)
    """In which round trips its steps request keys after each of their waits, as the bound has recorded it."""
    meter: MeteredStore = field(init=False)
    turns: int = field(default=0, init=False)
    """How many turns of the event loop its reading has taken, without the first one and those during waiting."""
    is_large: bool = field(default=False, init=False)
    """Whether these were many."""

    def __post_init__(self) -> None:
        self.meter = MeteredStore(self.store, self.budget)
        self.access = Permissions(self.viewer, self.time.is_there) if self.graph.has_access_rules else None

    @property
    def resolvers_context(self) -> Any:
        """The `info.context` of an application's resolvers."""
        return self if self.context is None else self.context

    @cached_property
    def time(self) -> ReadTime:
        return ReadTime(self.graph)

    @cached_property
    def rights(self) -> str | None:
        """What decides what the viewer sees, as a hash; None if everybody sees everything."""
        return None if self.access is None else self.viewer.rights(self.graph.ruling_claims)

    @property
    def reads(self) -> Store:
        return ConsistentStore(self.meter) if self.is_consistent else self.meter

    @cached_property
    def nodes(self) -> NodeLoader:
        is_expired = self.time.is_expired if self.graph.expires else None
        return NodeLoader(self.reads, self.attributes.projection, is_expired)

    @cached_property
    def neighbours(self) -> NeighbourLoader:
        return NeighbourLoader(self.reads, self.limits.concurrency)

    @cached_property
    def links(self) -> Links:
        """The other items that decide who may see something."""
        return Links(self.graph, self.access or Permissions(), self.nodes, self.meter)

    @cached_property
    def walked(self) -> dict[object, Any]:
        """The lists that walks read, by their steps, until all was read: they reference the run."""
        return {}

    async def next_turn(self) -> None:
        """Waits until reading may continue for another turn of the event loop: large operations do so one at a time."""
        self.turns += 1
        self.is_large = self.turns > _FEW_TURNS
        if self.is_large and self.meter.holding is not None:
            await self.meter.holding.wait_to_answer()

    def hold(self, item: Item) -> bool:
        """Counts an item of a page that was forgotten, because the answer shows it. Returns whether that took long."""
        return self.meter.holding is not None and self.meter.holding.take_item(item)

    def fail(self, found: dict[Any, Any], field: Hashable, error: Exception) -> None:
        """Keeps an error in place of a field of an object. Its memory counts: by the bound, what fails reads nothing."""
        found[field] = as_value(error)
        if self.meter.holding is not None:
            self.meter.holding.take_error()

    def again(self) -> Run:
        """Returns a run of the same operation without anything that was read before, which reads consistently."""
        made = Run(*_given(self))
        made.is_consistent = True
        made.meter = self.meter
        return made


_given = attrgetter(*[each.name for each in fields(Run) if each.init])
