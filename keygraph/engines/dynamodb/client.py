"""The transport over aioboto3's client, which supports all of AWS's settings.

This is the only module that uses private names of aiobotocore: `AIOHTTPSession._get_ssl_context` and `_get_session`.
aiobotocore 2.25.1 makes its TLS context there without `check_hostname`, and no public setting turns that on, so by
itself it accepts any host's certificate from a trusted authority. `tests/keygraph/test_client.py` fails when this is no
longer needed. It also follows redirects, and reads an answer of any size.
"""

from __future__ import annotations

import re
import ssl
from typing import Any

import orjson
from aiobotocore.httpsession import AIOHTTPSession
from aiohttp import ClientResponse, ClientSession
from botocore.exceptions import BotoCoreError
from botocore.parsers import ResponseParserError

from keygraph.engines.dynamodb.http1 import ANSWER_BYTES, AnswerTooLarge, Malformed
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.transport import Body, Received

_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
"""The positions where the words of an operation's name begin: `BatchGetItem` is the client's `batch_get_item`."""


class VerifyingSession(AIOHTTPSession):
    """aiobotocore's HTTP session, which also checks that a certificate is for the host it connects to, and limits
    answers."""

    def _get_ssl_context(self) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._get_ssl_context()  # type: ignore[misc]  # not in its stubs
        context.check_hostname = True
        return context

    async def _get_session(self, proxy_url: str | None) -> _Session:
        return _Session(await super()._get_session(proxy_url))  # type: ignore[misc]  # not in its stubs


class _Session:
    """A session of aiohttp that follows no redirect."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def request(self, *arguments: Any, **options: Any) -> _Response:
        return _Response(await self._session.request(*arguments, allow_redirects=False, **options))


class _Response:
    """An answer that is not read without end."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def read(self) -> bytes:
        """Returns the body. Raises Malformed if it is too large, or has text that is not Unicode."""
        received = bytearray()
        async for part in self._response.content.iter_any():
            received += part
            if len(received) > ANSWER_BYTES:
                self._response.close()
                raise AnswerTooLarge
        body = bytes(received)
        # Python's own JSON accepts half of a surrogate pair, which no answer to a client can contain.
        if b"\\ud" in body or b"\\uD" in body:
            try:
                orjson.loads(body)
            except orjson.JSONDecodeError as error:
                raise Malformed("text that is not Unicode") from error
        return body


class ClientTransport:
    """Sends calls through aioboto3's client, or anything with its methods."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(self, wire: Wire) -> Received:
        """Sends one call and returns its answer."""
        method = getattr(self._client, _WORDS.sub("_", wire.operation).lower())
        try:
            answer: Body = await method(**wire.body)
            sent = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-length", "")
        except BotoCoreError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
            # botocore checks the types of parameters, but not those of an answer.
            raise ResponseParserError("an answer that botocore cannot read") from error
        return Received(answer, int(sent) if sent.isdecimal() else 0)

    async def close(self) -> None:
        """Closes the client and its connections."""
        await self._client.close()
