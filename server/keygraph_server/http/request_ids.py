"""The id of a request: in the `X-Request-Id` header of its answer, in its errors, and in its log lines.

A request keeps the id that a proxy or the client has given it, if that is short and plain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID: ContextVar[str | None] = ContextVar("keygraph-request-id", default=None)
"""The id of the request that the running task answers."""

REQUEST_ID_HEADER = "x-request-id"
_FIELD = REQUEST_ID_HEADER.encode()
_PLAIN = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class IdentifyRequests:
    """ASGI middleware that gives every request an id, and its answer the header with it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _given_id(scope) or new_request_id()
        REQUEST_ID.set(request_id)
        field = (_FIELD, request_id.encode())

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), field]
            await send(message)

        await self.app(scope, receive, sending)


def new_request_id() -> str:
    """An id that no other request has: 128 random bits."""
    return os.urandom(16).hex()


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == _FIELD:
            return value.decode() if _PLAIN.fullmatch(value) else None
    return None


def with_request_id(errors: Iterable[dict[str, Any]]) -> None:
    """Put the id of the running request into the extensions of these errors."""
    request_id = REQUEST_ID.get()
    if request_id is not None:
        for error in errors:
            error.setdefault("extensions", {})["requestId"] = request_id
