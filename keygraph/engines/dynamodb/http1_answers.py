"""The answers of HTTP/1.1, read as they arrive: with a length, in chunks, or until the connection closes (RFC 9112)."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEAD_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: .*)?")
_OK = b"HTTP/1.1 200 OK\r\n"
_LOOKED_AT = re.compile(rb"\r\n(content-length|transfer-encoding|connection|x-amz-crc32):([^\r\n]*)")
"""The headers, in small letters, that are looked at in every answer."""
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,12})[ \t]*")


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    checksum: bytes | None
    """What DynamoDB says that the CRC32 of the body is."""
    head: bytes
    """The lines of the headers, and what stands before them."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers; their names are in small letters."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Malformed(Exception):
    """What was received is no answer of HTTP/1.1."""


class Answer:
    """One answer as it arrives: `feed` it until it gives the whole."""

    # Most come in one piece, and need none of these to be set.
    _received = b""
    _parts: list[bytes] | None = None
    _missing = 0
    _chunked: _Chunks | None = None
    _until_end = False
    _status = 0
    _head: bytes | None = None
    _checksum: bytes | None = None
    may_go_on = False
    """Whether another answer can follow on the connection."""
    has_begun = False

    def feed(self, data: bytes) -> Reply | None:
        """The answer where this is the last of it. Raises Malformed."""
        self.has_begun = True
        while self._head is None:
            data = self._received + data if self._received else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _HEAD_BYTES:
                    raise Malformed("a head that does not end")
                self._received = data
                return None
            self._received = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        return self._feed_body(data)

    def end(self) -> Reply | None:
        """The answer where it is whole now that the connection has ended."""
        return self._whole(b"".join(self._parts or ())) if self._until_end else None

    def _read_head(self, head: bytes) -> None:
        if head.startswith(_OK):
            self._status, is_kept = 200, True
        else:
            self._status, is_kept = _read_status(head.partition(b"\r\n")[0])
            if self._status < 200:
                # What comes before the answer itself.
                return
        self._head = head
        told = dict(_LOOKED_AT.findall(head.lower()))
        checksum = told.get(b"x-amz-crc32")
        if checksum is not None:
            self._checksum = checksum.strip()
        options = told.get(b"connection")
        if options is not None:
            is_kept = b"close" not in options and (is_kept or b"keep-alive" in options)
        self.may_go_on = is_kept
        encoding = told.get(b"transfer-encoding")
        length = told.get(b"content-length")
        if encoding is not None:
            if encoding.strip() != b"chunked":
                raise Malformed("an unknown transfer encoding")
            self._chunked = _Chunks()
        elif length is not None:
            number = _LENGTH.fullmatch(length)
            if number is None:
                raise Malformed("a length that is no number")
            self._missing = int(number[1])
        else:
            if any(b":" not in line for line in head.split(b"\r\n")[1:]):
                raise Malformed("a header without a colon")
            self._until_end, self.may_go_on = True, False

    def _feed_body(self, data: bytes) -> Reply | None:
        if self._chunked is not None:
            body = self._chunked.feed(data)
            if body is None:
                return None
            self.may_go_on = self.may_go_on and not self._chunked.rest
            return self._whole(body)
        self._missing -= len(data)
        if self._until_end or self._missing > 0:
            self._parts = self._parts or []
            self._parts.append(data)
            return None
        if self._missing < 0:
            # Nothing was asked for that this could answer.
            data = data[: self._missing]
            self.may_go_on = False
        return self._whole(b"".join([*self._parts, data]) if self._parts is not None else data)

    def _whole(self, body: bytes) -> Reply:
        return Reply(self._status, body, self._checksum, self._head or b"")


def _read_status(line: bytes) -> tuple[int, bool]:
    """The status, and whether the connection is kept where nothing else is said. Raises Malformed."""
    told = _STATUS.fullmatch(line)
    if told is None:
        raise Malformed("no status line")
    return int(told[2]), told[1] == b"1"


class _Chunks:
    """A body in chunks; trailers are passed over."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self._parts: list[bytes] = []
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes | None:
        """The body where this is the last of it. Raises Malformed."""
        rest = self.rest
        rest += data
        while (end := rest.find(b"\r\n")) >= 0:
            if self._in_trailers:
                del rest[: end + 2]
                if end == 0:
                    return b"".join(self._parts)
                continue
            size = _CHUNK.fullmatch(rest, 0, end)
            if size is None:
                raise Malformed("a chunk without a size")
            length = int(size[1], 16)
            after = end + 2 + length
            # A match into the bytes keeps them from growing.
            size = None
            if length == 0:
                self._in_trailers = True
                del rest[: end + 2]
                continue
            if len(rest) < after + 2:
                return None
            if rest[after : after + 2] != b"\r\n":
                raise Malformed("a chunk of another size")
            self._parts.append(bytes(rest[end + 2 : after]))
            del rest[: after + 2]
        if len(rest) > _HEAD_BYTES and not self._in_trailers:
            raise Malformed("a chunk without a size")
        return None
