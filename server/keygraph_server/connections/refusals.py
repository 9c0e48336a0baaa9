"""Answers that the connection sends itself, because no request has reached the application."""

from __future__ import annotations

import os
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from keygraph.codes import Code
from keygraph_server.secure_headers import HTTPS_ONLY, NO_CONTENT_POLICY, NO_STORE, SECURE_HEADERS

_SECURE = (*SECURE_HEADERS, NO_CONTENT_POLICY, NO_STORE)


@dataclass(frozen=True)
class ConnectionRefusal:
    """A request is not valid HTTP, or is not served here. The connection ends with this answer."""

    status: HTTPStatus
    message: str
    code: str = Code.BAD_USER_INPUT

    def response(self, *, https_only: bool) -> bytes:
        """The complete HTTP response, with its own request id."""
        secure = (*_SECURE, HTTPS_ONLY) if https_only else _SECURE
        fields = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in secure)
        request_id = os.urandom(16).hex()
        extensions = {"code": self.code, "requestId": request_id}
        body = orjson.dumps({"errors": [{"message": self.message, "extensions": extensions}]})
        retry = "retry-after: 1\r\n" if self.status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            "content-type: application/json; charset=utf-8\r\n"
            f"{fields}"
            f"x-request-id: {request_id}\r\n"
            f"content-length: {len(body)}\r\n"
            f"{retry}connection: close\r\n\r\n"
        )
        return head.encode() + body


NOT_HTTP = ConnectionRefusal(HTTPStatus.BAD_REQUEST, "this is not a valid HTTP request")
BAD_HOST = ConnectionRefusal(
    HTTPStatus.BAD_REQUEST, "the Host of this request is no host, or not that of its URL"
)
PATH_TOO_LONG = ConnectionRefusal(HTTPStatus.REQUEST_URI_TOO_LONG, "the path of this URL is too long")
NO_SUCH_CODING = ConnectionRefusal(HTTPStatus.NOT_IMPLEMENTED, "the only Transfer-Encoding is chunked, once")
NO_SUCH_EXPECTATION = ConnectionRefusal(
    HTTPStatus.EXPECTATION_FAILED, "the only expectation is Expect: 100-continue"
)
NO_TUNNEL = ConnectionRefusal(HTTPStatus.NOT_IMPLEMENTED, "CONNECT is not supported")
TOO_SLOW = ConnectionRefusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive", Code.TIMEOUT)
TOO_MANY_CONNECTIONS = ConnectionRefusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "the server has too many connections; try again later", Code.UNAVAILABLE
)
TOO_MANY_WAITING = ConnectionRefusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "too many requests wait on this connection; send them again",
    Code.UNAVAILABLE,
)


def not_answered(host: str) -> ConnectionRefusal:
    """The request is to a host that this server does not answer."""
    message = (
        f"this server does not answer requests to {host}: if that name should lead here, add it to "
        "KEYGRAPH_ALLOWED_HOSTS"
    )
    return ConnectionRefusal(HTTPStatus.MISDIRECTED_REQUEST, message)


def head_too_large(limit: int) -> ConnectionRefusal:
    """The head has more bytes than the limit."""
    message = f"the head of a request is limited to {limit:,} bytes"
    return ConnectionRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)


def too_many_fields(limit: int) -> ConnectionRefusal:
    """The head has more header fields than the limit."""
    message = f"a request is limited to {limit:,} header fields"
    return ConnectionRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)
