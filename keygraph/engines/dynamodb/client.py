"""The transport over aioboto3's client, which supports all of AWS's settings.

This is the only module that uses private names of aiobotocore. `AIOHTTPSession._get_ssl_context` and `_get_session`:
aiobotocore 2.25.1 makes its TLS context there without `check_hostname`, and no public setting turns that on, so by
itself it accepts any host's certificate from a trusted authority. `tests/keygraph/test_client.py` fails when this is no
longer needed. It also follows redirects, reads an answer of any size, and takes what is not JSON for an empty answer:
`AioJSONParser._do_parse` parses only names of endpoints here.

A process that writes credentials is started through `_popen` of its provider (and asyncio closes its output by
`_transport`), and those of a role's source profile are made by `_create_process_provider`. Both are replaced, because a
process that hangs would be left running, and one that writes without an end would fill the memory. So would a metadata
service, whose answers its fetcher's `_session` reads.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, cast

from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioProcessProvider
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.parsers import AioJSONParser, AioResponseParserFactory
from aiohttp import ClientConnectionError, ClientResponse, ClientSession
from aiohttp.abc import AbstractResolver, ResolveResult
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError
from botocore.parsers import ResponseParserError

from keygraph.admission import Overloaded
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.items import is_large
from keygraph.engines.dynamodb import transport
from keygraph.engines.dynamodb.errors import refusal
from keygraph.engines.dynamodb.http1 import (
    ANSWER_BYTES,
    REFUSAL_BYTES,
    AnswerTooLarge,
    LargeReplies,
    Reply,
    addresses_of,
)
from keygraph.engines.dynamodb.requests import STREAM_OPERATIONS, Wire

_UNREAD = (ResponseParserError, LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""What botocore raises for answers that it cannot read."""
_TEXT = "text"
"""The name of the text of an answer, in place of its content."""
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
"""The positions where the words of an operation's name begin: `BatchGetItem` is the client's `batch_get_item`."""


class Resolver(AbstractResolver):
    """Looks up addresses without keeping a process from ending while no name server answers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Returns the addresses of a host. Raises OSError."""
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=flags,
            )
            for address in await in_daemon_thread(addresses_of, host, port, family)
        ]

    async def close(self) -> None:
        """There is nothing to close."""


class VerifyingSession(AIOHTTPSession):
    """aiobotocore's HTTP session, which also checks that a certificate is for the host it connects to, limits answers, and
    ends: aiobotocore's would connect again for a request that is sent again meanwhile, and leave that connection open."""

    _has_ended = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._large = LargeReplies()

    def _get_ssl_context(self) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._get_ssl_context()  # type: ignore[misc]  # not in its stubs
        context.check_hostname = True
        return context

    async def close(self) -> None:
        self._has_ended = True
        await super().close()

    async def _get_session(self, proxy_url: str | None) -> _Session:
        if self._has_ended:
            raise ClientConnectionError("the store was closed")
        session = await super()._get_session(proxy_url)  # type: ignore[misc]  # not in its stubs
        return _Session(session, ANSWER_BYTES, self._large)


def verify_all_clients(session: Any) -> None:
    """Makes all clients of a session use `VerifyingSession`, and `Resolver`: also those that get credentials of a role."""
    create = session.create_client

    def create_client(*arguments: Any, config: Any = None, **options: Any) -> Any:
        # That of IAM Identity Center has a config of botocore, without aiobotocore's settings.
        config = AioConfig({"resolver": Resolver()}).merge(config or AioConfig())
        config.http_session_cls = VerifyingSession
        return create(*arguments, config=config, **options)

    session.create_client = create_client


class _Session:
    """A session of aiohttp that follows no redirect."""

    def __init__(self, session: ClientSession, most: int, large: LargeReplies) -> None:
        self._session = session
        self._most = most
        self._large = large

    async def request(self, *arguments: Any, **options: Any) -> _Response:
        response = await self._session.request(*arguments, allow_redirects=False, **options)
        return _Response(response, self._most, self._large)


class _Body(bytes):
    counted: Reply | None = None
    """What counts among the large answers as long as the body is referenced."""


class _Response:
    """An answer that is not read without end."""

    def __init__(self, response: ClientResponse, most: int, large: LargeReplies) -> None:
        self._response = response
        self._large = large
        self._most = most if response.status == 200 else min(most, REFUSAL_BYTES)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def read(self) -> bytes:
        """Returns the body. Raises AnswerTooLarge."""
        received, counted = bytearray(), None
        try:
            async for part in self._response.content.iter_any():
                received += part
                if len(received) > self._most:
                    raise AnswerTooLarge
                if counted is None and len(received) > transport.LARGE_ANSWER:
                    counted = Reply(min(self._most, self._response.content_length or self._most))
                    await self._large.take(counted)
        except BaseException:
            self._response.close()  # it would keep its connection
            raise
        if counted is None:
            return bytes(received)  # orjson reads no text of another class
        body = _Body(received)
        body.counted = counted
        return body


class ResponseParsers(AioResponseParserFactory):
    """aiobotocore's parsers. Of an answer in JSON, they return the text: a large one is parsed beside other requests."""

    def create_parser(self, protocol_name: str) -> Any:
        return _Parser() if protocol_name == "json" else super().create_parser(protocol_name)


class _Parser(AioJSONParser):
    async def _do_parse(self, response: Any, shape: Any) -> Any:
        if shape.name == "DescribeEndpointsResponse":  # a request of botocore's own
            return await super()._do_parse(response, shape)  # type: ignore[misc]  # not in its stubs
        return {_TEXT: response["body"]}


class ClientTransport:
    """Sends calls through aioboto3's clients, or anything with their methods."""

    def __init__(
        self,
        client: Any,
        open_streams: Callable[[], Awaitable[Any]] | None = None,
        close_others: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`open_streams` opens the client of DynamoDB Streams, when it is needed; `close_others` is called at the end."""
        self._client = client
        self._open_streams = open_streams
        self._streams: asyncio.Task[Any] | None = None
        self._close_others = close_others

    async def call(self, wire: Wire) -> transport.Received:
        """Sends one call and returns its answer."""
        client = self._client
        if wire.operation in STREAM_OPERATIONS and self._open_streams is not None:
            if self._streams is None or (self._streams.done() and self._streams.exception()):
                self._streams = asyncio.ensure_future(self._open_streams())
            client = await asyncio.shield(self._streams)
        method = getattr(client, _WORDS.sub("_", wire.operation).lower())
        try:
            answer: transport.Body = await method(**wire.body)
            text = answer.pop(_TEXT, None)
        except BotoCoreError as error:
            if isinstance(overloaded := error.kwargs.get("error"), Overloaded):
                raise overloaded from None
            raise
        except ClientError as error:
            refused = error.response.get("Error", {})
            raise refusal(
                wire.operation, refused.get("Code"), refused.get("Message"), {**error.response}
            ) from None
        except _UNREAD as error:
            # botocore checks the types of parameters, but not those of an answer.
            raise transport.UnreadableAnswer("an answer that botocore cannot read") from error
        if text is None:
            return transport.Received(lambda: answer)
        return transport.Received(partial(transport.answer_of, text), len(text) if is_large(text) else 0)

    async def close(self) -> None:
        """Closes the clients and their connections, also if it is canceled meanwhile."""
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._client.close)
            if self._streams is not None:
                closing.push_async_callback(_close_opened, self._streams)
            if self._close_others is not None:
                closing.push_async_callback(self._close_others)


async def _close_opened(opening: Awaitable[Any]) -> None:
    await (await opening).close()


# --- Processes that write credentials -------------------------------------------------------------------


def bounded_sources(providers: Iterable[Any]) -> None:
    """Makes sources of credentials end the processes that they wait for when they are canceled, or write too much, and limits
    the answers of metadata services."""
    for provider in providers:
        for name in ("_fetcher", "_role_fetcher"):
            session = getattr(getattr(provider, name, None), "_session", None)
            if isinstance(session, AIOHTTPSession):
                get: Any = session._get_session  # type: ignore[attr-defined]  # not in its stubs
                session._get_session = partial(_limited, get)  # type: ignore[attr-defined]  # not in its stubs
        if isinstance(provider, AioProcessProvider):
            provider._popen = _started  # type: ignore[attr-defined]  # not in its stubs
        builder = getattr(provider, "_profile_provider_builder", None)
        if builder is not None:
            create = builder._create_process_provider

            def created(profile_name: str, create: Any = create) -> Any:
                made = create(profile_name)
                made._popen = _started
                return made

            builder._create_process_provider = created


async def _limited(get: Callable[[str | None], Awaitable[ClientSession]], proxy_url: str | None) -> _Session:
    return _Session(await get(proxy_url), _CREDENTIALS_BYTES, LargeReplies())


_CREDENTIALS_BYTES = 64 * 1024
"""More than a source of credentials writes."""
_END_SECONDS = 1.0
"""How long the end of a killed process is waited for."""


class _CredentialProcess:
    """A process that is killed if nobody waits for it any more, or if it writes too much."""

    def __init__(self, process: asyncio.subprocess.Process, *, leads_group: bool) -> None:
        self._process = process
        self._leads_group = leads_group

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        """Returns what the process writes, without its errors, which may hold anything."""
        written, output = b"", cast(asyncio.StreamReader, self._process.stdout)
        try:
            while part := await output.read(_CREDENTIALS_BYTES):
                written += part
                if len(written) > _CREDENTIALS_BYTES:
                    raise CredentialRetrievalError(provider=AioProcessProvider.METHOD, error_msg="too much")
            await self._process.wait()
            return written, b""
        except BaseException:
            with suppress(ProcessLookupError):
                if self._leads_group:
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
            with suppress(TimeoutError):  # others may still hold its output
                async with asyncio.timeout(_END_SECONDS):
                    await self._process.wait()
            cast(Any, self._process)._transport.close()
            raise


async def _started(*command: str, **options: Any) -> _CredentialProcess:
    # One that may ask at the terminal must stay in its session; of any other, what it has started is ended too.
    is_detached = not (sys.stdin and sys.stdin.isatty())
    options["stderr"] = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, **options, start_new_session=is_detached)
    return _CredentialProcess(process, leads_group=is_detached)
