"""All connections of a process: their number, their memory, and which to close when there is too much."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Address, ip_address
from typing import Protocol
from weakref import WeakSet

from keygraph_server.connections.heads import HeadRules
from keygraph_server.connections.refusals import ConnectionRefusal
from keygraph_server.connections.settings import ConnectionSettings

_log = logging.getLogger(__name__)

_COLLECTED_BYTES = 32_000_000
"""The collector counts objects, of which a large body has few: garbage is also collected after so many bytes of them."""
_REPORTED_EVERY = 60.0
"""Closed connections are logged together, at most once in this many seconds."""


class GatedConnection(Protocol):
    """The gate's view of a connection."""

    address: str
    """The client's network; empty if there is none."""
    held: int
    """The bytes that the process keeps for it."""

    def check(self, now: float) -> None:
        """Closes the connection if its client has taken too long."""

    def close_now(self) -> None:
        """Closes the connection, whatever it is doing."""


class ConnectionGate:
    """Admits connections, watches them, and closes some when there are too many or they hold too much."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        https_only: bool = False,
        hosts: Iterable[str] | None = None,
        has_websockets: bool = False,
        is_counted: bool = True,
    ) -> None:
        """With `https_only`, a browser that has once used HTTPS uses nothing else. `hosts` are answered; None for all. Unless
        `is_counted`, the metrics leave the connections out."""
        self.settings = settings
        self.heads = HeadRules(hosts)
        self._https_only = https_only
        self.has_websockets = has_websockets
        """Whether a connection may become a WebSocket."""
        self.held = 0
        """The bytes that all connections hold."""
        self._taken = 0
        """The bytes that they have taken since garbage was collected."""
        self._has_collected = False
        """Whether it was, and what is free was not returned yet."""
        self.closed: Counter[str] = Counter()
        """The number of closed connections, by reason."""
        self._open: set[GatedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._waiting: OrderedDict[GatedConnection, None] = OrderedDict()
        """The connections that wait for their client, the longest-waiting first."""
        self._next_check: asyncio.TimerHandle | None = None
        self._reported: Counter[str] = Counter()
        self._reported_at = float("-inf")
        if is_counted:
            GATES.add(self)

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether connections hold too much, though all that wait for their clients were closed."""
        return self.held > self.settings.connection_memory

    def refusal(self, refusal: ConnectionRefusal) -> bytes:
        """The HTTP response that refuses a request."""
        return refusal.response(https_only=self._https_only)

    def has_room(self, address: str) -> bool:
        """Whether a new connection of the address may be admitted. Closes the one that has waited longest to make room."""
        settings = self.settings
        most = settings.max_connections_by_address
        if most and 4 * len(self._open) >= 3 * settings.max_connections and self._by_address:
            most = min(most, settings.max_connections // len(self._by_address))
        is_much = 0 < most <= self._by_address[address]
        if not is_much or self._close_longest_waiting("too many connections of one address", address):
            is_much = len(self._open) >= settings.max_connections
            if not is_much or self._close_longest_waiting("too many connections"):
                return True
        self.closed["too many connections, all busy"] += 1
        return False

    def admit(self, connection: GatedConnection, loop: asyncio.AbstractEventLoop) -> bool:
        """Admits a new connection, which waits for its client. Returns False if there are too many."""
        if not self.has_room(connection.address):
            return False
        self._open.add(connection)
        self._waiting[connection] = None
        if connection.address:
            self._by_address[connection.address] += 1
        if self._next_check is None:
            self._next_check = loop.call_later(self._check_interval, self._check, loop)
        return True

    def leave(self, connection: GatedConnection) -> None:
        """Forgets a closed connection."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._waiting.pop(connection, None)
        if connection.address:
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]
        self.held -= connection.held
        connection.held = 0

    def wait(self, connection: GatedConnection, *, is_waiting: bool) -> None:
        """Notes whether the connection now waits for its client, or the client for an answer."""
        if not is_waiting:
            self._waiting.pop(connection, None)
        elif connection in self._open:
            self._waiting[connection] = None

    def hold(self, connection: GatedConnection, held: int) -> None:
        """Notes how many bytes the connection holds now."""
        if connection in self._open:
            grown = held - connection.held
            self.held += grown
            connection.held = held
            self._taken += max(0, grown)
            if self._taken > _COLLECTED_BYTES:
                self._taken = 0
                gc.collect(1)  # the oldest generation, of what is kept, would take long
                self._has_collected = True
            if self.is_full:
                for waiting in [each for each in self._waiting if each.held]:
                    if self.is_full:
                        self._close(waiting, "too much memory")

    def _close_longest_waiting(self, reason: str, address: str | None = None) -> bool:
        for connection in self._waiting:
            if address is None or connection.address == address:
                self._close(connection, reason)
                return True
        return False

    def _close(self, connection: GatedConnection, reason: str) -> None:
        self.closed[reason] += 1
        self.leave(connection)
        connection.close_now()

    @property
    def _check_interval(self) -> float:
        settings = self.settings
        return min(1.0, settings.head_timeout / 4, settings.body_timeout / 4, settings.write_timeout / 4)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        """Checks all connections. One timer for all costs less than several for each request."""
        self._next_check = loop.call_later(self._check_interval, self._check, loop) if self._open else None
        now = loop.time()
        for connection in list(self._open):
            connection.check(now)
        if self._has_collected:
            self._has_collected = False
            _return_free_pages()
        if self.closed != self._reported and now - self._reported_at >= _REPORTED_EVERY:
            counts = ", ".join(
                f"{reason}: {count}" for reason, count in (self.closed - self._reported).items()
            )
            _log.warning("Closed connections of clients: %s", counts)
            self._reported, self._reported_at = self.closed.copy(), now


def _return_free_pages() -> None:
    """Makes glibc return what is free between used blocks to the system: 50 MB after hundreds of large messages. Most often,
    it takes a few milliseconds; 20 for 250 MB. Other C libraries have no `malloc_trim`."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def network_of(host: str) -> str:
    """The network by which clients are counted: an IPv4 address, or the first 64 bits of an IPv6 address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64)
    return str(address)


def both_forms(proxies: list[str] | str) -> list[str]:
    """Trusted proxies, those of IPv4 also as the addresses of IPv6 that servers on `::` see: this one, and other proxies."""
    found = proxies.split(",") if isinstance(proxies, str) else [*proxies]
    for each in [*found]:
        with suppress(ValueError):
            network = IPv4Network(each.strip())
            found.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return found


GATES: WeakSet[ConnectionGate] = WeakSet()
"""The gates of this process, for its metrics: each server has one."""
