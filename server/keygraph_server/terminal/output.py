"""Terminal output of commands: tables of at most 100 columns, and progress bars; plain text elsewhere."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import orjson
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keygraph.dynamo.items import Item, Value, base64_text, number_text
from keygraph.graph import Graph
from keygraph_server.errors import printable

_WIDTH = 100


def out() -> Console:
    """Standard output, without markup, so that keys are printed as they are."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=False)
    console.width = min(console.width, _WIDTH) if console.is_terminal else _WIDTH
    return console


def titled(title: str) -> Table:
    """A table without columns yet, with a title."""
    return Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table with a title. Cells that are too long are wrapped."""
    drawn = titled(title)
    for column in columns:
        drawn.add_column(Text(column), overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable_lines(cell)) for cell in row))
    return drawn


def json_text(value: Any, *, is_indented: bool = False) -> str:
    """JSON to print. Characters that a terminal would obey, or that are not displayed as they are, are escaped."""
    option = orjson.OPT_INDENT_2 if is_indented else None
    return printable_lines(orjson.dumps(value, default=base64_text, option=option).decode())


def printable_lines(text: str) -> str:
    """Returns lines in which nothing is left that a terminal would obey, or displays as something else."""
    return "\n".join(map(printable, text.split("\n")))


Advance: TypeAlias = Callable[[int], None]
"""Takes the number of completed items."""


@contextmanager
def progress(
    title: str, total: int | None = None, position: Callable[[], int] | None = None
) -> Generator[Advance, None, None]:
    """A progress bar on standard error. `total` is the last position in the source, None if it is unknown; the position is the
    number of items if it is not given."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[items]:,} items, {task.fields[rate]:,.0f} items/s"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    started = time.monotonic()
    with bar:
        task = bar.add_task(title, total=total, items=0, rate=0.0)

        def advance(items: int) -> None:
            seconds = time.monotonic() - started
            completed = items if position is None else position()
            bar.update(task, completed=completed, items=items, rate=items / max(seconds, 0.001))

        yield advance


def counted(items: int, seconds: float) -> str:
    """The result as text: `1,234 items in 0.5 s (2,468 items/s)`."""
    noun = "item" if items == 1 else "items"
    return f"{items:,} {noun} in {seconds:.1f} s ({items / max(seconds, 0.001):,.0f} items/s)"


# --- Items --------------------------------------------------------------------------------------------


def unmatched(graph: Graph, item: Item) -> str:
    """Says that no declared type accepts the item, with its key and the reason."""
    key = [item[key.name] for key in graph.table.keys if key.name in item]
    return f"this item ({key_line(key)}) matches no declared type: {graph.why_refused(item)}"


def key_line(key: Iterable[Value]) -> str:
    """The values of a key on one line."""
    return " / ".join(printable(key_text(value)) for value in key)


def key_text(value: Value) -> str:
    """The value of a key as text: the digits of a number, bytes as base64."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return number_text(value)
    return str(value)
