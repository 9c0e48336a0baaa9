"""Which engine a store's address names: `sqlite:PATH`, `aws`, or the URL of what speaks DynamoDB's API."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

from keygraph.dynamo.store import Store
from keygraph.dynamo.table import Table
from keygraph.engines.dynamodb.transport import TransportName


def open_store(
    url: str,
    table: Table,
    *,
    concurrency: int = 256,
    deadline: float = 10.0,
    transport: TransportName = TransportName.DIRECT,
) -> AbstractAsyncContextManager[Store]:
    """The store at the address, to be entered and left with `async with`.

    `concurrency` is how many requests are on the wire at once, `deadline` the seconds that one of them may take
    with its retries, `transport` what carries them; all are for DynamoDB. Raises ValueError for an address of no known form.
    """
    # An engine is imported where it is asked for, so that the embedded one starts without AWS's libraries.
    scheme, _, path = url.partition(":")
    if scheme == "sqlite" and path:
        from keygraph.engines.sqlite.engine import open_sqlite

        return open_sqlite(path, table)
    if url != "aws" and not _is_endpoint(url):
        raise ValueError(f"{shown_address(url)!r} is no store: give sqlite:PATH, aws, or http://HOST:PORT")
    from keygraph.engines.dynamodb.engine import open_dynamodb

    endpoint = None if url == "aws" else url
    return open_dynamodb(table, endpoint, concurrency=concurrency, deadline=deadline, transport=transport)


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # The port is read only to see that it is a number of a port.
        return (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


def shown_address(url: str) -> str:
    """The address of a store without what may be a password in it."""
    return f"{url.partition(':')[0]}://…@{url.rpartition('@')[2]}" if "@" in url and "://" in url else url
