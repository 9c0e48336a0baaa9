"""Facts about a connection that the event loop does not have: the undelivered bytes, and whether the client is gone."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from contextlib import suppress

_ENDED = getattr(select, "POLLRDHUP", 0)
"""The client has closed its direction. Only Linux reports it before everything is read."""
_GONE = 0 if sys.platform == "win32" else select.POLLHUP | select.POLLERR


PROGRESS = 16 * 1024
"""A timeout starts again when the client has sent or taken this many bytes."""
ENDING_BYTES = 4_000_000
"""So many bytes of a client are discarded after its last answer before the connection is reset."""


class Unsent:
    """What was written to a client and not taken by it yet, as it was when somebody last looked."""

    __slots__ = ("_taken_at", "count")

    def __init__(self) -> None:
        self.count = 0
        """In bytes."""
        self._taken_at = 0.0

    def is_stuck(self, transport: asyncio.Transport, now: float, seconds: float) -> bool:
        """Looks again. Returns whether the client has taken nothing for so long."""
        unsent = transport.get_write_buffer_size()
        if unsent:
            unsent += undelivered_bytes(transport)
        if unsent == 0 or self.count == 0 or unsent + PROGRESS <= self.count:
            self.count, self._taken_at = unsent, now
        elif now - self._taken_at > seconds:
            return True
        else:
            self.count = max(unsent, self.count)
        return False


def undelivered_bytes(transport: asyncio.Transport) -> int:
    """The bytes that the system has not delivered yet. It accepts more only when much of its buffer is free."""
    if sys.platform == "win32":
        return 0
    import fcntl
    import termios

    try:
        queued = fcntl.ioctl(_file_of(transport), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(queued, sys.byteorder)


def has_ended(transport: asyncio.Transport) -> bool:
    """Whether the client has closed its direction, even if not everything was read. False if that is not known."""
    return bool(_ENDED and _events(transport, _ENDED))


def is_gone(transport: asyncio.Transport) -> bool:
    """Whether the client's system has reset the connection. False if that is not known."""
    return bool(_GONE and _events(transport, 0))


def write_now(transport: asyncio.Transport, data: bytes) -> None:
    """Sends a few bytes at once if nothing else waits to be sent: event loops may send them later."""
    if sys.platform == "win32":
        transport.write(data)
    elif not transport.get_write_buffer_size():
        with suppress(OSError):
            os.write(_file_of(transport), data)


def _events(transport: asyncio.Transport, wanted: int) -> int:
    """The events among `wanted` that have happened, or the end of the connection."""
    polled = select.poll()
    try:
        polled.register(_file_of(transport), wanted)
        found = polled.poll(0)
    except (OSError, ValueError):
        return 0  # it is closed
    return found[0][1] if found else 0


def _file_of(transport: asyncio.Transport) -> int:
    number: int = transport.get_extra_info("socket").fileno()
    return number
