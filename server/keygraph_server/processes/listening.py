"""A listening socket: the connections that wait in the system's queue, and the end of new ones."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

_ATTACH_FILTER = 26
"""SO_ATTACH_FILTER of Linux's asm-generic/socket.h."""
_INSTRUCTION = struct.Struct("HBBI")
_NO_NEW_CONNECTIONS = b"".join(
    _INSTRUCTION.pack(*instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # load the flags of the TCP header,
        (0x54, 0, 0, 0x12),  # of them SYN and ACK
        (0x15, 0, 1, 0x02),  # if that is SYN alone,
        (0x06, 0, 0, 0),  # drop the packet,
        (0x06, 0, 0, 0xFFFF),  # else keep it
    )
)
"""A program of the classic Berkeley packet filter."""


def waiting_connections(listening: socket.socket) -> Iterator[socket.socket]:
    """Accepts the connections of clients that wait."""
    # The socket does not block.
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            connection.setblocking(False)
            yield connection


def end_new_connections(listening: socket.socket) -> None:
    """Lets no new connection into the queue, in any process that has the socket. Those that wait stay.

    Closing the socket resets what came since the last look at the queue. Such a client tries again after a second instead,
    and is refused, or finds the next server. Other systems than Linux have no such filter.
    """
    if not sys.platform.startswith("linux"):
        return
    program = ctypes.create_string_buffer(_NO_NEW_CONNECTIONS)
    count = len(_NO_NEW_CONNECTIONS) // _INSTRUCTION.size
    with suppress(OSError):
        listening.setsockopt(
            socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", count, ctypes.addressof(program))
        )
