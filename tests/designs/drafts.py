"""How close the drafts of known tables come to their hand-written models: `python -m tests.designs.drafts [NAME…] [--text]`.

A hand-written type is found if one drafted type has just the same items of the sample. Its name is as good if it is made
of nothing but the words of its name, its ends, its keys, its type attribute and the table, whatever their case and number.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from keygraph import Graph
from keygraph.draft.draft import draft, imported_graph
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchWrite, CreateTable
from keygraph.engines.open import open_store
from keygraph.keys.template import Template
from keygraph.model.records import RecordType
from keygraph.names import RESERVED_TYPES, singular, snake
from keygraph.tables.interchange import Interchange
from keygraph_resolvers import check
from tests.documents import more_published_designs, published_designs
from tests.documents.samples import NAMES as EXAMPLES
from tests.documents.samples import graph_of
from tests.documents.samples import sample_of as example_items
from tests.documents.test_verified import told
from tests.verified import verified

DESIGNS = sorted(
    file.stem for file in Path(__file__).parent.glob("*.py") if "\nITEMS = " in file.read_text("utf-8")
)
PUBLISHED = {
    f"published_{name}": graph
    for module in (published_designs, more_published_designs)
    for name, graph in vars(module).items()
    if isinstance(graph, Graph)
}
NAMES = (*DESIGNS, *EXAMPLES, *PUBLISHED)


def sample_of(name: str) -> tuple[Graph, list[Item]]:
    """The hand-written model of a known table, and its items."""
    if name in PUBLISHED:
        from tests.documents.design_items import items_of

        return PUBLISHED[name].check(), items_of(PUBLISHED[name])
    if name in EXAMPLES:
        return graph_of(name), example_items(name)
    design = import_module(f"tests.designs.{name}")
    return design.graph, [*map(Interchange(design.graph.check()).read, design.ITEMS.strip().splitlines())]


@dataclass
class Measured:
    """What a draft has of a hand-written model."""

    text: str
    problems: list[str]
    """What `keygraph verify` finds in the sample, by the draft."""
    missing: list[str] = field(default_factory=list)
    """The hand-written types that no drafted type has just the items of, each with the drafted types of its items."""
    renamed: list[str] = field(default_factory=list)
    """The types whose drafted name is not as good, each with that name."""

    @property
    def faults(self) -> list[str]:
        """All that is not as the hand-written model has it."""
        return [*self.problems, *self.missing, *self.renamed]


async def measured(graph: Graph, items: Sequence[Item]) -> Measured:
    """Drafts a model from the sample, and compares it with the hand-written one."""
    text = draft(graph.table, items, check)
    with imported_graph(text) as drafted, TemporaryDirectory() as folder:
        drafted.check()
        async with open_store(f"sqlite:{folder}/items.db", graph.table) as store:
            await store.send(CreateTable())
            for start in range(0, len(items), 25):
                await store.send(BatchWrite(tuple(items[start : start + 25])))
            found = Measured(text, told(await verified(drafted, store)))
        by_hand, by_draft = (_items_by_type(each, items) for each in (graph, drafted))
        names = {rows: name for name, rows in by_draft.items()}
        for name, rows in by_hand.items():
            drafted_name = names.get(rows)
            if drafted_name is None:
                others = [other for other, own in by_draft.items() if own & rows]
                found.missing.append(f"{name} is in {', '.join(others) or 'no type'}")
            elif not is_as_good(graph, graph.types[name], drafted_name):
                found.renamed.append(f"{name} is called {drafted_name}")
    return found


def _items_by_type(graph: Graph, items: Sequence[Item]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for row, item in enumerate(items):
        record = graph.recognise(item)
        if record is not None:
            found.setdefault(record.name, set()).add(row)
    return {name: frozenset(rows) for name, rows in found.items()}


def is_as_good(graph: Graph, record: RecordType, name: str) -> bool:
    """Whether a draft's name for a hand-written type is made of nothing but words that the table has for it."""
    literals = {word for text in _literals(record) for word in _words(text)}
    known = literals | _words(record.name) | _words(graph.table.name) | _words(str(record.type_value))
    known |= {word for end in record.ends for word in _words(end)}
    members = [node for end in record.ends.values() for node in end.members]
    members += [node for member in members for end in member.ends.values() for node in end.members]
    known |= {word for node in members for text in (node.name, *_literals(node)) for word in _words(text)}
    own = record.table_keys.sort or record.table_keys.partition
    of_ends = {word for node in members for text in _literals(node) for word in _words(text)}
    says = {word for text in _own_literals(own) for word in _words(text) if len(word) > 1}
    known |= set() if says - of_ends and name.removesuffix("Item") not in RESERVED_TYPES else {"item"}
    known |= set() if literals else _words(graph.table.partition.name)
    return re.fullmatch(f"({'|'.join(sorted(known))}|[0-9])+", "".join(sorted(_words(name)))) is not None


def _literals(record: RecordType) -> Iterator[str]:
    """The fixed texts of a type's keys."""
    for keys in record.keys.values():
        for template in (keys.partition, keys.sort):
            yield from _own_literals(template) if template else ()


def _own_literals(template: Template) -> Iterator[str]:
    for token in template.tokens:
        if isinstance(token, str):
            yield from re.findall("[A-Za-z]+", token)


def _words(name: str) -> set[str]:
    return {singular(word) for part in re.findall("[A-Za-z0-9]+", name) for word in snake(part).split("_")}


async def main(names: Sequence[str]) -> None:
    """Writes a row for each table: the problems, what is missing and what is called otherwise."""
    for name in [name for name in names if not name.startswith("-")] or NAMES:
        graph, items = sample_of(name)
        row = await measured(graph, items)
        counts = [
            f"{len(row.problems):2} problems",
            f"{len(row.missing):2} of {len(_items_by_type(graph, items)):2} types missing",
            f"{len(row.renamed):2} called otherwise",
        ]
        lines = [f"{name:18} {', '.join(counts)}", *(f"    {fault}" for fault in row.faults)]
        sys.stdout.write("\n".join([*lines, *([row.text] if "--text" in names else []), ""]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
