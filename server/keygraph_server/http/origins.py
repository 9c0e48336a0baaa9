"""Pages of other origins: the pages that may send requests, and the requests that all other pages can send."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keygraph_server.http.header_values import HeaderFields

_ORIGIN = re.compile(r"(https?)://(\*\.)?([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+|:\*)?")
_SUBDOMAINS = r"([a-z0-9-]+\.)+"
_ANY_PORT = r"(:[0-9]+)?"

_PREFLIGHTED = (
    b"apollo-require-preflight",
    b"graphql-require-preflight",
    b"x-apollo-operation-name",
    b"x-requested-with",
    b"authorization",
)
"""A browser sends these for a page only after this server has allowed the page's origin."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins whose pages may send requests to this server."""

    pattern: re.Pattern[str] | None
    """None for all origins."""

    @classmethod
    def of(cls, text: str) -> Origins:
        """The origins that a setting lists. Raises ValueError for an invalid origin."""
        names = text.lower().replace(",", " ").split()
        if names == ["*"]:
            return cls(None)
        return cls(re.compile("|".join(map(_pattern, names if names != ["none"] else ())) or "(?!)"))

    def allow(self, origin: str) -> bool:
        """Whether pages of the origin may send requests."""
        return self.pattern is None or self.pattern.fullmatch(origin) is not None


def _pattern(name: str) -> str:
    found = _ORIGIN.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not an origin such as https://shop.example.com")
    scheme, subdomains, host, port = found.groups()
    ports = _ANY_PORT if port == ":*" else port or ""
    return f"{scheme}://{_SUBDOMAINS if subdomains else ''}{re.escape(host)}{ports}"


def is_forgeable(headers: HeaderFields, origins: Origins) -> bool:
    """Whether a forbidden page could have made a browser send this GET, with its user's cookies.

    A POST is safe: its Content-Type makes browsers ask first. For a GET they do only if it has an unusual header. For
    other GETs, browsers say where they come from (https://w3c.github.io/webappsec-fetch-metadata). Those that do not,
    and programs, must not accept the media types of pages, images and forms.
    """
    if any(name in headers for name in _PREFLIGHTED) or _is_json(headers.get(b"content-type", b"")):
        return False
    if headers.get(b"sec-fetch-site") in (b"same-origin", b"none"):
        return False
    if b"origin" in headers and not origins.allow(headers[b"origin"].decode("latin-1")):
        return True
    mode = headers.get(b"sec-fetch-mode")
    if b"sec-fetch-site" in headers:
        # It is from another site. If a page reads the answer, the browser names the page's origin.
        return mode != b"cors" or b"origin" not in headers
    if mode is not None:
        return mode != b"cors"
    accept = headers.get(b"accept", b"*/*").strip()
    return accept != b"*/*" and not _is_json(accept)


def _is_json(value: bytes) -> bool:
    return b"application/json" in value or b"application/graphql-response+json" in value
