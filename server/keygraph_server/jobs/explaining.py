"""What a job sends for one item: it runs on a store that writes nothing, and its requests are printed."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import typer

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, Count, Query, Request, Store, Transaction, Write
from keygraph.dynamo.table import Key, KeyAttribute, KeyValue, Table
from keygraph.graph import Graph
from keygraph.lists.describe import DescribedRequest, sent_request
from keygraph.tables.bulk import UnwrittenStore
from keygraph.tables.findings import Finding
from keygraph.writing.sending.describe import DescribedTransaction, described_actions
from keygraph_resolvers.plan.cost import operation_name
from keygraph_resolvers.plan.explained import action_lines, request_lines, transaction_lines
from keygraph_server.errors import CommandError
from keygraph_server.settings import Settings
from keygraph_server.stores import open_table
from keygraph_server.terminal.output import json_text, out, printable_lines

_BETWEEN = " / "

JobOfItem: TypeAlias = Callable[[Store, Item], Awaitable[list[Finding]]]
"""Does a job for one item, and returns what stays."""


def key_in_line(table: Table, text: str) -> Key:
    """The key that commands print as this text. Raises CommandError."""
    parts = text.split(_BETWEEN, len(table.keys) - 1)
    try:
        return tuple(_value(key, part) for key, part in zip(table.keys, parts, strict=True))
    except ValueError:
        form = _BETWEEN.join(key.name for key in table.keys)
        raise CommandError(f"{text} is no key of {table.name}", f"Write it as `{form}`") from None


def _value(key: KeyAttribute, text: str) -> KeyValue:
    return b64decode(text, validate=True) if key.type == "B" else key.value(text)


def explain_item(
    settings: Settings, graph: Graph, line: str, job: JobOfItem, note: str, *, is_json: bool
) -> None:
    """Prints the requests of a job for the item with the key in this line, and why something of it stays. `note` explains
    them. Raises CommandError if there is no such item."""
    requests = list[Request[Any]]()
    left = asyncio.run(_run(settings, graph, line, job, requests))
    _print(
        requests, [f"{each.kind.what}: {each.reason}" for each in left if each.reason], graph.table, is_json
    )
    if not is_json:
        out().print(note, markup=False, soft_wrap=True)


async def _run(
    settings: Settings, graph: Graph, line: str, job: JobOfItem, requests: list[Request[Any]]
) -> list[Finding]:
    key = key_in_line(graph.table, line)
    async with open_table(settings, graph.table) as (store, _, _):
        [item] = (await store.send(BatchGet((key,), consistent=True))).items
        if item is None:
            raise CommandError(f"{graph.table.name} has no item {line}", "Name the key of an item")
        return await job(UnwrittenStore(store, requests.append), item)


def _print(requests: Iterable[Request[Any]], reasons: Sequence[str], table: Table, is_json: bool) -> None:
    reads, writes = dict[DescribedRequest, None](), list[Write | Transaction]()
    for request in requests:
        if isinstance(request, Write | Transaction):
            writes.append(request)
        else:
            reads[_described(request, table)] = None
    if is_json:
        names = ("operation", "index", "keys", "filter")
        described = [{name: getattr(each, name) for name in names} for each in reads]
        found = {"reads": described, "writes": [_write_json(each, table) for each in writes]}
        typer.echo(json_text({**found, "stays": [*reasons]}, is_indented=True))
        return
    console = out()
    for title, lines in (
        ("What is read", [line for each in reads for line in request_lines(each, console.width)]),
        ("What is written", [line for each in writes for line in _write_lines(each, table, console.width)]),
        ("What stays", reasons),
    ):
        if lines or title != "What stays":
            console.print(title, style="bold")
            text = printable_lines("\n".join(["", *(lines or ["Nothing."]), ""]))
            console.print(text, markup=False, soft_wrap=True)


def _described(request: Request[Any], table: Table) -> DescribedRequest:
    parts = sent_request(request, table)
    index = request.index if isinstance(request, Query | Count) else None
    return DescribedRequest(operation_name(request), index, parts["keys"] or "", parts["filter"])


def _write_json(request: Write | Transaction, table: Table) -> dict[str, Any]:
    several = (request.action,) if isinstance(request, Write) else request.actions
    actions = [asdict(each) for each in described_actions(several, table)]
    names = ("operation", "keys", "attributes", "changes", "condition")
    return {
        "operation": f"{actions[0]['operation']}Item" if isinstance(request, Write) else "TransactWriteItems",
        "actions": [{name: action[name] for name in names} for action in actions],
    }


def _write_lines(request: Write | Transaction, table: Table, width: int) -> Iterator[str]:
    if isinstance(request, Transaction):
        actions = tuple(described_actions(request.actions, table))
        # Lines do not have the bound of its write units: what is sent is known.
        return transaction_lines(DescribedTransaction("", actions, (), write_units=0), width)
    [action] = described_actions([request.action], table)
    return action_lines(action, f"{action.operation}Item", width)
