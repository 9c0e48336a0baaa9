"""`keygraph describe`: the keys and access paths of every type, and the DynamoDB request of each path.

With a store, it also compares the table there with the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.table import Table

from keygraph.lists.describe_types import (
    DescribedPath,
    DescribedType,
    advice,
    described_access,
    described_root,
    described_types,
)
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import read_settings
from keygraph_server.stores import comparison
from keygraph_server.terminal.output import grid, out

AccessOption = Annotated[
    bool,
    typer.Option(
        "--access",
        help="Show instead who may read and write each type, field and list, and what each rule costs.",
    ),
]

_LINE = 70
"""Longer conditions are split at AND."""


def describe(model: ModelOption = None, store: StoreOption = None, access: AccessOption = False) -> None:
    """Show the keys and access paths of every type, and the DynamoDB request of each path.

    With --store, also show how the table there differs from the model. Does not read any items.
    """
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    console = out()
    if access:
        if graph.has_access_rules:
            console.print(grid("Access", *described_access(graph)))
        else:
            typer.echo("The model has no access rules: everybody may read and write everything.")
        return
    for each in described_types(graph):
        console.print(f"{each.record.name} ({each.kind})", style="bold")
        if each.summary:
            console.print(each.summary, style="dim")
        typer.echo()
        for drawn in _tables(each):
            console.print(drawn)
            typer.echo()
    root = described_root(graph)
    if root:
        console.print("At the root", style="bold")
        typer.echo()
        console.print(grid("", ("path", "request"), map(_path_row, root)))
    missing = advice(graph)
    if missing:
        typer.echo()
        console.print("Lists that clients may miss", style="bold")
        for sentence in missing:
            console.print(f"  - {sentence}")
    if settings.store is not None:
        typer.echo()
        typer.echo(asyncio.run(comparison(settings, graph.table)))


def _tables(described: DescribedType) -> Iterator[Table]:
    rows: list[tuple[str, ...]] = [
        (keys.index or "table", keys.partition, keys.sort, f"{keys.shards} shards" if keys.shards else "")
        for keys in described.keys
    ]
    yield grid("Keys", ("in", "partition key", "sort key", ""), rows)
    rows = [_path_row(path) for path in described.paths]
    if described.by_key is not None:
        rows.insert(0, ("by its key", _split_at_and(described.by_key)))
    if rows:
        yield grid("Access paths", ("path", "request"), rows)


def _path_row(described: DescribedPath) -> tuple[str, str]:
    lines = [_split_at_and(described.request)]
    if described.filter:
        lines.append(f"filter: {described.filter}")
    if described.needs:
        lines.append(f"needs: {', '.join(described.needs)}")
    if described.narrowed_by:
        lines.append(f"narrowed by: {', '.join(described.narrowed_by)}")
    return f"{described.name}\n{described.found}", "\n".join(lines)


def _split_at_and(line: str) -> str:
    return line if len(line) <= _LINE else line.replace(" AND ", "\n  AND ")
