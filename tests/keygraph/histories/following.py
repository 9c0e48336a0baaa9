"""One history of a table that is followed: workers that are killed, and everything that their stream can do to them.

Two workers share the shards and are killed at any point, changes are handled again from an earlier one, shards are split, the clock is
an hour ahead or behind, some items fit no type, and live queries listen, one of which nobody reads. Afterwards each value that the
stream keeps is what it counts, whoever listens has the last answer, and `keygraph verify` finds nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import orjson

from keygraph.changes.counting import StreamCounter
from keygraph.changes.following import FollowOptions, Handle, StreamWorker
from keygraph.changes.kept_walks import StreamWalks
from keygraph.changes.leases import read_leases
from keygraph.changes.stream import StreamReader
from keygraph.changes.totals import StreamTotals
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.dynamo.streams import DescribeStream, ReadRecords, ShardPosition, StreamRecord
from keygraph.errors import StoreError, Unavailable
from keygraph.tables.findings import key_to_json
from keygraph.writing.sending.idempotency import is_note
from keygraph_resolvers import GraphSchema, OperationRequest, Service, build_schema
from keygraph_resolvers.live import LiveQueries
from tests.keygraph.streamed import (
    NODES,
    PLAYERS,
    TEAMS,
    Changes,
    Resharded,
    graph,
    ledgers,
    lists,
    of_member,
    of_player,
    of_team,
    stored,
    wrong_walks,
)
from tests.keygraph.verified_net import told
from tests.resolvers.live_laws import without_ids
from tests.resolvers.worlds import SECRET
from tests.tracing import HeldStore
from tests.verified import verified

_WORKERS = 2
_HOUR = 3600.0
_OPTIONS = FollowOptions(lease_seconds=0.5, poll_seconds=0.02)
_CATCHES_UP = 600.0
"""The seconds that workers and live queries may take at the end."""
_READ_MEMBERS = "members { edges { score node { playerId total } } }"
LIVE = [
    *(
        f'{{ team(teamId: "{each}") {{ size points mean best noteCount {_READ_MEMBERS} }} }}'
        for each in TEAMS[:2]
    ),
    *(
        f'{{ player(playerId: "{each}") {{ teamCount total teams {{ nodes {{ size }} }} }} }}'
        for each in PLAYERS[:2]
    ),
]
POISON: tuple[Item, ...] = (
    {"pk": "WHAT#1", "sk": "?"},
    {"pk": "TEAM#t0", "sk": "NOTE#many"},
    {**of_member("t1", "p1", None), "score": "many"},
)
"""Two items that fit no type, and one whose score is no number."""


class Killable:
    """A store that does not answer any more when its worker is killed, so that nothing is given back."""

    def __init__(self, store: Store) -> None:
        self.is_dead = False
        self.held = HeldStore(store, self._before)

    async def _before(self, request: object) -> None:
        await asyncio.sleep(0)
        if self.is_dead:
            raise Unavailable("killed")


def _handler(store: Store) -> Handle:
    """What a worker does with changes."""
    counter, walks = StreamCounter(graph, store), StreamWalks(graph, store)

    async def handle(shard: str, records: Sequence[StreamRecord]) -> None:
        await counter.apply(shard, records)
        await walks.apply(records)

    return handle


class Workers:
    """Some workers that follow a table, each of which may be killed."""

    def __init__(self, store: Store, dice: Random) -> None:
        self._store, self._dice = store, dice
        self._running: list[tuple[Killable, asyncio.Task[None]]] = []

    def start(self) -> None:
        killable = Killable(self._store)
        handle = _handler(killable.held)
        worker = StreamWorker(graph, killable.held, handle, f"worker {self._dice.random()}", _OPTIONS)
        self._running.append((killable, asyncio.create_task(worker.run())))

    async def kill(self) -> None:
        killable, task = self._running.pop(self._dice.randrange(len(self._running)))
        killable.is_dead = True
        task.cancel()
        # One that could not even begin ends, as the command does.
        with suppress(asyncio.CancelledError, StoreError):
            await task

    async def kill_all(self) -> None:
        while self._running:
            await self.kill()


async def _left(store: Store) -> int:
    """How many changes were not handled, as the leases say."""
    stream, left = await store.send(DescribeStream()), 0
    assert stream is not None
    for name, lease in (await read_leases(graph, store, stream)).items():
        position = lease.position
        while position is not None:
            page = await store.send(ReadRecords(stream.name, name, position))
            # The workers' own notes are changes too.
            left += sum(not is_note(each.new or each.old or {}) for each in page.records)
            position = page.position if page.records else None
    return left


async def replay(store: Store, through: Store, dice: Random) -> bool:
    """Handles changes of a shard again, from any that was handled before. Returns whether there were any."""
    stream = await store.send(DescribeStream())
    assert stream is not None
    leases = (await read_leases(graph, store, stream)).values()
    begun = [each for each in leases if each.after or each.is_finished]
    if not begun:
        return False
    lease, records = dice.choice(begun), list[StreamRecord]()
    position: ShardPosition | None = ShardPosition()
    while position is not None:
        page = await store.send(ReadRecords(stream.name, lease.shard, position))
        records += page.records
        position = page.position if page.records else None
    handled = sum(lease.is_finished or each.position <= lease.after for each in records)
    if not handled:
        return False
    start = dice.randrange(handled)
    with suppress(StoreError):
        await _handler(through)(lease.shard, records[start : start + dice.randrange(1, len(records) + 1)])
    return True


@contextmanager
def _wrong_clock() -> Iterator[Callable[[float], None]]:
    """A clock that can be set ahead."""
    ahead, right = 0.0, time.time

    def set_ahead(seconds: float) -> None:
        nonlocal ahead
        ahead = seconds

    with patch.object(time, "time", lambda: right() + ahead):
        yield set_ahead


@contextmanager
def _log() -> Iterator[list[str]]:
    """What is logged."""
    lines, logger = list[str](), logging.getLogger("keygraph")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]  # as its docs say
    logger.addHandler(handler)
    was_passed_on, logger.propagate = logger.propagate, False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = was_passed_on


@cache
def _schema() -> GraphSchema:
    return build_schema(graph, live=True)


class Listeners:
    """Live queries that are read as their answers come, and one that is not."""

    def __init__(self, store: Store) -> None:
        async def as_json(response: dict[str, Any]) -> bytes:
            return orjson.dumps(response)

        self._service = Service(_schema(), store, secret=SECRET)
        self.queries = LiveQueries(self._service, StreamReader(store), as_json, poll=0.02)
        self.last: dict[str, Any] = {}
        """The last answer of each."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        self._silent = await self.queries.listen(OperationRequest(f"subscription {LIVE[0]}"))
        async with asyncio.TaskGroup() as tasks:
            for each in LIVE:
                tasks.create_task(self._read(each))
            try:
                yield
            finally:
                self.queries.close()

    async def _read(self, document: str) -> None:
        listener = await self.queries.listen(OperationRequest(f"subscription {document}"))
        while (answer := await listener.next()) is not None:
            self.last[document] = without_ids(orjson.loads(answer.text))

    async def wrong(self) -> list[str]:
        """The answers that are others than those of a query now."""
        found = list[str]()
        for each in LIVE:
            fresh = without_ids(await self._service.execute(f"query {each}"))
            if self.last.get(each) != orjson.loads(orjson.dumps(fresh)):
                found.append(f"{each} was answered last {self.last.get(each)}, not {fresh}")
        return found

    async def wrong_of_silent(self) -> list[str]:
        """Who has not read gets the answer that was waiting, and the newest after it."""
        answers = list[Any]()
        async with asyncio.timeout(_CATCHES_UP):
            while self.last[LIVE[0]] not in answers and len(answers) < 2:
                answer = await self._silent.next()
                answers.append(answer and without_ids(orjson.loads(answer.text)))
        return [] if self.last[LIVE[0]] in answers else [f"who has not read before gets {answers}"]


async def _until(condition: Callable[[], Awaitable[object]]) -> None:
    """Waits until there is nothing left of something."""
    async with asyncio.timeout(_CATCHES_UP):
        while await condition():  # noqa: ASYNC110  # the table tells nobody
            await asyncio.sleep(0.02)


async def history(store: Store, through: Store, seed: str, kills: int) -> tuple[Counter[str], list[str]]:
    """Returns what has happened, and what is wrong with what is left. Workers and live queries reach the table `through` a
    store that may fail."""
    dice, happened = Random(seed), Counter[str]()
    changes, workers, listeners = (
        Changes(store, dice.randrange(10**9)),
        Workers(through, dice),
        Listeners(through),
    )
    with _wrong_clock() as set_ahead, _log() as lines:
        async with listeners.listening():
            for _ in range(_WORKERS):
                workers.start()
            for _ in range(kills):
                for _ in range(dice.randrange(1, 12)):
                    await changes.write()
                    happened["written"] += 1
                    await asyncio.sleep(dice.random() * 0.01)
                happened[await _disturb(store, through, dice, set_ahead)] += 1
                await workers.kill()
                happened["killed"] += 1
                workers.start()
            # Each poison is there at least once, and gone at the end, when every node is there.
            await store.send(BatchWrite(POISON))
            await store.send(BatchWrite(deletes=tuple(graph.table.key_of(each) for each in POISON)))
            await store.send(BatchWrite((*map(of_team, TEAMS), *map(of_player, PLAYERS))))
            found = list[str]()
            try:
                await _until(lambda: _left(store))
                await _until(listeners.wrong)
            except TimeoutError:
                found += [f"{await _left(store)} changes were not handled", *await listeners.wrong()]
            else:
                found += await listeners.wrong_of_silent()
            if listeners.queries.held > listeners.queries.limits.live_memory:
                found.append(f"{listeners.queries.held} bytes are held")
        await workers.kill_all()
    for key in (graph.table.key_of(each) for each in POISON[:2]):
        if not any(orjson.dumps(key_to_json(key)).decode() in line for line in lines):
            found.append(f"{key} was not named in the log")
    return happened, [*found, *await _wrong(store)]


async def _disturb(store: Store, through: Store, dice: Random, set_ahead: Callable[[float], None]) -> str:
    """Does something to the stream, or to who reads it. Returns what."""
    match dice.randrange(6):
        case 0 if isinstance(store, Resharded):
            open_ = [name for name, each in store.shards.items() if not each.is_closed]
            if len(open_) < 5:
                await store.split(dice.choice(open_), dice.choice([1, 2, 2]))
                return "split"
        case 0 | 1:
            return "replayed" if await replay(store, through, dice) else "nothing"
        case 2:
            set_ahead(dice.choice([-_HOUR, 0.0, _HOUR]))
            return "clock set"
        case 3:
            await store.send(BatchWrite((dice.choice(POISON),)))
            return "poisoned"
        case 4:
            with suppress(StoreError):
                await StreamTotals(graph, through).wrong(dice.choice(NODES), fixes=True)
            return "corrected"
    return "nothing"


async def _wrong(store: Store) -> list[str]:
    """What is wrong with the values, and with the table."""
    found, expected = list[str](), await lists(store)
    there = {"the ledgers": await ledgers(store), "the nodes": await stored(store)}
    found += [f"{name} have {own}, not {expected}" for name, own in there.items() if own != expected]
    for node in NODES:
        wrong = await StreamTotals(graph, store).wrong(node, fixes=False)
        found += [f"{node[0].name} {node[1]}: {wrong} would be right"] if wrong else []
    report = await verified(graph, store, segments=1, late_totals=StreamTotals(graph, store))
    return [*found, *await wrong_walks(store), *told(report)]
