"""`keygraph summarize`: computes the summaries of a whole table."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Store
from keygraph.errors import KeygraphError
from keygraph.graph import Graph
from keygraph.keys.types import moment_text
from keygraph.summaries.exports import Exports, UnusableExport
from keygraph.summaries.local import LocalJob, UnusableWorkFile, WorkFile, scanned
from keygraph.summaries.spark import SparkJob, begun, why_not_on_spark
from keygraph.summaries.spark import summarize as summarize_on_spark
from keygraph.summaries.work import Summaries
from keygraph.summaries.writing import SummaryWriter, WriteOptions
from keygraph.tables.findings import Finding
from keygraph.tables.verify import LATE_SECONDS
from keygraph_server.errors import CommandError
from keygraph_server.jobs.checkpoint import StateFile, interruptible
from keygraph_server.jobs.declaration import declaration_digest
from keygraph_server.models import configured_model
from keygraph_server.options import (
    ExplainOption,
    ModelOption,
    RateOption,
    ReportOption,
    ResumeOption,
    SegmentsOption,
    StoreOption,
)
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_table, refuse_table_file
from keygraph_server.terminal.changes import PrintedChanges
from keygraph_server.terminal.output import counted, progress


def summarize(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print each value that would change. Changes nothing.")
    ] = False,
    only_changed: Annotated[
        bool,
        typer.Option(
            "--only-changed",
            help="Write only items with a value that changes. An age then says when its value last changed.",
        ),
    ] = False,
    explain: ExplainOption = None,
    rate: RateOption = None,
    engine: Annotated[
        Literal["local", "spark"],
        typer.Option(help="local: on this machine. spark: on Apache Spark (pip install 'keygraph[spark]')."),
    ] = "local",
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="DIR",
            help="Read DynamoDB's exports in this folder instead of the table: the latest full one, and the incremental ones after it. "
            "With Spark also an address such as s3://bucket/AWSDynamoDB. Default: read the table.",
            show_default=False,
        ),
    ] = None,
    segments: SegmentsOption = 4,
    resume: ResumeOption = False,
    work_file: Annotated[
        Path | None,
        typer.Option(
            "--work",
            metavar="FILE",
            help="The file that holds intermediate results and the progress. Default: a file under .keygraph.",
            show_default=False,
        ),
    ] = None,
    format_: ReportOption = "table",
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Compute the summaries of a whole table, and write them to its items.

    Computes everything that the model declares with kept="job", and writes it with its age. Counts and sums that
    transactions keep are compared with their lists, and repaired as `keygraph verify --repair` does.

    Reads the whole table once, or with --input its exports. Each write has the condition that nobody has written a
    newer value. You can interrupt it, and continue with --resume. Memory does not grow with the table: intermediate
    results are in a file. With --engine spark, it runs on Apache Spark.
    """
    settings = read_settings(model=model, store=store)
    refuse_table_file(work_file, settings)
    graph = configured_model(settings).graph
    work = graph.made(Summaries)
    if not work.summaries:
        raise CommandError(
            "the model declares nothing that this command computes",
            'Declare a count, a sum or a copy: counts("orders", kept="job")',
        )
    changes = PrintedChanges(graph, is_json=format_ == "json")
    late = LATE_SECONDS if settings.sqlite_file is None else 0
    options = WriteOptions(rate, dry_run, only_changed, late)
    if explain is not None:
        note = (
            "The job reads the whole table once by a Scan, and computes the values in braces from all items."
        )

        async def written(store: Store, item: Item) -> list[Finding]:
            now = datetime.now(UTC).replace(microsecond=0)
            own = SummaryWriter(graph, store, now, replace(options, is_dry_run=True), lambda *_: None)
            await own.write(work.unread_results(item))
            return []

        # It imports GraphQL, which takes most of a second.
        from keygraph_server.jobs.explaining import explain_item

        explain_item(settings, graph, explain, written, note, is_json=format_ == "json")
        return
    job: _Job = _OnSpark(graph, settings, input_, segments, changes, options)
    if engine == "local":
        job = _OnThisMachine(graph, settings, input_, segments, changes, options, work_file)
    started = time.monotonic()
    with interruptible(lambda: job.so_far):
        job.run_all(resume=resume)
    report = {"table": graph.table.name, "as_of": job.as_of, "items": job.items, **job.outcome}
    if format_ == "json":
        text = orjson.dumps(report, option=orjson.OPT_INDENT_2).decode()
        typer.echo(changes.followed_by(text) if dry_run else text)
    outcome = counted(job.items, time.monotonic() - started)
    notes = ", ".join(
        f"{count:,} {'item' if count == 1 else 'items'} {_NOTES[name]}"
        for name, count in job.outcome.items()
        if count
    )
    typer.echo(
        f"Summarized {outcome} of {graph.table.name} as of {job.as_of}: {notes or 'nothing'}.", err=True
    )
    if dry_run:
        typer.echo("Nothing was changed. To write the values, leave out --dry-run.", err=True)


_NOTES = {
    "written": "with new values",
    "confirmed": "unchanged",
    "repaired": "with repaired counts or sums",
    "newer": "with newer values",
    "gone": "changed or deleted meanwhile",
    "refused": "with a value that does not fit",
}
"""What became of items, after their number."""


@dataclass
class _Job:
    """A running job."""

    graph: Graph
    settings: Settings
    input: str | None
    """Where the exports are that it reads; None for segments of the table."""
    segments: int
    changes: PrintedChanges
    options: WriteOptions
    items: int = field(default=0, init=False)
    as_of: str = field(default="", init=False)
    outcome: dict[str, int] = field(default_factory=dict, init=False)

    @property
    def so_far(self) -> str:
        """How to continue."""
        return "Run it again with --resume to continue." if self.items else "Nothing was done."

    def run_all(self, *, resume: bool) -> None:
        """Does the whole job. A CommandError says how to continue."""
        raise NotImplementedError


@dataclass
class _OnThisMachine(_Job):
    """A job with a work file."""

    file: Path | None

    def run_all(self, *, resume: bool) -> None:
        try:
            exports = None if self.input is None else Exports(Path(self.input), self.graph.table.name)
        except UnusableExport as error:
            raise CommandError(
                str(error), "Name the folder to which the bucket's AWSDynamoDB was copied"
            ) from None
        asyncio.run(self._run(exports, resume=resume))

    async def _run(self, exports: Exports | None, *, resume: bool) -> None:
        what = [
            self.settings.displayed_store,
            self.graph.table.name,
            declaration_digest(self.graph),
            f"{self.options.is_dry_run} {self.options.only_changed}",
            *([str(self.segments)] if exports is None else exports.names),
        ]
        path = self.file or StateFile.named("summaries", *what).path.with_suffix(".db")
        async with open_table(self.settings.patient, self.graph.table) as (store, _, _):
            try:
                file = WorkFile(path, what, resume=resume)
                if resume and not file.is_resumed:
                    typer.echo("Found no interrupted job to resume. Starting from the beginning.", err=True)
                with closing(file):
                    await self._run_with(store, file, exports)
                    file.delete()
            except UnusableWorkFile as error:
                raise CommandError(str(error), error.fix) from None
            except (KeygraphError, UnusableExport) as error:
                raise CommandError(str(error).removesuffix("."), self.so_far.removesuffix(".")) from None
            except (OSError, sqlite3.Error) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise CommandError(
                    f"the work file {path} cannot be used ({reason})",
                    f"{self.so_far} --work names another file",
                ) from None

    @property
    def _work(self) -> Summaries:
        return self.graph.made(Summaries)

    async def _run_with(self, store: Store, file: WorkFile, exports: Exports | None) -> None:
        job = LocalJob(self._work, file, exports.as_of if exports else None)
        parts = (
            scanned(self._work, store, job.at, self.segments)
            if exports is None
            else exports.parts(self._work, job.at)
        )
        self.items, self.as_of = job.items, moment_text(job.as_of)
        with progress("Reading") as advance:

            def read(items: int) -> None:
                self.items = items
                advance(items)

            await job.read(parts, read)
        with progress("Combining"):
            total = await job.combine()
        listen = self.changes.add if self.options.is_dry_run else lambda *_: None
        writer = SummaryWriter(self.graph, store, job.as_of, self.options, listen)
        with progress("Writing", total) as advance:
            await job.write(writer, advance)
        self.outcome = {name: writer.counted[name] for name in _NOTES}


class _OnSpark(_Job):
    """A job on Spark."""

    so_far = "Run it again: what was written is as new, and stays."

    def run_all(self, *, resume: bool) -> None:
        """Does the whole job. Raises CommandError."""
        if resume:
            raise CommandError("Spark runs failed tasks again by itself", "Leave --resume out")
        reason = why_not_on_spark(self.graph.made(Summaries))
        if reason is not None:
            raise CommandError(reason, "Leave --engine spark out")
        asyncio.run(self._find_table())
        # Executors import the model as this process does.
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys((str(Path.cwd()), *filter(None, sys.path))))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            context = import_module("pyspark").SparkContext.getOrCreate()
        except ModuleNotFoundError:
            raise CommandError(
                "PySpark is not installed", "Install it with `pip install 'keygraph[spark]'`"
            ) from None
        total = Counter[str]()
        try:
            now = datetime.now(UTC).replace(microsecond=0)
            job = SparkJob(
                self.settings.model, self.settings.store_address, now, self.options, self.settings.table
            )
            job, rows, self.items = begun(context, job, self.input, self.segments)
            self.as_of = moment_text(job.as_of)
            for each in summarize_on_spark(context, job, rows, context.defaultParallelism):
                if isinstance(each, Counter):
                    total += each
                else:
                    self.changes.add(*each)
        except UnusableExport as error:
            raise CommandError(str(error), "Name the folder that has AWSDynamoDB") from None
        self.outcome = {name: total[name] for name in _NOTES}

    async def _find_table(self) -> None:
        """Raises TableMissing if there is no table."""
        async with open_table(self.settings, self.graph.table):
            pass
