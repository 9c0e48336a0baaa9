"""The gate to DynamoDB: limits the requests in flight, and has a circuit breaker that stops them in an outage.

The circuit opens after a time in which every request failed or was throttled, and then refuses requests at once. After
a pause one request goes through as a probe. If it is answered the circuit closes; if not, the next pause is longer.
("Circuit breaker pattern" in AWS Prescriptive Guidance.) It stays closed if only some requests fail: retries handle
those. Times count only while the process was awake: after it stood still, every answer seems late.
"""

from __future__ import annotations

import asyncio
import logging
import random

from keygraph.dynamo.traffic import Traffic
from keygraph.engines.dynamodb.awake import AwakeClock
from keygraph.errors import KeygraphError, StoreError, Throttled, TimedOut, Unavailable
from keygraph.incidents import Incident

_log = logging.getLogger(__name__)

_OUTAGE_FAILURES = 20
_OUTAGE_SECONDS = 2.0
"""This many failures without an answer are an outage, if the earliest of these requests was sent this long ago."""
_BEAT = 0.25
"""The interval in seconds at which the process checks whether it is awake: much less than an outage."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0
"""The time without requests before a probe, in seconds."""


class Gate:
    """Lets requests through to one endpoint; shared by all requests of a store."""

    def __init__(self, most: int, endpoint: str, traffic: Traffic, clock: AwakeClock | None = None) -> None:
        """`most` is the number of requests that may be in flight; `endpoint` is DynamoDB's name in messages."""
        self.traffic = traffic
        self.clock = AwakeClock(_BEAT) if clock is None else clock
        self._endpoint = endpoint
        self._places = asyncio.Semaphore(most)
        self._failures = 0
        """The number of failures since the last answer."""
        self._failing_since = 0.0
        """When the first of these was sent, by the clock."""
        self._trouble: StoreError | None = None
        """The last failure, while the circuit is open."""
        self._pause = 0.0
        self._probed_at = 0.0
        """When the next probe may be sent."""
        self._is_probing = False
        self._refused_before = 0
        self._throttling = Incident(_log)
        self._failing = Incident(_log)

    async def enter(self, operation: str) -> Passage:
        """Waits until the request may be sent; the passage must be left. Raises the last failure during an outage."""
        self._refuse_in_outage()
        traffic = self.traffic
        traffic.waiting += 1
        try:
            await self._places.acquire()
        finally:
            traffic.waiting -= 1
        try:
            self._refuse_in_outage()
        except StoreError:
            self._places.release()
            raise
        self._is_probing = is_probe = self._trouble is not None
        traffic.under_way += 1
        traffic.sent[operation] += 1
        return Passage(self, self.clock.wait(), is_probe=is_probe)

    def _refuse_in_outage(self) -> None:
        trouble = self._trouble
        if trouble is None:
            return
        if self._is_probing or self.clock.time() < self._probed_at:
            self.traffic.refused += 1
            raise type(trouble)(str(trouble))

    def left(self, *, is_probe: bool) -> None:
        """Ends a passage. Called once for each, even if the request failed."""
        self.traffic.under_way -= 1
        self.clock.waited()
        self._places.release()
        if is_probe:
            self._is_probing = False

    def answered(self) -> None:
        """Records an answer of DynamoDB, even if it refused the request."""
        self._failures = 0
        if self._trouble is None:
            return
        now = self.clock.time()
        _log.warning(
            "DynamoDB at %s answers again after %.0f seconds; %d requests were refused meanwhile",
            self._endpoint,
            now - self._failing_since,
            self.traffic.refused - self._refused_before,
        )
        self._trouble = self.traffic.outage = None

    def failed(self, failure: StoreError, began: float, *, is_probe: bool) -> None:
        """Records that a request sent at `began` was throttled, failed, or was not answered in time."""
        traffic = self.traffic
        if isinstance(failure, Throttled):
            traffic.throttled += 1
            self._throttling.happened(str(failure))
        else:
            traffic.failed += 1
            self._failing.happened(str(failure))
        self._failing_since = min(began, self._failing_since) if self._failures else began
        self._failures += 1
        now = self.clock.time()
        if self._trouble is None:
            if self._failures < _OUTAGE_FAILURES or now - self._failing_since < _OUTAGE_SECONDS:
                return
            self._pause = _FIRST_PAUSE
            self._refused_before = traffic.refused
            traffic.outages += 1
            _log.error(
                "DynamoDB at %s: all of the last %d requests failed, within %.1f seconds. Requests are refused until it "
                "answers again",
                self._endpoint,
                self._failures,
                now - self._failing_since,
            )
        elif is_probe:
            self._pause = min(_LONGEST_PAUSE, self._pause * 2)
        else:
            return  # it was sent before the circuit opened
        self._trouble, traffic.outage = failure, str(failure)
        # Processes that lost DynamoDB together do not probe together.
        self._probed_at = now + self._pause * random.uniform(0.75, 1.0)


class Passage:
    """One request that was let through. It is left once, by one of the methods."""

    __slots__ = ("_began", "_gate", "_is_probe")

    def __init__(self, gate: Gate, began: float, *, is_probe: bool) -> None:
        self._gate = gate
        self._is_probe = is_probe
        self._began = began

    def leave(self, failure: KeygraphError | None = None) -> None:
        """Leaves with the answer (None), or with a failure."""
        gate = self._gate
        gate.left(is_probe=self._is_probe)
        if failure is not None and isinstance(failure, Throttled | TimedOut | Unavailable):
            gate.failed(failure, self._began, is_probe=self._is_probe)
        else:
            gate.answered()

    def give_up(self, late: TimedOut) -> None:
        """Leaves without an answer, because nobody waits for it any more. `late` is the failure if it took long."""
        if self._gate.clock.time() - self._began >= _OUTAGE_SECONDS:
            self.leave(late)
        else:
            self._gate.left(is_probe=self._is_probe)
