"""The interface of transports: a transport sends a call to DynamoDB and returns its answer unchanged.

There are two: `keygraph.engines.dynamodb.client`, which is aioboto3's client, and `keygraph.engines.dynamodb.direct`,
which takes a tenth of its processor time (`python -m bench.transport`).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from heapq import heappop, heappush
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import orjson

from keygraph.admission import Admission
from keygraph.dynamo.items import is_large, parsed_in_turns
from keygraph.engines.dynamodb.requests import Wire
from keygraph.errors import with_noted_frames
from keygraph.turns import operation_client

Body: TypeAlias = dict[str, Any]
TransportName: TypeAlias = Literal["direct", "aioboto3"]
"""Which transport carries the requests for data."""
_T = TypeVar("_T")

_CLIENTS = 1_000
"""Of more than so many clients, what those have had whose answers were read is forgotten."""
LARGE_ANSWER = 128 * 1024
"""The bytes of an answer that does not wait for larger ones. It is decoded in some ten milliseconds."""
_SMALL_THREAD, _LARGE_THREAD = (
    ThreadPoolExecutor(1, thread_name_prefix="keygraph-decoding") for _ in range(2)
)
"""They are started on first use."""
_DECODING = Admission(1, sys.maxsize)
"""The place of whoever has a large answer decoded. Those that wait have a place among the operations, which are limited."""


ANSWERED: ContextVar[Callable[[], object]] = ContextVar("keygraph-answered", default=lambda: None)
"""Called when so much of an answer has come that it waits for others: from then on, it is this server that takes long."""


class UnreadableAnswer(Exception):
    """An answer that DynamoDB would not give. botocore's own class is in a module that imports an HTTP client."""


class Received(NamedTuple):
    """An answer that was received and may not be parsed yet: that takes time and much memory."""

    body: Callable[[], Body]
    """Binary values in it are bytes or base64."""
    size: int = 0
    """Its bytes, if parsing and decoding it takes milliseconds."""


def answer_of(text: bytes) -> Body:
    """Returns an answer in JSON. Raises UnreadableAnswer."""
    try:
        answer = parsed_in_turns(text) if is_large(text) else orjson.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableAnswer("an answer that is not JSON") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableAnswer("an answer that DynamoDB would not give") from error
    if not isinstance(answer, dict):
        raise UnreadableAnswer("an answer that is not a JSON object")
    return answer


class Transport(Protocol):
    """Sends calls. It tries each once, and raises botocore's exceptions, or UnreadableAnswer."""

    async def call(self, wire: Wire) -> Received:
        """Sends one call and returns its answer."""

    async def close(self) -> None:
        """Closes its connections."""


async def in_thread(read: Callable[[], _T], size: int) -> _T:
    """Returns what reading an answer of so many bytes gives. It is read beside other requests. Clients take turns."""
    client = operation_client()
    if size <= LARGE_ANSWER:
        answer = Future[_T]()
        _WAITING.add(client, size, (read, answer))
        _SMALL_THREAD.submit(_read_next)
        return await asyncio.wrap_future(answer)
    async with _DECODING.place(clients=(client,) if client else ()):
        return await asyncio.get_running_loop().run_in_executor(_LARGE_THREAD, read)


class _Waiting:
    """The answers that wait for the thread. It reads them in the order in which they would end if it read a part of each
    client's at the same time: whoever needs little is not behind those who need much, however many they are."""

    def __init__(self) -> None:
        self._answers: list[tuple[int, int, int, tuple[Callable[[], Any], Future[Any]]]] = []
        self._numbers = count()
        self._now = 0
        """When the last one began, in bytes that were read of one client."""
        self._ends = dict[str, int]()
        """When the last of each client ends."""

    def add(self, client: str, size: int, answer: tuple[Callable[[], Any], Future[Any]]) -> None:
        if len(self._ends) > _CLIENTS:
            self._ends = {each: ends for each, ends in self._ends.items() if ends > self._now}
        begins = max(self._now, self._ends.get(client, 0))
        self._ends[client] = begins + size
        heappush(self._answers, (begins + size, next(self._numbers), begins, answer))

    def take(self) -> tuple[Callable[[], Any], Future[Any]]:
        _, _, begins, answer = heappop(self._answers)
        self._now = max(self._now, begins)
        return answer


_WAITING = _Waiting()


def _read_next() -> None:
    read, answer = _WAITING.take()
    if answer.set_running_or_notify_cancel():
        try:
            answer.set_result(read())
        except BaseException as error:
            answer.set_exception(with_noted_frames(error))
