"""`keygraph load`: loads JSON lines, or the sample of a model, into the table."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Annotated, Any, Literal, TypeAlias

import typer

from keygraph.dynamo.items import Item
from keygraph.dynamo.rules import WriteRules
from keygraph.dynamo.store import BatchGet, Store
from keygraph.errors import BadUserInput, ConditionFailed
from keygraph.graph import Graph
from keygraph.keys.types import plain
from keygraph.model.node_shards import is_shard
from keygraph.tables.bulk import (
    BATCH_ITEMS,
    IN_FLIGHT,
    WriteItems,
    put_absent,
    set_attributes,
    write_batches,
)
from keygraph.tables.interchange import Interchange, LineFormat
from keygraph.tables.item_fields import ItemFields, ItemRules
from keygraph.tables.pairs import Pairs
from keygraph.writing.presence import Presence
from keygraph.writing.sending.idempotency import is_note
from keygraph_server.errors import CommandError, printable
from keygraph_server.jobs.checkpoint import (
    NOWHERE,
    CannotResumeError,
    LoadPosition,
    SavedProgress,
    StateFile,
    finished,
)
from keygraph_server.jobs.sources import STANDARD_INPUT, Lines, Sample, Source, SourceEntry
from keygraph_server.models import Model, configured_model
from keygraph_server.options import ModelOption, ResumeOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_table
from keygraph_server.terminal.output import counted, key_line, unmatched

load_app = typer.Typer(rich_markup_mode=None, add_completion=False)

_BATCH_BYTES = 1_000_000
_LOCAL_BATCHES = 40
"""The embedded engine writes this many batches as one."""

Batch: TypeAlias = tuple[list[Item], LoadPosition]


# The options of a sample are unknown until the sample is known.
@load_app.command(context_settings={"ignore_unknown_options": True})
def load(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Files of JSON lines, optionally compressed (.gz); - is standard input. With --sample: the options of the sample.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Load the items that the function `sample` of an example, or of module.name, creates: "
            "--sample commerce --users 1000.",
        ),
    ] = None,
    format_: Annotated[
        Literal["auto", "plain", "typed"],
        typer.Option(
            "--format", help="plain: plain JSON. typed: DynamoDB's JSON. auto: detected for each line."
        ),
    ] = "auto",
    skip_refused: Annotated[
        bool,
        typer.Option(
            "--skip-refused", help="Report items that the model refuses, and continue without them."
        ),
    ] = False,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Load only items whose keys are not in the table yet.")
    ] = False,
    upsert: Annotated[
        bool,
        typer.Option("--upsert", help="In existing items, keep the attributes that a line does not have."),
    ] = False,
    no_rules: Annotated[
        bool, typer.Option("--no-rules", help="Also load items that break the model's rules (check=).")
    ] = False,
    resume: ResumeOption = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Load items into the table. Items with the same key are replaced, so loading them again changes nothing.

    Stops at the first item that the model refuses; all items before it are loaded. If the source has only
    one item of a mirrored edge or of a counterpart, the other one is created at the end.
    """
    if if_absent and upsert:
        raise CommandError("--if-absent and --upsert cannot be used together", "Choose one")
    settings = read_settings(model=model, store=store)
    loaded = configured_model(settings)
    source = _source(words or [], sample, loaded)
    mode = ["--if-absent"] if if_absent else ["--upsert"] if upsert else []
    file = StateFile.named("loads", settings.store_address, loaded.graph.table.name, source.name, *mode)
    reading = Batches(
        loaded.graph,
        source,
        None if format_ == "auto" else format_,
        skip_refused,
        None if no_rules else ItemRules(loaded.graph, is_merged=upsert),
        combined=1 if settings.sqlite_file is None else _LOCAL_BATCHES,
    )
    started = time.monotonic()
    job = _RunningLoad(reading, file, if_absent=if_absent, upsert=upsert)
    finished(job.run(settings, resume=resume), lambda: job.so_far)
    if job.is_new_table:
        typer.echo(f"Created the table {loaded.graph.table.name} in {settings.displayed_store}.")
    loaded_items = job.reached.items - job.before.items - job.kept - job.refused
    outcome = counted(loaded_items, time.monotonic() - started)
    notes = f", {job.before.items:,} loaded earlier" if job.before.items else ""
    notes += f", {job.kept:,} already there" if job.kept else ""
    notes += f", {reading.refused:,} refused" if reading.refused else ""
    notes += f", {job.made:,} other items of edges made" if job.made else ""
    typer.echo(f"Loaded {outcome} into {loaded.graph.table.name}{notes}.")


def _source(words: list[str], sample: str | None, model: Model) -> Source:
    """The source of the items. `words` are files or, with a sample, the sample's options."""
    if sample is not None:
        return Sample(sample, model, words)
    for word in words:
        if word.startswith("-") and word != STANDARD_INPUT:
            raise typer.BadParameter(f"No such option: {word.partition('=')[0]}")
    if not words:
        raise CommandError(
            "there is nothing to load",
            "Name files of JSON lines, - for standard input, or --sample with the name of a model",
        )
    return Lines(words)


@dataclass
class Batches:
    """The source, as batches of items that the model accepts."""

    graph: Graph
    source: Source
    format: LineFormat | None
    skips_refused: bool
    rules: ItemRules | None = None
    """The rules of the model; None if they are not checked."""
    combined: int = 1
    """The number of batches that are read as one."""
    fix: str = "Fix it, or skip such items with --skip-refused"
    """What a message says of a refused item."""
    refused: int = 0
    interchange: Interchange = field(init=False)
    limits: WriteRules = field(init=False)
    fields: dict[str, ItemFields] = field(init=False)
    pairs: Pairs = field(init=False)

    def __post_init__(self) -> None:
        self.interchange = Interchange(self.graph)
        self.limits = WriteRules(self.graph.table)
        self.fields = {name: ItemFields(self.graph, record) for name, record in self.graph.types.items()}
        self.pairs = Pairs(self.graph, asks_rules=self.rules is not None)

    def batches(self, before: LoadPosition = NOWHERE) -> Generator[Batch, None, None]:
        """The batches after the position that was reached before. Raises CommandError at a refused item."""
        with closing(self.source.entries()) as entries:
            digest = self._skip_loaded(entries, before)
            items: list[Item] = []
            size, count, done = 0, before.entries, before.items

            def batch() -> Batch:
                last = self._key_line(items[-1]) if items else before.last
                return items, LoadPosition(count, done + len(items), digest.hexdigest(), last)

            try:
                for entry in entries:
                    item = self._accepted(entry)
                    count += 1
                    digest.update(entry.content)
                    if item is None:
                        continue
                    items.append(item)
                    size += len(entry.content)
                    if len(items) >= BATCH_ITEMS * self.combined or size >= _BATCH_BYTES * self.combined:
                        yield batch()
                        items, size, done = [], 0, done + len(items)
            except CommandError:
                if items:
                    yield batch()
                raise
            if items:
                yield batch()

    def _key_line(self, item: Item) -> str:
        key = {each.name: item[each.name] for each in self.graph.table.keys}
        return self.interchange.write(key, "typed").decode()

    def _skip_loaded(self, entries: Iterator[SourceEntry], before: LoadPosition) -> hashlib._Hash:
        """Skips what was loaded before, and returns its digest. Raises CommandError if that has changed."""
        digest = hashlib.sha256()
        for entry in _first(entries, before.entries):
            digest.update(entry.content)
            if self.pairs.is_needed and (entry.item is not None or entry.content.strip()):
                with suppress(ValueError, BadUserInput):
                    self._item(entry)
        if before.entries and digest.hexdigest() != before.digest:
            raise _changed(f"the first {before.entries:,} lines have changed since they were loaded")
        return digest

    def _accepted(self, entry: SourceEntry) -> Item | None:
        """The item of the entry; None if there is none to load. Raises CommandError if it is refused."""
        if entry.item is None and not entry.content.strip():
            return None
        try:
            return self._item(entry)
        except (ValueError, BadUserInput) as error:
            self.refuse(f"{entry.where}: {error}")
        return None

    def refuse(self, problem: str) -> None:
        """Reports an item that is not loaded. Raises CommandError unless such items are skipped."""
        problem = problem.removesuffix(".")
        if not self.skips_refused:
            raise CommandError(problem, self.fix)
        self.refused += 1
        typer.echo(f"{printable(problem)}.", err=True)

    def _item(self, entry: SourceEntry) -> Item | None:
        """The item; None for a note of an idempotency key. A shard of a node is loaded as it is. Raises ValueError or BadUserInput if it is not an item, or
        if the model or DynamoDB refuses it."""
        item = (
            self.interchange.read(entry.content, self.format)
            if entry.item is None
            else {name: plain(value) for name, value in entry.item.items()}
        )
        if is_note(item):
            return None
        record = None if is_shard(item) else self.graph.recognise(item)
        if record is None:
            if not (is_shard(item) or self.graph.ignores(item)):
                raise ValueError(unmatched(self.graph, item))
            self.limits.check(item)
            return item
        fields = self.fields[record.name]
        refusal = fields.keys.misread(item) or fields.refusal(item)
        if refusal is None and self.rules is not None:
            refusal = self.rules.refusal(item)
        if refusal is not None:
            raise ValueError(refusal)
        # Checked here, where the line is known. In the store, one bad item would fail the whole batch.
        self.limits.check(item)
        self.pairs.add(record, item)
        return item


def _first(entries: Iterator[SourceEntry], count: int) -> Iterator[SourceEntry]:
    """The first `count` entries. Raises CommandError if there are fewer."""
    for number in range(count):
        entry = next(entries, None)
        if entry is None:
            raise _changed(f"only {number:,} lines are left")
        yield entry


def _changed(problem: str) -> CannotResumeError:
    return CannotResumeError(
        f"the load cannot be resumed: {problem}",
        "Load without --resume: items that are already there are replaced by themselves",
    )


class _RunningLoad:
    """A running load: the position before it, and the position that it has reached."""

    def __init__(self, reading: Batches, file: StateFile, *, if_absent: bool, upsert: bool) -> None:
        self._reading = reading
        self._put: WriteItems | None = (
            self._put_absent if if_absent else self._set_attributes if upsert else None
        )
        self.kept = 0
        """The number of existing items kept unchanged."""
        self.refused = 0
        """The number of loaded items refused because of existing ones."""
        self.made = 0
        """The number of mirrors and counterparts that were made."""
        self.is_new_table = False
        self._progress = SavedProgress(
            file,
            "load",
            "Loading",
            lambda: asdict(self.reached) if self.reached.items else None,
            lambda: self.so_far,
        )
        self.before = self.reached = NOWHERE

    @property
    def so_far(self) -> str:
        """The number of loaded items, and how to continue."""
        items = self.reached.items
        if not items:
            return "Nothing was loaded."
        noun, what = ("item is", "it") if items == 1 else ("items are", "them")
        if not self._progress.is_kept:
            return f"{items:,} {noun} loaded. Run the load again: loaded items are replaced by themselves."
        return f"{items:,} {noun} loaded. Run the load again with --resume to continue after {what}."

    async def run(self, settings: Settings, *, resume: bool) -> None:
        """Loads everything. A CommandError says how many items were loaded before it."""
        table, source, file = self._reading.graph.table, self._reading.source, settings.sqlite_file
        if resume:
            self._progress.resume(self._take_up)
        with (
            self._progress.running(source.total, lambda: source.position) as advance,
            closing(self._reading.batches(self.before)) as batches,
        ):

            def written(reached: LoadPosition) -> None:
                self.reached = reached
                advance(reached.items)

            # A load whose first item is refused creates no file.
            first = [] if file is None or file.exists() else [*islice(batches, 1)]
            creates = not self.before.items
            async with open_table(settings.patient, table, creates=creates) as (store, _, self.is_new_table):
                await self._refuse_other_table(store)
                in_flight = IN_FLIGHT if file is None else 1
                await write_batches(store, chain(first, batches), written, in_flight, self._put)
                self.made = await self._reading.pairs.complete(store)

    def _take_up(self, kept: Any) -> None:
        self.before = self.reached = LoadPosition(**kept)

    async def _refuse_other_table(self, store: Store) -> None:
        """Raises CommandError if the table lacks the last item that was loaded."""
        if self.before.last:
            key = store.table.key_of(self._reading.interchange.read(self.before.last, "typed"))
            batch = await store.send(BatchGet((key,), consistent=True))
            if batch.items == [None]:
                raise _changed("the table does not have the last item that was loaded")

    # --- Existing items with the key of a loaded one ------------------------------------------------------

    async def _put_absent(self, store: Store, items: Sequence[Item]) -> None:
        kept = await put_absent(store, items)
        # Other batches add to it while this one waits.
        self.kept += kept

    async def _set_attributes(self, store: Store, items: Sequence[Item]) -> None:
        rules, graph = self._reading.rules, self._reading.graph
        presence = Presence(graph)
        for item in items:
            record = graph.recognise(item)
            conditions = [] if record is None else [*presence.is_replaceable(record)]
            conditions += [] if rules is None else rules.conditions(item)
            try:
                await set_attributes(store, item, conditions)
            except ConditionFailed as error:
                self.refused += 1
                is_other = graph.recognise(error.item or item) is not record
                reason = "" if rules is None else rules.broken(item, error)
                reason = "the table has an item of another type with this key" if is_other else reason
                self._reading.refuse(f"the item {key_line(store.table.key_of(item))}: {reason}")
