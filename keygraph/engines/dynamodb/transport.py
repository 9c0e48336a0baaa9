"""The interface of transports: a transport sends a call to DynamoDB and returns its answer unchanged.

There are two: `keygraph.engines.dynamodb.client`, which is aioboto3's client, and `keygraph.engines.dynamodb.direct`,
which takes a tenth of its processor time (`python -m bench.transport`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from keygraph.engines.dynamodb.requests import Wire

Body: TypeAlias = dict[str, Any]
TransportName: TypeAlias = Literal["direct", "aioboto3"]
"""Which transport carries the requests for data."""


class Received(NamedTuple):
    """An answer that was received and may not be parsed yet: that takes time and much memory."""

    body: Callable[[], Body]
    """Binary values in it are bytes or base64."""
    size: int = 0
    """The length of its JSON."""


class Transport(Protocol):
    """Sends calls. It tries each once, and raises botocore's exceptions."""

    async def call(self, wire: Wire) -> Received:
        """Sends one call and returns its answer."""

    async def close(self) -> None:
        """Closes its connections."""
