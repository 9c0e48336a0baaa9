"""`keygraph export`: the whole table as JSON lines."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import aclosing
from pathlib import Path
from typing import IO, Annotated

import typer

from keygraph.dynamo.items import Item
from keygraph.graph import Graph
from keygraph.tables.bulk import SEGMENTS, TypedStore, whole_table
from keygraph.tables.interchange import Interchange, LineFormat
from keygraph_server.errors import CommandError, printable
from keygraph_server.jobs.checkpoint import finished
from keygraph_server.jobs.replacing import output_file
from keygraph_server.jobs.sources import STANDARD_INPUT
from keygraph_server.models import configured_model, known_types
from keygraph_server.options import ModelOption, SegmentsOption, StoreOption, TypesOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_table, refuse_table_file
from keygraph_server.terminal.output import counted, progress

_ADVANCE_ITEMS = 100


def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write, compressed if it ends in .gz; - is standard output."
        ),
    ] = STANDARD_INPUT,
    format_: Annotated[
        LineFormat,
        typer.Option(
            "--format", help="plain: plain JSON. typed: DynamoDB's JSON, which can represent every item."
        ),
    ] = "plain",
    types: TypesOption = None,
    segments: SegmentsOption = SEGMENTS,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Export every item of the table as a line of JSON, for `keygraph load`.

    An unchanged table gives the same lines in the same order, if it is read in as many parts. The file appears only when it
    is complete.
    """
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    own = known_types(graph, types)
    refuse_table_file(Path(file), settings)
    started = time.monotonic()
    with output_file(file, is_packed=file.endswith(".gz")) as target:
        work = _write(graph, settings, target, format_, segments, own)
        count = finished(work, lambda: "No file was written. Run the export again.")
    outcome = counted(count, time.monotonic() - started)
    typer.echo(f"Exported {outcome} of {graph.table.name}.", err=file == STANDARD_INPUT)


async def _write(
    graph: Graph,
    settings: Settings,
    target: IO[bytes],
    format_: LineFormat,
    segments: int,
    types: Collection[str] | None,
) -> int:
    interchange = Interchange(graph)
    count = 0
    async with (
        open_table(settings.patient, graph.table) as (store, _, _),
        aclosing(whole_table(store if types is None else TypedStore(store, graph, types), segments)) as items,
    ):
        with progress("Exporting") as advance:
            async for item in items:
                line = _line(interchange, graph, item, format_)
                # Escapes in JSON are the same text, and a terminal does not obey them.
                target.write((printable(line.decode()).encode() if target.isatty() else line) + b"\n")
                count += 1
                if count % _ADVANCE_ITEMS == 0:
                    advance(count)
    return count


def _line(interchange: Interchange, graph: Graph, item: Item, format_: LineFormat) -> bytes:
    try:
        return interchange.write(item, format_)
    except ValueError as error:
        key = ", ".join(f"{key.name} {item[key.name]}" for key in graph.table.keys)
        raise CommandError(
            f"the item with {key} cannot be written as plain JSON: {error}", "Use --format typed"
        ) from None
