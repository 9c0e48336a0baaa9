"""One history: many writers and readers at once, what each was told and when, and whether one order explains it all.

Some transactions are sent several times at once under one idempotency key: they are one, and all that are told that it was done
are told the same. The order is looked for thing by thing (`plain.thing`), since no transaction of a history needs to know two of them, but a move,
whose two things are one then. Of the nodes that a thing is between no more is known than whether they are there. Whoever was told
nothing may have written, at any time since, or not.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import operator
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, Store
from keygraph.errors import StoreError, WriteRefused
from keygraph.model.record_keys import Texts
from keygraph.tables.bulk import whole_table
from keygraph.writing.requests import Create, Delete, Move, Upsert, WriteRequest
from keygraph.writing.sending.idempotency import IdempotencyKey
from keygraph.writing.sending.writer import write
from tests.keygraph.histories.asking import CLUBS, PASSING, PEOPLE, Asking, beginning, note, person
from tests.keygraph.histories.declared import graph
from tests.keygraph.histories.derived import wrong_values
from tests.keygraph.histories.plain import Name, Refused, State, Values, after, name_of, thing, things
from tests.keygraph.histories.table import contents, mistakes, one
from tests.tracing import HeldStore

_BUSY, _MARKED = "Others change", "A node that this writes or names is being deleted or moved."
_NOTE = "note of a key"
"""Stands for a type's name in the name of the note of an idempotency key."""
_MOST_LOOKED_AT = 200_000
NODES: State = {
    **{("Person", name): {"name": name[0]} for name in PEOPLE},
    **{("Club", club): {"club_id": club[0]} for club in CLUBS},
}


@dataclass(slots=True)
class Event:
    """A transaction, or a read of one record, and what its writer was told."""

    start: float
    end: float = math.inf
    until: float = math.inf
    """When it cannot have been done later, of one of which nothing was told."""
    requests: Sequence[WriteRequest] = ()
    codes: frozenset[str] | None = frozenset()
    """None for a transaction of which nothing was told; empty for one that was done."""
    name: Name | None = None
    """What was read."""
    values: Values | None = None
    key: str | None = None
    """The idempotency key of a transaction."""
    answer: Sequence[tuple[str, Texts, int]] | None = None
    """What was answered for each request of a transaction that was done: its type, its identity, how many were detached."""

    @property
    def is_sure(self) -> bool:
        return self.codes is not None

    def after(self, state: State) -> State | None:
        """The state after the event; None where it cannot happen in this one."""
        if self.name is not None:
            return state if state.get(self.name) == self.values else None
        note: Name = (_NOTE, (self.key or "",))
        if note in state:
            return None if self.codes else state
        try:
            new = after(state, self.requests)
        except Refused as refused:
            return state if self.codes and self.codes <= refused.codes else None
        if self.codes:
            return None
        return new if self.key is None else {**new, note: {}}


def sent_at_once(seed: str) -> int:
    """How often the transaction with that seed is sent at once: several times under one idempotency key, or once without."""
    return random.Random(f"{seed} key").choice([1, 1, 2, 3])


def event_of(seed: str, start: float) -> Event:
    """One of the times when the transaction with that seed is sent. Nothing is told yet."""
    return Event(start, requests=asked(seed), codes=None, key=seed if sent_at_once(seed) > 1 else None)


def asked(seed: str) -> list[WriteRequest]:
    """The transaction with that seed. Every tenth one is of two records that nothing else is of."""
    dice = random.Random(seed)
    asking = Asking(dice.choice, seed)
    if sent_at_once(seed) > 1 and dice.random() < 0.3:
        return [asking.of_passing()]
    return asking.pair() if dice.random() < 0.1 else asking.requests()


async def carry_out(store: Store, event: Event, *, has_lasting_marks: bool = False) -> None:
    """Carries out the transaction of an event, which then has what was told: nothing where the store failed.

    Where processes are killed, or jobs run in between, marks stay for a while, also of those who changed what copies follow.
    """
    key = None if event.key is None else IdempotencyKey((event.key,), event.key.encode())
    try:
        answer = await write(graph, store, event.requests, key)
    except WriteRefused as refused:
        # That others were faster can be so at any time, and so can the mark on a person who comes and goes.
        is_of_passing = _passing_in(event.requests) or any(each.record is note for each in event.requests)
        busy = (_BUSY, _MARKED) if is_of_passing or has_lasting_marks else _BUSY
        found = [each for each in refused.refusals if not each.message.startswith(busy)]
        event.codes = frozenset(each.code for each in found) or frozenset({_BUSY})
    except StoreError:
        pass
    else:
        event.codes = frozenset()
        event.answer = [(each.record.name, each.identity, each.detached) for each in answer]


Beside: TypeAlias = "Callable[[asyncio.Event], Awaitable[None]]"


async def run(store: Store, seed: str, writers: int, each: int, beside: Beside | None = None) -> list[Event]:
    """What so many writers do at the same time, each so many things. `beside` runs until they are done."""
    clock = itertools.count()
    events: list[Event] = []

    async def sends(seed: str) -> None:
        event = event_of(seed, next(clock))
        events.append(event)
        await carry_out(store, event, has_lasting_marks=beside is not None)
        event.end = next(clock) if event.is_sure else math.inf

    async def works(number: int) -> None:
        for turn in range(each):
            mine = f"{seed}-{number}-{turn}"
            if random.Random(f"{mine} reads").random() < 0.2:
                name = name_of(asked(mine)[0])
                start = next(clock)
                try:
                    values = await one(store, name)
                except StoreError:
                    continue
                events.append(Event(start, next(clock), name=name, values=values))
            else:
                await asyncio.gather(*(sends(mine) for _ in range(sent_at_once(mine))))

    async def all_work() -> None:
        await asyncio.gather(*map(works, range(writers)))
        done.set()

    done = asyncio.Event()
    await asyncio.gather(all_work(), *([] if beside is None else [beside(done)]))
    return events


Job: TypeAlias = "Callable[[Store], Awaitable[object]]"


async def run_between(store: Store, seed: str, job: Job | None = None) -> list[Event]:
    """What one transaction does, and up to three others of the same things, each between two of its requests; or what up
    to three do between those of a job."""
    dice, clock, sent = random.Random(f"{seed} between"), itertools.count(), itertools.count()
    several = (Asking(dice.choice, f"{seed}-{number}").request() for number in itertools.count())
    first = next(several)
    near = (each for each in several if not _touched(first).isdisjoint(_touched(each)))
    if job is not None:
        near = several
    others = {dice.choice([0, 1, 1, 2, 2, 3, 4] if job is None else range(40)): next(near) for _ in range(3)}
    events: list[Event] = []

    async def sends(through: Store, request: WriteRequest) -> None:
        events.append(event := Event(next(clock), requests=[request], codes=None))
        await carry_out(through, event)
        event.end = next(clock)

    async def before(_: object) -> None:
        other = others.get(next(sent))
        if other is not None:
            await sends(store, other)

    held = HeldStore(store, before)
    await (sends(held, first) if job is None else job(held))
    return events


def _touched(request: WriteRequest) -> set[object]:
    return things(request) | _passing_in(request)


_beginning: list[Item] = []
"""The items that are there from the start, once they were written one after the other."""


async def begin(store: Store) -> State:
    """Writes what is there from the start: the nodes, and most of what can be between them."""
    if _beginning:
        await store.send(BatchWrite(tuple(_beginning)))
    else:
        await write(graph, store, beginning())
        for number in range(80):
            await carry_out(
                store, Event(0, requests=[Asking(random.Random(number).choice, "first").request()])
            )
        _beginning.extend([item async for item in whole_table(store)])
    return await contents(store)


# --- What is left ---------------------------------------------------------------------------------------


async def problems(
    store: Store, beginning_: State, events: Sequence[Event], *, by_job: bool = False
) -> list[str]:
    """What is wrong with what is left: with the items, with halves, and with what no order explains; `by_job` also with
    what only a job keeps."""
    found = await mistakes(store)
    left = await contents(store)
    found += await wrong_values(store, left, by_job=by_job)
    return [*found, *_halves(left, events), *_unlike(events), *unexplained(beginning_, left, events)]


def _unlike(events: Iterable[Event]) -> Iterator[str]:
    answers: dict[str, list[object]] = {}
    for event in events:
        if event.key is not None and event.answer is not None:
            answers.setdefault(event.key, []).append(event.answer)
    for key, several in answers.items():
        if any(each != several[0] for each in several):
            yield f"{key} was answered {several}"


def _halves(left: Mapping[Name, Values], events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        names = [name_of(request) for request in event.requests]
        if names and all(type_ == "Note" and "-" in identity[0] for type_, identity in names):
            there = sum(name in left for name in names)
            if there not in (0, len(names)) or (event.codes == frozenset() and not there):
                yield f"{there} of {names} are there"


def unexplained(before: State, left: State, events: Iterable[Event]) -> Iterator[str]:
    """The things of which no order of the events explains what was told, and what is left."""
    parts = [part for event in events for part in _parts(event)]
    together = _together([{*map(thing, before), *map(thing, left)}, *(own for _, own in parts)], parts)
    for each in together:
        start, end = ({n: v for n, v in state.items() if thing(n) in each} for state in (before, left))
        own = [event for event, touched in parts if touched <= each]
        # What names none of the people who come and go is the same whether these are there.
        has_stubs = bool(_passing_in((each, own, start))) and not any(type_ == "Person" for type_, _ in each)
        if has_stubs:
            own += filter(None, (_of_node(event) for event, touched in parts if not touched <= each))
            start, end = ({**known, **_there(state)} for known, state in ((start, before), (end, left)))
        keys = Counter(event.key for event in own)
        # The note of a key that was sent once decides nothing.
        own = [event if keys[event.key] > 1 else replace(event, key=None) for event in own]
        problem = Order(own, end, has_stubs=has_stubs).problem({**NODES, **start})
        if problem:
            yield f"{sorted(map(str, each))}: {problem}"


_Thing = tuple[str, frozenset[str]]
_PASSING = {name for (name,) in PASSING}


def _passing_in(named: object) -> set[str]:
    return {name for name in _PASSING if repr(name) in repr(named)}


def _parts(event: Event) -> Iterator[tuple[Event, set[_Thing]]]:
    """An event of each part of a transaction, and what it is of; nothing where what was told says nothing of it."""
    if event.name is not None:
        yield event, {thing(event.name)}
    elif not event.codes or (len(event.requests) == 1 and _BUSY not in event.codes):
        for number, request in enumerate(event.requests):
            is_of_all = request.record is person and isinstance(request, Delete | Move)
            if not (is_of_all and "CONFLICT" in (event.codes or ())):
                key = None if event.key is None else f"{event.key} {number}"
                yield replace(event, requests=[request], key=key), things(request)


def _together(alone: Iterable[set[_Thing]], parts: Iterable[tuple[Event, set[_Thing]]]) -> list[set[_Thing]]:
    """Things, with those of which one may have become the other."""
    found = {each: {each} for several in alone for each in several}
    for event, touched in parts:
        if not event.codes:
            whole = set[_Thing]().union(*(found[each] for each in touched))
            found.update(dict.fromkeys(whole, whole))
    return [*{id(each): each for each in found.values()}.values()]


def _of_node(event: Event) -> Event | None:
    """What an event says of whether a node is there that others name; None for nothing."""
    [request] = event.requests or [None]
    if event.codes or request is None or request.record is not person:
        return None
    name = name_of(request)[1]
    match request:
        case Create() | Upsert() if name in PASSING:
            return replace(event, requests=[replace(request, values={"name": name[0]})])
        case Delete() | Move():
            return replace(event, requests=[replace(request, version=None)])
    return None


def _there(state: State) -> State:
    """Of the people who come and go, those who are there, without what they are besides."""
    return {each: _stub(each) for each in state if _is_passing(each)}


def _is_passing(name: Name) -> bool:
    return name[0] == "Person" and name[1] in PASSING


def _stub(name: Name) -> Values:
    return {"name": name[1][0], "times": 0}


class Order:
    """Looks for an order of the events of one thing that leaves what is left."""

    def __init__(self, events: Iterable[Event], left: State, *, has_stubs: bool) -> None:
        """`has_stubs`: of people who come and go, no more is known than whether they are there."""
        self._events = sorted(events, key=lambda event: event.start)
        self._left = left
        self._has_stubs = has_stubs
        self._all = (1 << len(self._events)) - 1
        unsure = [(event.until, 1 << n) for n, event in enumerate(self._events) if not event.is_sure]
        self._unsure = sum(bit for _, bit in unsure)
        self._untils = sorted(unsure)
        self._too_late = [0, *itertools.accumulate((bit for _, bit in self._untils), operator.or_)]
        """The events without an answer of which so many cannot have been done later."""
        self._seen: dict[tuple[int, frozenset[tuple[Name, str]]], list[tuple[float, int]]] = {}
        """For what was done for sure and the state: the latest start, and the events left that need not have been."""

    def problem(self, state: State) -> str | None:
        """Why there is none; None where there is one."""
        search = [self._from(0, 0.0, state)]
        while search:
            step = next(search[-1], None)
            if step is None:
                search.pop()
            elif step is True:
                return None
            elif len(self._seen) > _MOST_LOOKED_AT:
                return f"undecided with {len(self._events)} events"
            else:
                search.append(self._from(*step))
        return f"no order of {len(self._events)} events explains {self._left}: {self._events}"

    def _from(
        self, done: int, latest: float, state: State
    ) -> Iterator[tuple[int, float, State] | Literal[True]]:
        """What can come next after these events, the latest of which began then; or whether nothing has to."""
        done |= self._too_late[bisect_left(self._untils, (latest, 0))]
        unsure = ~done & self._unsure
        # With more events left that need not have been, and later ones, nothing is explained less.
        key = done | self._unsure, frozenset([(name, _text(values)) for name, values in state.items()])
        known = self._seen.setdefault(key, [])
        if any(latest >= earlier and unsure & ~others == 0 for earlier, others in known):
            return
        known.append((latest, unsure))
        rest = ~done & self._all
        if rest == unsure and self._is_left(state):
            yield True
        last = next((until for until, bit in self._untils if unsure & bit), math.inf)
        made = list[tuple[int, Event, State]]()
        for bit, event in self._can_be_next(rest):
            new = self._after(event, state)
            if new is state and event.is_sure and event.start <= last:
                # What only looks can as well come first, where that makes nothing too late.
                yield done | bit, max(latest, event.start), new
                return
            if new is not None and (event.is_sure or new != state):
                made.append((bit, event, new))
        # Those without an answer took place at once, if at all.
        for bit, event, new in sorted(
            made, key=lambda each: each[1].end if each[1].is_sure else each[1].start
        ):
            yield done | bit, max(latest, event.start), new

    def _can_be_next(self, rest: int) -> list[tuple[int, Event]]:
        """Those of the events before whose start none of these must have ended."""
        found, end = list[tuple[int, Event]](), math.inf
        while rest:
            bit = rest & -rest
            event = self._events[bit.bit_length() - 1]
            if event.start > end:
                break  # so do all that start later
            if event.is_sure:
                end = min(end, event.end)
            found.append((bit, event))
            rest ^= bit
        return found

    def _after(self, event: Event, state: State) -> State | None:
        new = event.after(state)
        if new is None or new is state or not self._has_stubs:
            return new
        return {name: _stub(name) if _is_passing(name) else values for name, values in new.items()}

    def _is_left(self, state: State) -> bool:
        names = {*self._left, *(name for name in state if name not in NODES and name[0] != _NOTE)}
        return all(state.get(name) == self._left.get(name) for name in names)


def _text(values: Values) -> str:
    return repr(
        sorted((name, sorted(v) if isinstance(v, set | frozenset) else v) for name, v in values.items())
    )
