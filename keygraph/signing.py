"""Signature Version 4 of AWS for DynamoDB's requests: a POST of JSON to one endpoint.

"Create a signed AWS API request" in the IAM user guide. What does not change from request to request is made once,
the signing key once a day.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import Protocol
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
        self._key: tuple[str, str, bytes] = ("", "", b"")
        self._second: tuple[int, str] = (-1, "")

    def headers(self, credentials: Credentials, target: str, body: bytes, at: float) -> dict[str, str]:
        """The request's headers, signature and all. `target` is the operation, `at` the time in Unix seconds."""
        stamp = self._stamp(int(at))
        day, token = stamp[:8], credentials.token
        headers = {
            "Host": self.host,
            "Content-Type": CONTENT_TYPE,
            "X-Amz-Date": stamp,
            "X-Amz-Target": target,
        }
        named, signed = "", "content-type;host;x-amz-date;x-amz-target"
        if token:
            headers["X-Amz-Security-Token"] = token
            # Signed as the guide says: without the spaces around it, and with one where there are several.
            named = f"x-amz-security-token:{' '.join(token.split())}\n"
            signed = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        request = f"{self._head}{stamp}\n{named}x-amz-target:{target}\n\n{signed}\n{sha256(body).hexdigest()}"
        digest = sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{self._scope}\n{digest}"
        signature = hmac.digest(self._signing_key(credentials.secret_key, day), text.encode(), "sha256").hex()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{day}/{self._scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return headers

    def _stamp(self, second: int) -> str:
        if self._second[0] != second:
            self._second = (second, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second)))
        return self._second[1]

    def _signing_key(self, secret: str, day: str) -> bytes:
        known_secret, known_day, key = self._key
        if known_day != day or known_secret != secret:
            key = hmac.digest(f"AWS4{secret}".encode(), day.encode(), "sha256")
            for step in self._steps:
                key = hmac.digest(key, step, "sha256")
            self._key = (secret, day, key)
        return key


def host_of(parts: SplitResult) -> str:
    """The Host header: in small letters, without a user's name, and without the scheme's own port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    is_default = parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme)
    return host if is_default else f"{host}:{parts.port}"
