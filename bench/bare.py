"""The least that a request can cost on uvicorn: an ASGI application that answers a constant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

BODY = b'{"data":{"__typename":"Query"}}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]

_Message = MutableMapping[str, Any]


async def app(
    scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
) -> None:
    """Reads the body, as every server has to, and answers."""
    if scope["type"] != "http":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": BODY})
