"""A progress bar for long commands; nothing outside a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Advance: TypeAlias = Callable[[int, int], None]
"""Takes the number of items that are done and the position in the source."""


@contextmanager
def progress(title: str, total: int | None = None) -> Generator[Advance, None, None]:
    """A progress bar on standard error. `total` is the last position; None if it is unknown."""
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

        def advance(items: int, position: int) -> None:
            seconds = time.monotonic() - started
            bar.update(task, completed=position, items=items, rate=items / max(seconds, 0.001))

        yield advance


def counted(items: int, seconds: float) -> str:
    """The result as text: `1,234 items in 0.5 s (2,468 items/s)`."""
    noun = "item" if items == 1 else "items"
    return f"{items:,} {noun} in {seconds:.1f} s ({items / max(seconds, 0.001):,.0f} items/s)"
