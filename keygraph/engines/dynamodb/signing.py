"""AWS's Signature Version 4 for DynamoDB's requests: a POST of JSON to one endpoint.

The rules: "Create a signed AWS API request" in the IAM user guide. The parts that are the same for all requests of one
second to one target are made once.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, quote, urlsplit

CONTENT_TYPE = "application/x-amz-json-1.0"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NOTHING = sha256()
"""A hash to copy, which is faster than making one."""


class Credentials(Protocol):
    """The credentials that sign requests; `token` is None unless they are temporary."""

    @property
    def access_key(self) -> str: ...
    @property
    def secret_key(self) -> str: ...
    @property
    def token(self) -> str | None: ...


class Signer:
    """Signs requests to one endpoint in one region."""

    def __init__(self, endpoint_url: str, region: str, service: str = "dynamodb") -> None:
        parts = urlsplit(endpoint_url)
        self._scope = f"{region}/{service}/aws4_request"
        self.host = host_of(parts)
        path = quote(_normalized(parts.path), safe="/~")
        self._head = f"POST\n{path}\n\ncontent-type:{CONTENT_TYPE}\nhost:{self.host}\nx-amz-date:"
        self._signed: tuple[int, str, str, str | None] = (-1, "", "", None)
        self._prepared: dict[str, _Prepared] = {}

    def lines(self, credentials: Credentials, target: str, body: bytes, at: float) -> str:
        """Returns the request's headers with its signature, each a line. `target` is the operation, `at` the Unix time.

        Raises ValueError for credentials with a line break.
        """
        signed = (int(at), credentials.access_key, credentials.secret_key, credentials.token)
        if signed != self._signed:
            self._signed, self._prepared = signed, {}
        prepared = self._prepared.get(target)
        if prepared is None:
            prepared = self._prepared[target] = self._prepare(target, *signed)
        hashed = _NOTHING.copy()
        hashed.update(body)
        request = prepared.request.copy()
        request.update(hashed.hexdigest().encode())
        inner = prepared.inner.copy()
        inner.update(request.hexdigest().encode())
        outer = prepared.outer.copy()
        outer.update(inner.digest())
        return f"{prepared.before}{outer.hexdigest()}{prepared.after}"

    def _prepare(
        self, target: str, second: int, access_key: str, secret: str, token: str | None
    ) -> _Prepared:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = stamp[:8]
        lines = [f"Host: {self.host}", f"Content-Type: {CONTENT_TYPE}", f"X-Amz-Date: {stamp}"]
        named, names = "", "content-type;host;x-amz-date;x-amz-target"
        if token:
            lines.append(f"X-Amz-Security-Token: {token}")
            # The guide signs it trimmed, and with several spaces as one.
            named = f"x-amz-security-token:{' '.join(token.split())}\n"
            names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        lines.append(
            f"Authorization: AWS4-HMAC-SHA256 Credential={access_key}/{day}/{self._scope}, "
            f"SignedHeaders={names}, Signature="
        )
        if any(not line.isprintable() for line in lines):
            raise ValueError("credentials with a line break or another control character in them")
        key = f"AWS4{secret}".encode()
        for step in (day, *self._scope.split("/")):
            key = hmac.digest(key, step.encode(), "sha256")
        # The signature is an HMAC by RFC 2104, whose two hashes begin with the key.
        block = key.ljust(64, b"\0")
        inner = sha256(bytes(byte ^ 0x36 for byte in block))
        inner.update(f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{self._scope}\n".encode())
        outer = sha256(bytes(byte ^ 0x5C for byte in block))
        request = f"{self._head}{stamp}\n{named}x-amz-target:{target}\n\n{names}\n"
        after = f"\r\nX-Amz-Target: {target}\r\n"
        return _Prepared(sha256(request.encode()), inner, outer, "\r\n".join(lines), after)


class _Prepared(NamedTuple):
    """The common parts of all requests of one second to one target: the unfinished hashes of the canonical request and
    of the string to sign, the hash that ends the signature, and the headers before and after it."""

    request: Any
    inner: Any
    outer: Any
    before: str
    after: str


def _normalized(path: str) -> str:
    if path in ("", "/"):
        return "/"
    from botocore.utils import normalize_url_path  # imports an HTTP client

    found: str = normalize_url_path(path)
    return found


def host_of(parts: SplitResult) -> str:
    """Returns the Host header: in lower case, without a user name, and without the scheme's default port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    is_default = parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme)
    return host if is_default else f"{host}:{parts.port}"
