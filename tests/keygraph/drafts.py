"""What tests of drafts need: tables and items, and a draft as the model file that it is, imported and checked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from keygraph.draft.draft import draft
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table
from keygraph.graph import Graph

GSI1 = Index("GSI1", "GSI1PK", "GSI1SK")
_numbers = count()


def table(*indexes: Index) -> Table:
    return Table("Things", partition_key="PK", sort_key="SK", indexes=indexes)


def both(key: str, **more: Any) -> Item:
    return {"PK": key, "SK": key, **more}


def under(partition: str, sort: str, **more: Any) -> Item:
    """An item that stands in a partition."""
    return {"PK": partition, "SK": sort, **more}


def imported(text: str, folder: Path) -> ModuleType:
    """The text as the module that somebody has saved it as."""
    name = f"drafted_{next(_numbers)}"
    file = folder / f"{name}.py"
    file.write_text(text, "utf-8")
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def drafted(declared: Table, items: Sequence[Item], folder: Path) -> Iterator[tuple[str, Graph]]:
    """The draft's text, and its graph, which has no mistakes."""
    text = draft(declared, items)
    module = imported(text, folder)
    try:
        graph: Graph = module.graph.check()
        yield text, graph
    finally:
        del sys.modules[module.__name__]


def ruff(*words: str, text: str) -> str:
    """What ruff, told nothing but these words, makes of a file with that text."""
    command = [str(Path(sys.executable).with_name("ruff")), *words, "--isolated", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout
