"""Pages of other origins: the pages that may send requests, and the requests that all other pages can send."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.types import Scope

from keygraph_server.http.requests import OFFERED, HeaderFields, request_headers

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\*\.)?([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+|:\*)?")
_DEFAULT_PORT = re.compile(":(80|443)$")
_SUBDOMAINS = r"([a-z0-9-]+\.)+"
_ANY_PORT = r"(:[0-9]+)?"
_NO_OTHER_SITE = (b"same-origin", b"none")
"""The values of `Sec-Fetch-Site` for pages of this server, and for what no page has sent."""

_PREFLIGHTED = (
    b"apollo-require-preflight",
    b"graphql-require-preflight",
    b"x-apollo-operation-name",
    b"x-requested-with",
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


def is_forgeable(scope: Scope, origins: Origins) -> bool:
    """Whether a forbidden page could have made a browser send this GET, with its user's cookies.

    A POST is safe: its Content-Type makes browsers ask first. For a GET they do only if it has an unusual header. For
    other GETs, browsers say where they come from (https://w3c.github.io/webappsec-fetch-metadata), and old ones in
    `Referer` alone. Those that do not, and programs, must not accept the media types of pages, images and forms.
    """
    headers = request_headers(scope).fields
    if any(name in headers for name in _PREFLIGHTED) or _is_preflighted_by_value(headers):
        return False
    if b"origin" in headers and is_foreign(scope, origins):
        return True
    if b"origin" not in headers and b"referer" in headers:
        page = b"/".join(headers[b"referer"].split(b"/", 3)[:3]).decode("latin-1").lower()
        if not origins.allow(page) and not _is_own(page, scope):
            return True
    if headers.get(b"sec-fetch-site") in _NO_OTHER_SITE:
        return False
    mode = headers.get(b"sec-fetch-mode")
    if b"sec-fetch-site" in headers:
        # It is from another site. If a page reads the answer, the browser names the page's origin.
        return mode != b"cors" or b"origin" not in headers
    if mode is not None:
        return mode != b"cors"
    accept = headers.get(b"accept", b"*/*").strip()
    return accept != b"*/*" and not any(offered.encode() in accept for offered in OFFERED)


def is_foreign(scope: Scope, origins: Origins) -> bool:
    """Whether a browser says that this request is of a forbidden page. It has asked first, unless it is old or broken.

    Either header is enough: old browsers send no `Sec-Fetch-Site`, and others send it only to hosts that use HTTPS.
    A proxy that replaces `Host` makes this server's own pages foreign.
    """
    headers = request_headers(scope).fields
    is_of_other_site = headers.get(b"sec-fetch-site") not in (None, *_NO_OTHER_SITE)
    if b"origin" not in headers:
        return is_of_other_site
    origin = headers[b"origin"].decode("latin-1").lower()
    return not origins.allow(origin) and (is_of_other_site or not _is_own(origin, scope))


def _is_own(origin: str, scope: Scope) -> bool:
    """Whether an origin is this server's. If it does not know that it is reached by HTTPS, a proxy may have ended TLS."""
    host = request_headers(scope).fields.get(b"host", b"").decode("latin-1").lower()
    schemes = ("https",) if scope.get("scheme") in ("https", "wss") else ("http", "https")
    return _DEFAULT_PORT.sub("", origin) in {_DEFAULT_PORT.sub("", f"{each}://{host}") for each in schemes}


def _is_preflighted_by_value(headers: HeaderFields) -> bool:
    """Whether a browser sends these values only after a preflight request.

    `text/plain; application/json` is text to it (https://mimesniff.spec.whatwg.org), and it repeats the credentials of
    `Basic`, `Digest` and `Negotiate` without being told.
    """
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return media_type.decode("latin-1") in OFFERED or headers.get(b"authorization", b"").lower().startswith(
        b"bearer "
    )
