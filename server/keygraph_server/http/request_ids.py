"""The id of a request: in the `X-Request-Id` header of its answer, in its errors, and in its log lines.

`keygraph_server.http.middleware` sets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

REQUEST_ID: ContextVar[str | None] = ContextVar("keygraph-request-id", default=None)
"""The id of the request that the running task answers."""

REQUEST_ID_HEADER = "x-request-id"


def with_request_id(errors: Iterable[dict[str, Any]]) -> None:
    """Puts the id of the running request into the extensions of these errors."""
    request_id = REQUEST_ID.get()
    if request_id is not None:
        for error in errors:
            error.setdefault("extensions", {})["requestId"] = request_id
