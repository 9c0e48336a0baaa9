"""The socket that the server listens on: bound before anything else is done, and ended without a reset connection."""

from __future__ import annotations

import ctypes
import errno
import re
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address

from keygraph_server.errors import CommandError

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine. No page of a foreign site has one of them in its address."""
_LISTED = re.compile(r"(\*\.)?[a-z0-9_.-]{1,255}|\[[0-9a-f:.]{2,45}\]")
_QUEUED = 2048
"""So many connections wait to be accepted; on Linux one more."""
_UNSENT_BYTES = 128 * 1024
"""The bytes of an answer that the system takes beyond the client's window. Its default is 4 MB, and the event loop
keeps an answer whole until the system has taken all of it."""
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


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Clients that connect before the server runs wait for it.

    Port 0 picks a free port. Raises CommandError if the address cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        problem = f"{host} is not an address of this machine"
        raise CommandError(problem, "Choose another: --host 127.0.0.1") from None
    listening = socket.socket(family, kind, protocol)
    try:
        # Allows a port whose old connections are still closing (TIME_WAIT), but not one that is in use.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # Its connections inherit it.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        listening.bind(address)
        listening.listen(_QUEUED)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise _refused(error, host, port) from None
    return listening


def address_of(listening: socket.socket, host: str) -> str:
    """The URL of the socket, as seen from this machine."""
    return url_of(host, listening.getsockname()[1])


def url_of(host: str, port: int) -> str:
    """The URL of a server that listens on this address, as seen from this machine."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def listed_hosts(text: str) -> list[str]:
    """The hosts that a setting lists: names, `*.` before a name, addresses, or `*` alone. Raises ValueError."""
    hosts = text.lower().replace(",", " ").split()
    for host in hosts:
        if hosts != ["*"] and not _LISTED.fullmatch(host):
            raise ValueError(f"{host!r} is not a host such as api.example.com")
    return hosts


def answered_hosts(listening: socket.socket, host: str, allowed: str | None) -> list[str] | None:
    """The hosts that requests to the socket may name; None for all.

    A page can point the name of its site to this machine (DNS rebinding). A browser then takes the server for that site,
    and sends the name with each request.
    """
    address = ip_address(listening.getsockname()[0])
    if allowed is None and not (getattr(address, "ipv4_mapped", None) or address).is_loopback:
        return None
    listed = listed_hosts(allowed or "")
    own = f"[{host}]" if ":" in host else host
    return None if listed == ["*"] else [*_LOCAL_HOSTS, own.lower(), *listed]


def waiting_connections(listening: socket.socket) -> Iterator[socket.socket]:
    """Accepts the connections of clients that wait."""
    # The socket does not block.
    with suppress(OSError):
        for _ in range(_QUEUED + 1):
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


def _refused(error: OSError, host: str, port: int) -> CommandError:
    if error.errno == errno.EADDRINUSE:
        fix = f"Stop the program that uses it, or choose another: --port {port + 1 if port < 65535 else 8000}"
        return CommandError(f"port {port} on {host} is in use", fix)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return CommandError(f"port {port} needs more permissions", "Choose one above 1023: --port 8000")
    if error.errno == errno.EADDRNOTAVAIL:
        return CommandError(f"{host} is not an address of this machine", "Choose another: --host 127.0.0.1")
    return CommandError(
        f"the server cannot listen on {host}:{port}: {error.strerror}", "Choose another --port"
    )
