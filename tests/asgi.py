"""Clients of applications that run in the process of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.applications import Starlette


def client_of(
    app: Starlette, host: str = "keygraph", address: str = "127.0.0.1", **options: Any
) -> httpx.AsyncClient:
    """A client at this address, which asks the host; the options are those of httpx's transport."""
    transport = httpx.ASGITransport(app, client=(address, 1), **options)
    return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")


@asynccontextmanager
async def running(app: Starlette, host: str = "keygraph") -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that is started as an ASGI server does it."""
    async with app.router.lifespan_context(app), client_of(app, host) as client:
        yield client
