"""Answers as server-sent events, by the protocol of npm graphql-sse in its mode of distinct connections.

Each answer is an event `next`, and the last event is `complete`. Comments in between show that the connection lives.
https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Send

from keygraph_server.http.requests import parse_media_type, quality, remembered

if TYPE_CHECKING:
    from keygraph_resolvers.live import Listener

EVENTS = "text/event-stream"
_PING_SECONDS = 12.0
"""Proxies close connections that are silent for a minute, some after 30 seconds."""
_PING = b":\n\n"
_COMPLETE = b"event: complete\ndata: \n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"vary", b"accept, accept-encoding"),
    # nginx sends what it gets at once.
    (b"x-accel-buffering", b"no"),
)


@remembered
def takes_events(accept: bytes) -> bool:
    """Returns whether an Accept header names server-sent events."""
    ranges = [parse_media_type(part) for part in accept.decode("latin-1").split(",")]
    return any(name == EVENTS and quality(parameters) > 0 for name, parameters in ranges)


def event(text: bytes) -> bytes:
    """Returns an answer, as JSON without line breaks, as an event."""
    return b"event: next\ndata: %b\n\n" % text


def only_event(text: bytes) -> bytes:
    """Returns the only answer of an operation, as all its events."""
    return event(text) + _COMPLETE


async def send_answers(
    listener: Listener, receive: Receive, send: Send, answered: Callable[[], None]
) -> None:
    """Sends the answers to a listener until it ends, or its client is gone. `answered` is called for each."""
    gone = asyncio.create_task(_disconnect(receive))
    waiting: asyncio.Task[Any] | None = None
    try:
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
        await send({"type": "http.response.body", "body": _PING, "more_body": True})
        while not gone.done():
            waiting = waiting or asyncio.create_task(listener.next())
            await asyncio.wait((gone, waiting), timeout=_PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            body = _PING
            if waiting.done():
                answer, waiting = waiting.result(), None
                if answer is None:
                    await send({"type": "http.response.body", "body": _COMPLETE})
                    return
                answered()
                body = event(answer.text)
                del answer  # it would be kept until the next one comes, and so would its text
            await send({"type": "http.response.body", "body": body, "more_body": True})
            del body
            # A server waits before it sends: the next answer is made when the client has taken this one.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
    finally:
        listener.end()
        gone.cancel()
        if waiting is not None:
            waiting.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
