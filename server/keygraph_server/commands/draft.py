"""`keygraph draft`: a first model for a table without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Annotated

import typer

from keygraph.draft.draft import GrowingDraft
from keygraph.dynamo.store import ListTables
from keygraph.dynamo.table import Table
from keygraph.graph import Graph
from keygraph.tables.sample import parts
from keygraph_server.errors import CommandError
from keygraph_server.options import StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import live_table, open_answering_store

_PART_ITEMS = 1000
_NAMED = 10


def draft(
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="The name of the table. Optional if the store has only one."),
    ] = None,
    items: Annotated[int, typer.Option(min=1, help="The maximum number of items to read.")] = 20_000,
    store: StoreOption = None,
) -> None:
    """Print a first model of an existing table: its types, fields and lists, with comments on what is uncertain.

    Reads the table's keys, then samples the table until it finds no new types. Writes nothing. If it had to stop
    before it knew all types, it says so.
    """
    # Imported here, because other commands start without GraphQL's libraries.
    from keygraph_resolvers import check

    settings = read_settings(store=store)
    drafted, doubts = asyncio.run(_drafted(settings, table, items, check))
    for doubt in doubts:
        typer.echo(f"keygraph: {doubt}.", err=True)
    typer.echo(drafted.text(doubts), nl=False)


async def _drafted(
    settings: Settings, named: str | None, most: int, check: Callable[[Graph], object]
) -> tuple[GrowingDraft, list[str]]:
    """Drafts a model from parts of the table. Returns it with the uncertainties of its sample."""
    name = named or await _only_table(settings.patient)
    # Only the name is needed to request a table's keys.
    described = await live_table(settings.patient, Table(name, partition_key="-"))
    if described is None:
        raise CommandError(
            f"there is no table {name} in {settings.displayed_store}",
            "Name another table, or another store: --store ADDRESS",
        )
    drafted = GrowingDraft(described, check)
    async with (
        open_answering_store(settings.patient, described) as store,
        aclosing(parts(store, min(most, _PART_ITEMS))) as found,
    ):
        async for items, is_whole in found:
            drafted.add(items[: most - drafted.read], is_whole=is_whole)
            if drafted.is_settled:
                return drafted, []
            if drafted.read >= most:
                return drafted, [
                    f"{drafted.read:,} items were too few to know all types of the table. Read more with --items"
                ]
    return drafted, []


async def _only_table(settings: Settings) -> str:
    """The name of the store's only table. Raises CommandError if it has none or several."""
    where = settings.displayed_store
    file = settings.sqlite_file
    if file is not None and not file.exists():
        raise CommandError(f"there is no file {file}", "Name another store: --store ADDRESS")
    # The list of tables does not depend on the table that the store is opened for.
    async with open_answering_store(settings, Table("-", partition_key="-")) as store:
        names = await store.send(ListTables())
    if not names:
        raise CommandError(f"there is no table in {where}", "Name another store: --store ADDRESS")
    if len(names) > 1:
        some = ", ".join(names[:_NAMED]) + (
            f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        )
        raise CommandError(f"{where} has several tables: {some}", "Name one: keygraph draft TABLE")
    return names[0]
