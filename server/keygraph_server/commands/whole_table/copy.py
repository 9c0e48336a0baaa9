"""`keygraph copy`: copies a table into another one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from keygraph.dynamo.table import Table
from keygraph.tables.bulk import WriteRate
from keygraph.tables.copying import RefusedItem, TableCopy
from keygraph_server.errors import CommandError
from keygraph_server.jobs.checkpoint import SavedProgress, StateFile, finished
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption, RateOption, ResumeOption, SegmentsOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import is_same_file, open_answering_store, open_table
from keygraph_server.terminal.output import counted, key_line


def copy(
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="ADDRESS", help="The store to copy into: sqlite:PATH, aws, or http://HOST:PORT."
        ),
    ],
    to_table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name of the table there. Default: the name in the model.",
            show_default=False,
        ),
    ] = None,
    rate: RateOption = None,
    segments: SegmentsOption = 4,
    resume: ResumeOption = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Copy every item of the table into a table of another store, as it is.

    Items of unknown types are copied too. Items with the same key are replaced, others stay. The other
    table must have the same keys; a SQLite file is created. What is written to the table meanwhile may be missing in the copy.

    You can interrupt it, and run it again with --resume.
    """
    settings, target = read_settings(model=model, store=store), read_settings(model=model, store=to)
    table = configured_model(settings).graph.table
    job = _RunningCopy(settings, target, table, to_table or table.name, WriteRate(rate), segments)
    started = time.monotonic()
    items = finished(job.run(resume=resume), lambda: job.so_far)
    notes = f", {job.before:,} copied earlier" if job.before else ""
    outcome = counted(items - job.before, time.monotonic() - started)
    typer.echo(f"Copied {outcome} of {table.name} into {job.name} in {target.displayed_store}{notes}.")


@dataclass
class _RunningCopy:
    """A running copy, and the file with its progress."""

    settings: Settings
    target: Settings
    table: Table
    name: str
    rate: WriteRate
    segments: int
    before: int = 0
    """How many items were copied before an interruption."""
    _copy: TableCopy | None = None

    def __post_init__(self) -> None:
        stores = (self.settings.store_address, self.target.store_address)
        what = [*stores, self.table.name, self.name, str(self.segments)]
        is_same = stores[0] == stores[1] or is_same_file(self.settings.sqlite_file, self.target.sqlite_file)
        self._refuse_itself(is_same and self.table.name == self.name)
        self._progress = SavedProgress(
            StateFile.named("copies", *what), "copy", "Copying", self._state, lambda: self.so_far
        )

    @property
    def so_far(self) -> str:
        """The number of copied items, and how to continue."""
        items = self._copy.items if self._copy is not None else 0
        noun = "item is" if items == 1 else "items are"
        options = " with --resume" if items and self._progress.is_kept else ""
        return f"{items:,} {noun} copied. Run it again{options} to continue."

    async def run(self, *, resume: bool) -> int:
        """Copies the table. Returns the number of items. A CommandError says how many were copied before it."""
        async with open_table(self.settings.patient, self.table) as (_, found, _):
            pass
        renamed = found.with_indexes(self.table.indexes).named(self.name)
        async with (
            # The embedded engine refuses to read a table that lacks an index of the model.
            open_answering_store(self.settings.patient, found) as source,
            open_table(self.target.patient, renamed, creates=True) as (target, other, _),
        ):
            # Its address, and even its name, may be spelled otherwise.
            self._refuse_itself(other.origin is not None and other.origin == found.origin)
            if other.keys != found.keys:
                raise CommandError(
                    f"the table {self.name} there has the keys {other.shown_keys}, this one {found.shown_keys}",
                    "Copy into a table with the same keys",
                )
            self._copy = copying = TableCopy(source, target, self.rate, segments=self.segments)
            if resume:
                self._progress.resume(copying.resume)
            if not await copying.is_there():
                raise CommandError(
                    "the copy cannot be resumed: the other table does not have the last item that was copied",
                    "Run it without --resume",
                )
            self.before = copying.items
            with self._progress.running() as advance:
                try:
                    await copying.run(advance)
                except RefusedItem as error:
                    problem = f"the other table cannot hold the item {key_line(error.key)}: {error}"
                    raise CommandError(problem, "Change the item, or the other table") from None
        return copying.items

    def _refuse_itself(self, is_itself: bool) -> None:
        if is_itself:
            raise CommandError("a table cannot be copied into itself", "Name another store, or another table")

    def _state(self) -> dict[str, Any] | None:
        return self._copy.to_json() if self._copy is not None and self._copy.items else None
