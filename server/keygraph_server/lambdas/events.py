"""Events of function URLs and HTTP APIs (payload format 2.0) as ASGI requests, and ASGI answers as their results.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

import asyncio
import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope

from keygraph_server.errors import RequestRefusedError

_DEFAULT_STAGE = "$default"


def scope_of(event: Mapping[str, Any]) -> Scope:
    """The ASGI scope of an event. Raises ValueError for an event of another kind, and UnicodeEncodeError for texts that
    are not valid Unicode."""
    if event.get("version") != "2.0" or "http" not in event.get("requestContext", {}):
        raise ValueError("this is no event of a function URL or an HTTP API with payload format 2.0")
    context = event["requestContext"]
    headers = {name: value for name, value in (event.get("headers") or {}).items() if value is not None}
    if event.get("cookies"):
        headers["cookie"] = "; ".join(event["cookies"])
    stage = context.get("stage") or _DEFAULT_STAGE
    path = event["rawPath"]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": context["http"]["method"],
        "scheme": headers.get("x-forwarded-proto", "https"),
        "path": unquote(path),
        "raw_path": path.encode(),
        # The path of another stage than the default begins with its name.
        "root_path": "" if stage == _DEFAULT_STAGE else f"/{stage}",
        "query_string": (event.get("rawQueryString") or "").encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (context["http"].get("sourceIp", ""), 0),
        "server": (context.get("domainName", ""), 443),
    }


def _body_of(event: Mapping[str, Any]) -> bytes:
    body = event.get("body") or ""
    return b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _refused(message: str) -> dict[str, Any]:
    """The result for an event that is no valid request."""
    refused = RequestRefusedError(message, 400)
    return {
        "statusCode": 400,
        "headers": {"content-type": "application/json; charset=utf-8", "cache-control": "no-store"},
        "cookies": [],
        "body": json.dumps(refused.response),
        "isBase64Encoded": False,
    }


async def result_of(app: ASGIApp, event: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the application's answer to an event."""
    try:
        scope, content = scope_of(event), _body_of(event)
    except UnicodeEncodeError:
        return _refused("the request has half of a character, which no request over HTTP can have")
    except binascii.Error:
        return _refused("the body of the event is not base64")
    asked: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]
    answered: list[Message] = []

    async def receive() -> Message:
        if not asked:
            # Lambda does not report a client that disconnects.
            await asyncio.Event().wait()
        return asked.pop()

    async def send(message: Message) -> None:
        answered.append(message)

    await app(scope, receive, send)
    start, *rest = answered
    headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
    told: dict[str, Any] = {
        "statusCode": start["status"],
        "headers": {name: value for name, value in headers if name != "set-cookie"},
        "cookies": [value for name, value in headers if name == "set-cookie"],
    }
    sent = b"".join(message.get("body", b"") for message in rest)
    try:
        return {**told, "body": sent.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {**told, "body": b64encode(sent).decode(), "isBase64Encoded": True}
