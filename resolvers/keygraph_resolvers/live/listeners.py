"""Live operations, and those who listen to them.

An operation has no answers: a listener that waits gets one, one that does not is behind, or keeps answers to changes until it
reads them. `queries` decides when an operation runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from keygraph.admission import Place
from keygraph.codes import Code
from keygraph.errors import KeygraphError
from keygraph.limits import LiveLimits
from keygraph.model.permissions import Permissions
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.live.matching import OwnReads
from keygraph_resolvers.plan.documents import OperationRequest
from keygraph_resolvers.read.changes import RecordChange
from keygraph_resolvers.read.meter import Holding


class LiveAnswer(NamedTuple):
    """An answer in the form that is sent."""

    text: bytes
    is_refusal: bool = False
    """Whether nothing was executed, or nothing more will be: it has errors alone, and is the last one."""


def _last(message: str, code: str) -> LiveAnswer:
    errors = [{"message": message, "extensions": {"code": code}}]
    return LiveAnswer(orjson.dumps({"errors": errors}), is_refusal=True)


_LOST = _last(
    "changes were lost: subscribe again, and ask by a query for what is there now", OperationCode.EVENTS_LOST
)
EXPIRED = _last("the token has expired: send the subscription again with a new one", Code.UNAUTHENTICATED)


class LiveLimitReached(KeygraphError):
    """There are as many live operations as there may be."""

    code = OperationCode.LIVE_LIMIT

    @property
    def response(self) -> dict[str, Any]:
        """The answer that it becomes."""
        return {"errors": [{"message": str(self), "extensions": {"code": self.code}}]}


@dataclass(slots=True)
class LiveCounts:
    """What has happened so far, for metrics."""

    changes: int = 0
    touched: int = 0
    """How often a change has touched an operation."""
    runs: int = 0
    unchanged: int = 0
    """Runs whose answer everybody had."""
    refused: int = 0
    failures: int = 0
    """How often the changes could not be read."""
    lost: int = 0
    """Listeners that were ended because changes did not reach them."""


class RunsOperations(Protocol):
    """What runs live operations."""

    limits: LiveLimits
    counts: LiveCounts

    def hold(self, size: int, client: str = "") -> bool: ...
    def need_run(self, operation: LiveOperation, *, is_urgent: bool = False) -> None: ...
    def left(self, operation: LiveOperation, listener: Listener) -> None: ...


class Listener:
    """Somebody who listens to an operation. `end` it in the end."""

    def __init__(self, operation: LiveOperation, place: Place, address: str) -> None:
        self.operation = operation
        self.place = place
        self.address = address
        self.client = address or next(iter(place.clients), "")
        self.sent = b""
        """The hash of the last answer; empty before the first."""
        self._waiting: asyncio.Future[LiveAnswer | None] | None = asyncio.get_running_loop().create_future()
        """Awaited for the next answer; None while nobody waits."""
        self._is_behind = False
        self._waiting_answers = deque[LiveAnswer]()
        """The answers to changes that it has not read."""
        self._last: LiveAnswer | None = None
        self._expires: asyncio.TimerHandle | None = None
        self.has_ended = False

    async def next(self) -> LiveAnswer | None:
        """Waits for the next answer, and returns it; None after the last one."""
        if self._waiting is None and not self.has_ended:
            if self._waiting_answers:
                next_ = self._waiting_answers.popleft()
                self.operation.queries.hold(-len(next_.text), self.client)
                return next_
            self._waiting = asyncio.get_running_loop().create_future()
            if self._is_behind:
                self._is_behind = False
                self.operation.queries.need_run(self.operation, is_urgent=True)
        answer = None
        if self._waiting is not None:
            try:
                answer = await self._waiting
            finally:
                self._waiting = None
        if answer is None:
            answer, self._last = self._last, None
        return answer

    def take(self, answer: LiveAnswer, digest: bytes) -> None:
        """Gives it an answer, unless that is the one that it had last."""
        if self.has_ended or self.sent == digest:
            return
        if self._waiting is None or self._waiting.done():
            self._is_behind = True
            return
        self.sent = digest
        self._waiting.set_result(answer)

    def add(self, answer: LiveAnswer) -> None:
        """Gives it an answer to a change, after those that it has not read."""
        queries = self.operation.queries
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)
        elif len(self._waiting_answers) < queries.limits.live_events and queries.hold(
            len(answer.text), self.client
        ):
            self._waiting_answers.append(answer)
        else:
            self.lose()

    def lose(self) -> None:
        """Ends it, because changes do not reach it."""
        if not self.has_ended:
            self.operation.queries.counts.lost += 1
            self.end(_LOST)

    def end(self, last: LiveAnswer | None = None) -> None:
        """Ends it, with a last answer if there is one."""
        if not self.has_ended:
            self.has_ended = True
            self._last = last
            self.operation.queries.hold(-sum(len(each.text) for each in self._waiting_answers), self.client)
            self._waiting_answers.clear()
            if self._expires is not None:
                self._expires.cancel()
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(None)
            self.operation.queries.left(self.operation, self)

    def end_after(self, seconds: float, last: LiveAnswer) -> None:
        """Ends it with a last answer after some seconds."""
        self._expires = asyncio.get_running_loop().call_later(seconds, self.end_in_turn, last)

    def end_in_turn(self, last: LiveAnswer) -> None:
        """Ends it with a last answer, in turn with others: a token may be that of thousands."""
        rounds().enter(self.client).add_done_callback(lambda _: self.end(last))


class WaitingChange(NamedTuple):
    """A change for which an operation is to be run."""

    change: RecordChange
    is_visible: bool
    """Whether the viewer sees it; if not, other items decide that."""


@dataclass(eq=False)
class LiveOperation:
    """An operation that some listen to."""

    queries: RunsOperations
    key: Hashable
    request: OperationRequest
    """What all requests for it have in common, with the viewer of the first one."""
    size: int
    """The bytes of its document, its variables and its viewer's claims."""
    payer: str
    """The client that it counts for, among those that listen."""
    address: str
    read: int = 0
    """How many keys and ranges are held for it."""
    reads: OwnReads[LiveOperation] = field(init=False)
    listeners: dict[Listener, None] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    """The run under way."""
    is_due: bool = False
    settles: bool = False
    """Whether it runs once more after the next run, if that reads a global index."""
    failures: int = 0
    changes: deque[WaitingChange] = field(default_factory=deque)
    """Those that it is to be run for."""
    visible: int = 0
    """How many of them the viewer sees for sure."""
    access: Permissions | None = None
    """The viewer's permissions, by what is known without reading other items; None if there are no rules."""
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    refusal: LiveLimitReached | None = None
    """Why it is ended: it has read too much."""
    lease: Holding | None = None
    """The memory of its run."""

    def wants_changes(self) -> bool:
        """Returns whether it is run for changes; known after its first run."""
        return self.reads.wanted is not None

    def begin(self, lease: Holding) -> None:
        """A run begins, with this memory."""
        self.lease, self.refusal = lease, None

    def call_later(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        """Sets one of its timers."""
        self.cancel(name)
        self.timers[name] = asyncio.get_running_loop().call_later(seconds, call)

    def cancel(self, name: str) -> None:
        """Stops one of its timers."""
        timer = self.timers.pop(name, None)
        if timer is not None:
            timer.cancel()
