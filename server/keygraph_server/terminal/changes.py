"""Prints how items change: the old and new value of each attribute, as text or JSON."""

from __future__ import annotations

import typer

from keygraph.dynamo.items import Item, to_typed, typed_item
from keygraph.dynamo.table import Key
from keygraph.graph import Graph
from keygraph.tables.findings import FindingKind
from keygraph.tables.repair import ItemChange
from keygraph_server.terminal.output import json_text, key_line, key_text

_LONGEST = 200
"""Longer values are shortened in text, in characters."""


class PrintedChanges:
    """Prints each change of items as soon as it is known, so that memory does not grow with their number."""

    def __init__(self, graph: Graph, *, is_json: bool, is_quiet: bool = False) -> None:
        """If it is quiet, it only counts them."""
        self._graph = graph
        self._is_quiet = is_quiet
        self._is_json = is_json
        self._keys = {key.name for key in graph.table.keys}
        self.count = 0
        self.deleted = 0
        """How many items they delete."""

    def add(self, kind: FindingKind, items: list[ItemChange]) -> None:
        """Prints a repair, or what the job computed: each item, and its attributes before and after."""
        self.count += 1
        self.deleted += sum(after is None for _, _, after in items)
        for number, (key, before, after) in enumerate(() if self._is_quiet else items):
            old, new = before or {}, after or {}
            names = [name for name in {**old, **new} if old.get(name, ...) != new.get(name, ...)]
            names = [name for name in names if name not in self._keys]
            if self._is_json:
                change = {
                    **kind._asdict(),
                    "key": key_as_json(self._graph, key),
                    "before": before and typed_item({name: old[name] for name in names if name in old}),
                    "after": after and typed_item({name: new[name] for name in names if name in new}),
                }
                opening = '{"changes": [\n' if self.count == 1 and not number else ",\n"
                typer.echo(opening + json_text(change), nl=False)
                continue
            sign = "+" if before is None else "-" if after is None else "~"
            why = "" if number else f": {kind.type}: {kind.what}"
            typer.echo(f"{sign} {key_line(key)}{why}")
            for name in names:
                typer.echo(f"    {key_line([name])}: {_value(old, name)} → {_value(new, name)}")

    def followed_by(self, report: str) -> str:
        """The rest of the JSON: the end of the changes, and the report."""
        return ("\n], " if self.count else '{"changes": [], ') + report.removeprefix("{").lstrip()


def _value(item: Item, name: str) -> str:
    if name not in item:
        return "none"
    text = json_text(to_typed(item[name]))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def key_as_json(graph: Graph, key: Key) -> dict[str, str]:
    return {each.name: key_text(value) for each, value in zip(graph.table.keys, key, strict=True)}
