"""Unexpected errors: logged with an id, and answered with that id and nothing else."""

from __future__ import annotations

import logging
import secrets

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger(__name__)

INTERNAL = "INTERNAL"


class MaskUnexpectedErrors:
    """ASGI middleware that answers 500, with a GraphQL error as its body, where an endpoint has failed."""

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
        except Exception as error:
            # Half of an answer cannot be taken back: the connection is broken off instead.
            if is_started:
                raise
            error_id = secrets.token_hex(8)
            _log.exception("unexpected error %s at %s", error_id, scope["path"], exc_info=error)
            await internal_error(error_id)(scope, receive, send)


def internal_error(error_id: str) -> Response:
    """The answer to a request that has failed for a reason of ours."""
    error = {
        "message": f"an unexpected error, which the server's log has under the id {error_id}",
        "extensions": {"code": INTERNAL, "id": error_id},
    }
    return Response(orjson.dumps({"errors": [error]}), 500, media_type="application/json")
