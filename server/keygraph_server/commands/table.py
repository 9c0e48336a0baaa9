"""`keygraph table create`, `describe`, `diff` and `update`: the table that the model declares, and how the one in the store
differs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import orjson
import typer
from rich.table import Table as Drawn

from keygraph.dynamo.differences import index_changes, table_differences
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import (
    CreateIndex,
    CreateTable,
    DeleteIndex,
    DescribeTable,
    DescribeTimeToLive,
    EnableTimeToLive,
    Store,
)
from keygraph.dynamo.streams import DescribeStream, EnableStream
from keygraph.dynamo.table import Index, Table
from keygraph.engines.dynamodb.requests import cloudformation
from keygraph.graph import Graph
from keygraph.tables.attributes import unmatched
from keygraph.tables.findings import Problem
from keygraph.tables.sample import sample
from keygraph.tables.verify import Window
from keygraph_server.commands.verify import FOUND
from keygraph_server.errors import CommandError, printable
from keygraph_server.jobs.checkpoint import finished
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import comparison, open_answering_store, open_table
from keygraph_server.terminal.output import grid, json_text, out, progress

table_app = typer.Typer(
    name="table",
    help="Create, describe or update the table, or compare it with the model.",
    rich_markup_mode=None,
    add_completion=False,
)


@table_app.command()
def create(model: ModelOption = None, store: StoreOption = None) -> None:
    """Create the table and its indexes, unless the table exists."""
    settings = read_settings(model=model, store=store)
    table = configured_model(settings).graph.table
    live = asyncio.run(_created(settings, table))
    where = f"the table {table.name} in {settings.displayed_store}"
    if live is None:
        keys = ", ".join(key.name for key in table.keys)
        typer.echo(f"Created {where}: {'; '.join((f'key {keys}', *map(_with_keys, table.indexes)))}.")
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
    graph = configured_model(settings).graph
    table = graph.table
    if cloudformation_:
        template = cloudformation(table, graph.ttl_attribute if graph.expires else None)
        typer.echo(orjson.dumps(template, option=orjson.OPT_INDENT_2).decode())
        return
    out().print(_drawn(table))
    typer.echo()
    typer.echo(asyncio.run(comparison(settings, table)))


class _Difference(NamedTuple):
    """A difference between the model and the table or a sample of its items."""

    where: str
    """The table, or a type."""
    items: int
    """How many items of the sample have it."""
    what: str
    fix: str


_FIXES: dict[Problem, str] = {
    "unknown": "declare their type, name them in ignore=, or delete them: keygraph verify lists them",
    "key": "keygraph verify --repair --only keys lists what to write",
}
_CORRECT = "keygraph backfill writes copies, counts and sums; correct other items, or declare the field as they have it"


@table_app.command()
def diff(
    items: Annotated[int, typer.Option(min=0, help="The number of items to read as a sample.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Compare the model with the table in the store and a sample of its items, and say what to do.

    Reports indexes that the table or the model lacks, types that no item has, fields that no item has,
    attributes that belong to no field, and items that do not match their type or lack keys of an index.

    The exit code is 3 if keys or indexes differ so that the server cannot serve the table, otherwise 0.
    """
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    found, sampled = asyncio.run(_found(settings, graph.table, items))
    of_table = [*_of_table(graph.table, found)]
    differences = [*of_table, *_unused(graph.table, found), *(_of_items(graph, sampled) if sampled else ())]
    if as_json:
        listed = [each._asdict() for each in differences]
        typer.echo(json_text({"sample": len(sampled), "differences": listed}))
    elif differences:
        rows = [(each.where, f"{each.items:,}" if each.items else "", *each[2:]) for each in differences]
        out().print(grid(f"Table {graph.table.name}", ("where", "items", "difference", "what to do"), rows))
    typer.echo(f"Compared the table and {len(sampled):,} of its items with the model.", err=True)
    if of_table:
        raise typer.Exit(FOUND)


async def _found(settings: Settings, table: Table, items: int) -> tuple[Table, list[Item]]:
    """The table in the store, and a sample of its items if it has the keys of the declared one."""
    async with open_table(settings, table) as (_, found, _):
        pass
    # The embedded engine refuses to read a table that lacks an index.
    async with open_answering_store(settings, found) as store:
        return found, await sample(store, items) if items and found.keys == table.keys else []


def _of_table(declared: Table, found: Table) -> Iterator[_Difference]:
    missing = {f"it lacks the index {each.name}": each for each in declared.indexes}
    for what in table_differences(declared, found):
        fix = "change the model, or make another table or index"
        if what in missing:
            fix = (
                "create it in a new table, and load the items into it"
                if missing[what].local
                else f"keygraph table update creates it; then keygraph backfill --index {missing[what].name}"
            )
        yield _Difference("table", 0, what, fix)


def _unused(declared: Table, found: Table) -> Iterator[_Difference]:
    names = {index.name for index in declared.indexes}
    for index in found.indexes:
        if index.name not in names:
            what = f"the model does not declare its index {index.name}"
            fix = "declare it if a list needs it; otherwise keygraph table update --remove"
            yield _Difference("table", 0, what, fix)


def _of_items(graph: Graph, items: Sequence[Item]) -> Iterator[_Difference]:
    window = Window(graph, items)
    kinds = Counter(each.kind for each in window.own_findings())
    for record in graph.types.values():
        if not record.is_virtual and not window.types[record.name]:
            fix = "nothing if there are none; otherwise correct its keys"
            yield _Difference(record.name, 0, "no item of the sample has this type", fix)
        for name, own in record.fields.items():
            if own.former and (count := window.attributes.counts[record.name, own.former]):
                what = f"the field {name} is stored in its former attribute {'.'.join(own.former)}"
                yield _Difference(record.name, count, what, f"keygraph backfill --field {name} moves it")
    for each in unmatched(graph, window.attributes.counts):
        fix = "declare a field for it if clients need it"
        if each.field is not None:
            fix = "remove the field, declare it optional, or add it to the items with keygraph backfill"
            field = graph.types[each.type].fields.get(each.field)
            if field is not None and field.is_kept_later:
                fix = "keygraph summarize computes it"
        if each.meant is not None:
            fix = f'declare it with stored("{each.meant}")'
        yield _Difference(each.type, each.count, str(each), fix)
    for kind, count in sorted(kinds.items(), key=lambda pair: (pair[0].type or "", pair[0].what)):
        yield _Difference(kind.type or "no type", count, kind.what, _FIXES.get(kind.problem, _CORRECT))


async def _created(settings: Settings, table: Table) -> Table | None:
    """The table that already existed; None if it was created."""
    async with open_answering_store(settings, table) as store:
        live = await store.send(DescribeTable())
        if live is None:
            await store.send(CreateTable())
        return live


def _with_keys(index: Index) -> str:
    return printable(f"index {index.name} ({', '.join(key.name for key in index.keys)})")


# --- The table becomes what the model says ------------------------------------------------------------

_POLL_SECONDS = 2.0
"""The longest pause before DynamoDB is asked again whether an index is ready."""


@table_app.command()
def update(
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="List the indexes that the model does not declare, or declares otherwise. With --yes: remove them.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --remove: remove these indexes.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Turn on the table's stream, with old and new images.")
    ] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Create the indexes that the table lacks, one after the other, and wait until each can be read.

    On DynamoDB, it also enables the TTL of the model's expiry. Items are not changed: keygraph backfill
    writes the keys of a new index into them.

    --stream turns on the stream of the table, which keygraph follow and live queries read.

    --remove lists the indexes that would be removed: those that the model does not declare, and those
    that it declares with other keys or with more attributes, which are then created again. It changes
    nothing. With --yes, it makes all changes.

    You can interrupt it, and run it again. The keys and the local indexes of a table cannot be changed.

    The exit code is 0 if the server can serve the table now, otherwise 3.
    """
    if yes and not remove:
        raise CommandError("--yes is an option of --remove", "Add --remove, or leave it out")
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    work = _update(settings, graph, removes=remove, is_preview=remove and not yes, streams=stream)
    if finished(work, lambda: "Run it again to continue."):
        raise typer.Exit(FOUND)


async def _update(
    settings: Settings, graph: Graph, *, removes: bool, is_preview: bool, streams: bool
) -> bool:
    """Changes the table, or says what it would change. Returns whether the server cannot serve the table then. `removes`
    other indexes than the model's."""
    table, where = graph.table, f"the table {graph.table.name} in {settings.displayed_store}"
    async with open_table(settings.patient, table) as (store, found, _):
        missing, differing, undeclared, impossible = index_changes(table, found, removes=removes)
        if impossible:
            fix = "Nothing was changed. Export its items, and load them into another table"
            raise CommandError(f"{where} cannot be changed: {'; '.join(impossible)}", fix)
        unwanted = [*undeclared, *(found.index(each.name) for each in differing)]
        wanted = [*missing, *differing] if removes else missing
        expiry = None
        if graph.expires and settings.sqlite_file is None:
            expiry = await _missing_expiry(store, graph.ttl_attribute)
        is_streamed = streams and await store.send(DescribeStream()) is None
        if is_preview and (unwanted or wanted or expiry or is_streamed):
            lines = [f"- {_with_keys(each)}" for each in unwanted]
            lines += [f"+ {_with_keys(each)}" for each in wanted]
            lines += [f"+ TTL by {expiry}"] if expiry else []
            lines += ["+ a stream"] if is_streamed else []
            typer.echo("\n".join((*lines, "Nothing was changed. To make the changes, add --yes.")))
            return bool(missing or differing)
        for index in unwanted if removes else ():
            await _finish(store, DeleteIndex(index.name), f"Removing {index.name}")
            typer.echo(f"Removed the {_with_keys(index)}.")
        for index in wanted:
            await _finish(store, CreateIndex(index), f"Creating {index.name}")
            typer.echo(
                f"Created the {_with_keys(index)}. `keygraph backfill --index {index.name}` writes its keys into items that "
                "lack them."
            )
        if expiry:
            await store.send(EnableTimeToLive(expiry))
            typer.echo(f"Enabled TTL: DynamoDB deletes items by {expiry}.")
        if is_streamed:
            await store.send(EnableStream())
            typer.echo("Turned on the stream: changes are kept for 24 hours.")
    if not (wanted or expiry or is_streamed or (removes and unwanted)):
        typer.echo(f"{where[0].upper()}{where[1:]}: nothing was changed.")
    if unwanted and not removes:
        names = ", ".join(index.name for index in unwanted)
        typer.echo(f"The table has other indexes than the model: {names}. --remove removes them.", err=True)
    return bool(differing) and not removes


async def _finish(store: Store, request: CreateIndex | DeleteIndex, title: str) -> None:
    """Sends the request until it is done."""
    pause = 0.05
    with progress(title) as advance:
        while (items := await store.send(request)) is not None:
            advance(items)
            # The embedded engine works in steps; other programs that wait for the file get their turn.
            await asyncio.sleep(pause)
            pause = pause if items else min(2 * pause, _POLL_SECONDS)


async def _missing_expiry(store: Store, attribute: str) -> str | None:
    """The attribute if DynamoDB does not delete items by it yet."""
    there = await store.send(DescribeTimeToLive())
    if there not in (None, attribute):
        typer.echo(
            f"The table's TTL is by {there}, the model's by {attribute}. Disable it first; DynamoDB then allows a change "
            "after an hour.",
            err=True,
        )
    return attribute if there is None else None


def _drawn(table: Table) -> Drawn:
    rows = [("table", *_key_cells(table), "")]
    for index in table.indexes:
        projected = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
        rows.append((f"{'local ' if index.local else ''}index {index.name}", *_key_cells(index), projected))
    return grid(f"Table {table.name}", ("", "partition key", "sort key", "projects"), rows)


def _key_cells(keyed: Table | Index) -> tuple[str, str]:
    partition, sort = (f"{key.name} ({key.type})" if key else "" for key in (keyed.partition, keyed.sort))
    return partition, sort
