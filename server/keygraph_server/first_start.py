"""The first start without a store: a SQLite file of the model's own, with the sample that stands beside the model."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keygraph import BadUserInput, Graph, StoreError
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import CreateTable
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.tables.bulk import BATCH_ITEMS, write_batches
from keygraph.tables.interchange import Interchange
from keygraph_server.commands.progress import progress
from keygraph_server.commands.sources import Lines
from keygraph_server.errors import CommandError
from keygraph_server.models import Model

_SCRATCH = ".first-start-"
_ABANDONED_SECONDS = 3600


def make_sample_file(model: Model, file: Path) -> int | None:
    """Makes the SQLite file with the model's table and sample. Returns how many items it has.

    None where the file is there already, which is then left as it is. The file gets its name when it is whole, so
    that a start that was interrupted leaves none behind, and of several starts at once one makes it. Raises
    CommandError where the sample does not fit the model, or the file cannot be made.
    """
    if file.exists():
        return None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(file.parent)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=file.parent) as scratch:
            made = Path(scratch) / file.name
            count = asyncio.run(_fill(model, made))
            # A link, unlike a rename, never replaces the file that another start has made meanwhile.
            with suppress(FileExistsError):
                os.link(made, file)
                return count
            return None
    except (OSError, StoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        mend = "Start in a folder that can be written, or name a store: --store sqlite:PATH"
        raise CommandError(f"{file} cannot be made: {reason}", mend) from None


async def _fill(model: Model, file: Path) -> int:
    """Creates the table in a new file and loads the sample."""
    files = [str(found) for found in model.sample_files]
    count = 0
    async with open_sqlite(file, model.graph.table) as store:
        await store.send(CreateTable())
        lines = Lines(files)
        with progress("Loading the sample", lines.total) as advance:

            def written(items: int) -> None:
                nonlocal count
                count = items
                advance(items, lines.position)

            await write_batches(store, _batches(model.graph, lines), written)
    return count


def _batches(graph: Graph, lines: Lines) -> Iterator[tuple[list[Item], int]]:
    """The sample's items with how many they are so far. Raises CommandError at one that is none of the model's."""
    interchange = Interchange(graph)
    items: list[Item] = []
    count = 0
    for entry in lines.entries():
        if not entry.content.strip():
            continue
        try:
            item = interchange.read(entry.content)
            if graph.recognise(item) is None:
                raise ValueError(f"no declared type accepts this item: {graph.why_refused(item)}")
        except (ValueError, BadUserInput) as error:
            problem = f"{entry.where}: {str(error).removesuffix('.')}"
            raise CommandError(problem, "Mend the sample, or move it away") from None
        items.append(item)
        count += 1
        if len(items) == BATCH_ITEMS:
            yield items, count
            items = []
    if items:
        yield items, count


def _remove_abandoned(folder: Path) -> None:
    """Removes what starts that were killed have left; a start that is under way is younger."""
    for scratch in folder.glob(f"{_SCRATCH}*"):
        if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)
