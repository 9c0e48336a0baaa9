"""Signature Version 4 of AWS for DynamoDB's requests: a POST of JSON to one endpoint.

"Create a signed AWS API request" in the IAM user guide. What does not change from request to request is made once
a second, the signing key once a day.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, quote, urlsplit

from botocore.utils import normalize_url_path

CONTENT_TYPE = "application/x-amz-json-1.0"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Credentials(Protocol):
    """What requests are signed with; `token` is None where the credentials are not temporary."""

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
        self._steps = (region.encode(), service.encode(), b"aws4_request")
        self.host = host_of(parts)
        path = quote(normalize_url_path(parts.path or "/"), safe="/~")
        self._head = f"POST\n{path}\n\ncontent-type:{CONTENT_TYPE}\nhost:{self.host}\nx-amz-date:"
        self._key = _Key("", "", b"")
        self._signed: tuple[int, str, str, str | None] = (-1, "", "", None)
        self._texts = _Texts("", "", "", "")

    def lines(self, credentials: Credentials, target: str, body: bytes, at: float) -> str:
        """The request's headers, signature and all, each a line. `target` is the operation, `at` the time in Unix seconds.

        Raises ValueError for credentials that would be several lines.
        """
        signed = (int(at), credentials.access_key, credentials.secret_key, credentials.token)
        if signed != self._signed:
            self._begin(*signed)
            self._signed = signed
        texts = self._texts
        request = f"{texts.request}{target}{texts.signed}{sha256(body).hexdigest()}"
        signature = self._key.signature(f"{texts.scope}{sha256(request.encode()).hexdigest()}")
        return f"{texts.lines}{signature}\r\nX-Amz-Target: {target}\r\n"

    def _begin(self, second: int, access_key: str, secret: str, token: str | None) -> None:
        """Makes everything that the requests of one second have in common."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = stamp[:8]
        if (self._key.secret, self._key.day) != (secret, day):
            key = hmac.digest(f"AWS4{secret}".encode(), day.encode(), "sha256")
            for step in self._steps:
                key = hmac.digest(key, step, "sha256")
            self._key = _Key(secret, day, key)
        lines = [f"Host: {self.host}", f"Content-Type: {CONTENT_TYPE}", f"X-Amz-Date: {stamp}"]
        named, names = "", "content-type;host;x-amz-date;x-amz-target"
        if token:
            lines.append(f"X-Amz-Security-Token: {token}")
            # Signed as the guide says: without the spaces around it, and with one where there are several.
            named = f"x-amz-security-token:{' '.join(token.split())}\n"
            names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        lines.append(
            f"Authorization: AWS4-HMAC-SHA256 Credential={access_key}/{day}/{self._scope}, "
            f"SignedHeaders={names}, Signature="
        )
        if any(not line.isprintable() for line in lines):
            raise ValueError("credentials with a line break or another control character in them")
        self._texts = _Texts(
            request=f"{self._head}{stamp}\n{named}x-amz-target:",
            signed=f"\n\n{names}\n",
            scope=f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{self._scope}\n",
            lines="\r\n".join(lines),
        )


class _Texts(NamedTuple):
    """What is the same in all requests of one second: of the canonical request before and after the target, of the
    text that is signed, and of the headers."""

    request: str
    signed: str
    scope: str
    lines: str


class _Key:
    """A day's signing key, as the two hashes that RFC 2104 begins with it: copying them is quicker than beginning again."""

    def __init__(self, secret: str, day: str, key: bytes) -> None:
        self.secret = secret
        self.day = day
        block = key.ljust(64, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def signature(self, text: str) -> str:
        """The HMAC of the text by this key."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        return outer.hexdigest()


def host_of(parts: SplitResult) -> str:
    """The Host header: in small letters, without a user's name, and without the scheme's own port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    is_default = parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme)
    return host if is_default else f"{host}:{parts.port}"
