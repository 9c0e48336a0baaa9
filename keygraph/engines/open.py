"""Chooses an engine by the store's address: `sqlite:PATH`, `aws`, or the URL of a server with DynamoDB's API."""

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
    transport: TransportName = "direct",
) -> AbstractAsyncContextManager[Store]:
    """Returns the store at the address, for use with `async with`.

    `deadline` is the seconds that a request may take with its retries; of a file, a read. `concurrency` is the most requests
    that are sent at once to DynamoDB, `transport` what sends them. Raises ValueError for an unknown form of address.
    """
    check_address(url)
    # Engines are imported on use, so that the embedded one starts without AWS's libraries.
    scheme, _, path = url.partition(":")
    if scheme == "sqlite":
        from keygraph.engines.sqlite.engine import open_sqlite

        return open_sqlite(path, table, read_seconds=deadline)
    from keygraph.engines.dynamodb.engine import open_dynamodb

    endpoint = None if url == "aws" else url
    return open_dynamodb(table, endpoint, concurrency=concurrency, deadline=deadline, transport=transport)


def check_address(url: str) -> None:
    """Raises ValueError if the address of a store has an unknown form."""
    scheme, _, path = url.partition(":")
    if url != "aws" and not (scheme == "sqlite" and path) and not is_endpoint(url):
        raise ValueError(f"{shown_address(url)!r} is not a store: use sqlite:PATH, aws, or http://HOST:PORT")


def is_endpoint(url: str) -> bool:
    """Whether the text is the URL of a server that can be asked."""
    try:
        parts = urlsplit(url)
        # Reading the port checks that it is a valid one, and encoding the host that it can be looked up.
        return (
            parts.scheme in {"http", "https"}
            and bool((parts.hostname or "").encode("idna"))
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


def shown_address(url: str) -> str:
    """Returns the address of a store without a user name and a password."""
    scheme = url.partition(":")[0]
    return url if "@" not in url or scheme == "sqlite" else f"{scheme}://…@{url.rpartition('@')[2]}"
