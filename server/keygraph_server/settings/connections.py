"""Limits on a client's connections."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ConnectionSettings(BaseModel):
    """Limits on a client's connections. All numbers are for each server process."""

    max_connections: int = Field(
        default=2_000,
        ge=1,
        description="How many connections a process keeps open. Above that, a new connection closes the one that has "
        "waited longest for its client; if none waits, the new one is answered with 503. The number is lowered "
        "if the system allows fewer open files.",
    )
    max_connections_by_address: int = Field(
        default=1_000,
        ge=0,
        description="The same for the connections of one address (for IPv6, of one /64 network); 0 means no limit. "
        "Behind a proxy, all connections have the proxy's address.",
    )
    connection_memory: int = Field(
        default=32_000_000,
        ge=1,
        description="How many bytes a process keeps of unanswered requests and of answers that clients have not read "
        "yet. Above that, it closes the connections that have waited longest for their clients.",
    )
    max_head_bytes: int = Field(
        default=16_384,
        ge=256,
        description="The largest head of an HTTP request (request line and header fields), in bytes. A larger one is "
        "answered with 431.",
    )
    max_head_fields: int = Field(
        default=100,
        ge=1,
        description="How many header fields a request may have. More are answered with 431.",
    )
    max_pipelined: int = Field(
        default=16,
        ge=0,
        description="How many requests may wait on a connection while an earlier one is answered. Another one is "
        "answered with 503 and closes the connection.",
    )
    head_timeout: float = Field(
        default=10.0,
        gt=0,
        description="How long a client may take to send the head of a request, in seconds.",
    )
    body_timeout: float = Field(
        default=30.0,
        gt=0,
        description="How long a client may take to send the body of a request, or 16 KB of it, in seconds.",
    )
    write_timeout: float = Field(
        default=30.0,
        gt=0,
        description="How long a client may take to read its answers, or 16 KB of them, in seconds.",
    )
