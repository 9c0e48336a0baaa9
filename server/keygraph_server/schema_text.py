"""The schema as text, to print, to serve, and to compare with a saved copy."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Protocol


class Printable(Protocol):
    """A schema that can be printed."""

    def as_str(self) -> str:
        """The schema in GraphQL's schema definition language."""


def printed(schema: Printable) -> str:
    """The schema in GraphQL's schema definition language, ending with a newline."""
    return schema.as_str().rstrip("\n") + "\n"


def difference(schema: Printable, file: Path) -> str:
    """A unified diff from the file to the schema; empty if they are equal."""
    kept = file.read_text("utf-8")
    lines = difflib.unified_diff(
        kept.splitlines(keepends=True),
        printed(schema).splitlines(keepends=True),
        fromfile=str(file),
        tofile="the schema of the model",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
