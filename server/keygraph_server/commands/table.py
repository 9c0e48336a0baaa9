"""`keygraph table create` and `keygraph table describe`: the table that the model declares."""

from __future__ import annotations

import asyncio
from typing import Annotated

import orjson
import typer
from rich.table import Table as Drawn

from keygraph.dynamo.differences import table_differences
from keygraph.dynamo.store import CreateTable, DescribeTable
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.requests import cloudformation
from keygraph_server.errors import CommandError
from keygraph_server.models import load_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import comparison, open_answering_store
from keygraph_server.terminal.output import grid, out

table_app = typer.Typer(
    name="table",
    help="Create or describe the table.",
    rich_markup_mode=None,
    add_completion=False,
)


@table_app.command()
def create(model: ModelOption = None, store: StoreOption = None) -> None:
    """Create the table and its indexes, unless the table exists."""
    settings = read_settings(model=model, store=store)
    table = load_model(settings.model).graph.table
    live = asyncio.run(_created(settings, table))
    where = f"the table {table.name} in {settings.shown_store}"
    if live is None:
        typer.echo(f"Created {where}: {_summary(table)}.")
        return
    differing = table_differences(table, live)
    if differing:
        raise CommandError(
            f"{where} already exists and does not match the model: {'; '.join(differing)}",
            "Nothing was changed. Change the table, or name another one",
        )
    typer.echo(f"{where[0].upper()}{where[1:]} already exists and matches the model. Nothing was changed.")


@table_app.command()
def describe(
    cloudformation_: Annotated[
        bool, typer.Option("--cloudformation", help="Print a CloudFormation template as JSON instead.")
    ] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Show the table that the model declares, and how the table in the store differs from it."""
    settings = read_settings(model=model, store=store)
    graph = load_model(settings.model).graph
    table = graph.table
    if cloudformation_:
        template = cloudformation(table, graph.ttl_attribute if graph.expires else None)
        typer.echo(orjson.dumps(template, option=orjson.OPT_INDENT_2).decode())
        return
    out().print(_drawn(table))
    typer.echo()
    typer.echo(asyncio.run(comparison(settings, table)))


async def _created(settings: Settings, table: Table) -> Table | None:
    """The table that already existed; None if it was created."""
    async with open_answering_store(settings, table) as store:
        live = await store.send(DescribeTable())
        if live is None:
            await store.send(CreateTable())
        return live


def _summary(table: Table) -> str:
    keys = ", ".join(key.name for key in table.keys)
    indexes = [f"index {index.name} ({', '.join(key.name for key in index.keys)})" for index in table.indexes]
    return "; ".join((f"key {keys}", *indexes))


def _drawn(table: Table) -> Drawn:
    rows = [("table", *_key_cells(table), "")]
    for index in table.indexes:
        shown = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
        rows.append((f"{'local ' if index.local else ''}index {index.name}", *_key_cells(index), shown))
    return grid(f"Table {table.name}", ("", "partition key", "sort key", "projects"), rows)


def _key_cells(keyed: Table | Index) -> tuple[str, str]:
    partition, sort = (f"{key.name} ({key.type})" if key else "" for key in (keyed.partition, keyed.sort))
    return partition, sort
