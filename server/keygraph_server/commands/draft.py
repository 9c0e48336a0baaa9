"""`keygraph draft`: a first model of a table that has none."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from keygraph.draft.draft import draft as drafted
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import ListTables
from keygraph.dynamo.table import Table
from keygraph.tables.sample import sample
from keygraph_server.errors import CommandError
from keygraph_server.options import StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import live_table, open_configured_store

_DEADLINE = 60.0
"""The shortest deadline for a page, in seconds. A draft is not interactive."""
_SHOWN = 10


def draft(
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="The name of the table. Optional if the store has only one."),
    ] = None,
    items: Annotated[int, typer.Option(min=1, help="How many items to read.")] = 1000,
    store: StoreOption = None,
) -> None:
    """Print a first model of an unknown table: its types, fields and lists, with comments on what is uncertain.

    Reads the table's keys and a sample of its items from several parts of the table. Writes nothing.
    """
    # Imported here, since other commands start without GraphQL's libraries.
    from keygraph_resolvers import check

    settings = read_settings(store=store)
    described, found = asyncio.run(_read(settings, table, items))
    typer.echo(drafted(described, found, check), nl=False)


async def _read(settings: Settings, named: str | None, count: int) -> tuple[Table, list[Item]]:
    """The table as the store describes it, and a sample of its items."""
    patient = settings.model_copy(update={"deadline": max(settings.deadline, _DEADLINE)})
    name = named or await _only_table(patient)
    # The name is enough to ask for a table's keys.
    described = await live_table(patient, Table(name, partition_key="-"))
    if described is None:
        raise CommandError(
            f"there is no table {name} in {settings.shown_store}",
            "Name another table, or another store: --store ADDRESS",
        )
    async with open_configured_store(patient, described) as found:
        return described, await sample(found, count)


async def _only_table(settings: Settings) -> str:
    """The name of the store's only table. Raises CommandError if it has none or several."""
    where = settings.shown_store
    file = settings.sqlite_file
    if file is not None and not file.exists():
        raise CommandError(f"there is no file {file}", "Name another store: --store ADDRESS")
    # The list of tables does not depend on the table that the store is opened for.
    async with open_configured_store(settings, Table("-", partition_key="-")) as store:
        names = await store.send(ListTables())
    if not names:
        raise CommandError(f"there is no table in {where}", "Name another store: --store ADDRESS")
    if len(names) > 1:
        shown = ", ".join(names[:_SHOWN]) + (
            f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        )
        raise CommandError(f"{where} has several tables: {shown}", "Name one: keygraph draft TABLE")
    return names[0]
