"""What a step requests at most for one object: the values that `Step.worst` yields, and the Bound driver that adds them up.

They come in the order of time: what the step requests, where it waits, and what it starts. `cost_of` adds them up for
all objects of a step, and `keygraph_resolvers.plan.bound` for all steps. `key_trips` reads them backwards: the round
trips in which keys are requested after each wait, by which the engine knows when a batch is complete. The Explain driver
(`keygraph_resolvers.plan.explain`) makes its tree of them: what only that needs are functions of a run, the same for all
runs of a plan, which cost a bound nothing, and do not distinguish the values by which bounds are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast
from weakref import WeakMethod

from keygraph.dynamo.limits import BATCH_GET_BYTES, BATCH_GET_KEYS, ITEM_BYTES
from keygraph.dynamo.store import read_units
from keygraph.kept import kept
from keygraph.lists.describe import DescribedRequest
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.writing.sending.describe import DescribedWrite

ResultT = TypeVar("ResultT")
RoundTrips: TypeAlias = frozenset[int]

MOST = 2**53 - 1
"""The largest number: the largest integer that all JSON readers read exactly."""
MOST_ROUND_TRIPS = 500
"""The last round trip that is counted separately."""
AHEAD = 64
"""How many round trips ahead a batch waits for keys."""
NEVER: RoundTrips = frozenset()
_ALL = (1 << AHEAD) - 1

# --- What a step yields ---------------------------------------------------------------------------------


class KeyLookups(NamedTuple):
    """Looks up items by key, each of one of the types. Several shards may have an item with the key."""

    records: tuple[RecordType, ...]
    number: int = 1
    unbatched: int = 0
    """How many requests they take if they are in no batch of the engine; 0 if they are."""
    within: tuple[int, int] = (0, 0)
    """The first and the last round trip from now in which they may be requested."""
    is_batched_too: bool = False
    """Whether any of the unbatched ones may be in a batch instead."""
    is_usual: bool = True
    """Whether explain describes them: they do not only make up for what another request did not reach."""


class QueryRequests(NamedTuple):
    """Sends requests of their own."""

    requests: int
    items: int = 0
    read_units: float = 0.0
    chain: int = 1
    """How many of them are sent one after the other."""
    begins: int = 0
    """The round trip from now in which the first is sent, at most."""
    is_open: bool = False
    """Whether a limit of the server decides it, and not the sizes of the pages."""
    is_counting: bool = False
    """Whether the store counts the items, and sends none."""
    places: tuple[str, ...] = ()
    """The places that they are sent for if there are several, by what each adds to the place in the query."""
    combined: Callable[[Any, tuple[str, ...] | None], Mapping[tuple[str, ...], DescribedRequest]] | None = (
        None
    )
    """For explain: returns, in a run, the requests for these and other places of an object."""


class Wait(NamedTuple):
    """Waits for answers that come after so many round trips: what follows begins then."""

    name: str
    """The name of the wait, as in the requests of the step."""
    most: int = 1
    least: int = 1
    repeats: bool = False
    """Whether it stands for several waits, with lookups after each of them."""
    usual: int = 1
    """The round trips that explain counts: those without searching, or reading anything again."""


class Times(NamedTuple):
    """From here on, each object has become so many."""

    number: int


class StepStart(NamedTuple):
    """Starts a step."""

    step: Bounded
    number: int = 1
    within: tuple[int, int] = (0, 0)
    key: str = ""
    """Where the keys of its objects are from, in words; empty if they are the same objects."""
    identities: Callable[[Any], Collection[tuple[str, ...]]] | None = None
    """Returns the identities of these objects in a run, if they are known before anything is read."""


class Missed(NamedTuple):
    """What a Query may not reach, and is then requested one round trip later. What follows it is counted elsewhere."""

    requests: tuple[Any, ...]


StepKind: TypeAlias = Literal[
    "get node", "read list", "walk", "count", "read first", "mark", "find what names", "write"
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Described:
    """A node in the tree of explain: what follows is requested and started for it, until the next one.

    A step makes it once: its functions take a run, and do not keep the step (`weakly`).
    """

    kind: StepKind
    records: tuple[RecordType, ...] = ()
    """The types of what is read; empty if its arguments have them (`nodes`)."""
    step: Callable[[], Bounded | None] = lambda: None
    """Returns the step that reads it. If that is another one than yields it, or None, its node is below the step's own."""
    path: AccessPath | None = None
    field: Any = None
    """The selected field, whose arguments are described."""
    key: str = ""
    """Where its keys are from, if the step was not started with them."""
    has_rules: bool = False
    """Whether access rules decide here whether the viewer sees nodes of its type."""
    arguments: Callable[[Any], Any] = lambda _: None
    """Returns its arguments. Raises what they are refused for."""
    page: Callable[[Any, str], str] = lambda _, text: text
    """Returns how much of it is read, in words, from those for the page that the client requests."""
    reads: Callable[[Any, tuple[str, ...] | None], Iterable[DescribedRequest]] = lambda *_: ()
    """Returns the requests for an object whose identity may be known, without lookups by key."""
    lists: Callable[[Any], Iterable[StepStart]] = lambda _: ()
    """Returns the lists that a walk reads, as steps: only explain starts them."""


KEY_OF = "the key of "


def weakly(method: Callable[..., ResultT]) -> Callable[..., ResultT]:
    """Returns a method that does not keep its object.

    Only a collection of all garbage would free steps that reference themselves: a cache drops many plans before that.
    """
    weak = WeakMethod(method)
    return lambda *given: cast(Callable[..., ResultT], weak())(*given)


class NodeEnd(NamedTuple):
    """What follows is requested and started for the step's own node again."""


class Unstarted(NamedTuple):
    """Nothing is started, because of the client's arguments."""

    starts: tuple[StepStart, ...]
    arguments: Callable[[Any], object]
    """Raises the reason."""


class Transactions(NamedTuple):
    """What a mutation writes: explain asks the write's own plan."""

    described: Callable[[Any], Iterable[tuple[int, tuple[str, ...], DescribedWrite]]]
    """Returns the transactions of a run: each with the number of groups that are written before it, and the names of its
    types. Raises what they are refused for."""


WorstRequest: TypeAlias = (
    KeyLookups
    | QueryRequests
    | Wait
    | Times
    | StepStart
    | Missed
    | Described
    | NodeEnd
    | Unstarted
    | Transactions
)
Worst: TypeAlias = Iterator[WorstRequest]


class Bounded(Protocol):
    """Something with a bound, at a place in the query."""

    suffix: str

    def worst(self, run: Any, /) -> Worst: ...


# --- The bound ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Starts:
    """The most objects that a step is started for, and in which round trips."""

    count: int
    round_trips: RoundTrips

    def __add__(self, other: Starts) -> Starts:
        return Starts(min(MOST, self.count + other.count), self.round_trips | other.round_trips)

    def times(self, count: int) -> Starts:
        return Starts(min(MOST, self.count * count), self.round_trips)

    def after(self, least: int, most: int) -> Starts:
        """Returns the starts after any number of round trips between these."""
        if not most:
            return self
        found = set[int]()
        for passed in range(least, most + 1):
            found |= {now + passed for now in self.round_trips}
        counted = {each for each in found if each <= MOST_ROUND_TRIPS}
        return Starts(self.count, frozenset(counted or {MOST_ROUND_TRIPS}))


@dataclass(slots=True)
class StepCost:
    """The most that some reads take."""

    unbatched: int = 0
    """The requests that cannot be joined with others."""
    keys: int = 0
    """The keys that are read together with those of other steps in their round trip."""
    batches: set[int] = field(default_factory=set)
    """The round trips in which keys may be read."""
    round_trips: int = 0
    items: int = 0
    read_units: float = 0.0
    is_open: bool = False
    counted: int = 0
    """The items that the store only counts."""
    shared_with: tuple[str, ...] = ()

    def add(self, other: StepCost) -> None:
        self.unbatched = min(MOST, self.unbatched + other.unbatched)
        self.keys = min(MOST, self.keys + other.keys)
        self.batches |= other.batches
        self.round_trips = max(self.round_trips, other.round_trips)
        self.items = min(MOST, self.items + other.items)
        self.read_units = min(float(MOST), self.read_units + other.read_units)
        self.is_open = self.is_open or other.is_open
        self.counted = min(MOST, self.counted + other.counted)

    @property
    def requests(self) -> int:
        """The number of requests. In each round trip all batches but one have a hundred keys."""
        batches = min(self.keys, len(self.batches))
        return min(MOST, self.unbatched + (self.keys - batches) // BATCH_GET_KEYS + batches)


def cost_of(worst: Iterable[WorstRequest], starts: Starts) -> tuple[StepCost, list[tuple[Bounded, Starts]]]:
    """Returns the most that a step takes that is started so often, and how often it starts others."""
    cost, below, now = StepCost(), list[tuple[Bounded, Starts]](), starts
    for each in worst:
        match each:
            case KeyLookups():
                cost.add(_cost_of_keys(each, now.after(*each.within)))
            case QueryRequests():
                last = max(now.after(each.begins, each.begins).round_trips) + each.chain - 1
                requests, items = now.times(each.requests).count, now.times(each.items).count
                units = min(float(MOST), now.count * each.read_units)
                counted = items if each.is_counting else 0
                cost.add(StepCost(requests, 0, set(), last, items, units, each.is_open, counted))
                cost.shared_with += tuple(filter(None, each.places))
            case Wait():
                now = now.after(each.least, each.most)
            case Times():
                now = now.times(each.number)
            case StepStart():
                below.append((each.step, now.after(*each.within).times(each.number)))
            case Missed():
                cost.add(cost_of(each.requests, now.after(1, 1))[0])
    return cost, below


def _cost_of_keys(keys: KeyLookups, starts: Starts) -> StepCost:
    shards = max(len(record.table_keys.shard_texts) for record in keys.records)
    item_bytes = max(record.item_bytes for record in keys.records)
    items = starts.times(keys.number * shards).count
    units = items * read_units(item_bytes, consistent=False)
    is_large = item_bytes * BATCH_GET_KEYS > BATCH_GET_BYTES
    left_over = items * item_bytes // (BATCH_GET_BYTES - ITEM_BYTES) if is_large else 0
    cost = StepCost(left_over, items, set(starts.round_trips), max(starts.round_trips), items, units)
    if keys.unbatched:
        cost.unbatched = starts.times(keys.unbatched).count + left_over
        cost.keys = items if keys.is_batched_too else 0
    return cost


# --- When keys are requested ------------------------------------------------------------------------------

KeyTrips: TypeAlias = Mapping[str, RoundTrips]
"""For each wait of a step, the round trips after its answer in which keys are requested: 0 is the first one in which
something can be."""


def key_trips(worst: Sequence[WorstRequest], keys_of: Callable[[Bounded], int]) -> tuple[int, KeyTrips]:
    """Returns in which round trips keys are requested after a step is started, one bit for each, and after each of its
    waits. `keys_of` has the bits of the steps that it starts."""
    keys = 0
    waits: dict[str, int] = {}
    for each in reversed(worst):
        match each:
            case KeyLookups(unbatched=0):
                keys |= _shifted(1, *each.within)
            case StepStart():
                keys |= _shifted(keys_of(each.step), *each.within)
            case Wait():
                later = _ALL if each.repeats else keys
                waits[each.name] = waits.get(each.name, 0) | later
                keys = _shifted(later, each.least, each.most)
    return keys, {name: _round_trips(bits) for name, bits in waits.items()}


def _shifted(keys: int, least: int, most: int) -> int:
    found = 0
    for passed in range(least, min(most, AHEAD) + 1):
        found |= keys << passed
    return found & _ALL


@kept("round trips", 128, 9_000)
def _round_trips(bits: int) -> RoundTrips:
    return frozenset([each for each in range(AHEAD) if bits >> each & 1])
