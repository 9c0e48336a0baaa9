"""AWS's settings where the environment has all of them, as in Lambda functions and most containers.

Nothing else of them needs to be read then, and a request about data needs no aioboto3: importing it and making its client
takes a third of the start of a Lambda function (docs/performance.md, "The start"). It is opened for the first change
of a table. With any other setting (a profile, a role, a proxy, another kind of endpoint), `settings` returns None, and
`keygraph.engines.dynamodb.settings` asks AWS's library.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import botocore
from botocore.exceptions import SSLError

from keygraph.engines.dynamodb.direct import DirectTransport, direct_transport
from keygraph.engines.dynamodb.requests import Wire
from keygraph.engines.dynamodb.transport import Received, Transport

_KEY, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_BUNDLE = "AWS_CA_BUNDLE"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_FILES = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
_KNOWN = {
    _KEY,
    _SECRET,
    _TOKEN,
    _BUNDLE,
    *_REGIONS,
    *_FILES,
    "AWS_EXECUTION_ENV",
    "AWS_EC2_METADATA_DISABLED",
}
_OF_LAMBDA = ("AWS_LAMBDA_", "AWS_XRAY_")
"""The beginnings of names that Lambda itself sets, and that say nothing about requests."""
_USUAL_REGION = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-[a-z]+-[0-9]")
"""Regions whose endpoints are below amazonaws.com; others have another domain."""
_USUAL_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?/?")


class EnvironmentCredentials(NamedTuple):
    """Credentials that do not change as long as the process runs."""

    access_key: str
    secret_key: str
    token: str | None


class EnvironmentSettings(NamedTuple):
    """All that signing and sending a request needs."""

    endpoint_url: str
    region: str
    credentials: EnvironmentCredentials

    def transport(self, open_client: Callable[[], Awaitable[Transport]], deadline: float) -> DirectTransport:
        """Returns the transport; `open_client` opens the one for requests about tables. `deadline` is how many seconds an
        answer may take with its retries."""
        credentials = self.credentials

        async def current() -> EnvironmentCredentials:
            return credentials

        tls = tls_of(self.endpoint_url, os.environ.get(_BUNDLE))
        return direct_transport(
            self.endpoint_url, self.region, tls, current, _LateTransport(open_client), deadline
        )


def settings(endpoint_url: str | None, region: str | None) -> EnvironmentSettings | None:
    """Returns the settings if the environment has all of them; else None."""
    environment = os.environ
    others = {name for name in environment if name.startswith("AWS_")} - _KNOWN
    if any(not name.startswith(_OF_LAMBDA) for name in others) or getproxies_environment():
        return None
    if any(Path(environment.get(name) or usual).expanduser().exists() for name, usual in _FILES.items()):
        return None
    key, secret = environment.get(_KEY, ""), environment.get(_SECRET, "")
    token = environment.get(_TOKEN) or None
    if not all(part and part.isascii() and part.isprintable() for part in (key, secret, token or "none")):
        return None
    region = region or next(filter(None, map(environment.get, _REGIONS)), None)
    if region is None or _USUAL_REGION.fullmatch(region) is None:
        return None
    url = f"https://dynamodb.{region}.amazonaws.com" if endpoint_url is None else endpoint_url
    if _USUAL_ENDPOINT.fullmatch(url) is None or urlsplit(url).hostname is None:
        return None
    return EnvironmentSettings(url, region, EnvironmentCredentials(key, secret, token))


def tls_of(url: str, bundle: str | None) -> ssl.SSLContext | None:
    """Returns the context that verifies the endpoint's certificate, with the file of AWS_CA_BUNDLE if set; None for
    `http:`. Raises SSLError."""
    if urlsplit(url).scheme == "http":
        return None
    try:
        return ssl.create_default_context(cafile=bundle or _authorities())
    except OSError as error:
        raise SSLError(endpoint_url=url, error=error) from error


def _authorities() -> str:
    """Returns the file of authorities that botocore uses; its own function is in a module that imports an HTTP client."""
    try:
        from certifi import where
    except ImportError:
        return str(Path(botocore.__file__).with_name("cacert.pem"))
    return where()


class _LateTransport:
    """A transport that is opened for the first call."""

    def __init__(self, open_: Callable[[], Awaitable[Transport]]) -> None:
        self._open = open_
        self._opening = asyncio.Lock()
        self._opened: Transport | None = None

    async def call(self, wire: Wire) -> Received:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._open()
        return await self._opened.call(wire)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
