"""Files that are replaced as a whole, or not at all."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from keygraph_server.errors import CommandError
from keygraph_server.jobs.sources import STANDARD_INPUT


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


@contextmanager
def output_file(file: str, *, is_packed: bool = False) -> Iterator[IO[bytes]]:
    """What a command writes, to standard output for `-`. A file appears when it is complete; after an error, the old file,
    if any, is still there. Raises CommandError for what is no file."""
    if file == STANDARD_INPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise CommandError(f"{file} cannot be written: {what}", "Name another file")
    if path.exists() and not path.is_file():
        # A device or a pipe is written to, never replaced.
        with path.open("wb") as device:
            yield device
        return
    # Replace the target of a link, not the link.
    with replacing(Path(os.path.realpath(path))) as part:
        if is_packed:
            # No name and no time in the header, so that an unchanged table gives an unchanged file.
            with gzip.GzipFile(filename="", fileobj=part, mode="wb", mtime=0) as packed:
                yield packed  # type: ignore[misc]  # a GzipFile takes bytes as a file does
        else:
            yield part
        part.flush()
        os.fsync(part.fileno())
        os.umask(umask := os.umask(0))  # the permission bits that new files do not get can only be set
        Path(part.name).chmod(0o666 & ~umask)
