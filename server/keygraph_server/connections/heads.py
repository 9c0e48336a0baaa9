"""What the head of a request may say: a host that this server answers to, and framing that everybody reads alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from keygraph_server.connections import refusals

_HOST = re.compile(r"([a-z0-9_.-]{1,255}|\[[0-9a-f:.]{2,45}\])(:[0-9]{0,5})?", re.IGNORECASE)
_URL = re.compile(rb"[a-z]+://([^/?#]*)/", re.IGNORECASE)

_LONGEST_PATH = 1_024
"""No path that is served is longer, and one of 16 KB of escapes takes a millisecond to decode."""


class HeadRules:
    """Refuses what servers and proxies could read differently, and requests to hosts that this server does not answer."""

    def __init__(self, hosts: Iterable[str] | None = None) -> None:
        """`hosts` are those that are answered, also with `*.` before a name; None for all."""
        self._answered = None if hosts is None else re.compile("|".join(map(_pattern, hosts)), re.IGNORECASE)
        self._accepted: bytes | None = None
        """The last host that was accepted. Most requests have the same one."""

    def problem(
        self, target: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]
    ) -> refusals.ConnectionRefusal | None:
        """Why a request is refused; None if it is not. The names in its headers are in lower case."""
        names = [name for name, _ in headers]
        hosts = names.count(b"host")
        if version not in ("1.0", "1.1") or hosts > 1 or (hosts == 0 and version != "1.0"):
            return refusals.NOT_HTTP  # RFC 9112, 2.3 and 3.2
        if len(target) > _LONGEST_PATH and target.find(b"?", 0, _LONGEST_PATH + 1) < 0:
            return refusals.PATH_TOO_LONG
        if hosts:
            host = headers[names.index(b"host")][1]
            if host != self._accepted:
                refusal = self._problem_of_host(host)
                if refusal is not None:
                    return refusal
                self._accepted = host
            if not target.startswith(b"/") and target != b"*":
                url = _URL.match(target)
                if url is None or url[1] != host:
                    return refusals.BAD_HOST  # RFC 9112, 3.2.2
        if b"transfer-encoding" in names:
            if version == "1.0" or b"content-length" in names:
                return refusals.NOT_HTTP  # RFC 9112, 6.1
            if _values(headers, b"transfer-encoding") != [b"chunked"]:
                return refusals.NO_SUCH_CODING
        if b"expect" in names and _values(headers, b"expect") != [b"100-continue"]:
            return refusals.NO_SUCH_EXPECTATION
        return None

    def _problem_of_host(self, host: bytes) -> refusals.ConnectionRefusal | None:
        found = _HOST.fullmatch(host.decode("latin-1").strip(" \t"))
        if found is None or int((found[2] or ":")[1:] or 0) > 65535:
            return refusals.BAD_HOST
        name = found[1].removesuffix(".")
        if self._answered is None or self._answered.fullmatch(name):
            return None
        return refusals.not_answered(name)


def written_head(line: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of a request with this first line, as it is sent."""
    return b"\r\n".join([line, *(name + b": " + value for name, value in fields), b"", b""])


def _pattern(host: str) -> str:
    return rf"([a-z0-9_-]+\.)+{re.escape(host[2:])}" if host.startswith("*.") else re.escape(host)


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip(b" \t").lower() for each, value in headers if each == name]
