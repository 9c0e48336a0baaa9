"""The scheduler: runs the reads of one operation, and decides when a batch of keys is sent.

Lists are sent as soon as they are requested. **A batch is sent when no read in progress can add to it**, or when it has
a hundred keys, the most that a BatchGetItem takes. The plan determines what can add to a batch: each read has the round
trips after its answer in which keys will be requested. So the items of one round trip are in one batch however slowly
its lists arrive, nothing waits for a read that leads to no item, and nothing waits for a timer.

Only work that needs one has a task: answers are handled as they arrive. **Steps continue in turns**: the known objects
may lead to thousands of lists, and after some milliseconds the event loop must do other work. All operations share
these milliseconds: of those that need more, one continues in each round of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, thread_time
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.table import Key
from keygraph.turns import BUDGET, TURN_SECONDS
from keygraph_resolvers.read.loaders import Arrived, NeighbourLoader, NeighbourRequest, NodeLoader, PageOf
from keygraph_resolvers.read.meter import READ, Read

_HELD = 0
"""The round trip of a key that was sent already: there is none before it."""
_NEXT = frozenset({0})
"""Keys are requested in the round trip after this one."""


TakeItems: TypeAlias = Callable[[list[tuple[Any, "Item | Exception | None"]], int], None]
"""Called with the answers and what their items were wanted for, as they come, and the next round trip."""


@dataclass(slots=True, eq=False)
class Lookup:
    """Items that a step looks up by their keys."""

    place: str
    round_trip: int
    later: frozenset[int]
    """The round trips in which keys are requested when the items are there: 0 is the one after this lookup's."""
    then: TakeItems
    goes_on: bool = False
    """Whether its item may come a round trip later: it is read with other things, and may not be reached."""
    left: int = 0
    """How many answers have not come yet."""
    came: list[tuple[Any, Item | Exception | None]] = field(default_factory=list)


class SharedRounds:
    """The work of all operations in one round of the event loop, and those that wait: one continues per round."""

    def __init__(self) -> None:
        self.number = 0
        self.worked = 0.0
        """The processor time of this round, in seconds."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.Handle | None = None

    def count(self, seconds: float) -> None:
        """Counts work in this round."""
        self.worked += seconds
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begins a new round of the event loop: all others have had their turn."""
        self._next, self.worked = None, 0.0
        self.number += 1
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # it was not given up
                first.set_result(None)
                self.count(0.0)
                return

    async def wait(self) -> None:
        """Waits for a round in which no other waiting operation continues."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.count(0.0)
        await turn


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedRounds] = WeakKeyDictionary()


def rounds() -> SharedRounds:
    """Returns the rounds of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _ROUNDS.get(loop)
    if found is None:
        found = _ROUNDS[loop] = SharedRounds()
    return found


class Scheduler:
    """The reads of one run. Make it inside the run's event loop."""

    def __init__(
        self,
        nodes: NodeLoader,
        neighbours: NeighbourLoader,
        turn: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`turn` is awaited before each turn of the event loop that an operation needs after the first."""
        self._nodes = nodes
        self._neighbours = neighbours
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._left = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._feeding: Counter[tuple[frozenset[int], bool, int]] = Counter()
        """The reads under way that lead to keys: when, whether they may continue, and in which round trip they are."""
        self._waiting: dict[int, dict[Key, None]] = {}
        """The keys that are not sent yet, by round trip."""
        self._round_trips: dict[Key, int] = {}
        self._lookups: dict[Key, list[tuple[Lookup, Any]]] = {}
        """The lookups that wait for the keys that have not come."""
        self._came: dict[Key, int] = {}
        """The keys that were read, with the round trip that could continue from them."""
        self._held: dict[Key, int | None] = {}
        """The keys that are read with other things, each with the round trip of that read if it may not be reached."""
        self._promised: dict[asyncio.Future[Arrived], list[Read]] = {}
        """The reads that wait for the pages that are read with other things."""
        self._due: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        """The answers that have come and were not handled yet."""
        self._worked = 0.0
        """The processor time that this has taken in this round of the event loop, in seconds."""
        self._rounds = rounds()
        budget = BUDGET.get()
        if budget is not None:
            budget.rounds = self._rounds
        self._round = 0
        self._is_pausing = False

    async def run(self, start: Callable[[], None]) -> None:
        """Starts the first reads and waits for all that follows. Raises what a step raised; nothing is left running."""
        try:
            self._left = 1
            self._go_on(start)
            await self._ended
        finally:
            if not self._ended.done():
                self._ended.cancel()
            self._due.clear()
            running = [task for task in self._tasks if not task.done()]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine beside the reads."""
        self._left += 1
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._go_on(lambda: None if task.cancelled() else task.result())

    def _go_on(self, then: Callable[..., None], *answer: Any) -> None:
        """Continues with an answer that has come."""
        self._left -= 1
        self._due.append((then, answer))
        if not self._is_pausing:
            self._work()

    def _work(self) -> None:
        """Handles due answers, and sends what waited for them; the rest when this turn of the event loop is over."""
        due, ended = self._due, self._ended
        if ended.done():
            due.clear()
            return
        of_all = self._rounds
        if self._round != of_all.number:
            # All others have had their turn.
            self._round, self._worked = of_all.number, 0.0
        before = self._worked
        # An operation that needs little does not wait for others.
        most = max(TURN_SECONDS / 4, TURN_SECONDS - (of_all.worked - before))
        began = thread_time() - before
        # Processor time is at most elapsed time. Its clock is 20 times slower, so elapsed time is checked first.
        asks = perf_counter() + most - before
        try:
            while due:
                if self._worked > most:
                    self._is_pausing = True
                    pause = self._loop.create_task(self._pause(is_large=self._worked > TURN_SECONDS))
                    self._tasks.add(pause)
                    pause.add_done_callback(self._tasks.discard)
                    break
                then, answer = due.popleft()
                then(*answer)
                if perf_counter() > asks:
                    self._worked = thread_time() - began
                    asks = perf_counter() + most - self._worked
            self._depart()
            self._worked = thread_time() - began
        except Exception as error:
            ended.set_exception(error)
        of_all.count(self._worked - before)
        if not self._left and not due and not ended.done():
            ended.set_result(None)

    async def _pause(self, *, is_large: bool) -> None:
        """Lets others have their turn, and handles what is due."""
        if is_large and self._turn is not None:
            await self._turn()
        await self._rounds.wait()
        self._is_pausing = False
        self._work()

    # --- Lists ----------------------------------------------------------------------------------------

    def load(self, request: NeighbourRequest, read: Read, then: Callable[[Any, int], None]) -> None:
        """Reads a list, and continues with the answer, or the exception, and the next round trip."""
        earliest = read.round_trip
        token = READ.set(read)
        try:
            found = self._neighbours.ask(request)
        finally:
            READ.reset(token)
        # A known answer may join the batches that are about to be sent.
        if isinstance(found, Arrived):
            self._due.append((then, (found.answer, max(found.round_trip, earliest))))
            return
        if found.done():
            self._due.append((then, _of_list(found, earliest)))
            return
        self._left += 1
        if read.later:
            read.feeds_in = earliest
            promised = self._promised.get(found)
            if promised is not None:
                # It may not be reached, and is then read one round trip later.
                read.goes_on = True
                promised.append(read)
            self._feeding[read.later, read.goes_on, earliest] += 1
            if read.goes_on:
                read.begins = self._begins
        found.add_done_callback(partial(self._loaded, read, earliest, then))

    def _loaded(
        self,
        read: Read,
        earliest: int,
        then: Callable[[Any, int], None],
        future: asyncio.Future[Arrived],
    ) -> None:
        if read.later:
            read.begins = None
            self._count_down(read.later, read.goes_on, read.feeds_in)
        self._go_on(then, *_of_list(future, earliest))

    def _begins(self, read: Read, round_trip: int) -> None:
        """Records that a read continues in another round trip: it cannot add to those before anymore."""
        if round_trip != read.feeds_in:
            self._count_down(read.later, read.goes_on, read.feeds_in)
            read.feeds_in = round_trip
            self._feeding[read.later, read.goes_on, round_trip] += 1
            self._depart()

    def _count_down(self, later: frozenset[int], goes_on: bool, round_trip: int) -> None:
        place = later, goes_on, round_trip
        self._feeding[place] -= 1
        if not self._feeding[place]:
            del self._feeding[place]

    # --- Items by their keys --------------------------------------------------------------------------

    def look_up(
        self,
        wanted: Iterable[tuple[Any, Key]],
        place: str,
        round_trip: int,
        later: frozenset[int],
        then: TakeItems,
    ) -> None:
        """Looks up items: known ones continue at once, those on their way with their answer, the rest is gathered.

        `wanted` are the keys, each with what the item is wanted for; the others are as in `Lookup`.
        """
        shared = Lookup(place, round_trip, later, then)
        ready: list[tuple[Any, Item | Exception | None]] = []
        next_trip = round_trip
        futures, lookups = self._nodes.futures, self._lookups
        for subject, key in wanted:
            waiting = lookups.get(key)
            if waiting is None:
                future = futures.get(key)
                if future is not None and future.done():
                    ready.append((subject, _answer_of(future)))
                    next_trip = max(next_trip, self._came.get(key, 0))
                    continue
                waiting = lookups[key] = []
            lookup = shared
            if key in self._held:
                # It comes independently of the others, and perhaps a round trip later.
                may_be_missed = self._held[key] is not None
                lookup = Lookup(place, round_trip, later, then, may_be_missed)
                self._feed(lookup)
            waiting.append((lookup, subject))
            lookup.left += 1
            self._wait(key, round_trip)
        if shared.left:
            self._feed(shared)
        if ready:
            self._due.append((then, (ready, next_trip)))

    def _feed(self, lookup: Lookup) -> None:
        """Records that a lookup leads to keys."""
        if lookup.later:
            self._feeding[lookup.later, lookup.goes_on, lookup.round_trip] += 1

    def _end_feed(self, lookup: Lookup) -> None:
        """Records that a lookup leads to no more keys."""
        if lookup.later:
            self._count_down(lookup.later, lookup.goes_on, lookup.round_trip)

    def _wait(self, key: Key, round_trip: int) -> None:
        """Adds a key to that round trip, or keeps it in an earlier one that was requested."""
        before = self._round_trips.get(key)
        if before is not None:
            if before <= round_trip:
                return
            del self._waiting[before][key]
        self._round_trips[key] = round_trip
        self._waiting.setdefault(round_trip, {})[key] = None

    def _depart(self) -> None:
        """Sends the batches that nothing can add to. Called after an answer was handled."""
        if not self._waiting or self._due:
            return
        for round_trip in sorted(self._waiting):
            keys = self._waiting[round_trip]
            while len(keys) >= BATCH_GET_KEYS or (keys and not self._may_be_fed(round_trip)):
                batch = list(keys)[:BATCH_GET_KEYS]
                for key in batch:
                    del keys[key]
                    self._round_trips[key] = _HELD
                self._send(batch, round_trip)
            if not keys:
                del self._waiting[round_trip]

    def _may_be_fed(self, round_trip: int) -> bool:
        """Returns whether something under way can still add to the batch of a round trip."""
        for later, goes_on, now in self._feeding:
            distance = round_trip - 1 - now
            if distance in later or (goes_on and min(later) < distance):
                return True
        return False

    def _send(self, keys: Sequence[Key], round_trip: int) -> None:
        # A key that several places wait for counts for the first.
        counted: Counter[str] = Counter()
        places: dict[str, None] = {}
        for key in keys:
            waiting = self._lookups[key]
            counted[waiting[0][0].place] += 1
            for lookup, _ in waiting:
                places[lookup.place] = None
        read = Read(tuple(places), round_trip, keys=counted)
        token = READ.set(read)
        asked = self._nodes.futures
        # A key that something else has requested, such as rules, comes with another batch.
        waited = {asked[key] for key in keys if key in asked}
        try:
            futures = self._nodes.load_batch(keys)
        finally:
            READ.reset(token)
        self._left += 1
        # When the first of those that are sent together comes, all of them have come.
        waited.add(next((future for future in futures if future not in waited), futures[-1]))
        left = len(waited)

        def came(_: asyncio.Future[Item | None]) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._go_on(lambda: self._answer(keys, [*map(_answer_of, futures)], read.round_trip))

        for future in waited:
            future.add_done_callback(came)

    def _answer(
        self, keys: Sequence[Key], answers: Sequence[Item | Exception | None], round_trip: int
    ) -> None:
        """Continues the lookups that wait for these keys; their next requests are part of that round trip."""
        lookups: dict[Lookup, None] = {}
        for key, answer in zip(keys, answers, strict=True):
            self._came[key] = round_trip
            self._round_trips.pop(key, None)
            for lookup, subject in self._lookups.pop(key):
                lookup.came.append((subject, answer))
                lookups[lookup] = None
        for lookup in lookups:
            came, lookup.came = lookup.came, []
            lookup.left -= len(came)
            if not lookup.left:
                self._end_feed(lookup)
            self._due.append((lookup.then, (came, max(round_trip, lookup.round_trip))))

    # --- Items and pages that are read with other things ----------------------------------------------

    def promise(self, page: PageOf) -> None:
        """Promises that a page is read with other things: reads that load it wait for that."""
        self._promised[self._neighbours.promise(page)] = []

    def keep_promise(
        self, page: PageOf, answer: Arrived | Exception | None, place: str, round_trip: int
    ) -> None:
        """Provides a promised page. None: it was not reached, and is read like any other, in that round trip, for that
        place."""
        waiting = self._promised.pop(self._neighbours.futures[page])

        def begins(_: Read, now: int) -> None:
            for each in waiting:
                self._begins(each, now)

        token = READ.set(Read((place,), round_trip, begins=begins))
        try:
            self._neighbours.keep_promise(page, answer)
        finally:
            READ.reset(token)

    def is_known(self, key: Key) -> bool:
        """Returns whether an item was read, or is about to be."""
        return key in self._lookups or key in self._nodes.futures

    def hold(self, key: Key, round_trip: int, *, may_be_missed: bool) -> None:
        """Promises that the item is read with other things, in that round trip: lookups of it wait for that.

        `may_be_missed`: that read may not reach the item, which is then part of the next round trip's batch.
        """
        self._lookups[key] = []
        self._round_trips[key] = _HELD
        self._held[key] = round_trip if may_be_missed else None
        if may_be_missed:
            self._feeding[_NEXT, False, round_trip] += 1

    def _end_hold(self, key: Key) -> None:
        held = self._held.pop(key)
        if held is not None:
            self._count_down(_NEXT, False, held)

    def release(self, key: Key, answer: Item | Exception | None, round_trip: int) -> None:
        """Provides the item that was held."""
        self._end_hold(key)
        self._nodes.prime(key, cast("Item | None", answer))
        self._answer([key], [answer], round_trip)

    def look_up_held(self, key: Key, round_trip: int) -> None:
        """Reads the held item like any other, in that round trip, because it was not reached."""
        self._end_hold(key)
        del self._round_trips[key]
        if not self._lookups[key]:
            del self._lookups[key]
            return
        for lookup in dict.fromkeys(lookup for lookup, _ in self._lookups[key]):
            # It adds to the batches after this one from now on: this one would wait for itself.
            self._end_feed(lookup)
            lookup.goes_on, lookup.round_trip = False, max(lookup.round_trip, round_trip)
            self._feed(lookup)
        self._wait(key, round_trip)


def _of_list(future: asyncio.Future[Arrived], earliest: int) -> tuple[Any, int]:
    """Returns the result of reading a list, and the next round trip for a read that could request in this one."""
    error = future.exception()
    if error is not None:
        return error, earliest + 1
    answer, round_trip = future.result()
    return answer, max(round_trip, earliest)


def _answer_of(future: asyncio.Future[Item | None]) -> Item | Exception | None:
    error = future.exception()
    return future.result() if error is None else cast(Exception, error)
