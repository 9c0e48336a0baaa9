"""The job on Apache Spark: the same map, combine and finish, over DynamoDB's exports, on a cluster.

Rows are sorted by Spark within partitions, a group never in two of them, and reduced as they come, so that an executor
holds one value of a group at a time, however many edges its node has. Executors write the results themselves, each with
its part of the rate. `keygraph summarize --engine spark` runs it; for `spark-submit`, this file is a program:

    spark-submit …/keygraph/summaries/spark.py --model league:graph --store aws --input s3://bucket/AWSDynamoDB
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from zlib import crc32

from keygraph.engines.open import open_store
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.summaries.exports import Exports, UnusableExport, rows_of
from keygraph.summaries.work import GROUPS, IMAGES, LINKS, RANKS, WRITES, GroupRow, Summaries
from keygraph.summaries.writing import SummaryWriter, WriteOptions
from keygraph.tables.bulk import gathered
from keygraph.tables.findings import FindingKind
from keygraph.tables.repair import ItemChange
from keygraph.tables.verify import LATE_SECONDS

_ROOT = "AWSDynamoDB"
_BATCH_LINES = 1000
"""The lines whose contributions are combined before they are sent to another executor."""
_BATCH_WRITES = 1000
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

    @property
    def work(self) -> Summaries:
        return _loaded(self.model)

    @property
    def at(self) -> Decimal:
        return Decimal(int(self.as_of.timestamp()))

    def mapped(self, lines: Iterable[str], *, is_image: bool) -> Iterator[tuple[GroupRow, None]]:
        """Yields the rows of the lines of an export, those of some lines at a time combined."""
        iterator = iter(lines)
        while some := [line.encode() for line in islice(iterator, _BATCH_LINES)]:
            yield GroupRow(_READ, 0, "", b"", str(len(some)).encode()), None
            rows = rows_of(self.work, self.at, some, is_image=is_image)
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


@kept("models", 4, 1_000)
def _loaded(model: str) -> Summaries:
    """Returns the work of a model, once in a process."""
    module, _, name = model.partition(":")
    found: Any = getattr(import_module(module), name or "graph")
    if not isinstance(found, Graph):
        # A schema of a graph, or a function that returns one.
        found = found() if callable(found) else found
    graph = found if isinstance(found, Graph) else found.graph
    work: Summaries = graph.made(Summaries)
    return work


def _partition(row: GroupRow) -> int:
    """Returns a number that is the same for all rows of a group, or of an item that is written, in every process."""
    return crc32((row.key if row.stage == WRITES else f"{row.summary} {row.key}").encode())


def _order(row: GroupRow) -> tuple[Any, ...]:
    return (row.key, row.summary) if row.stage == WRITES else (row.summary, row.key, row.order)


# --- On the driver --------------------------------------------------------------------------------------


def exports_at(context: Any, address: str, table: str) -> tuple[Exports, list[tuple[str, int, bool]]]:
    """Returns the exports of a table below an address (`s3://bucket/AWSDynamoDB`, or a local folder), and the address of each of
    their files with its number of items and whether it is one of several exports. Raises UnusableExport."""
    root = address if "://" in address else Path(address).resolve().as_uri()
    root = root.rstrip("/") if root.rstrip("/").endswith(_ROOT) else f"{root.rstrip('/')}/{_ROOT}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            manifests = context.wholeTextFiles(f"{root}/*/manifest-*.json").collect()
        except Exception as error:
            # Py4J raises what Java has raised.
            raise UnusableExport(f"{address} cannot be read: {str(error).splitlines()[0]}") from None
        for path, text in manifests:
            place = Path(folder, _ROOT, *path.rsplit("/", 2)[1:])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        exports = Exports(Path(folder), table)
        files = [(f"{root}/{file.below}", file.items) for file in exports.listed()]
    return exports, [(file, count, len(exports.names) > 1) for file, count in files]


def summarize(
    context: Any, job: SparkJob, files: Iterable[tuple[str, int, bool]], parts: int
) -> Iterator[Any]:
    """Does the job. Yields each change of a dry run, then counts of what became of items, one for each part.

    `context` is a SparkContext. Raises UnusableExport if a file is not complete.
    """
    level = import_module("pyspark").StorageLevel.DISK_ONLY
    rows: list[Any] = []
    expected = 0
    for file, count, is_image in files:
        expected += count
        rows.append(
            context.textFile(file).mapPartitions(partial(job.mapped, is_image=is_image)).persist(level)
        )
    whole = context.union(rows)
    read = whole.filter(lambda pair: pair[0].stage == _READ).map(lambda pair: int(pair[0].content)).sum()
    if read != expected:
        raise UnusableExport(f"the files have {read:,} items, and their manifests say {expected:,}")
    for stage in (IMAGES, LINKS, GROUPS, RANKS):
        own = _of_stage(whole, stage, parts)
        made = own.mapPartitions(partial(job.reduced, stage=stage)).persist(level)
        whole = context.union([whole, made])
    results = _of_stage(whole, WRITES, parts).mapPartitions(partial(job.written, parts=parts))
    yield from results.toLocalIterator() if job.options.is_dry_run else results.collect()


def _of_stage(rows: Any, stage: int, parts: int) -> Any:
    """Returns the rows of a stage, whole groups in each partition, in their order."""
    return rows.filter(lambda pair: pair[0].stage == stage).repartitionAndSortWithinPartitions(
        parts, _partition, True, _order
    )


def main(words: list[str] | None = None) -> int:
    """Runs the job, for `spark-submit`."""
    parser = argparse.ArgumentParser(description="Compute the summaries of a table from its exports.")
    for name in ("model", "store", "input"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--only-changed", action="store_true")
    given = parser.parse_args(words)
    context = import_module("pyspark").SparkContext.getOrCreate()
    exports, files = exports_at(context, given.input, _loaded(given.model).graph.table.name)
    late = 0 if given.store.startswith("sqlite:") else LATE_SECONDS
    options = WriteOptions(given.rate, only_changed=given.only_changed, late_seconds=late)
    job = SparkJob(given.model, given.store, exports.as_of, options)
    total = Counter[str]()
    for counted in summarize(context, job, files, context.defaultParallelism):
        total += counted
    sys.stdout.write(f"As of {exports.as_of.isoformat()}: {dict(total)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
