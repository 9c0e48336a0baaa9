"""Opens the store that the settings name, and compares its table with the declared one."""

from __future__ import annotations

import shlex
from contextlib import AbstractAsyncContextManager

from keygraph import StoreError, open_store
from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.store import DescribeTable, Store
from keygraph.dynamo.table import Table
from keygraph_server.errors import CommandError
from keygraph_server.settings import Settings


def open_configured_store(settings: Settings, table: Table) -> AbstractAsyncContextManager[Store]:
    """The store that the settings name, as an async context manager.

    Raises CommandError for an address of an unknown form.
    """
    try:
        return open_store(
            settings.store_address,
            table,
            concurrency=settings.concurrency,
            deadline=settings.deadline,
            transport=settings.transport,
        )
    except ValueError as error:
        raise CommandError(str(error), "Set it with --store or KEYGRAPH_STORE") from None


async def live_table(settings: Settings, table: Table) -> Table | None:
    """The table of this name as it is in the store; None if there is none. Does not create a SQLite file.

    Raises StoreError if the store does not answer.
    """
    file = settings.sqlite_file
    if file is not None and not file.exists():
        return None
    async with open_configured_store(settings, table) as store:
        return await store.send(DescribeTable())


def create_command(settings: Settings) -> str:
    """The command that creates the table, with the given model and store."""
    given = {"model": settings.model, "store": settings.shown_store}
    words = [
        f" --{name} {shlex.quote(value)}"
        for name, value in given.items()
        if name in settings.model_fields_set
    ]
    return f"keygraph table create{''.join(words)}"


async def comparison(settings: Settings, declared: Table) -> str:
    """The differences between the table in the store and the declared one, as text for people."""
    address = settings.shown_store
    try:
        live = await live_table(settings, declared)
    except StoreError as error:
        return f"{address} does not answer ({error}), so the tables were not compared."
    if live is None:
        return f"There is no table {declared.name} in {address}. Create it with `{create_command(settings)}`."
    differing = table_differences(declared, live)
    if not differing:
        return f"The table in {address} matches the model."
    return "\n".join(
        (f"The table in {address} differs from the model:", *(f"  - {each}" for each in differing))
    )
