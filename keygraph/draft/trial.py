"""Try a draft: import its text as a module, and check its graph."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from keygraph.dynamo.items import Item
from keygraph.errors import CorruptItem, Mistake, ModelError
from keygraph.graph import Graph

_numbers = itertools.count()


@contextmanager
def imported_graph(text: str) -> Iterator[Graph]:
    """The graph that the text declares. It works only inside the context, since types are resolved when they are used."""
    name = f"_keygraph_draft_{next(_numbers)}"
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        # Safe to run: all names in it are ours, and every text from the table is quoted.
        exec(compile(text, f"<{name}>", "exec"), vars(module))
        graph = vars(module)["graph"]
        if not isinstance(graph, Graph):
            raise TypeError("a draft declares no graph")
        yield graph
    finally:
        del sys.modules[name]


def mistakes_of(graph: Graph, check: Callable[[Graph], object]) -> Sequence[Mistake]:
    """Everything that the check says of it."""
    try:
        check(graph)
    except ModelError as error:
        return error.mistakes
    return ()


def why_not_read(graph: Graph, item: Item) -> str | None:
    """Why the graph cannot read an item; None if it can."""
    record = graph.recognise(item)
    if record is None:
        return "no type has such a key"
    try:
        for field in record.fields.values():
            record.reader(field)(item)
        for end in record.ends.values():
            if record.end_identity(item, end) is None and not end.optional:
                return f"{record.name}.{end.name} is missing"
    except (CorruptItem, ValueError) as error:
        return str(error)
    return None
