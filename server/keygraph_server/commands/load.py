"""`keygraph load`: items from JSON lines, or from a model's sample, into the table."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, TypeAlias

import typer

from keygraph.dynamo.items import Item
from keygraph.dynamo.store import BatchGet, DescribeTable, Store
from keygraph.dynamo.write_rules import WriteRules
from keygraph.errors import BadUserInput, KeygraphError, TableMissing
from keygraph.graph import Graph
from keygraph.keys.types import plain
from keygraph.tables.bulk import BATCH_ITEMS, IN_FLIGHT, write_batches
from keygraph.tables.interchange import Interchange, LineFormat
from keygraph_server.commands.checkpoint import Checkpoint, Reached
from keygraph_server.commands.progress import Advance, counted, progress
from keygraph_server.commands.sources import STANDARD_INPUT, Entry, Lines, Sample, Source
from keygraph_server.errors import CommandError
from keygraph_server.models import load_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import create_command, open_configured_store

SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}
"""Of the command: the options of a sample are not known before the sample is."""

_BATCH_BYTES = 1_000_000
_LOCAL_BATCHES = 40
"""The embedded engine writes so many batches as one."""
_SAVE_SECONDS = 1.0
_DEADLINE = 60.0
"""The seconds that a batch may take at least: a load waits while DynamoDB makes room."""
_INTERRUPTED = 130

Batch: TypeAlias = tuple[list[Item], Reached]


class LoadFormat(Enum):
    """How lines are read."""

    AUTO = "auto"
    PLAIN = "plain"
    TYPED = "typed"


def load(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Files of JSON lines, .gz too; - is standard input. With --sample: the sample's own options.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Load what the function `sample` of an example, or of module.name, makes: "
            "--sample commerce --users 1000.",
        ),
    ] = None,
    format_: Annotated[
        LoadFormat,
        typer.Option("--format", help="plain JSON, DynamoDB's typed JSON, or found out line by line."),
    ] = LoadFormat.AUTO,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Name the lines that are no items of the model, and go on.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the same load was interrupted.")
    ] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Load items into the table. What has the same key is replaced, so loading again changes nothing.

    It stops at the first item that no type of the model accepts, with all before it loaded.
    """
    settings = read_settings(model=model, store=store)
    loaded = load_model(settings.model)
    source = _source(words or [], sample, lambda name, options: Sample(name, loaded, options))
    checkpoint = Checkpoint(settings.store_address, loaded.graph.table.name, source.name)
    reading = _Reading(
        loaded.graph,
        source,
        None if format_ is LoadFormat.AUTO else format_.value,
        skip_refused,
        together=1 if settings.sqlite_file is None else _LOCAL_BATCHES,
    )
    started = time.monotonic()
    job = _Job(reading, checkpoint)
    try:
        asyncio.run(job.run(settings, resume=resume))
    except KeyboardInterrupt:
        typer.echo(f"keygraph: interrupted. {job.so_far}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    outcome = counted(job.reached.items - job.before.items, time.monotonic() - started)
    notes = f", {job.before.items:,} were there before" if job.before.items else ""
    notes += f", {reading.refused:,} refused" if reading.refused else ""
    typer.echo(f"Loaded {outcome} into {loaded.graph.table.name}{notes}.")


def _source(words: list[str], sample: str | None, make_sample: Callable[[str, list[str]], Source]) -> Source:
    """Where the items come from. `words` holds files and, since a sample's options are not known, those too."""
    if sample is not None:
        return make_sample(sample, words)
    for word in words:
        if word.startswith("-") and word != STANDARD_INPUT:
            raise typer.BadParameter(f"No such option: {word.partition('=')[0]}")
    if not words:
        raise CommandError(
            "there is nothing to load",
            "Name files of JSON lines, - for standard input, or --sample with a model's name",
        )
    return Lines(words)


@dataclass
class _Reading:
    """The source as batches of items that the model accepts."""

    graph: Graph
    source: Source
    format: LineFormat | None
    skips_refused: bool
    together: int = 1
    """How many batches are read as one."""
    refused: int = 0
    interchange: Interchange = field(init=False)
    rules: WriteRules = field(init=False)

    def __post_init__(self) -> None:
        self.interchange = Interchange(self.graph)
        self.rules = WriteRules(self.graph.table)

    def batches(self, before: Reached) -> Generator[Batch, None, None]:
        """The batches behind what was reached before. Raises CommandError at an item that is refused."""
        with closing(self.source.entries()) as entries:
            digest = hashlib.sha256()
            for content in _first(entries, before.entries):
                digest.update(content)
            if before.entries and digest.hexdigest() != before.digest:
                raise _changed(f"what stands in the first {before.entries:,} lines is not what was loaded")
            items: list[Item] = []
            size, count, done = 0, before.entries, before.items

            def batch() -> Batch:
                last = self.interchange.write(items[-1], "typed").decode() if items else before.last
                return items, Reached(count, done + len(items), digest.hexdigest(), last)

            try:
                for entry in entries:
                    item = self._accepted(entry)
                    count += 1
                    digest.update(entry.content)
                    if item is None:
                        continue
                    items.append(item)
                    size += len(entry.content)
                    if len(items) >= BATCH_ITEMS * self.together or size >= _BATCH_BYTES * self.together:
                        yield batch()
                        items, size, done = [], 0, done + len(items)
            except CommandError:
                if items:
                    yield batch()
                raise
            if items:
                yield batch()

    def _accepted(self, entry: Entry) -> Item | None:
        """The entry's item; None where there is none to load. Raises CommandError where it is refused."""
        if entry.item is None and not entry.content.strip():
            return None
        try:
            return self._item(entry)
        except (ValueError, BadUserInput) as error:
            problem = f"{entry.where}: {str(error).removesuffix('.')}"
        if not self.skips_refused:
            raise CommandError(problem, "Mend it, or pass over such items with --skip-refused")
        self.refused += 1
        typer.echo(f"{problem}.", err=True)
        return None

    def _item(self, entry: Entry) -> Item:
        """Raises ValueError or BadUserInput for what is no item, no item of the model, or none that a table takes."""
        item = (
            self.interchange.read(entry.content, self.format)
            if entry.item is None
            else _made_item(entry.item)
        )
        if self.graph.recognise(item) is None:
            raise ValueError(f"no declared type accepts this item: {self.graph.why_refused(item)}")
        # What the store would refuse is refused here, where its line is known; with it a whole batch would fail.
        self.rules.check(item)
        return item


def _first(entries: Iterator[Entry], count: int) -> Iterator[bytes]:
    """The content of so many entries. Raises CommandError where there are fewer."""
    for number in range(count):
        entry = next(entries, None)
        if entry is None:
            raise _changed(f"only {number:,} lines are left")
        yield entry.content


def _made_item(made: Mapping[str, Any]) -> Item:
    return {name: plain(value) for name, value in made.items()}


class _CannotGoOn(CommandError):
    """What was loaded before is not what stands in the source or the table now."""


def _changed(problem: str) -> _CannotGoOn:
    return _CannotGoOn(
        f"the load cannot go on: {problem}",
        "Load without --resume: what is there already is replaced by itself",
    )


class _Job:
    """A load under way: what was there before, and what has been reached."""

    def __init__(self, reading: _Reading, checkpoint: Checkpoint) -> None:
        self._reading = reading
        self._checkpoint = checkpoint
        self._saved = time.monotonic()
        self._is_kept = True
        self.before = self.reached = Reached(0, 0, "")

    @property
    def so_far(self) -> str:
        """What is in the table, and how to go on."""
        items = self.reached.items
        if not items:
            return "Nothing was loaded."
        noun, what = ("item is", "it") if items == 1 else ("items are", "them")
        if not self._is_kept:
            return f"{items:,} {noun} loaded; load again: what is there is replaced by itself."
        return f"{items:,} {noun} loaded; load again with --resume to go on after {what}."

    async def run(self, settings: Settings, *, resume: bool) -> None:
        """Loads everything. Raises CommandError, which says what is in the table where that is a part."""
        table = self._reading.graph.table
        patient = settings.model_copy(update={"deadline": max(settings.deadline, _DEADLINE)})
        async with open_configured_store(patient, table) as store:
            if await store.send(DescribeTable()) is None:
                raise TableMissing(
                    f"there is no table {table.name}: create it with `{create_command(settings)}`"
                )
            if resume:
                await self._take_up(store)
            with progress("Loading", self._reading.source.total) as advance:
                await self._write(store, advance, IN_FLIGHT if settings.sqlite_file is None else 1)

    async def _take_up(self, store: Store) -> None:
        """Goes back to where the load was interrupted. Raises CommandError where the table lacks what was loaded."""
        found = self._checkpoint.read()
        if found is None:
            typer.echo("No load of these items was interrupted: loading from the beginning.", err=True)
            return
        if found.last:
            key = store.table.key_of(self._reading.interchange.read(found.last, "typed"))
            batch = await store.send(BatchGet((key,), consistent=True))
            if batch.items == [None]:
                raise _changed("the table does not hold what was loaded before")
        self.before = self.reached = found

    async def _write(self, store: Store, advance: Advance, in_flight: int) -> None:
        def written(reached: Reached) -> None:
            self.reached = reached
            advance(reached.items, self._reading.source.position)
            if time.monotonic() - self._saved >= _SAVE_SECONDS:
                self._save()

        try:
            with closing(self._reading.batches(self.before)) as batches:
                await write_batches(store, batches, written, in_flight)
        except _CannotGoOn:
            raise
        except (CommandError, KeygraphError) as error:
            self._save()
            raise CommandError(str(error).removesuffix("."), self.so_far.removesuffix(".")) from None
        except BaseException:
            self._save()
            raise
        self._checkpoint.clear()

    def _save(self) -> None:
        self._saved = time.monotonic()
        if not self.reached.items:
            return
        try:
            self._checkpoint.save(self.reached)
        except OSError:
            # Whoever may not write here can still load, and begins anew after an interruption.
            self._is_kept = False
