"""AWS's own settings: the session with its credentials, region and endpoint, and the transport that supports them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import aioboto3
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
)
from botocore.utils import get_environ_proxies

from keygraph.engines.dynamodb import client
from keygraph.engines.dynamodb.direct import direct_transport
from keygraph.engines.dynamodb.environment import tls_of
from keygraph.engines.dynamodb.errors import UnusableCredentials, code_of
from keygraph.engines.dynamodb.http1 import CONNECT_SHARE, READ_SHARE
from keygraph.engines.dynamodb.signing import Credentials
from keygraph.engines.dynamodb.transport import Transport, TransportName
from keygraph.errors import Unavailable

_log = logging.getLogger(__name__)
# As botocore does for itself: without a handler, a command prints the traceback of each warning.
logging.getLogger("aiobotocore").addHandler(logging.NullHandler())

_T = TypeVar("_T")

_SOURCE_SECONDS = 30.0
"""The longest time that a source of credentials may take: a process may ask a person."""
_OFTEN_SECONDS = 60
"""How often credentials are refreshed that do not expire as soon."""


async def open_transport(
    endpoint_url: str | None,
    region: str | None,
    *,
    transport: TransportName,
    connections: int,
    deadline: float,
) -> tuple[Transport, int | None]:
    """Opens the requested transport; aioboto3's if the direct one does not support AWS's settings.

    Also returns the most times that a call is sent by AWS's settings; None if they do not say. `connections` is the
    most that aioboto3's client opens, `deadline` the seconds that an answer may take with its retries. Raises
    botocore's exceptions if settings are missing or wrong.
    """
    connect_seconds, read_seconds = deadline / CONNECT_SHARE, deadline / READ_SHARE
    session = get_session()
    client.verify_all_clients(session)
    session.register_component("response_parser_factory", client.ResponseParsers())
    resolver = _CheckedResolver(session, read_seconds)
    session.register_component("credential_provider", resolver)
    tries = _tries(session)
    # botocore itself does not read AWS_REGION, which containers and functions on AWS have.
    region = region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if _is_plain(endpoint_url):
        await _forget_roles(session)
        region = region or "us-east-1"
    config = AioConfig(
        max_pool_connections=connections,
        # Keygraph's own retries know the deadline and count every attempt.
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
    )
    # Loading certificates takes longer than a request, and a plain endpoint has none.
    verify = False if _is_plain(endpoint_url) else None
    clients = aioboto3.Session(botocore_session=session, region_name=region)

    async def opened(service: Any) -> Any:
        return await clients.client(
            service, endpoint_url=endpoint_url, config=config, verify=verify
        ).__aenter__()

    boto_client = await opened("dynamodb")
    through_client = client.ClientTransport(boto_client, partial(opened, "dynamodbstreams"), resolver.close)
    if transport == "aioboto3":
        return through_client, tries
    reason = _unknown_to_direct(boto_client, session)
    if reason is not None:
        _log.info("Requests go through aioboto3, which uses more processor time, because %s", reason)
        return through_client, tries
    url = boto_client.meta.endpoint_url
    try:
        tls, credentials = tls_of(url, session.get_config_variable("ca_bundle")), await _credentials(session)
        region = boto_client.meta.region_name
        return direct_transport(url, region, tls, credentials, through_client, deadline), tries
    except BaseException:
        await through_client.close()
        raise


def _tries(session: AioSession) -> int | None:
    """Returns AWS_MAX_ATTEMPTS, or `max_attempts` of the profile, including the first attempt. Raises Unavailable."""
    try:
        return cast("int | None", session.get_config_variable("max_attempts"))
    except ValueError as error:
        raise Unavailable(
            "AWS_MAX_ATTEMPTS, or max_attempts of the AWS profile, is not a whole number"
        ) from error


def _is_plain(endpoint_url: str | None) -> bool:
    return endpoint_url is not None and urlsplit(endpoint_url).scheme == "http"


async def _forget_roles(session: AioSession) -> None:
    """Removes the machine's own role: a plain endpoint must not see it, and looking for it takes seconds."""
    resolver = session.get_component("credential_provider")
    for provider in ("container-role", "iam-role"):
        resolver.remove(provider)
    if await session.get_credentials() is None:
        session.set_credentials("local", "local")


class _CheckedResolver:
    """Loads a session's credentials. Its errors are botocore's, also where the session's own resolver raises others."""

    def __init__(self, session: AioSession, seconds: float) -> None:
        """`seconds` is how long a request waits for new credentials."""
        self._resolver: Any = session.get_component("credential_provider")
        self._seconds = seconds
        self._found: _CheckedCredentials | None = None
        client.bounded_sources(self._resolver.providers)

    def remove(self, name: str) -> None:
        """Removes a source of credentials."""
        self._resolver.remove(name)

    async def load_credentials(self) -> _CheckedCredentials | None:
        """Returns the credentials of the first source that has some."""
        found = await _had(self._resolver.load_credentials)
        self._found = None if found is None else _CheckedCredentials(found, self._seconds)
        return self._found

    async def close(self) -> None:
        """Ends the process that new credentials come from, which would outlive this one."""
        if self._found is not None and self._found.loading is not None:
            self._found.loading.cancel()
            await asyncio.wait([self._found.loading])


class _CheckedCredentials:
    """Credentials of a session, which refreshes them before they expire.

    Their source is asked once at a time, and may take longer than a request waits for it.
    """

    def __init__(self, loaded: Any, seconds: float) -> None:
        self._loaded = loaded
        self._seconds = seconds
        self.loading: asyncio.Task[Credentials] | None = None
        self._last: Credentials | None = None
        self._next = 0.0
        """Before that time, credentials that do not expire soon are not refreshed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded, name)

    async def get_frozen_credentials(self) -> Credentials:
        """Returns the current ones. Raises UnusableCredentials if they have expired, or cannot sign a request."""
        if not self._expires_within(None):
            return await self._load()
        usable = None if self._expires_within(0) else self._last
        # Those of a quarter of an hour are always to be refreshed.
        if usable is not None and time.monotonic() < self._next and not self._expires_within(_OFTEN_SECONDS):
            return usable
        if self.loading is None:
            self._next = time.monotonic() + _OFTEN_SECONDS
            self.loading = asyncio.get_running_loop().create_task(self._load(), context=Context())
            self.loading.add_done_callback(self._loaded_or_failed)
        return usable or await self._loaded_now(self.loading)

    async def _load(self) -> Credentials:
        found = await _had(self._loaded.get_frozen_credentials)
        for part in (found.access_key, found.secret_key, found.token or ""):
            if not isinstance(part, str) or not part.isascii() or not part.isprintable():
                raise UnusableCredentials(problem="they contain characters that no credentials have")
        self._last = cast(Credentials, found)
        return self._last

    def _expires_within(self, seconds: int | None) -> bool:
        """Returns whether they expire that soon; None: soon enough to refresh them. Fixed ones never do."""
        refresh_needed = getattr(self._loaded, "refresh_needed", None)
        try:
            return refresh_needed is not None and bool(refresh_needed(refresh_in=seconds))
        except TypeError:
            return True  # their time has no zone: loading them raises an error, too

    async def _loaded_now(self, loading: asyncio.Task[Credentials]) -> Credentials:
        done, _ = await asyncio.wait([loading], timeout=self._seconds)
        if not done or loading.cancelled():
            raise UnusableCredentials(problem=_LATE.format(self._seconds))
        try:
            return loading.result()
        except UnusableCredentials as error:
            # Others wait for the same, and raise an error of their own.
            raise UnusableCredentials(**error.kwargs) from None

    def _loaded_or_failed(self, loading: asyncio.Task[Credentials]) -> None:
        self.loading = None
        if not loading.cancelled():
            loading.exception()  # perhaps nobody waits for it any more

    async def get_account_id(self) -> Any:
        """Returns the account, which the client asks for first."""
        return cast(Any, await self.get_frozen_credentials()).account_id


_LATE = "their source, such as the credential_process of the AWS profile, does not answer within {:g} seconds"


async def _had(load: Callable[[], Awaitable[_T]]) -> _T:
    """Returns what a source of credentials returns. Raises UnusableCredentials, whatever it raises itself."""
    limit = asyncio.timeout(_SOURCE_SECONDS)
    try:
        async with limit:
            return await load()
    except NoCredentialsError:
        raise
    except Exception as error:
        problem = _LATE.format(_SOURCE_SECONDS) if limit.expired() else _problem_of(error)
        raise UnusableCredentials(problem=problem) from error


def _problem_of(error: Exception) -> str:
    """Returns why there are no credentials, in words without any part of them or of an account."""
    match error:
        case ClientError(operation_name=operation):
            return f"AWS refuses {operation} ({code_of(error)}): check AWS_PROFILE or the role"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
        case CredentialRetrievalError(kwargs={"provider": "custom-process"}):
            return "the credential_process of the AWS profile failed, or does not write credentials: run it to see why"
        case CredentialRetrievalError(kwargs={"provider": provider}):
            return f"{provider} does not return credentials"
        case BotoCoreError():
            return " ".join(str(error).split())
        case RuntimeError():
            return "they have expired, and their source returns no newer ones"
    return f"their source does not return credentials ({type(error).__name__})"


async def _credentials(session: AioSession) -> Callable[[], Awaitable[Credentials]]:
    """Returns a function for the current credentials; the session refreshes them before they expire."""
    found = await session.get_credentials()
    if found is None:

        async def none() -> Credentials:
            raise NoCredentialsError

        return none
    # The stubs say any tuple of three.
    return cast("Callable[[], Awaitable[Credentials]]", found.get_frozen_credentials)


def _unknown_to_direct(boto_client: Any, session: AioSession) -> str | None:
    """Returns the AWS setting that the direct transport does not support; None if it supports all."""
    config, url = boto_client.meta.config, boto_client.meta.endpoint_url
    if urlsplit(url).scheme in (config.proxies or get_environ_proxies(url)):
        return "a proxy is set"
    if config.proxies_config or config.client_cert:
        return "proxy settings or a client certificate are set"
    if config.signature_version not in (None, "v4"):
        return f"the signature version is {config.signature_version}"
    if urlsplit(url).query or not url.isascii():
        return "the endpoint has a query, or characters beyond ASCII"
    if boto_client.meta.region_name == "local":
        return "the region is `local`"
    if config.account_id_endpoint_mode == "required":
        return "endpoints must have the account in their name"
    # Each of these changes the region's endpoint.
    for name in ("use_fips_endpoint", "use_dualstack_endpoint", "endpoint_discovery_enabled"):
        if session.get_config_variable(name) in {True, "true"}:
            return f"{name} is set"
    return None
