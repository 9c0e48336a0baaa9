"""A file that is replaced as a whole, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside this one, readable by its owner alone. It takes its place after the block, and is deleted if the
    block fails."""
    with ExitStack() as undone:
        part = tempfile.NamedTemporaryFile(  # noqa: SIM115  # closed before it takes its name
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        )
        undone.callback(Path(part.name).unlink, missing_ok=True)
        with part:
            yield part
        Path(part.name).replace(path)
