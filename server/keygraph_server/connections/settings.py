"""The limits on a client's connections, which are settings."""

from __future__ import annotations

from pydantic import BaseModel, Field

from keygraph.limits import MOST, Count, CountOrZero, Seconds


class ConnectionSettings(BaseModel):
    """Limits on a client's connections. All numbers are for each server process."""

    max_connections: Count = 2_000
    """How many connections a process keeps open. Above that, a new connection closes the one that has waited longest for
    its client; if none waits, the new one is answered with 503. The number is lowered if the system allows fewer open
    files."""
    max_connections_by_address: CountOrZero = 1_000
    """The same for the connections of one address (for IPv6, of one /64 network); 0 means no limit. Where three quarters
    of all connections are open, an address may have an equal share of all at most. Behind a proxy, all connections have the
    proxy's address."""
    connection_memory: Count = 32_000_000
    """How many bytes a process keeps of unanswered requests and of answers that clients have not read yet. Above that,
    it closes the connections that have waited longest for their clients; if there are none, requests that would wait on
    their connection are answered with 503."""
    max_head_bytes: int = Field(default=16_384, ge=256, le=MOST)
    """The largest head of an HTTP request (request line and header fields), in bytes. A larger one is answered with 431."""
    max_head_fields: Count = 100
    """How many header fields a request may have. More are answered with 431."""
    max_pipelined: CountOrZero = 16
    """How many requests may wait on a connection while an earlier one is answered. Another one is answered with 503 and
    closes the connection."""
    head_timeout: Seconds = 10.0
    """How long a client may take to send the head of a request, in seconds."""
    body_timeout: Seconds = 30.0
    """How long a client may take to send the body of a request, or 16 KB of it, in seconds."""
    write_timeout: Seconds = 30.0
    """How long a client may take to read its answers, or 16 KB of them, in seconds."""
