"""Runs live operations, again when they are touched, for all who listen.

An operation is one document with its variables and viewer, however many listen to it. It is run when somebody begins to
listen, and when a change touches what it has read. Its answer goes to those whose last answer was another one.

Nothing is missed. Changes are followed from a position that is taken before anything is read. What an operation reads is
recorded before it is requested, so a change that comes while it runs touches it, and it runs once more. Reads are
consistent, except in global indexes, which DynamoDB writes later than the table: what has read one is run once more, after
`settle` seconds.

An operation of changes (`orderChanged`) is run once to learn what it wants, and then for each change, in their order. Its
answers wait for those who listen: one who has too many waiting, or an operation that cannot keep up, ends with an error.

No other answer is kept. A listener that is not waiting for an answer when one comes is behind: when it waits again, the
operation is run for it, so it gets the newest answer and none in between. A slow client costs no memory.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import islice
from sys import getsizeof
from typing import Any, Protocol

from keygraph.access.claims import Claims, Viewer
from keygraph.admission import Admission
from keygraph.codes import Code
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.items import stable_text
from keygraph.dynamo.streams import StreamRecord
from keygraph.errors import StoreError, StreamTrimmed, again, without_frames
from keygraph.incidents import Incident
from keygraph.limits import LiveLimits
from keygraph.model.permissions import Permissions
from keygraph_resolvers.engine.engine import rounds
from keygraph_resolvers.errors import internal_error
from keygraph_resolvers.live.listeners import (
    EXPIRED,
    Listener,
    LiveAnswer,
    LiveCounts,
    LiveLimitReached,
    LiveOperation,
    WaitingChange,
)
from keygraph_resolvers.live.matching import OwnReads, ReadIndex
from keygraph_resolvers.plan.documents import Observation, OperationRequest
from keygraph_resolvers.read.changes import UNDECIDED, RecordChange, record_changes, visible_kind
from keygraph_resolvers.read.meter import Holding
from keygraph_resolvers.read.run import ReadTime
from keygraph_resolvers.service import Service

_log = logging.getLogger(__name__)

_GATHERED_SECONDS = 0.05
"""Changes of so many seconds are handled in one run of what they touch."""
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The seconds before an operation is run again that could not be answered at the moment, and before changes are requested
again that could not be read; the last one from then on."""
_UNSENT_FAILURES = 3
"""So many times in a row, only those who have no answer yet learn of that."""
_AT_THE_MOMENT = frozenset([Code.UNAVAILABLE, Code.THROTTLED, Code.TIMEOUT])
_FOLLOWING_PAUSE = 1.0
"""The seconds before changes are requested again that could not be followed."""
_LINGER_SECONDS = 30.0
"""How long the changes are followed after nobody listens anymore: beginning anew takes several requests."""
_SENT_AT_ONCE = 16
"""So many listeners get an answer in a turn of the event loop."""
_LOOKED_AT = 16
"""So many listeners of an operation are asked which client it counts for."""
_AGAIN = "again"
"""The timer of an operation that could not be answered."""
_CHANGES_AT_ONCE = 20
"""After so many changes, another operation has its turn."""
_BATCH_SECONDS = 1.0
"""So long, at most, what other items decide holds for the changes after it."""
_CHANGES = "changes"
"""Whose turn it is to look at changes."""
_WAITING_BYTES = 72
"""The memory of a change that waits, for each operation."""
_FOREVER = 1_000_000_000.0
"""In seconds: 30 years. Timers refuse a time that is much longer."""


class ChangeSource(Protocol):
    """Where the changes of the table come from: a `StreamReader`, or `PublishedChanges`."""

    async def start_at_latest(self) -> None:
        """Skips everything that was changed so far. Raises StoreError."""

    async def read(self) -> Sequence[tuple[str, StreamRecord]]:
        """Returns the next changes, each with the name of its shard. Raises StoreError, StreamTrimmed if some may be
        missing."""


_READ_BYTES = 400
"""The memory of a key or range that an operation has read, as measured by tracemalloc."""
_VALUE_BYTES = 100
"""The memory of a value in variables beside its text: an empty list has 3 characters."""
_OF_ONE = 16
"""One operation may keep this part of the memory for what it has read. It is dropped and kept again in each run."""
_TOO_MANY = "there are as many subscriptions as there may be: {:,}, half of them for one client"
_TOO_MUCH_MEMORY = "subscriptions need more memory than they may have: ask for smaller pages, or by a query"


class LiveQueries:
    """The live operations of a process.

    `written` returns an answer in the form that is sent. `leeway` is how many seconds after its time a viewer's token
    (`exp`) is good. The changes are read again after `poll` seconds. `settle` is how many seconds after the table a global index is written at the latest; 0 if at once.
    """

    def __init__(
        self,
        service: Service,
        changes: ChangeSource,
        written: Callable[[dict[str, Any]], Awaitable[bytes]],
        *,
        limits: LiveLimits | None = None,
        leeway: float = 0.0,
        poll: float = 0.05,
        settle: float = 0.0,
    ) -> None:
        self.limits = limits or LiveLimits()
        self.counts = LiveCounts()
        self._trouble = Incident(_log)
        self._service = service
        self._changes = changes
        self._written = written
        self._leeway = leeway
        self._poll = poll
        self._settle = settle
        table = service.store.table
        self._later = frozenset(index.name for index in table.indexes if not index.local)
        """The global indexes."""
        self.index: ReadIndex[LiveOperation] = ReadIndex(table)
        self._places = Admission(self.limits.live_operations, 0)
        self._operations: dict[Hashable, LiveOperation] = {}
        self._texts = 0
        """The bytes of their documents and variables, and of the changes that wait."""
        self._held_of = Counter[str]()
        """The bytes that count for each client."""
        self._due: dict[str, deque[LiveOperation]] = {}
        """What is to run, by the client that it counts for; they are in turn."""
        self._running = Counter[str]()
        self._gathering: asyncio.TimerHandle | None = None
        self._following: asyncio.Task[None] | None = None
        self._has_begun: asyncio.Future[None] | None = None
        self._failure: tuple[float, StoreError] | None = None
        """When the changes could not be followed last, and why."""
        self._resting: asyncio.TimerHandle | None = None
        self.closed = asyncio.Event()
        """Set when the server stops."""

    @property
    def listeners(self) -> int:
        """How many listen."""
        return self._places.running

    @property
    def operations(self) -> int:
        """How many operations they listen to."""
        return len(self._operations)

    @property
    def held(self) -> int:
        """The approximate bytes that are kept for them."""
        return self._texts + _READ_BYTES * self.index.size

    def is_expired(self, viewer: Claims | None) -> bool:
        """Returns whether the token of a viewer has expired."""
        left = self._seconds_left(viewer)
        return left is not None and left <= 0.0

    def _seconds_left(self, viewer: Claims | None) -> float | None:
        expires, now = (viewer or {}).get("exp"), time.time()
        return min(expires, now + _FOREVER) + self._leeway - now if isinstance(expires, int | float) else None

    async def listen(self, request: OperationRequest, address: str = "") -> Listener:
        """Returns a new listener to a request, which counts for that address. Raises LiveLimitReached, and StoreError if
        the changes cannot be followed."""
        clients = (address,) * bool(address) + request.clients
        place = None if self.closed.is_set() else self._places.enter_at_once(dict.fromkeys(clients))
        if place is None:
            self.counts.refused += 1
            raise LiveLimitReached(_TOO_MANY.format(self.limits.live_operations))
        try:
            await self._follow()
            operation = self._operation_of(request, address or next(iter(clients), ""), address)
        except BaseException:
            self._places.leave(place)
            self._rest()
            raise
        request.document, request.variables = operation.request.document, operation.request.variables
        listener = Listener(operation, place, address)
        operation.listeners[listener] = None
        left = self._seconds_left(request.viewer)
        if left is not None:
            listener.end_after(max(0.0, left), EXPIRED)
        self.need_run(operation, is_urgent=True)
        return listener

    def _operation_of(self, request: OperationRequest, client: str, address: str) -> LiveOperation:
        """Returns the operation of a request. Raises LiveLimitReached if a new one takes too much memory."""
        key, size = _key_of(request)
        operation = self._operations.get(key)
        if operation is None:
            if not self.hold(size, client):
                self.counts.refused += 1
                raise LiveLimitReached(_TOO_MUCH_MEMORY)
            common = OperationRequest(
                request.document,
                request.variables,
                request.operation_name,
                viewer=request.viewer,
                context=request.context,
            )
            operation = self._operations[key] = LiveOperation(self, key, common, size, client, address)
            operation.reads = self._new_reads(operation)
        return operation

    def _new_reads(self, operation: LiveOperation) -> OwnReads[LiveOperation]:
        return self.index.of(operation, partial(self._counted, operation))

    def left(self, operation: LiveOperation, listener: Listener) -> None:
        """Called when a listener leaves its operation; the last one ends it."""
        operation.listeners.pop(listener, None)
        self._places.leave(listener.place)
        if operation.listeners or self._operations.get(operation.key) is not operation:
            return
        del self._operations[operation.key]
        operation.reads.forget()
        del operation.reads  # they reference it: it would wait for the garbage collector
        self.hold(-operation.size, operation.payer)
        while operation.changes:
            self._next_change(operation)
        for name in [*operation.timers]:
            operation.cancel(name)
        if operation.task is not None and operation.task is not asyncio.current_task():
            operation.task.cancel()
        self._rest()

    def _rest(self) -> None:
        """Stops to follow the changes if nobody listens for a while."""
        if not self._places.running and self._following is not None and self._resting is None:
            self._resting = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._stop_following)

    def _stop_following(self) -> None:
        self._resting = None
        if not self._places.running and self._following is not None:
            self._following.cancel()
            self._following = self._has_begun = None

    def close(self) -> None:
        """Ends all, because the server stops."""
        self.closed.set()
        for operation in [*self._operations.values()]:
            for listener in [*operation.listeners]:
                listener.end()
        for timer in (self._gathering, self._resting):
            if timer is not None:
                timer.cancel()
        self._stop_following()

    # --- Memory ---------------------------------------------------------------------------------------

    def hold(self, size: int, client: str = "") -> bool:
        """Keeps so many bytes more for a client, or for a change that waits. Returns False if there is no room."""
        if size > 0 and self._is_too_much(client, size):
            return False
        self._texts += size
        self._hold(client, size)
        return True

    def _hold(self, client: str, size: int) -> None:
        self._held_of[client] += size
        if not self._held_of[client]:
            del self._held_of[client]

    def _is_too_much(self, client: str, more: int = 0) -> bool:
        """Returns whether all hold too much, or whether one client holds more than half."""
        most = self.limits.live_memory
        return self.held + more > most or (bool(client) and self._held_of[client] + more > most // 2)

    def _counted(self, operation: LiveOperation, number: int) -> None:
        """Counts the reads of an operation, and ends it if it reads too much."""
        self._hold(operation.payer, _READ_BYTES * number)
        operation.read += number
        if number > 0 and operation.lease is not None and operation.refusal is None:
            own = _READ_BYTES * operation.read
            if own > self.limits.live_memory // _OF_ONE or self._is_too_much(operation.payer):
                operation.lease.refusal = operation.refusal = LiveLimitReached(_TOO_MUCH_MEMORY)

    def _choose_payer(self, operation: LiveOperation) -> None:
        """Lets an operation count for the client among its listeners that holds least: nobody can slow it down for others."""
        if len(operation.listeners) > 1:
            some = islice(operation.listeners, _LOOKED_AT)
            chosen = min(some, key=lambda each: self._held_of[each.client])
            size = operation.size + _READ_BYTES * operation.read + _WAITING_BYTES * len(operation.changes)
            self._hold(operation.payer, -size)
            operation.payer, operation.address = chosen.client, chosen.address
            self._hold(operation.payer, size)

    # --- The changes ----------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Begins to follow the changes if nobody has, and waits for their position. Raises StoreError."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if self._following is None or self._following.done():
            if self._failure is not None and time.monotonic() - self._failure[0] < _FOLLOWING_PAUSE:
                raise again(self._failure[1])
            self._has_begun = asyncio.get_running_loop().create_future()
            self._following = asyncio.create_task(self._read_changes(self._has_begun))
        if self._has_begun is not None:
            await asyncio.shield(self._has_begun)

    async def _read_changes(self, has_begun: asyncio.Future[None]) -> None:
        try:
            await self._changes.start_at_latest()
        except BaseException as error:
            if not has_begun.done():
                failure = without_frames(error) if isinstance(error, StoreError) else StoreError("no changes")
                self._failure = time.monotonic(), failure
                _log.warning("The changes of the table cannot be read: %s", failure)
                has_begun.set_exception(again(failure))
                has_begun.exception()
            if not isinstance(error, StoreError):
                raise
            return
        has_begun.set_result(None)
        failures, is_lost = 0, False
        while True:
            try:
                if is_lost:
                    # What is left of them was before the next subscription.
                    await self._changes.start_at_latest()
                    self._run_all()
                    is_lost = False
                changes = [change for _, change in await self._changes.read()]
            except StreamTrimmed as error:
                failures, is_lost = 0, True
                _log.warning("All live operations run again: %s", error)
                await asyncio.sleep(self._poll)
            except Exception as error:
                self.counts.failures += 1
                if isinstance(error, StoreError):
                    self._trouble.happened(f"The changes of the table cannot be read at the moment: {error}")
                else:
                    _log.exception("The changes of the table cannot be read")
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
            else:
                failures = 0
                await self.changed(changes)
                await asyncio.sleep(self._poll)

    async def changed(self, changes: Sequence[StreamRecord]) -> None:
        """Lets run again what these changes touch, and what wants them, in turns with everything else."""
        counts, touched = self.counts, self.index.touched
        for change in changes:
            counts.changes += 1
            try:
                operations = touched(change.old, change.new)
            except Exception:
                _log.exception("It is not known what a change touches: all live operations run again")
                self._run_all()
                continue
            for operation in operations:
                counts.touched += 1
                self.need_run(operation)
            for each in await self._records(change) if self.index.changes else ():
                for operation in self.index.changes.wanting(each):
                    counts.touched += 1
                    if operation.listeners:  # they may have left since
                        self._add(operation, each)
                    await rounds().begin(_CHANGES)
            await rounds().begin(_CHANGES)

    async def _records(self, change: StreamRecord) -> list[RecordChange]:
        """Returns what a change of an item is to the model. Many values are compared in a thread."""
        found = [*record_changes(self._service.schema.graph, change.old, change.new, change.at)]
        if any(each.is_large for each in found):
            await in_daemon_thread(lambda: [each.compared() for each in found])
        return found

    def _add(self, operation: LiveOperation, change: RecordChange) -> None:
        """Lets an operation run for a change, after those that it has not been run for, unless its viewer sees nothing of
        it: an operation ends because of what its viewer sees."""
        wanted = operation.reads.wanted
        kind = None if wanted is None else visible_kind(operation.access, change, wanted)
        if kind is None:
            return
        is_visible = kind is not UNDECIDED
        if (is_visible and operation.visible >= self.limits.live_events) or not self._hold_change(
            operation, change
        ):
            _lose(operation)
            return
        change.waits += 1
        operation.visible += is_visible
        operation.changes.append(WaitingChange(change, is_visible))
        if _AGAIN not in operation.timers:
            self.need_run(operation)

    def _access_of(self, operation: LiveOperation) -> Permissions | None:
        """Returns the permissions of an operation's viewer, without what other items decide."""
        graph = self._service.schema.graph
        if not graph.has_access_rules:
            return None
        return Permissions(Viewer(operation.request.viewer or {}), ReadTime(graph).is_there)

    def _hold_change(self, operation: LiveOperation, change: RecordChange) -> bool:
        """Keeps a change for an operation. Returns False if there is no room."""
        if not self.hold(_WAITING_BYTES, operation.payer):
            return False
        if change.waits or self.hold(change.size):
            return True
        self.hold(-_WAITING_BYTES, operation.payer)
        return False

    def _next_change(self, operation: LiveOperation) -> None:
        """Forgets the change that an operation has been run for."""
        change, is_visible = operation.changes.popleft()
        operation.visible -= is_visible
        self.hold(-_WAITING_BYTES, operation.payer)
        change.waits -= 1
        if not change.waits:
            self.hold(-change.size)

    def _run_all(self) -> None:
        """Lets all run again, because changes may be missing. Those who want the changes learn that."""
        for operation in [*self._operations.values()]:
            if not operation.wants_changes():
                self.need_run(operation)
            else:
                _lose(operation)

    # --- The runs -------------------------------------------------------------------------------------

    def need_run(self, operation: LiveOperation, *, is_urgent: bool = False, settles: bool = True) -> None:
        """Lets an operation run, soon, or with others that the next changes touch."""
        operation.settles |= settles
        if not operation.is_due:
            operation.is_due = True
            if operation.task is None:
                self._choose_payer(operation)
                self._due.setdefault(operation.payer, deque()).append(operation)
        if is_urgent:
            self._start()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(_GATHERED_SECONDS, self._start)

    def _start(self) -> None:
        """Starts what is due, as far as there are places: the clients in turn, each with half of them at most."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        most = self.limits.live_running
        while self._running.total() < most:
            half, running = max(1, most // 2), self._running
            payer = next((each for each in self._due if not each or running[each] < half), None)
            if payer is None:
                return
            waiting = self._due.pop(payer)
            operation = waiting.popleft()
            if waiting:
                self._due[payer] = waiting  # after all others
            operation.is_due = False
            if operation.listeners:
                running[payer] += 1
                operation.task = asyncio.create_task(self._run(operation, payer))
                operation.task.add_done_callback(partial(self._ended, operation, payer))

    async def _run(self, operation: LiveOperation, payer: str) -> None:
        """Runs an operation once, or for changes, and sends its answers."""
        operation.cancel(_AGAIN)
        if self.is_expired(operation.request.viewer):
            # The time of day has moved on more than that of timers: the machine was suspended, or its clock set.
            for listener in [*operation.listeners]:
                listener.end_in_turn(EXPIRED)
            return
        settles, operation.settles = operation.settles, False
        if operation.wants_changes():
            await self._run_changes(operation, payer)
            return
        await rounds().begin(payer)
        operation.access = self._access_of(operation)
        response, text = await self._answer(operation)
        self._failed(operation, response)
        if operation.wants_changes():
            return
        operation.access = None
        digest = sha256(_without_ids(text, response)).digest()
        await self._send(operation, LiveAnswer(text, is_refusal="data" not in response), digest)
        if settles and self._settle and operation.listeners and operation.reads.uses(self._later):
            operation.call_later(
                "settle", self._settle, partial(self.need_run, operation, is_urgent=True, settles=False)
            )

    async def _run_changes(self, operation: LiveOperation, payer: str) -> None:
        """Runs an operation for some of the changes that it wants, in their order.

        What other items decide is read once for all of them, after they were made.
        """
        wanted, access = operation.reads.wanted, self._access_of(operation)
        left, ends = _CHANGES_AT_ONCE, time.monotonic() + _BATCH_SECONDS
        for _ in range(len(operation.changes)):
            await rounds().begin(payer)
            if wanted is None or not operation.changes or not left or time.monotonic() > ends:
                break
            change = operation.changes[0].change
            if visible_kind(access, change, wanted) is None:
                self._next_change(operation)
                continue
            left -= 1
            response, text = await self._answer(operation, change, access)
            if self._failed(operation, response) and operation.failures < _UNSENT_FAILURES:
                return
            operation.cancel(_AGAIN)
            operation.failures = 0
            self._next_change(operation)
            if "errors" not in response and not any(response["data"].values()):
                continue  # the viewer sees nothing of it
            answer = LiveAnswer(text, is_refusal="data" not in response)
            for number, listener in enumerate([*operation.listeners], 1):
                if number % _SENT_AT_ONCE == 0:
                    await rounds().enter(listener.client)
                if answer.is_refusal:
                    listener.end(answer)
                elif not listener.has_ended:
                    listener.add(answer)
            if not operation.listeners:
                return
        operation.is_due |= bool(operation.changes)

    def _failed(self, operation: LiveOperation, response: dict[str, Any]) -> bool:
        """Returns whether an operation cannot be answered at the moment; it runs again then, after a pause."""
        codes = {error.get("extensions", {}).get("code") for error in response.get("errors", ())}
        operation.failures = operation.failures + 1 if codes & _AT_THE_MOMENT else 0
        if operation.failures:
            pause = _PAUSES[min(operation.failures, len(_PAUSES)) - 1]
            operation.call_later(_AGAIN, pause, partial(self.need_run, operation, is_urgent=True))
        return bool(operation.failures)

    def _ended(self, operation: LiveOperation, payer: str, _: object) -> None:
        """A run has ended, or was canceled, perhaps before it began."""
        self._running[payer] -= 1
        if not self._running[payer]:
            del self._running[payer]
        operation.task = None
        if operation.is_due and operation.listeners:
            # It was touched while it ran.
            operation.is_due = False
            self.need_run(operation, is_urgent=operation.wants_changes())
        if self._due and self._gathering is None:
            self._start()

    async def _answer(
        self,
        operation: LiveOperation,
        change: RecordChange | None = None,
        access: Permissions | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Returns the response of an operation, and the text that is sent."""
        try:
            with self._service.memory.holding(operation.address) as lease:
                response = await self._response(operation, lease, change, access)
                return response, await self._written(response)
        except Exception as error:
            response = {"data": None, "errors": [internal_error(error)]}
            return response, await self._written(response)

    async def _response(
        self,
        operation: LiveOperation,
        lease: Holding,
        change: RecordChange | None,
        access: Permissions | None,
    ) -> dict[str, Any]:
        self.counts.runs += 1
        if change is None:
            operation.reads.forget()
            operation.reads = self._new_reads(operation)
            operation.cancel("settle")
        request = replace(
            operation.request,
            holding=lease,
            reads=operation.reads if change is None else None,
            change=change,
            access=access,
            observation=Observation(),
        )
        operation.begin(lease)
        try:
            response = await self._service.execute(request)
        finally:
            operation.lease = None
        if operation.refusal is not None:
            operation.reads.forget()
            return operation.refusal.response
        plan = request.observation.plan
        if plan is not None and plan.changing and not operation.wants_changes() and "errors" in response:
            return {"errors": response["errors"]}  # no change will be sent: it ends
        return response

    async def _send(self, operation: LiveOperation, answer: LiveAnswer, digest: bytes) -> None:
        """Gives an answer to all who do not have it, and a refusal as the last one, in turns with others."""
        is_new = False
        for number, listener in enumerate([*operation.listeners], 1):
            if number % _SENT_AT_ONCE == 0:
                await rounds().enter(listener.client)
            if operation.failures and listener.sent and operation.failures <= _UNSENT_FAILURES:
                continue
            is_new |= listener.sent != digest
            if answer.is_refusal:
                listener.end(answer)
            else:
                listener.take(answer, digest)
        self.counts.unchanged += not is_new


def _without_ids(text: bytes, response: dict[str, Any]) -> bytes:
    """Returns the text of a response without the ids of failures, which differ each time."""
    details = [error.get("extensions", {}) for error in response.get("errors", ())]
    ids = {each["id"].encode() for each in details if "id" in each}
    if ids:
        text = re.sub(rb"\b[0-9a-f]{32}\b", lambda found: b"" if found[0] in ids else found[0], text)
    return text


def _lose(operation: LiveOperation) -> None:
    for listener in [*operation.listeners]:
        listener.lose()


def _key_of(request: OperationRequest) -> tuple[Hashable, int]:
    """Returns what requests have in common that get one answer, and how many bytes it takes."""
    # A rule may compare any claim, also one that differs between two tokens of a viewer.
    text = request.document + stable_text([request.variables, request.viewer or {}])
    context = None if request.context is None else id(request.context)
    digest = sha256(text.encode(errors="surrogatepass")).digest()
    values = text.count(",") + text.count("[") + text.count("{")
    size = 2 * getsizeof(text) + _VALUE_BYTES * values
    return (digest, len(request.document), request.operation_name, context), size
