"""The interface of transports: a transport sends a call to DynamoDB and returns its answer unchanged.

There are two: `keygraph.engines.dynamodb.client`, which is aioboto3's client, and `keygraph.engines.dynamodb.direct`,
which takes a tenth of its processor time (`python -m bench.transport`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from keygraph.engines.dynamodb.requests import Wire

Body: TypeAlias = dict[str, Any]
TransportName: TypeAlias = Literal["direct", "aioboto3"]
"""Which transport carries the requests for data."""
_T = TypeVar("_T")

_READING = ThreadPoolExecutor(1, thread_name_prefix="keygraph-decoding")
"""Its thread is started on first use."""


class UnreadableAnswer(Exception):
    """An answer that DynamoDB would not give. botocore's own class is in a module that imports an HTTP client."""


class Received(NamedTuple):
    """An answer that was received and may not be parsed yet: that takes time and much memory."""

    body: Callable[[], Body]
    """Binary values in it are bytes or base64."""
    is_large: bool = False
    """Whether parsing and decoding it takes milliseconds."""


class Transport(Protocol):
    """Sends calls. It tries each once, and raises botocore's exceptions, or UnreadableAnswer."""

    async def call(self, wire: Wire) -> Received:
        """Sends one call and returns its answer."""

    async def close(self) -> None:
        """Closes its connections."""


async def in_thread(read: Callable[[], _T]) -> _T:
    """Returns what reading a large answer gives. It is read beside other requests."""
    return await asyncio.get_running_loop().run_in_executor(_READING, read)
