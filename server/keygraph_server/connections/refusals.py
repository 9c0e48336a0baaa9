"""Answers that the connection sends itself, because no request has reached the application."""

from __future__ import annotations

import os
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from keygraph.codes import Code
from keygraph_server.secure_headers import HTTPS_ONLY, NO_CONTENT_POLICY, SECURE_HEADERS

_SECURE = (*SECURE_HEADERS, NO_CONTENT_POLICY)


@dataclass(frozen=True)
class Refusal:
    """Why a connection is ended: the status, code and message of its last answer."""

    status: HTTPStatus
    code: str
    message: str

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


NOT_HTTP = Refusal(HTTPStatus.BAD_REQUEST, Code.BAD_USER_INPUT, "this is not a valid HTTP request")
NO_TUNNEL = Refusal(HTTPStatus.NOT_IMPLEMENTED, Code.BAD_USER_INPUT, "CONNECT is not supported")
TOO_SLOW = Refusal(HTTPStatus.REQUEST_TIMEOUT, Code.TIMEOUT, "the request took too long to arrive")
TOO_MANY_CONNECTIONS = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, Code.UNAVAILABLE, "the server has too many connections; try again later"
)
TOO_MANY_WAITING = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    Code.UNAVAILABLE,
    "too many requests wait on this connection; send them again",
)


def head_too_large(limit: int) -> Refusal:
    """The head has more bytes than the limit."""
    message = f"the head of a request is limited to {limit:,} bytes"
    return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, Code.BAD_USER_INPUT, message)


def too_many_fields(limit: int) -> Refusal:
    """The head has more header fields than the limit."""
    message = f"a request is limited to {limit:,} header fields"
    return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, Code.BAD_USER_INPUT, message)
