"""The first start without a store: creates a SQLite file for the model and loads the model's sample."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from keygraph import StoreError
from keygraph.dynamo.store import CreateTable
from keygraph.engines.sqlite.engine import open_sqlite
from keygraph.engines.sqlite.files import check_files
from keygraph.tables.bulk import write_batches
from keygraph.tables.repair import Repairs
from keygraph.tables.verify import Verification
from keygraph_server.commands.load import Batches
from keygraph_server.errors import CommandError
from keygraph_server.jobs.checkpoint import NOWHERE, LoadPosition
from keygraph_server.jobs.sources import Lines
from keygraph_server.models import Model
from keygraph_server.terminal.output import progress

_SCRATCH = ".first-start-"
_ABANDONED_SECONDS = 3600


def make_sample_file(model: Model, file: Path) -> int | None:
    """Creates the SQLite file with the model's table and sample. Returns the number of items.

    Returns None if the file already exists, and does not change it. The file gets its name only when it is complete, so
    an interrupted start leaves no file behind, and of several concurrent starts only one creates it. Raises
    CommandError if the sample does not match the model, or the file cannot be created, also beside a log that is left.
    """
    if file.exists():
        return None
    try:
        check_files(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(file.parent)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=file.parent) as scratch:
            made = Path(scratch) / file.name
            count = asyncio.run(_fill(model, made))
            # Unlike a rename, a link never replaces a file that another start has created meanwhile.
            with suppress(FileExistsError):
                os.link(made, file)
                return count
            return None
    except (OSError, StoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "Start in a writable folder, or name a store: --store sqlite:PATH"
        raise CommandError(f"{file} cannot be created: {reason}", fix) from None


async def _fill(model: Model, file: Path) -> int:
    """Creates the table in a new file and loads the sample."""
    lines = Lines([str(found) for found in model.sample_files])
    reading = Batches(model.graph, lines, None, skips_refused=False, fix="Fix the sample, or move it away")
    reached = NOWHERE
    async with open_sqlite(file, model.graph.table) as store:
        await store.send(CreateTable())
        with progress("Loading the sample", lines.total, lambda: lines.position) as advance:

            def written(position: LoadPosition) -> None:
                nonlocal reached
                reached = position
                advance(position.items)

            await write_batches(store, reading.batches(), written)
        if model.graph.tallies:
            # Files of items need not say what nodes count.
            repairs = Repairs(model.graph, store, ["counts"], lambda kind, changes: None)
            await Verification(model.graph, store, repairs=repairs).run(lambda count: None)
    return reached.items


def _remove_abandoned(folder: Path) -> None:
    """Removes the folders that killed starts have left. Those of running starts are younger."""
    for scratch in folder.glob(f"{_SCRATCH}*"):
        if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)
