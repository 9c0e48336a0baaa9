"""How many operations a process runs at the same time.

Admission limits the operations that run and those that wait, and refuses all others at once. An operation takes as many
places as its bound is large. One client has at most half of all places, and so have all large operations together:
others, and small ones, always find some. A running operation that waits for a place of another admission, such as for a
read in a thread, leaves its own to others. Of those that wait, one that has had little goes next, and then the one that has
waited longest: who asks seldom is not behind a hundred that ask all the time, and these are not behind ever new ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter

from keygraph.errors import StoreError
from keygraph.incidents import Incident
from keygraph.turns import ClientsInTurn, leave_place, operation_client

_log = logging.getLogger(__name__)

ITEMS_OF_A_PLACE = 1_000
"""An operation whose bound has more items or requests than this takes several places: it is large. So is a body of more
bytes."""
LARGE = "large "
"""The group of all large operations; before the name of a client, those of the client."""
SLOW = "slow "
"""The same of those that have left their places to others."""


class Overloaded(StoreError):
    """The server already has as many operations as it accepts. This one was not started."""


@dataclass(slots=True, eq=False)
class Place:
    """The places of one operation."""

    size: int
    clients: tuple[str, ...]
    limits: Mapping[str, int]
    """The most places of each group of operations that it belongs to."""
    since: float = 0.0
    """When the operation was started."""
    turn: asyncio.Future[None] | None = None
    """What it waits, or has waited, for."""


class Admission:
    """The places of all operations. `running` and `waiting` are how many operations do so at the moment, and
    `refusals.count` is how many were refused.
    """

    def __init__(self, most_running: int, most_waiting: int, *, waits_by_size: bool = False) -> None:
        """`most_waiting` counts operations; with `waits_by_size`, the places that they want."""
        self.running = 0
        self.waiting = 0
        self.refusals = Incident(_log)
        self._queue = ClientsInTurn[tuple[str, ...], Place]()
        """The operations that wait. What clients have had is the time of their places."""
        self._most_waiting = most_waiting
        self._waits_by_size = waits_by_size
        self._all = {"": most_running}
        self._half, self._quarter = max(1, most_running // 2), max(1, most_running // 4)
        self.taken = dict[str, int]()
        """The places that each group of operations has."""
        self._waiting_of = Counter[str]()
        """How many operations of each client wait, or the places that they want."""

    async def enter(self, bound: int = 0, clients: Iterable[str] = ()) -> Place:
        """Returns the place of an operation whose bound is so many items or requests, which it has until it leaves.

        `clients` are names of whoever has sent it, such as an address and a viewer: each of them has a share. Raises
        Overloaded if too many wait already. A running operation that waits here leaves its place in its own admission.
        """
        place = self._place(bound, clients)
        if (self.waiting and place.clients in self._queue) or not self._start(place):
            self._refuse_many(place)
            leave_place()
            await self._wait(place)
        return place

    def leave_to_others(self, place: Place) -> None:
        """Gives the place of a running operation to others: it would keep small ones waiting. It runs on without one, and
        never waits: others may wait for what it holds. As many do so as there are places; more of them keep theirs."""
        slow = Place(place.size, place.clients, {SLOW + group: most for group, most in place.limits.items()})
        if "" in place.limits and LARGE not in place.limits and self._start(slow):
            self.leave(place)
            place.limits, place.since = slow.limits, slow.since

    def enter_at_once(self, clients: Iterable[str] = ()) -> Place | None:
        """Returns a place if there is one; nothing waits."""
        place = self._place(0, clients)
        return place if self._start(place) else None

    def _place(self, bound: int, clients: Iterable[str]) -> Place:
        names, limits = tuple(clients), self._all
        if names:
            limits = limits | dict.fromkeys(names, self._half)
        count = min(1 + bound // ITEMS_OF_A_PLACE, self._quarter)
        if count > 1:
            limits = limits | {LARGE: self._half} | {LARGE + name: self._quarter for name in names}
            names = (LARGE, *names)
        return Place(count, names, limits)

    def leave(self, place: Place) -> None:
        """Gives a place to those that wait."""
        self.running -= 1
        _subtract(self.taken, place.limits, place.size)
        if self.waiting:
            self._queue.count(place.clients, place.size * (perf_counter() - place.since))
            self._start_waiting()

    @asynccontextmanager
    async def place(self, bound: int = 0, clients: Iterable[str] | None = None) -> AsyncIterator[Place]:
        """Keeps a place in a block, by default for the client that has sent the running operation."""
        place = await self.enter(bound, filter(None, [operation_client()]) if clients is None else clients)
        try:
            yield place
        finally:
            self.leave(place)

    def _start(self, place: Place) -> bool:
        """Takes a place if it is free. Returns whether it is."""
        taken, count = self.taken, place.size
        for group, most in place.limits.items():
            if taken.get(group, 0) + count > most:
                return False
        for group in place.limits:
            taken[group] = taken.get(group, 0) + count
        place.since = perf_counter()
        self.running += 1
        return True

    def _refuse_many(self, place: Place) -> None:
        """Raises Overloaded if too many wait already."""
        share = (self._most_waiting + 1) // 2
        if self._waiting_of[""] >= self._most_waiting or any(
            self._waiting_of[each] >= share for each in place.clients
        ):
            self.refusals.happened(
                f"Operations are refused, because {self.running} run and {self.waiting} wait already"
            )
            raise Overloaded("the server has too much to do: try again in a second")

    async def _wait(self, place: Place) -> None:
        count = place.size if self._waits_by_size else 1
        place.turn = turn = asyncio.get_running_loop().create_future()
        self._queue.add(place.clients, place)
        self.waiting += 1
        for each in ("", *place.clients):
            self._waiting_of[each] += count
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave(place)
            else:
                self._queue.remove(place.clients, place)
                self._start_waiting()
            raise
        finally:
            self.waiting -= 1
            _subtract(self._waiting_of, ("", *place.clients), count)

    def _start_waiting(self) -> None:
        """Starts what waits and finds a place."""
        while self._queue and self.taken.get("", 0) < self._all[""] and self._queue.take(self._starts):
            pass

    def _starts(self, place: Place) -> bool:
        turn = place.turn
        if turn is None or turn.cancelled() or not self._start(place):
            return False
        turn.set_result(None)
        return True


def _subtract(counted: dict[str, int], names: Iterable[str], count: int) -> None:
    """Counts less of these names, and forgets those that have nothing left: clients choose some of them."""
    for name in names:
        counted[name] -= count
        if not counted[name]:
            del counted[name]
