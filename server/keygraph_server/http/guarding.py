"""What stands between the server and every endpoint: bodies are limited, and errors do not tell about the inside."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keygraph.codes import Code
from keygraph_resolvers.errors import internal_error
from keygraph_server.errors import RequestRefusedError
from keygraph_server.http.request_ids import with_request_id


class GuardEndpoints:
    """ASGI middleware that answers with a GraphQL error if an endpoint fails (500), if it is cut off by a stop (503), or if
    the body of a request is too large (413). An unexpected error is logged with an id, and the client gets only that id."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self.app = app
        self._most = max_body_bytes

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
            await self.app(scope, self._limited(scope, receive), sending)
        except asyncio.CancelledError:
            # The server stops and has waited long enough. Who is left can ask another one.
            if not is_started:
                stopped = RequestRefusedError(
                    "the server stops; send the request again", 503, Code.UNAVAILABLE
                )
                headers = {"retry-after": "1", "connection": "close"}
                await _refusal(stopped, headers)(scope, receive, send)
        except RequestRefusedError as refused:
            await _refusal(refused)(scope, receive, send)
        except Exception as error:
            # A partly sent answer cannot be taken back, so the connection is closed.
            if is_started:
                raise
            await _answer([internal_error(error)], 500)(scope, receive, send)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """What gives the body. It raises RequestRefusedError for one that has more bytes than are allowed."""
        most, count = self._most, 0
        for name, value in scope["headers"]:
            if name == b"content-length":
                count = int(value)
                if count <= most:
                    return receive

        async def receiving() -> Message:
            nonlocal count
            if count <= most:
                message = await receive()
                count += len(message.get("body", b""))
                if count <= most:
                    return message
            raise RequestRefusedError(f"the body of a request is limited to {most} bytes", 413)

        return receiving


def _refusal(refused: RequestRefusedError, headers: dict[str, str] | None = None) -> Response:
    return _answer(refused.response["errors"], refused.status or 400, headers)


def _answer(errors: list[dict[str, Any]], status: int, headers: dict[str, str] | None = None) -> Response:
    with_request_id(errors)
    return Response(orjson.dumps({"errors": errors}), status, headers, media_type="application/json")
