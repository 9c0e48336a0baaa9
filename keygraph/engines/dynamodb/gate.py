"""The gate to DynamoDB: limits the requests in flight, and has a circuit breaker that stops them in an outage.

The circuit opens after a time in which every request failed or was throttled, and then refuses requests at once. After
a pause one request goes through as a probe. If it is answered the circuit closes; if not, the next pause is longer.
("Circuit breaker pattern" in AWS Prescriptive Guidance.) It stays closed if only some requests fail: retries handle
those.

Times count only while the process was awake. It stands still when its machine is suspended or overloaded, or when its
event loop is blocked, and does not read answers that arrive meanwhile: then every answer seems late, which says nothing
about DynamoDB.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextvars import Context
from dataclasses import dataclass

from keygraph.dynamo.traffic import Traffic
from keygraph.errors import KeygraphError, StoreError, Throttled, TimedOut, Unavailable, without_frames
from keygraph.incidents import Incident
from keygraph.turns import ClientsInTurn, operation_client

_log = logging.getLogger(__name__)

_OUTAGE_FAILURES = 20
_OUTAGE_SECONDS = 2.0
"""This many failures without an answer are an outage, if the earliest of these requests was sent this long ago, and so was
the last answer: hundreds may be late at once while this server is busy with those before them."""
_BEAT = 0.25
"""The interval in seconds at which the process checks whether it is awake: much less than an outage."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0
"""The time without requests before a probe, in seconds."""


class AwakeClock:
    """Counts the seconds in which the event loop ran, as long as something is waited for."""

    def __init__(self, beat: float) -> None:
        """While something is waited for, the loop is checked every `beat` seconds."""
        self._beat = beat
        self._loop = asyncio.get_running_loop()
        self._seconds = 0.0
        """The seconds until the last check."""
        self._looked: float | None = None
        """When that was, by the loop's time."""
        self.waits = 0
        """How many waits are under way. Whoever ends one counts it down."""
        self._timer: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """Returns the seconds awake. Of a time without a check, at most two beats count during a wait."""
        now = self._loop.time()
        if self._looked is not None:
            passed = now - self._looked
            self._seconds += passed if self._timer is None else min(passed, 2 * self._beat)
        self._looked = now
        return self._seconds

    def wait(self) -> float:
        """Starts a wait. Returns the time."""
        now = self.time()
        self.waits += 1
        if self._timer is None:
            self._timer = self._loop.call_later(self._beat, self._look, context=Context())
        return now

    def _look(self) -> None:
        self.time()
        self._timer = self._loop.call_later(self._beat, self._look) if self.waits else None


class Gate:
    """Lets requests through to one endpoint; shared by all requests of a store."""

    def __init__(self, most: int, endpoint: str, traffic: Traffic, clock: AwakeClock | None = None) -> None:
        """`most` is the number of requests that may be in flight; `endpoint` is DynamoDB's name in messages."""
        self.traffic = traffic
        self.clock = AwakeClock(_BEAT) if clock is None else clock
        self._endpoint = endpoint
        self._free = most
        """How many more requests may be sent."""
        self._waiting = ClientsInTurn[str, asyncio.Future[None]]()
        self.failures = 0
        """The number of failures since the last answer."""
        self._failing_since = 0.0
        """When the first of these was sent, by the clock."""
        self.answered_at = 0.0
        """When the last answer was used, by the clock."""
        self.trouble: StoreError | None = None
        """The last failure, while the circuit is open."""
        self._pause = 0.0
        self._probed_at = 0.0
        """When the next probe may be sent."""
        self.is_probing = False
        self._refused_before = 0
        self._throttling = Incident(_log)
        self._failing = Incident(_log)

    async def enter(self, operation: str) -> Passage:
        """Waits until the request may be sent; the passage must be left. Raises the last failure during an outage."""
        if self.trouble is not None:
            self._refuse_in_outage(self.trouble)
        if self._free:
            self._free -= 1
        else:
            await self._wait_for_place()
        self.is_probing = is_probe = self.trouble is not None
        self.traffic.under_way += 1
        self.traffic.sent[operation] += 1
        return Passage(self, self.clock.wait(), is_probe)

    async def _wait_for_place(self) -> None:
        """Waits for the place of another request. The clients get one in turn."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.add(operation_client(), place)
        self.traffic.waiting += 1
        try:
            await place
            if self.trouble is not None:
                self._refuse_in_outage(self.trouble)
        except BaseException:
            if not place.cancelled():
                self.free_place()
            raise
        finally:
            self.traffic.waiting -= 1

    def free_place(self) -> None:
        """Gives a place to the first that waits for one, of the client whose turn it is."""
        while (taken := self._waiting.take()) is not None:
            client, place = taken
            if not place.done():
                self._waiting.count(client, 1)
                place.set_result(None)
                return
        self._free += 1

    def _refuse_in_outage(self, trouble: StoreError) -> None:
        if self.is_probing or self.clock.time() < self._probed_at:
            self.traffic.refused += 1
            raise type(trouble)(str(trouble))

    def answered(self) -> None:
        """Records the answer that ends an outage, even if it refused the request."""
        _log.warning(
            "DynamoDB at %s answers again after %.0f seconds; %d requests were refused meanwhile",
            self._endpoint,
            self.clock.time() - self._failing_since,
            self.traffic.refused - self._refused_before,
        )
        self.trouble = self.traffic.outage = None

    def failed(self, failure: StoreError, began: float, *, is_probe: bool) -> None:
        """Records that a request sent at `began` was throttled, failed, or was not answered in time."""
        traffic = self.traffic
        if isinstance(failure, Throttled):
            traffic.throttled += 1
            self._throttling.happened(str(failure))
        else:
            traffic.failed += 1
            self._failing.happened(str(failure))
        self._failing_since = min(began, self._failing_since) if self.failures else began
        self.failures += 1
        now = self.clock.time()
        if self.trouble is None:
            since = max(self._failing_since, self.answered_at)
            if self.failures < _OUTAGE_FAILURES or now - since < _OUTAGE_SECONDS:
                return
            self._pause = _FIRST_PAUSE
            self._refused_before = traffic.refused
            traffic.outages += 1
            _log.error(
                "DynamoDB at %s: all of the last %d requests failed, within %.1f seconds. Requests are refused until it "
                "answers again",
                self._endpoint,
                self.failures,
                now - self._failing_since,
            )
        elif is_probe:
            self._pause = min(_LONGEST_PAUSE, self._pause * 2)
        else:
            return  # it was sent before the circuit opened
        self.trouble, traffic.outage = without_frames(failure), str(failure)
        # Processes that lost DynamoDB together do not probe together.
        self._probed_at = now + self._pause * random.uniform(0.75, 1.0)


@dataclass(slots=True)
class Passage:
    """One request that was let through. It is left once, by one of the methods."""

    gate: Gate
    began: float
    is_probe: bool
    is_answered: bool = False

    def answered(self) -> None:
        """Called when an answer has come: from then on, it is this server that takes long."""
        self.is_answered = True

    def leave(self, failure: KeygraphError | None = None) -> None:
        """Leaves with the answer (None), or with a failure."""
        gate = self.gate
        self._end()
        if failure is not None and isinstance(failure, Throttled | TimedOut | Unavailable):
            gate.failed(failure, self.began, is_probe=self.is_probe)
            return
        gate.failures, gate.answered_at = 0, gate.clock.time()
        if gate.trouble is not None:
            gate.answered()

    def give_up(self, late: TimedOut) -> None:
        """Leaves without an answer, because nobody waits for it any more. `late` is the failure if it took long."""
        if not self.is_answered and self.gate.clock.time() - self.began >= _OUTAGE_SECONDS:
            self.leave(late)
        else:
            self._end()

    def _end(self) -> None:
        gate = self.gate
        gate.traffic.under_way -= 1
        gate.clock.waits -= 1
        gate.free_place()
        if self.is_probe:
            gate.is_probing = False
