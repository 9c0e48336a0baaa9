"""The transport over aioboto3's client, which supports all of AWS's settings.

This is the only module that uses a private name of aiobotocore: `AIOHTTPSession._get_ssl_context`. aiobotocore 2.25.1
makes its TLS context there without `check_hostname`, and no public setting turns that on, so by itself it accepts any
host's certificate from a trusted authority. `tests/keygraph/test_client.py` fails when this is no longer needed.
"""

from __future__ import annotations

import re
import ssl
from typing import Any

from aiobotocore.httpsession import AIOHTTPSession

from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.transport import Body

_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
"""The positions where the words of an operation's name begin: `BatchGetItem` is the client's `batch_get_item`."""


class VerifyingSession(AIOHTTPSession):
    """aiobotocore's HTTP session, which also checks that a certificate is for the host it connects to."""

    def _get_ssl_context(self) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._get_ssl_context()  # type: ignore[misc]  # not in its stubs
        context.check_hostname = True
        return context


class ClientTransport:
    """Sends calls through aioboto3's client, or anything with its methods."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(self, wire: Wire) -> Body:
        """Sends one call and returns its answer."""
        answer: Body = await getattr(self._client, _WORDS.sub("_", wire.operation).lower())(**wire.body)
        return answer

    async def close(self) -> None:
        """Closes the client and its connections."""
        await self._client.close()
