"""The engine: drives the steps of one operation, which are generators, and decides when a batch of keys is sent.

`read` starts the first step. A `Task` takes what a step yields: `Engine.load` sends a list's request at once, and
`Engine.look_up` collects keys by round trip. `Engine._work` continues the tasks whose answers have come together, starts
each step once for all objects that these answers lead to (`Engine._start`), and then sends the batches that have a
hundred keys, the most that a BatchGetItem takes, or **to which no read in progress can add**. The bound has recorded what
can (`worst.key_trips`): for each wait of a step, the round trips after its answer in which keys will be requested. So the
items of one round trip are in one batch however slowly its lists arrive, nothing waits
for a read that leads to no item, and nothing waits for a timer.

Only work that needs one has a task of the event loop. **Steps continue in turns** (`SharedRounds`): the known objects
may lead to thousands of lists, and after some milliseconds the event loop must do other work. All operations share
these milliseconds: of those that need more, one continues in each round of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import perf_counter, thread_time
from types import GeneratorType
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import BATCH_GET_KEYS
from keygraph.dynamo.table import Key
from keygraph.errors import with_noted_frames
from keygraph.lists.query import ListQuery
from keygraph.lists.reading import Found
from keygraph.model.records import RecordType
from keygraph.turns import AT_ONCE, BUDGET, TURN_SECONDS, Had, WorkBudget, operation_budget
from keygraph_resolvers.engine.gathering import gather
from keygraph_resolvers.engine.requests import (
    All,
    Await,
    Beside,
    Gathered,
    GetItems,
    Load,
    LoadEach,
    Pause,
    Reads,
    Request,
    Running,
    Start,
    Startable,
)
from keygraph_resolvers.engine.worst import NEVER, KeyTrips, RoundTrips
from keygraph_resolvers.errors import as_value
from keygraph_resolvers.read.loaders import Arrived, NeighbourRequest
from keygraph_resolvers.read.meter import READ, Read
from keygraph_resolvers.read.objects import Object
from keygraph_resolvers.read.run import Run

_CLOCK_SECONDS = 0.001
"""The clock of a thread's processor time is 20 times slower than the other: it is read once in this time."""
_UNCLOCKED = 16
"""So many times, what has come is read without the clock of a round, which takes longer than to look at it."""
_FEWEST_REQUESTS, _MOST_REQUESTS = 4, 16
"""How many waiting requests are let through in a round: the fewest in rounds that are long, for whatever reason."""
_KEPT_WAITING = 1_000
"""So many may wait for rounds before those that were given up are searched for."""
_MOST_WAITED = 10
"""An operation that has waited more than this is large, and waits no longer because of it."""
_PLACE = 64
"""The distance of two places. The places of what begins later grow by one in each round, so that something that waits has one
place less before it after so many rounds. More operations than this makes altogether do not run, so a small one passes all
large ones, whoever has sent them."""
_HELD = 0
"""The round trip of a key that was sent already: there is none before it."""
_NEXT = frozenset({0})
"""Keys are requested in the round trip after this one."""

Waiting: TypeAlias = tuple[float, int, bool, tuple[str, int], asyncio.Future[bool]]
"""What waits for a round: its place, its number, whether it takes a whole turn, its client, and how long its operation has
waited before."""
Then: TypeAlias = Callable[[Any, int], None]
"""Takes an answer, or what a generator has returned, and the round trip in which something can be requested next."""
TakeItems: TypeAlias = Callable[[list[tuple[Any, "Item | Exception | None"]], int], None]
"""Called with the answers and what their items were wanted for, as they come, and the next round trip."""


async def read(op: Run, step: Startable, root: Object | None = None, round_trip: int = 1) -> Object:
    """Runs a step from the root, in that round trip. Returns the root, with everything that was found below it."""
    root = new_root() if root is None else root
    engine = Engine(op)
    try:
        await engine.run(partial(engine.begin, Start(step, [root]), round_trip, ""))
    finally:
        # The answer is complete, or nobody waits for it.
        for loader in filter(None, map(vars(op).get, ("nodes", "neighbours"))):
            if loader.tasks:
                loader.end()
        vars(op).pop("walked", None)
    return root


def new_root() -> Object:
    return Object(cast(RecordType, None), ())


@dataclass(slots=True, eq=False)
class Task:
    """A step under way: a generator, which is sent what it has requested, as it comes."""

    _engine: Engine
    _step: Startable
    _reads: Reads[Any]
    _round_trip: int
    """The one in which its next requests are."""
    _place: str
    """Its place in the query."""
    _then: Then | None = None
    _answers: list[Any] = field(default_factory=list, init=False)
    _waits_for: int = field(default=0, init=False)

    def send(self, answer: Any = None, round_trip: int = 0) -> None:
        """Continues with an answer until something must be waited for; its next requests are in that round trip."""
        if round_trip > self._round_trip:
            self._round_trip = round_trip
        engine, send = self._engine, self._reads.send
        returned: Any = None
        while True:
            try:
                request: Any = send(answer)
            except StopIteration as end:
                returned = end.value
                break
            answer, kind = None, type(request)
            if kind is list:
                for each in request:
                    engine.begin(each, self._round_trip, self._place, self._step)
            elif kind is Load:
                key_trips = engine.key_trips_after(self._step, request.wait)
                read = Read((self._place,), self._round_trip, key_trips, request.goes_on)
                then = partial(self._take_with_size, read) if request.with_size else self.send
                engine.load(request.request, read, then)
                return
            elif kind is GetItems:
                if request.wanted:
                    self._waits_for = len(request.wanted)
                    key_trips = engine.key_trips_after(self._step, request.wait)
                    engine.look_up(request.wanted, self._place, self._round_trip, key_trips, self._take_items)
                    return
                answer = []
            elif kind is All:
                if request.reads:
                    self._waits_for = len(request.reads)
                    self._start_all(request)
                    return
                answer = []
            elif kind is Pause:
                engine.due.append((self.send, (None, self._round_trip)))
                return
            elif kind is Await:
                engine.spawn(self._await(request.answer))
                return
            else:
                engine.begin(request, self._round_trip, self._place, self._step)
        # Not in the handler: errors of what is begun would hold the frames of this step.
        if self._then is not None:
            self._then(returned, self._round_trip)
        else:
            for each in returned or ():
                engine.begin(each, self._round_trip, self._place, self._step)

    def _start_all(self, request: All) -> None:
        self._answers = [None] * len(request.reads)
        several, round_trip = enumerate(request.reads), self._round_trip
        ends = perf_counter() + self._engine.rounds.turn
        for number, each in several:
            self._start_one(number, each, round_trip)
            if perf_counter() > ends:
                self._engine.spawn(self._start_in_turns(several, round_trip))
                return

    def _start_one(self, number: int, each: Reads[Any] | Request, round_trip: int) -> None:
        then = partial(self._one_returned, number)
        reads = each if isinstance(each, GeneratorType) else _answer_to(cast("Request", each))
        Task(self._engine, self._step, reads, round_trip, self._place, then).send()

    async def _start_in_turns(self, several: Iterable[tuple[int, Any]], round_trip: int) -> None:
        """Starts the others of many, in turns with other operations."""
        budget, ends = operation_budget(), 0.0
        for number, each in several:
            if perf_counter() > ends:
                await budget.wait()
                ends = perf_counter() + self._engine.rounds.turn
            self._start_one(number, each, round_trip)

    async def _await(self, awaitable: Awaitable[Any]) -> None:
        try:
            answer = await awaitable
        except Exception as error:
            answer = as_value(error)
        self.send(answer)

    def _take_with_size(self, read: Read, answer: Any, round_trip: int) -> None:
        self.send((answer, read.held), round_trip)

    def _take_items(self, answers: list[tuple[Any, Any]], round_trip: int) -> None:
        if round_trip > self._round_trip:
            self._round_trip = round_trip
        self._answers += answers
        if len(self._answers) == self._waits_for:
            self._take_all()

    def _one_returned(self, number: int, returned: Any, round_trip: int) -> None:
        self._round_trip = max(self._round_trip, round_trip)
        self._answers[number] = returned
        self._waits_for -= 1
        if not self._waits_for:
            self._take_all()

    def _take_all(self) -> None:
        answers, self._answers = self._answers, []
        self.send(answers)


@dataclass(slots=True, eq=False)
class Lookup:
    """Items that a step looks up by their keys."""

    place: str
    round_trip: int
    key_trips: RoundTrips
    """The round trips in which keys are requested when the items are there: 0 is the one after this lookup's."""
    then: TakeItems
    goes_on: bool = False
    """Whether its item may come a round trip later: it is read with other things, and may not be reached."""
    left: int = 0
    """How many answers have not come yet."""
    answers: list[tuple[Any, Item | Exception | None]] = field(default_factory=list)


class Engine:
    """The reads of one run. Make it inside the run's event loop."""

    def __init__(self, op: Run) -> None:
        self._op = op
        """The operation, for its steps. Its loaders are made when something is loaded."""
        self._key_trips: Mapping[object, KeyTrips] = op.key_trips
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._left = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._feeding = defaultdict[tuple[frozenset[int], bool, int], int](int)
        """The reads under way that lead to keys: when, whether they may continue, and in which round trip they are."""
        self._waiting: dict[int, dict[Key, None]] = {}
        """The keys that are not sent yet, by round trip."""
        self._round_trips: dict[Key, int] = {}
        self._lookups: dict[Key, list[tuple[Lookup, Any]]] = {}
        """The lookups that wait for the keys that have not come."""
        self._read_keys: dict[Key, int] = {}
        """The keys that were read, with the round trip that could continue from them."""
        self._held: dict[Key, int | None] = {}
        """The keys that are read with other things, each with the round trip of that read if it may not be reached."""
        self._promised: dict[asyncio.Future[Arrived], list[Read]] = {}
        """The reads that wait for the pages that are read with other things."""
        self.due: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        """The answers that have come and were not handled yet."""
        self._starts: dict[tuple[Startable, int, str, bool], list[Any]] = {}
        """The objects for which each step starts next, by step, round trip, place, and whether they are answers."""
        self._is_due = True
        """Whether `_work` runs, or will: when the turn of the event loop is over, or after a pause."""
        self._worked = 0.0
        """The processor time that this has taken in this round of the event loop, in seconds."""
        self.rounds = rounds()
        self._budget = BUDGET.get() or WorkBudget()
        self._budget.rounds, self._budget.let_through = self.rounds, self.rounds.number
        self._round = 0

    async def run(self, start: Callable[[], None]) -> None:
        """Starts the first reads and waits for all that follows. Raises what a step raised; nothing is left running."""
        try:
            self.due.append((start, ()))
            self._work()
            await self._ended
        finally:
            if not self._ended.done():
                self._ended.cancel()
            self.due.clear()
            self._starts.clear()
            self._lookups.clear()
            running = [task for task in self._tasks if not task.done()]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def key_trips_after(self, step: Startable, wait: str) -> RoundTrips:
        """Returns the round trips in which keys are requested after a wait of a step, as the bound has recorded them."""
        key_trips = self._key_trips.get(step)
        return NEVER if key_trips is None else key_trips.get(wait, NEVER)

    def begin(self, request: Any, round_trip: int, place: str, step: Any = None) -> None:
        """Begins what nothing waits for, in that round trip. `step` is the one that begins it."""
        kind = type(request)
        if kind is Start:
            # What several answers lead to is begun together.
            step, objects = request
            starting = step, round_trip, place + step.suffix, False
            if starting in self._starts:
                self._starts[starting] += objects
            elif objects:
                self._starts[starting] = [*objects]
                self._work_soon()
            return
        if kind is LoadEach:
            key_trips, places = self.key_trips_after(step, request.wait), (place,)
            for subject, part, goes_on in request.loads:
                read = Read(places, round_trip, key_trips, goes_on)
                self.load(part, read, partial(self._take, step, place, subject))
            return
        if kind is Beside:
            reads = request.reads
            if request.step is not None:
                step, place = request.step, place + request.step.suffix
        elif kind is Gathered:
            gather(self, self._op, request, place, round_trip)
            return
        else:
            self.spawn(request.work)
            return
        self._begin_reads(step, reads, round_trip, place)

    def _begin_reads(self, step: Startable, reads: Running, round_trip: int, place: str) -> None:
        if isinstance(reads, list):
            for each in reads:
                self.begin(each, round_trip, place, step)
        else:
            Task(self, step, reads, round_trip, place).send()

    def _take(self, step: Startable, place: str, subject: Any, answer: Any, round_trip: int) -> None:
        self._starts.setdefault((step, round_trip, place, True), []).append((subject, answer))

    def _start(self) -> None:
        """Starts steps for the objects that lead to them, up to a number: other operations have their turn too."""
        starts, left = self._starts, AT_ONCE
        while starts and left > 0:
            starting = step, round_trip, place, are_answers = next(iter(starts))
            objects = starts.pop(starting)
            number = 0
            for each in objects:
                number += 1
                left -= step.breadth + (len(each[1].items) if are_answers and type(each[1]) is Found else 0)
                if left <= 0:
                    break
            if number < len(objects):
                starts[starting] = objects[number:]
                del objects[number:]
            reads = cast(Any, step).take(self._op, objects) if are_answers else step.run(self._op, objects)
            self._begin_reads(step, reads, round_trip, place)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine beside the reads."""
        self._left += 1
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._handle(lambda: None if task.cancelled() else task.result())

    def _handle(self, then: Callable[..., None], *answer: Any) -> None:
        """Continues with an answer that has come."""
        self._left -= 1
        if not self._ended.done():
            self.due.append((then, answer))
            if self._left or self._is_due:
                self._work_soon()
            else:
                self._work()  # nothing else can come

    def _work_soon(self) -> None:
        """Handles what is due when all answers that have come together are known."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        """Handles due answers, and sends what waited for them; the rest when this turn of the event loop is over."""
        due, starts, ended = self.due, self._starts, self._ended
        if ended.done():
            return
        of_all = self.rounds
        if self._round != of_all.number:
            # All others have had their turn.
            self._round, self._worked = of_all.number, 0.0
        before = self._worked
        # An operation that needs little does not wait for others.
        most = max(of_all.turn / 4, of_all.turn - (of_all.worked - before))
        began, thread_began, self._is_due = perf_counter() - before, of_all.thread_clock() - before, True
        try:
            while due or starts:
                if self._worked > most:
                    pause = self._loop.create_task(self._pause(is_large=self._worked > of_all.turn))
                    self._tasks.add(pause)
                    pause.add_done_callback(self._tasks.discard)
                    break
                if due:
                    then, answer = due.popleft()
                    then(*answer)
                else:
                    self._start()
                now = perf_counter()
                if now - began > most:
                    # Something else may have had the processor.
                    began = max(began, now - (thread_time() - thread_began))
                self._worked = now - began
            else:
                self._is_due = False
            if self._waiting:
                self._send_batches()
            self._worked = perf_counter() - began
        except Exception as error:
            ended.set_exception(with_noted_frames(error))
        of_all.count(self._worked - before, self._budget.client)
        if not self._left and not due and not starts and not ended.done():
            ended.set_result(None)

    async def _pause(self, *, is_large: bool) -> None:
        """Lets others have their turn, and handles what is due."""
        if is_large:
            await self._op.next_turn()
        await self._budget.wait()
        self._work()

    # --- Lists ----------------------------------------------------------------------------------------

    def load(self, request: NeighbourRequest, read: Read, then: Then) -> None:
        """Reads a list, and continues with the answer, or the exception, and the next round trip."""
        earliest = read.round_trip
        token = READ.set(read)
        try:
            found = self._op.neighbours.ask(request)
        finally:
            READ.reset(token)
        # A known answer may join the batches that are about to be sent.
        if isinstance(found, Arrived):
            self.due.append((then, (found.answer, max(found.round_trip, earliest))))
            return
        if found.done():
            self.due.append((then, _of_list(found, earliest)))
            return
        self._left += 1
        if read.key_trips:
            read.feeds_in = earliest
            promised = self._promised.get(found)
            if promised is not None:
                # It may not be reached, and is then read one round trip later.
                read.goes_on = True
                promised.append(read)
            self._feeding[read.key_trips, read.goes_on, earliest] += 1
            if read.goes_on:
                read.begins = self._begins
        found.add_done_callback(partial(self._loaded, read, earliest, then))

    def _loaded(self, read: Read, earliest: int, then: Then, future: asyncio.Future[Arrived]) -> None:
        if read.key_trips:
            read.begins = None
            self._count_down(read.key_trips, read.goes_on, read.feeds_in)
        self._handle(then, *_of_list(future, earliest))

    def _begins(self, read: Read, round_trip: int) -> None:
        """Records that a read continues in another round trip: it cannot add to those before anymore."""
        if round_trip != read.feeds_in:
            self._count_down(read.key_trips, read.goes_on, read.feeds_in)
            read.feeds_in = round_trip
            self._feeding[read.key_trips, read.goes_on, round_trip] += 1
            self._send_batches()

    def _count_down(self, key_trips: RoundTrips, goes_on: bool, round_trip: int) -> None:
        place = key_trips, goes_on, round_trip
        self._feeding[place] -= 1
        if not self._feeding[place]:
            del self._feeding[place]

    # --- Items by their keys --------------------------------------------------------------------------

    def look_up(
        self,
        wanted: Iterable[tuple[Any, Key]],
        place: str,
        round_trip: int,
        key_trips: RoundTrips,
        then: TakeItems,
    ) -> None:
        """Looks up items: known ones continue at once, those on their way with their answer, the rest is gathered.

        `wanted` are the keys, each with what the item is wanted for; the others are as in `Lookup`.
        """
        shared = Lookup(place, round_trip, key_trips, then)
        ready: list[tuple[Any, Item | Exception | None]] = []
        next_trip = round_trip
        futures: Any = self._op.nodes.futures
        lookups = self._lookups
        for subject, key in wanted:
            waiting = lookups.get(key)
            if waiting is None:
                future = futures.get(key)
                if future is not None and future.done():
                    ready.append((subject, future.exception() or future.result()))
                    next_trip = max(next_trip, self._read_keys.get(key, 0))
                    continue
                waiting = lookups[key] = []
            lookup = shared
            if key in self._held:
                # It comes independently of the others, and perhaps a round trip later.
                may_be_missed = self._held[key] is not None
                lookup = Lookup(place, round_trip, key_trips, then, may_be_missed)
                self._feed(lookup)
            waiting.append((lookup, subject))
            lookup.left += 1
            self._wait(key, round_trip)
        if shared.left:
            self._feed(shared)
        if ready:
            self.due.append((then, (ready, next_trip)))

    def _feed(self, lookup: Lookup) -> None:
        """Records that a lookup leads to keys."""
        if lookup.key_trips:
            self._feeding[lookup.key_trips, lookup.goes_on, lookup.round_trip] += 1

    def _end_feed(self, lookup: Lookup) -> None:
        """Records that a lookup leads to no more keys."""
        if lookup.key_trips:
            self._count_down(lookup.key_trips, lookup.goes_on, lookup.round_trip)

    def _wait(self, key: Key, round_trip: int) -> None:
        """Adds a key to that round trip, or keeps it in an earlier one that was requested."""
        before = self._round_trips.get(key)
        if before is not None:
            if before <= round_trip:
                return
            del self._waiting[before][key]
        self._round_trips[key] = round_trip
        self._waiting.setdefault(round_trip, {})[key] = None

    def _send_batches(self) -> None:
        """Sends the batches that nothing can add to. Called after an answer was handled."""
        if not self._waiting or self.due or self._starts:
            return
        for round_trip in sorted(self._waiting):
            keys = self._waiting[round_trip]
            while len(keys) >= BATCH_GET_KEYS or (keys and not self._may_grow(round_trip)):
                batch = list(keys)[:BATCH_GET_KEYS]
                for key in batch:
                    del keys[key]
                    self._round_trips[key] = _HELD
                self._send_batch(batch, round_trip)
            if not keys:
                del self._waiting[round_trip]

    def _may_grow(self, round_trip: int) -> bool:
        """Returns whether something under way can still add to the batch of a round trip."""
        for key_trips, goes_on, now in self._feeding:
            distance = round_trip - 1 - now
            if distance in key_trips or (goes_on and min(key_trips) < distance):
                return True
        return False

    def _send_batch(self, keys: Sequence[Key], round_trip: int) -> None:
        # A key that several places wait for counts for the first.
        counted: dict[str, int] = {}
        places: dict[str, None] = {}
        for key in keys:
            waiting = self._lookups[key]
            first = waiting[0][0].place
            counted[first] = counted.get(first, 0) + 1
            for lookup, _ in waiting:
                places[lookup.place] = None
        read = Read(tuple(places), round_trip, keys=counted)
        token = READ.set(read)
        earlier = self._op.nodes.futures
        # A key that something else has requested, such as rules, comes with another batch.
        waited = {earlier[key] for key in keys if key in earlier}
        try:
            futures = self._op.nodes.load_batch(keys)
        finally:
            READ.reset(token)
        self._left += 1
        # When the first of those that are sent together comes, all of them have come.
        waited.add(next((future for future in futures if future not in waited), futures[-1]))
        left = len(waited)

        def take(_: asyncio.Future[Item | None]) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._handle(
                    self._answer,
                    keys,
                    [each.exception() or each.result() for each in futures],
                    read.round_trip,
                )

        for future in waited:
            future.add_done_callback(take)

    def _answer(
        self, keys: Sequence[Key], answers: Sequence[Item | Exception | None], round_trip: int
    ) -> None:
        """Continues the lookups that wait for these keys; their next requests are part of that round trip."""
        lookups: dict[Lookup, None] = {}
        for key, answer in zip(keys, answers, strict=True):
            self._read_keys[key] = round_trip
            self._round_trips.pop(key, None)
            for lookup, subject in self._lookups.pop(key):
                lookup.answers.append((subject, answer))
                lookups[lookup] = None
        for lookup in lookups:
            some, lookup.answers = lookup.answers, []
            lookup.left -= len(some)
            if not lookup.left:
                self._end_feed(lookup)
            self.due.append((lookup.then, (some, max(round_trip, lookup.round_trip))))

    # --- Items and pages that are read with other things ----------------------------------------------

    def promise(self, page: ListQuery) -> None:
        """Promises that a page is read with other things: reads that load it wait for that."""
        self._promised[self._op.neighbours.promise(page)] = []

    def keep_promise(
        self, page: ListQuery, answer: Arrived | Exception | None, place: str, round_trip: int
    ) -> None:
        """Provides a promised page. None: it was not reached, and is read like any other, in that round trip, for that
        place."""
        waiting = self._promised.pop(self._op.neighbours.futures[page])

        def begins(_: Read, now: int) -> None:
            for each in waiting:
                self._begins(each, now)

        token = READ.set(Read((place,), round_trip, begins=begins))
        try:
            self._op.neighbours.keep_promise(page, answer)
        finally:
            READ.reset(token)

    def is_known(self, key: Key) -> bool:
        """Returns whether an item was read, or is about to be."""
        return key in self._lookups or key in self._op.nodes.futures

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
        """Provides the item that was held. An error is taken from its future: the event loop would report it there."""
        self._end_hold(key)
        self._op.nodes.prime(key, cast("Item | None", answer))
        future: Any = self._op.nodes.futures[key]
        self._answer([key], [future.exception() or future.result()], round_trip)

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


def _answer_to(request: Request) -> Reads[Any]:
    return (yield request)


def _of_list(future: asyncio.Future[Arrived], earliest: int) -> tuple[Any, int]:
    """Returns the result of reading a list, and the next round trip for a read that could request in this one."""
    error = future.exception()
    if error is not None:
        return error, earliest + 1
    answer, round_trip = future.result()
    return answer, max(round_trip, earliest)


# --- The rounds of the event loop, which all operations share ---------------------------------------------


class SharedRounds:
    """The rounds of the event loop: in one, everything that is ready runs once.

    When the time of a round is used up, whatever operations would begin waits for a later one. Operations that have
    waited least go first, so that small ones pass large ones, and one client's wait behind each other, and behind those of
    clients that were let through less. Those that have waited for many rounds are passed no more. (Start-time fair
    queueing: Goyal, Vin and Cheng 1996.) In turn with these, whoever has begun least goes first, so that one who comes seldom
    is not behind hundreds that come all the time.
    """

    def __init__(self) -> None:
        self.number = 0
        self.worked = 0.0
        """The processor time that was counted in this round, in seconds."""
        self._clocked = -inf, 0.0
        """When the thread's clock was read, and what it showed."""
        self.ends = 0.0
        self.turn = TURN_SECONDS
        self.unclocked = self._read = 0
        self._next: asyncio.Handle | None = None
        self.waiting: list[Waiting] = []
        self._first = 0
        """The place before that of what was let through last, or a later one: nothing gets one before it."""
        self._places = defaultdict[str, list[int]](lambda: [0] * (_MOST_WAITED + 1))
        """The next place of each client, by how long its operation has waited before; for as long as others wait."""
        self._had = Had[str](float)
        """How much of each client has waited, was read, or was worked, for as long as others wait. Connections of one proxy,
        whose names have its address in the first line, have it together: new ones would come before all others."""
        self._seldom: list[Waiting] = []
        """The same, each in the place of how much its client has had before."""
        self._is_seldom_next = False
        self._most_kept = _KEPT_WAITING
        """With more of them, or of clients, those that were given up or are gone are searched for."""
        self._numbers = count()
        self._requests = _FEWEST_REQUESTS
        """How many waiting requests are let through in a round."""

    def count(self, seconds: float, client: str = "") -> None:
        """Counts work in this round: while others wait, also as what the client has had, a turn as much as one that waits."""
        self.worked += seconds
        if self.waiting and client:
            self._had[_first_line(client)] += _MOST_WAITED * seconds / self.turn
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._begin)
            self.ends = perf_counter() + 2 * self.turn

    def thread_clock(self) -> float:
        """Returns the processor time of the thread, a millisecond ago at most."""
        now = perf_counter()
        if now - self._clocked[0] > _CLOCK_SECONDS:
            self._clocked = now, thread_time()
        return self._clocked[1]

    def _begin(self) -> None:
        """Begins a new round of the event loop: all others have had their turn."""
        is_long = perf_counter() > self.ends
        self._next, self.worked, self.ends = None, 0.0, 0.0
        self.number += 1
        self._first += 1
        self._requests = (
            max(_FEWEST_REQUESTS, self._requests // 2) if is_long else min(_MOST_REQUESTS, self._requests + 1)
        )
        left = self._requests
        while _is_waited_in(self.waiting) and left > 0:
            is_seldom = self._is_seldom_next and _is_waited_in(self._seldom)
            place, _, is_turn, _, first = heappop(self._seldom if is_seldom else self.waiting)
            if not is_seldom:
                self._first = max(self._first, int(place) - _PLACE)
            self._is_seldom_next = not is_seldom
            first.set_result(True)
            left -= left if is_turn else 1
        if not self.waiting:
            for kept in (self._places, self._had, self._seldom):
                kept.clear()
        self.turn = TURN_SECONDS / 2 if self.waiting else TURN_SECONDS
        if self.waiting or left < self._requests:
            self.count(0.0)

    def enter(self, client: str) -> asyncio.Future[bool]:
        """Returns what waits for a round with time for a new operation, behind others of the same client. The result is
        true, unless whoever waits sets it to false first, because the operation is not wanted anymore."""
        return self.queue(0, client, is_turn=False)

    async def begin(self, client: str) -> None:
        """Waits for a round with time for something new, if there is none left in this one."""
        if self.has_to_wait(client):
            await self.enter(client)

    async def wait_for_time(self, client: str) -> None:
        """Waits for a round with time for work of milliseconds, if there is none left in this one."""
        self.count(0.0)
        if perf_counter() > self.ends:
            await self.queue(0, client, is_turn=True)
        elif self.waiting:
            self._had[client] += _MOST_WAITED

    def count_bytes(self, client: str, size: int) -> None:
        """Counts what a client sends while others wait: 8 KB as a request, which takes as long."""
        if self.waiting:
            self._had[_first_line(client)] += size / 8192

    def may_be_over(self) -> bool:
        """Whether what a client has sent may have to wait. Most is read without a new clock of a round."""
        self._read += 1
        if self._read % _UNCLOCKED == 0:
            self.count(0.0)
        return self.ends > 0.0 and (bool(self.waiting) or perf_counter() > self.ends)

    def has_to_wait(self, client: str) -> bool:
        """Whether a new operation of the client waits: the time of this round is used up, or others come before it."""
        self.count(0.0)
        if not self.waiting:
            return perf_counter() > self.ends
        own = self._places[client][0] if client in self._places else 0
        return self.waiting[0][0] <= max(self._first, own) or perf_counter() > self.ends

    def queue(self, waited: int, client: str, *, is_turn: bool) -> asyncio.Future[bool]:
        """Returns what waits for a round with time for a request, or for a whole turn of work: one operation has that in a
        round. `waited` is how long the operation of the client has waited before."""
        if max(len(self.waiting), len(self._seldom), len(self._places)) > self._most_kept:
            # Those behind others would stay as long as there are others, however few of them still wait.
            self.waiting, self._seldom = (
                sorted(each for each in queue if not each[-1].done())
                for queue in (self.waiting, self._seldom)
            )
            self._places.clear()
            for *_, (each, before), _ in self.waiting:
                self._place(each, before)
            self._had.forget(dict.fromkeys(map(_first_line, self._places)))
            self._most_kept = max(_KEPT_WAITING, 2 * len(self.waiting))
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waited = min(waited, _MOST_WAITED)
        place = self._place(client, waited) + _PLACE * waited
        entry = next(self._numbers), is_turn, (client, waited), future
        heappush(self.waiting, (place, *entry))
        heappush(self._seldom, (self._had[_first_line(client)] + waited, *entry))
        self._had[_first_line(client)] += _MOST_WAITED if is_turn else 1
        self.count(0.0)
        return future

    def _place(self, client: str, waited: int) -> int:
        """Takes the next place of a client, for something that has waited so long."""
        places, first = self._places[client], self._first
        place = max(first, places[waited])
        for each in range(waited, _MOST_WAITED + 1):
            places[each] = max(first, places[each]) + _PLACE
        return place


def _first_line(client: str) -> str:
    return client.partition("\n")[0]


def _is_waited_in(queue: list[Waiting]) -> bool:
    """Whether something waits in the queue. Drops what was given up, or let through, before the first that does."""
    while queue and queue[0][-1].done():
        heappop(queue)
    return bool(queue)


ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedRounds] = WeakKeyDictionary()
"""The rounds of each event loop in which operations have run."""


def rounds() -> SharedRounds:
    """Returns the rounds of the running event loop."""
    loop = asyncio.get_running_loop()
    found = ROUNDS.get(loop)
    if found is None:
        found = ROUNDS[loop] = SharedRounds()
    return found
