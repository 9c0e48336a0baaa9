"""`keygraph verify`: compares the whole table with the model."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from keygraph.changes.totals import StreamTotals
from keygraph.daemon_thread import in_daemon_thread
from keygraph.dynamo.items import Item
from keygraph.dynamo.store import Scan, Store
from keygraph.errors import KeygraphError
from keygraph.graph import Graph
from keygraph.tables.attributes import unmatched
from keygraph.tables.bulk import TypedStore, WriteRate
from keygraph.tables.findings import IGNORED, Example, Finding, FindingKind, Findings, Problem, Report
from keygraph.tables.repair import REPAIRS, Repairs
from keygraph.tables.verify import LATE_SECONDS, Verification, VerifiedPage
from keygraph_server.errors import CommandError
from keygraph_server.jobs.checkpoint import SavedProgress, StateFile, finished
from keygraph_server.jobs.declaration import declaration_digest
from keygraph_server.models import configured_model, known_types
from keygraph_server.options import (
    ExplainOption,
    ModelOption,
    RateOption,
    ReportOption,
    ResumeOption,
    SegmentsOption,
    StateOption,
    StoreOption,
    TypesOption,
)
from keygraph_server.processes.collection import keeping_all
from keygraph_server.processes.parent import when_parent_ends
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_configured_store, open_table, refuse_table_file
from keygraph_server.terminal.changes import PrintedChanges, key_as_json
from keygraph_server.terminal.output import counted, grid, json_text, key_line, out

FOUND = 3
"""The exit code if problems were found. 0 means none; 1 means that the table could not be read to the end."""

_LARGE_FILE = 20_000_000
"""The bytes of a SQLite file from which starting processes takes less time than they save."""
_NO_TYPE = "no type"
_ATTRIBUTES = ("type", "items", "what")

_TITLES: dict[Problem, str] = {
    "unknown": "Items that match no type",
    "unfit": "Items that do not match their declaration",
    "key": "Keys that do not match the attributes of their item",
    "dangling": "Ends whose node is missing",
    "one-sided": "Edges whose mirror or counterpart is missing",
    "differing": "Edges whose mirror or counterpart differs",
    "miscounted": "Nodes whose count or sum does not match the list",
    "stale": "Copies that follow their node and differ from it",
    "outdated": "Copies that are not what their node has now",
    "interrupted": "Nodes of which copies may not be written",
    "missing": "Attributes that are missing, and can be written",
    "uncopied": "Copies that are missing",
}


def verify(
    types: TypesOption = None,
    segments: SegmentsOption = 4,
    examples: Annotated[
        int, typer.Option(min=0, max=1000, help="How many items to show for each problem.")
    ] = 5,
    format_: ReportOption = "table",
    resume: ResumeOption = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Print each change that would repair a problem. Changes nothing."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --repair: make these changes.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help=f"With --repair: repair only these, separated by commas: {', '.join(REPAIRS)}. Default: all, of copies only those that follow.",
            show_default=False,
        ),
    ] = None,
    rate: RateOption = None,
    explain: ExplainOption = None,
    state: StateOption = None,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Read the whole table and report what does not match the model.

    Changes nothing, except with --repair --yes.

    Reports items that match no type or do not match their type, keys that do not match the
    attributes of their item, ends whose node is missing, edges whose mirror or counterpart is
    missing or differs, and counts and sums that do not match their lists. The report shows only the keys of items.

    --type verifies only items of some types, with what they point to. The whole table is read nevertheless.

    It also lists fields that no item of their type has, and attributes that belong to no field.
    They do not count as problems.

    --repair prints what would repair the problems: the old and new value of each attribute, as DynamoDB's JSON.
    With --yes, it also makes the changes, each on the condition that the items are as they were read. The report
    says why other problems are not repaired. You can interrupt it, and run it again.

    The exit code is 0 if no problems are left, 3 if there are problems, and 1 if the table could not be read.
    """
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    kinds, changes = _kinds(only), PrintedChanges(graph, is_json=format_ == "json")
    if not repair and (yes or only is not None or rate is not None or explain is not None):
        raise CommandError(
            "--yes, --only, --rate and --explain are options of --repair", "Add --repair, or leave them out"
        )

    repairs = partial(Repairs, kinds=kinds, listen=changes.add, rate=WriteRate(rate), is_dry_run=not yes)
    own = known_types(graph, types)
    job = RunningVerification(graph, settings, segments, examples, state, repairs if repair else None, own)
    if explain is not None:
        job.explain(explain, is_json=format_ == "json")
        return
    report, read = job.reported(resume=resume)
    problems = report.problems
    noun = "problem" if problems == 1 else "problems"
    repaired = f" {report.repaired.total():,} repaired." if yes else ""
    typer.echo(f"Verified {read}: {f'{problems:,}' if problems else 'no'} {noun}.{repaired}", err=True)
    if changes.count and not yes:
        noun = "1 repair is" if changes.count == 1 else f"{changes.count:,} repairs are"
        items = "1 item" if changes.deleted == 1 else f"{changes.deleted:,} items"
        deletes = f", and would delete {items}" if changes.deleted else ""
        typer.echo(
            f"{noun} possible{deletes}. Nothing was changed. To make the changes, add --yes.", err=True
        )
    print_report(graph, report, changes if repair else None, is_json=format_ == "json")


@dataclass
class RunningVerification:
    """A running verification, and the file with its progress."""

    graph: Graph
    settings: Settings
    segments: int
    examples: int
    state: InitVar[Path | None]
    repairs: partial[Repairs] | None
    types: Collection[str] | None = None
    before: int = 0
    """How many items were verified before an interruption."""

    def __post_init__(self, state: Path | None) -> None:
        self._started = time.monotonic()
        # Identifies the verification. The state of another one cannot be resumed.
        self._what = [
            self.settings.displayed_store,
            self.graph.table.name,
            str(self.segments),
            str(self.examples),
            declaration_digest(self.graph),
            *(self.types or ()),
            *(
                f"{name} {self.repairs.keywords.get(name)}"
                for name in ("kinds", "is_dry_run", "backfill")
                if self.repairs
            ),
        ]
        refuse_table_file(state, self.settings)
        file = StateFile.at(state) if state else StateFile.named("verifications", *self._what)
        self._verification: Verification | None = None
        self._progress = SavedProgress(file, "verification", "Verifying", self._state, lambda: self.so_far)

    def reported(self, *, resume: bool) -> tuple[Report, str]:
        """The report, and how many items of the table were read for it. Raises Exit if it is interrupted."""
        report = finished(self.run(resume=resume), lambda: self.so_far)
        outcome = counted(report.total - self.before, time.monotonic() - self._started)
        notes = f", {self.before:,} verified earlier" if self.before else ""
        return report, f"{outcome} of {self.graph.table.name}{notes}"

    @property
    def so_far(self) -> str:
        """The number of verified items, and how to continue."""
        items = self._verification.report.total if self._verification is not None else 0
        if not items:
            return "Nothing was verified."
        noun = "item was" if items == 1 else "items were"
        how = "with --resume to continue" if self._progress.is_kept else "from the start"
        return f"{items:,} {noun} verified. Run it again {how}."

    async def run(self, *, resume: bool) -> Report:
        """Verifies the whole table. A CommandError says how many items were verified before it."""
        async with open_table(self.settings.patient, self.graph.table) as (store, found, _):
            declared = self.graph.table
            if found.keys != declared.keys:
                raise CommandError(
                    f"the keys of the table {declared.name} are {found.shown_keys}, the model declares {declared.shown_keys}",
                    "Fix the model, or name another store",
                )
            self._verification = verification = self.verification_of(store)
            if resume:
                self._progress.resume(partial(self._take_up, verification))
            self.before = verification.report.total
            with self._progress.running() as advance, self._processes(verification):
                await verification.run(advance)
        return verification.report

    @contextmanager
    def _processes(self, verification: Verification) -> Iterator[None]:
        """Lets several processes verify the pages of a large SQLite file, unless items are repaired (docs/owners.md)."""
        file, count = self.settings.sqlite_file, min(self.segments, os.cpu_count() or 1)
        if file is None or self.repairs or count == 1 or file.stat().st_size < _LARGE_FILE:
            yield
            return
        spawning = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(count, spawning, VerifyingProcess, (self.settings, self.types))

        async def verify_page(scan: Scan) -> VerifiedPage:
            try:
                with _without_interrupts():
                    page = pool.submit(VerifyingProcess.verified_page, scan)
                # Not `wrap_future`: a pool of which a process was killed may fail over pages that it cancels.
                return await in_daemon_thread(page.result)
            except BrokenExecutor:
                raise KeygraphError("a process that verifies a part of the table was killed") from None

        verification.verify_page = verify_page
        try:
            yield
        finally:
            pool.shutdown(cancel_futures=True)

    def verification_of(self, store: Store, **options: Any) -> Verification:
        """A new verification of the table, or of the items of some types."""
        if self.types is not None:
            store = TypedStore(store, self.graph, self.types)
        late = LATE_SECONDS if self.settings.sqlite_file is None else 0
        return Verification(
            self.graph,
            store,
            segments=self.segments,
            examples=self.examples,
            repairs=self.repairs(self.graph, store, **options) if self.repairs else None,
            late_seconds=late,
            late_totals=StreamTotals(self.graph, store, late),
        )

    def explain(self, line: str, *, is_json: bool) -> None:
        """Prints what is sent for the item with the key in this line. Raises CommandError if there is none."""
        note = "The job reads each item by a Scan. Before each write, the item is verified; after it, again."
        # It imports GraphQL, which takes most of a second.
        from keygraph_server.jobs.explaining import explain_item

        explain_item(self.settings, self.graph, line, self._repaired, note, is_json=is_json)

    async def _repaired(self, store: Store, item: Item) -> list[Finding]:
        verification = self.verification_of(store, is_dry_run=True, listen=lambda *_: None)
        return await verification.repair_item(self.graph.table.key_of(item))

    def _take_up(self, verification: Verification, kept: Any) -> None:
        if kept["what"] != self._what:
            raise ValueError("of another verification")
        verification.resume(kept)

    def _state(self) -> dict[str, Any] | None:
        if self._verification is None or not self._verification.report.total:
            return None
        return {"what": self._what, **self._verification.to_json()}


# --- Several processes --------------------------------------------------------------------------------


class VerifyingProcess:
    """In a process that verifies pages for its parent: the verification, the store, and the loop that they belong to."""

    own: VerifyingProcess

    def __init__(self, settings: Settings, types: Collection[str] | None) -> None:
        """The process ends with its parent, also if that is killed."""
        when_parent_ends(lambda: os._exit(1))
        with keeping_all():
            graph = configured_model(settings).graph
        self._runner = asyncio.Runner()
        self._opening = open_configured_store(settings.patient, graph.table)
        job = RunningVerification(graph, settings, 1, 0, None, None, types)
        self._verification = job.verification_of(self._runner.run(self._opening.__aenter__()))
        VerifyingProcess.own = self

    @classmethod
    def verified_page(cls, scan: Scan) -> VerifiedPage:
        """Verifies a page in this process. Raises StoreError."""
        return cls.own._runner.run(cls.own._verification.verified_page(scan))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, and does not reach processes that are started in it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- Repairs ------------------------------------------------------------------------------------------


def _kinds(only: str | None) -> list[str] | None:
    """The kinds of repairs that were requested, if any were named. Raises CommandError for another word."""
    if only is None:
        return None
    kinds = [kind.strip() for kind in only.split(",")]
    unknown = [kind for kind in kinds if kind not in REPAIRS]
    if unknown:
        raise CommandError(f"--only does not know {unknown[0]}", f"Choose from {', '.join(REPAIRS)}")
    return kinds


# --- The report ---------------------------------------------------------------------------------------


def print_report(graph: Graph, report: Report, changes: PrintedChanges | None, *, is_json: bool) -> None:
    """Prints the report, which follows the changes. Raises Exit if there are problems."""
    if is_json:
        text = json_text(_as_json(graph, report), is_indented=True)
        typer.echo(changes.followed_by(text) if changes else text)
    else:
        _draw(graph, report)
    if report.problems:
        raise typer.Exit(FOUND)


def _types(graph: Graph, report: Report) -> Iterator[tuple[str | None, int, int]]:
    """Each type that has items, with the number of items and of problems."""
    problems = dict.fromkeys(report.items, 0)
    for kind, found in report.found.items():
        problems[kind.type] = problems.get(kind.type, 0) + found.count
    for name in (*graph.types, IGNORED, None):
        if name in report.items:
            yield name, report.items[name], problems[name]


def _as_json(graph: Graph, report: Report) -> dict[str, Any]:
    def example(of: Example) -> dict[str, Any]:
        other = {} if of.other is None else {"other": key_as_json(graph, of.other)}
        return {"key": key_as_json(graph, of.key), **other}

    return {
        "table": graph.table.name,
        "items": report.total,
        "types": [
            {"type": name, "items": items, "problems": problems}
            for name, items, problems in _types(graph, report)
        ],
        "problems": [
            {
                "problem": kind.problem,
                "type": kind.type,
                "what": kind.what,
                "count": found.count,
                "examples": [example(each) for each in found.examples],
            }
            for kind, found in report.ordered()
        ],
        "repaired": [{**kind._asdict(), "count": count} for kind, count in sorted(report.repaired.items())],
        "attributes": [
            {
                "type": each.type,
                "field": each.field,
                "attribute": each.path,
                "items": each.count,
                "meant": each.meant,
            }
            for each in unmatched(graph, report.attributes)
        ],
    }


def _draw(graph: Graph, report: Report) -> None:
    console = out()
    rows = [
        (name or _NO_TYPE, f"{items:,}", f"{problems:,}" if problems else "")
        for name, items, problems in _types(graph, report)
    ]
    console.print(grid(f"Table {graph.table.name}", ("type", "items", "problems"), rows))
    for problem, title in _TITLES.items():
        found = [pair for pair in report.ordered() if pair[0].problem == problem]
        if found:
            typer.echo()
            console.print(grid(title, ("type", "items", "what, and where"), map(_row, found)))
    rows = [
        (each.type, f"{each.count:,}" if each.count else "", str(each))
        for each in unmatched(graph, report.attributes)
    ]
    if rows:
        typer.echo()
        console.print(grid("Fields that no item has, and attributes without a field", _ATTRIBUTES, rows))


def _row(pair: tuple[FindingKind, Findings]) -> tuple[str, str, str]:
    kind, found = pair
    lines = [kind.what]
    for key, other in found.examples:
        lines.append(f"  {key_line(key)}" + (f" → {key_line(other)}" if other else ""))
    if found.count > len(found.examples) > 0:
        lines.append(f"  and {found.count - len(found.examples):,} more")
    return kind.type or _NO_TYPE, f"{found.count:,}", "\n".join(lines)
