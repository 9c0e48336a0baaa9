"""How calls get to DynamoDB: a transport takes a call and gives its answer, in DynamoDB's own words.

Two transports are one seam: `ClientTransport`, aioboto3's client, which can everything that AWS's settings ask for,
and `keygraph.engines.dynamodb.direct`, which costs a fraction of its processor time.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Protocol, TypeAlias

from keygraph.engines.dynamodb.requests import Wire

Body: TypeAlias = dict[str, Any]


_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
"""Where the words of an operation's name begin: `BatchGetItem` is the client's `batch_get_item`."""


class TransportName(Enum):
    """Which transport carries the requests for data."""

    DIRECT = "direct"
    AIOBOTO3 = "aioboto3"


class Transport(Protocol):
    """What carries calls. It tries once; what fails is an exception of botocore's."""

    async def call(self, wire: Wire) -> Body:
        """The answer of one call; binary values in it are bytes or base64."""

    async def close(self) -> None:
        """Lets its connections go."""


class ClientTransport:
    """Calls by a client of aioboto3, or what has its methods."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(self, wire: Wire) -> Body:
        """The answer of one call."""
        answer: Body = await getattr(self._client, _WORDS.sub("_", wire.operation).lower())(**wire.body)
        return answer

    async def close(self) -> None:
        """Closes the client and its connections."""
        await self._client.close()
