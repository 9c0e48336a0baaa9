"""Unexpected errors: logged with an id. The client gets only that id."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph_resolvers.errors import internal_error
from keygraph_server.http.request_ids import with_request_id


class MaskUnexpectedErrors:
    """ASGI middleware that answers with a GraphQL error if an endpoint fails (500), or is cut off by a stop (503)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_started = False

        async def sending(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except asyncio.CancelledError:
            # The server stops and has waited long enough. Who is left can ask another one.
            if not is_started:
                await _unavailable()(scope, receive, send)
        except Exception as error:
            # A partly sent answer cannot be taken back, so the connection is closed.
            if is_started:
                raise
            errors = [internal_error(error)]
            with_request_id(errors)
            await Response(orjson.dumps({"errors": errors}), 500, media_type="application/json")(
                scope, receive, send
            )


def _unavailable() -> Response:
    message = "the server stops; send the request again"
    errors: list[dict[str, Any]] = [{"message": message, "extensions": {"code": "UNAVAILABLE"}}]
    with_request_id(errors)
    headers = {"retry-after": "1", "connection": "close"}
    return Response(orjson.dumps({"errors": errors}), 503, headers, media_type="application/json")
