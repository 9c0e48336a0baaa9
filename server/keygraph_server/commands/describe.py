"""`keygraph describe`: the keys and access paths of every type, and the DynamoDB request of each path.

With a store, it also compares the table there with the model.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.table import Table

from keygraph.graph import Graph
from keygraph.lists.describe import (
    DescribedRequest,
    key_request,
    path_request,
)
from keygraph.lists.describe_access import COLUMNS, described_access
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph_server.models import load_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import read_settings
from keygraph_server.stores import comparison
from keygraph_server.terminal.output import grid, out

AccessOption = Annotated[
    bool,
    typer.Option(
        "--access",
        help="Show who may read and write each type, field and list instead, and what each rule costs.",
    ),
]

_LINE = 70
"""Longer conditions are broken at AND."""


def describe(model: ModelOption = None, store: StoreOption = None, access: AccessOption = False) -> None:
    """Show the keys and access paths of every type, and the DynamoDB request of each path.

    With a store, also show how the table there differs from the model. No items are read.
    """
    settings = read_settings(model=model, store=store)
    graph = load_model(settings.model).graph
    console = out()
    if access:
        if graph.has_access_rules:
            console.print(grid("Access", COLUMNS, described_access(graph)))
        else:
            typer.echo("The model has no access rules: everybody may read and write everything.")
        return
    for record in graph.types.values():
        console.print(f"{record.name} ({_kind(graph, record)})", style="bold")
        if record.description:
            console.print(inspect.cleandoc(record.description).partition("\n\n")[0], style="dim")
        typer.echo()
        for drawn in _tables(graph, record):
            console.print(drawn)
            typer.echo()
    finds = [path for path in graph.paths if path.owner is None]
    if finds:
        console.print("At the root", style="bold")
        typer.echo()
        console.print(grid("", ("path", "request"), (_path_row(graph, path) for path in finds)))
    if settings.store is not None:
        typer.echo()
        typer.echo(asyncio.run(comparison(settings, graph.table)))


def _kind(graph: Graph, record: RecordType) -> str:
    if record.is_virtual:
        return "virtual node"
    found = graph.correspondences.get(record.name)
    if found is None:
        return record.kind
    return "mirrored edge" if found.is_mirror else f"edge, counterpart of {found.other.name}"


def _tables(graph: Graph, record: RecordType) -> Iterator[Table]:
    yield _keys(record)
    rows = [_path_row(graph, path) for path in graph.paths if path.owner is record]
    if not record.is_virtual:
        rows.insert(0, ("by its key", _shown(key_request(graph, record))))
    if rows:
        yield grid("Access paths", ("path", "request"), rows)


def _keys(record: RecordType) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, keys in record.keys.items():
        shown = [
            f"{key.name} = {template}" for key, template in zip(keys.attributes, keys.templates, strict=False)
        ]
        shards = f"{len(keys.shards)} shards" if keys.shards else ""
        rows.append((name or "table", shown[0], shown[1] if len(shown) > 1 else "", shards))
    return grid("Keys", ("in", "partition key", "sort key", ""), rows)


def _path_row(graph: Graph, path: AccessPath) -> tuple[str, str]:
    request = path_request(graph, path)
    lines = [_shown(request)]
    if request.filter:
        lines.append(f"filter: {request.filter}")
    if path.required:
        lines.append(f"needs: {', '.join(argument.name for argument in path.required)}")
    if path.ranged:
        lines.append(f"narrowed by: {', '.join(argument.name for argument in path.ranged)}")
    return f"{path.name}\n{_found(path)}", "\n".join(lines)


def _found(path: AccessPath) -> str:
    """What the path finds: an edge with the node at its far end, or an item."""
    nodes = " or ".join(node.name for node in path.nodes)
    shown = f"{path.record.name} to {nodes}" if path.far_end else path.record.name
    return f"one {shown}" if path.is_one else shown


def _shown(request: DescribedRequest) -> str:
    line = f"{request.target}: {request.keys}"
    return line if len(line) <= _LINE else line.replace(" AND ", "\n  AND ")
