"""The job on Apache Spark: the same map, combine and finish, over DynamoDB's exports or the table itself, on a cluster.

Rows are sorted by Spark within partitions, a group never in two of them, and reduced as they come, so that an executor
holds one value of a group at a time, however many edges its node has. Executors write the results themselves, each with
its part of the rate. `keygraph summarize --engine spark` runs it; for `spark-submit`, this file is a program:

    spark-submit …/keygraph/summaries/spark.py --model league:graph --store aws --input s3://bucket/AWSDynamoDB
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from keygraph.engines.open import open_store
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.summaries.exports import Exports, UnusableExport, rows_of
from keygraph.summaries.local import scanned
from keygraph.summaries.work import GROUPS, IMAGES, LINKS, RANKS, WRITES, GroupRow, Summaries
from keygraph.summaries.writing import SummaryWriter, WriteOptions
from keygraph.tables.bulk import gathered
from keygraph.tables.findings import FindingKind
from keygraph.tables.interchange import LINE_BYTES
from keygraph.tables.repair import ItemChange
from keygraph.tables.verify import LATE_SECONDS

_ROOT = "AWSDynamoDB"
_Page = TypeVar("_Page")
_LINE_LIMIT = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop's setting: longer lines are not read."""
_BATCH_LINES = 1000
"""The lines whose contributions are combined before they are sent to another executor."""
_BATCH_WRITES = 1000
_REASON = re.compile(r"(Caused by: |: )?[\w.$]+(Error|Exception): ")
"""A line of a stack that names an error."""
_READ = -1
"""The stage of rows that say how many lines were read: unlike accumulators, they are right if a task is run again."""


@dataclass(frozen=True)
class SparkJob:
    """A job on Spark. It is sent to the executors, so it names its model instead of holding it."""

    model: str
    """The import string of the graph, which executors can import."""
    store: str
    """The address of the store that the results are written to."""
    as_of: datetime
    options: WriteOptions
    """With the rate of all executors together."""
    table: str | None = None
    """The name of the table, if it is another than the model's."""

    @property
    def work(self) -> Summaries:
        return _loaded(self.model, self.table)

    @property
    def at(self) -> Decimal:
        return Decimal(int(self.as_of.timestamp()))

    def mapped(self, lines: Iterable[str], *, is_image: bool, count: int) -> Iterator[tuple[GroupRow, None]]:
        """Yields the rows of the lines of an export, those of some lines at a time combined, up to one line more than it has."""
        iterator = islice(lines, count + 1)
        while some := [line.encode() for line in islice(iterator, _BATCH_LINES)]:
            yield from self._combined(rows_of(self.work, self.at, some, is_image=is_image), len(some))

    def scanned(self, segments: Iterable[int], *, of: int) -> Iterator[tuple[GroupRow, None]]:
        """Yields the rows of segments of the table, those of a page at a time combined."""
        with asyncio.Runner() as runner:
            for segment in segments:
                pages = self._pages(segment, of)
                while (page := runner.run(_next(pages))) is not None:
                    rows, count = page
                    yield from self._combined(rows, count)

    async def _pages(self, segment: int, of: int) -> AsyncIterator[tuple[Iterable[GroupRow], int]]:
        async with open_store(self.store, self.work.graph.table) as store:
            part = [*scanned(self.work, store, self.at, of).values()][segment]
            async for rows, count, _ in part(None):
                yield rows, count

    def _combined(self, rows: Iterable[GroupRow], count: int) -> Iterator[tuple[GroupRow, None]]:
        """Yields the rows of so many items, with the number."""
        yield GroupRow(_READ, 0, "", b"", str(count).encode()), None
        yield from ((row, None) for row in self.work.combined(rows))

    def reduced(
        self, rows: Iterable[tuple[GroupRow, None]], *, stage: int
    ) -> Iterator[tuple[GroupRow, None]]:
        """Yields the rows of the next stages, given a partition of one stage in its order."""
        own = (row for row, _ in rows)
        if stage == IMAGES:
            yield from ((row, None) for row in self.work.newest(own, self.at))
        else:
            yield from ((row, None) for row in self.work.reduced(own))

    def written(self, rows: Iterable[tuple[GroupRow, None]], *, parts: int) -> Iterator[Any]:
        """Writes a partition of results. Yields what changes, in a dry run, and what became of how many items."""
        changes: list[tuple[FindingKind, list[ItemChange]]] = []
        counted = asyncio.run(self._write((row for row, _ in rows), parts, changes))
        yield from changes
        yield counted

    async def _write(
        self, rows: Iterator[GroupRow], parts: int, changes: list[tuple[FindingKind, list[ItemChange]]]
    ) -> Counter[str]:
        graph, options = self.work.graph, self.options
        if options.rate is not None:
            options = replace(options, rate=options.rate / parts)

        def listen(kind: FindingKind, items: list[ItemChange]) -> None:
            if options.is_dry_run:
                changes.append((kind, items))

        async with open_store(self.store, graph.table) as store:
            writer = SummaryWriter(graph, store, self.as_of, options, listen)
            items = (
                [self.work.result(row) for row in own] for _, own in groupby(rows, key=lambda row: row.key)
            )
            while some := [*islice(items, _BATCH_WRITES)]:
                await gathered(writer.write(results) for results in some)
        return writer.counted


async def _next(pages: AsyncIterator[_Page]) -> _Page | None:
    return await anext(pages, None)


@kept("models", 4, 1_000)
def _loaded(model: str, table: str | None) -> Summaries:
    """Returns the work of a model, once in a process."""
    module, _, name = model.partition(":")
    found: Any = getattr(import_module(module), name or "graph")
    if not isinstance(found, Graph):
        # A schema of a graph, or a function that returns one.
        found = found() if callable(found) else found
    graph = found if isinstance(found, Graph) else found.graph
    if table is not None:
        graph = graph.on_table(table)
    work: Summaries = graph.made(Summaries)
    return work


def _partition(row: GroupRow) -> int:
    """Returns a number that is the same for all rows of a group, or of an item that is written, in every process."""
    return crc32((row.key if row.stage == WRITES else f"{row.summary} {row.key}").encode())


def _order(row: GroupRow) -> tuple[Any, ...]:
    return (row.key, row.summary) if row.stage == WRITES else (row.summary, row.key, row.order)


def why_not_on_spark(work: Summaries) -> str | None:
    """Returns why Spark cannot compute everything; None if it can."""
    walks = ", ".join(f"{walk.owner.name}.{walk.name}" for walk in work.walked.walks)
    return f"walks are computed on one machine, and the model keeps {walks}" if walks else None


# --- On the driver --------------------------------------------------------------------------------------


def exports_at(context: Any, address: str, table: str) -> tuple[Exports, list[tuple[str, int, bool]]]:
    """Returns the exports of a table below an address (`s3://bucket/AWSDynamoDB`, or a local folder), and the address of each of
    their files with its number of items and whether it is one of several exports. Raises UnusableExport."""
    if "://" not in address:
        # Hadoop would wait for the other end of a pipe, and follow links to other folders.
        exports = Exports(Path(address), table)
        several = len(exports.names) > 1
        return exports, [(path.resolve().as_uri(), file.items, several) for path, file in exports.files()]
    root = address.rstrip("/") if address.rstrip("/").endswith(_ROOT) else f"{address.rstrip('/')}/{_ROOT}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            manifests = context.wholeTextFiles(f"{root}/*/manifest-*.json").collect()
        except Exception as error:
            raise _unreadable(address, error) from None
        for path, text in manifests:
            place = Path(folder, _ROOT, *path.rsplit("/", 2)[1:])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        exports = Exports(Path(folder), table)
        files = [(f"{root}/{file.below}", file.items) for file in exports.listed()]
    return exports, [(file, count, len(exports.names) > 1) for file, count in files]


def begun(context: Any, job: SparkJob, address: str | None, segments: int) -> tuple[SparkJob, Any, int]:
    """Reads the exports at an address, or without one the table in so many segments. Returns the job as of their time, the
    rows of all items, and how many items there are. Raises UnusableExport.

    `context` is a SparkContext.
    """
    if address is not None:
        exports, files = exports_at(context, address, job.work.graph.table.name)
        job = replace(job, as_of=exports.as_of)
        return job, *_exported(context, job, files)
    numbers = context.parallelize(range(segments), segments)
    rows = numbers.mapPartitions(partial(job.scanned, of=segments)).persist(_level())
    return job, rows, _items(rows)


def _exported(context: Any, job: SparkJob, files: Sequence[tuple[str, int, bool]]) -> tuple[Any, int]:
    # A damaged line without an end would be read into memory.
    context._jsc.hadoopConfiguration().set(_LINE_LIMIT, str(LINE_BYTES))
    several = [
        context.textFile(file)
        .mapPartitions(partial(job.mapped, is_image=is_image, count=count))
        .persist(_level())
        for file, count, is_image in files
    ]
    expected = sum(count for _, count, _ in files)
    try:
        rows = context.union([context.emptyRDD(), *several])
        items = _items(rows)
    except Exception as error:
        raise _unreadable("a file", error) from None
    if items != expected:
        raise UnusableExport(
            f"the files have {items:,} items, and their manifests say {expected:,}: one is not complete, or has a line of "
            f"more than {LINE_BYTES:,} bytes"
        )
    return rows, items


def _unreadable(what: str, error: Exception) -> UnusableExport:
    """Returns the error in one line, given Py4J's with the stacks of Java and Python."""
    reasons = [line for line in str(error).splitlines() if _REASON.match(line)]
    return UnusableExport(f"{what} cannot be read: {(reasons or ['Spark has failed'])[-1][:300]}")


def _items(rows: Any) -> int:
    read = rows.filter(lambda pair: pair[0].stage == _READ).map(lambda pair: int(pair[0].content))
    return int(read.sum())


def _level() -> Any:
    return import_module("pyspark").StorageLevel.DISK_ONLY


def summarize(context: Any, job: SparkJob, rows: Any, parts: int) -> Iterator[Any]:
    """Does the job with the rows of all items. Yields each change of a dry run, then counts of what became of items, one
    for each part."""
    for stage in (IMAGES, LINKS, GROUPS, RANKS):
        own = _of_stage(rows, stage, parts)
        made = own.mapPartitions(partial(job.reduced, stage=stage)).persist(_level())
        rows = context.union([rows, made])
    results = _of_stage(rows, WRITES, parts).mapPartitions(partial(job.written, parts=parts))
    yield from results.toLocalIterator() if job.options.is_dry_run else results.collect()


def _of_stage(rows: Any, stage: int, parts: int) -> Any:
    """Returns the rows of a stage, whole groups in each partition, in their order."""
    return rows.filter(lambda pair: pair[0].stage == stage).repartitionAndSortWithinPartitions(
        parts, _partition, True, _order
    )


def main(words: list[str] | None = None) -> int:
    """Runs the job, for `spark-submit`."""
    parser = argparse.ArgumentParser(
        description="Compute the summaries of a table, from its exports with --input."
    )
    for name in ("model", "store"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--input")
    parser.add_argument("--segments", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--only-changed", action="store_true")
    given = parser.parse_args(words)
    reason = why_not_on_spark(_loaded(given.model, None))
    if reason is not None:
        parser.error(reason)
    context = import_module("pyspark").SparkContext.getOrCreate()
    late = 0 if given.store.startswith("sqlite:") else LATE_SECONDS
    options = WriteOptions(given.rate, only_changed=given.only_changed, late_seconds=late)
    now = datetime.now(UTC).replace(microsecond=0)
    job = SparkJob(given.model, given.store, now, options)
    parts = context.defaultParallelism
    job, rows, _ = begun(context, job, given.input, given.segments or parts)
    total = Counter[str]()
    for counted in summarize(context, job, rows, parts):
        total += counted
    sys.stdout.write(f"As of {job.as_of.isoformat()}: {dict(total)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
