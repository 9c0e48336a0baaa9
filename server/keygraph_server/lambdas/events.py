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
    """The ASGI scope of an event. Raises ValueError for an event of another kind, UnicodeEncodeError for texts that are
    not valid Unicode, and TypeError for a member that is none of HTTP."""
    if event.get("version") != "2.0":
        raise ValueError("this is no event of a function URL or an HTTP API with payload format 2.0")
    context = _member(event, "requestContext", dict)
    http = _member(context, "http", dict)
    headers = {
        name: _text(name, value)
        for name, value in _member(event, "headers", dict).items()
        # The body itself says how long it is.
        if value is not None and name.lower() != "content-length"
    }
    cookies = [_text("cookies", each) for each in _member(event, "cookies", list) if each is not None]
    if cookies:
        headers["cookie"] = "; ".join(cookies)
    method = _member(http, "method", str)
    if not method:
        raise TypeError("requestContext.http.method")
    stage = _member(context, "stage", str) or _DEFAULT_STAGE
    path = _member(event, "rawPath", str) or _member(http, "path", str) or "/"
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": headers.get("x-forwarded-proto", "https"),
        "path": unquote(path),
        "raw_path": path.encode(),
        # The path of another stage than the default begins with its name.
        "root_path": "" if stage == _DEFAULT_STAGE else f"/{stage}",
        "query_string": _member(event, "rawQueryString", str).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (_member(http, "sourceIp", str), 0),
        "server": (_member(context, "domainName", str), 443),
    }


def _member(of: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    """Returns a member of an event; an empty one for null, or if there is none. Raises TypeError for another kind."""
    found = of.get(name)
    if found is not None and type(found) is not kind:
        raise TypeError(name)
    return kind() if found is None else found


def _text(name: str, value: object) -> str:
    """Returns a value of a header, which may be a number. Raises TypeError for another one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(name)
    return str(value)


def _body_of(event: Mapping[str, Any]) -> bytes:
    body = _member(event, "body", str)
    content: bytes = body.encode()
    return b64decode(content, validate=True) if event.get("isBase64Encoded") else content


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
    except TypeError as error:
        return _refused(f"the event has no value for {error} that a request over HTTP can have")
    except binascii.Error:
        return _refused("the body of the event is not base64")
    unread: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]
    answered: list[Message] = []

    async def receive() -> Message:
        if not unread:
            # Lambda does not report a client that disconnects.
            await asyncio.Event().wait()
        return unread.pop()

    async def send(message: Message) -> None:
        answered.append(message)

    await app(scope, receive, send)
    start, *rest = answered
    headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
    result: dict[str, Any] = {
        "statusCode": start["status"],
        "headers": {name: value for name, value in headers if name != "set-cookie"},
        "cookies": [value for name, value in headers if name == "set-cookie"],
    }
    sent = b"".join(message.get("body", b"") for message in rest)
    try:
        return {**result, "body": sent.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {**result, "body": b64encode(sent).decode(), "isBase64Encoded": True}
