"""`keygraph verify`: compares the whole table with the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from keygraph.dynamo.table import Key, Table
from keygraph.errors import KeygraphError
from keygraph.graph import Graph
from keygraph.tables.attributes import unmatched
from keygraph.tables.findings import Example, FindingKind, Findings, Problem, Report
from keygraph.tables.verify import Verification
from keygraph_server.commands.checkpoint import SAVE_SECONDS, StateFile
from keygraph_server.errors import INTERRUPTED, CommandError
from keygraph_server.models import load_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_table
from keygraph_server.terminal.output import counted, grid, key_text, out, progress, shown_key

FOUND = 3
"""The exit code if problems were found. 0 means none; 1 means that the table could not be read to the end."""

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
}


class ReportFormat(Enum):
    """The format of the report."""

    TABLE = "table"
    JSON = "json"


def verify(
    segments: Annotated[
        int, typer.Option(min=1, max=1000, help="How many parts of the table to read in parallel.")
    ] = 4,
    examples: Annotated[
        int, typer.Option(min=0, max=1000, help="How many items to show for each problem.")
    ] = 5,
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="table: a readable report. json: JSON for programs.")
    ] = ReportFormat.TABLE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the same verification after an interruption.")
    ] = False,
    count: Annotated[
        bool,
        typer.Option("--count", help="Set counts and sums of nodes that are missing or wrong."),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file that stores the progress of an interrupted verification. Default: a file under .keygraph.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Read the whole table and report what does not match the model.

    Changes nothing, except counts and sums with --count.

    Reports items that match no type or do not match their type, keys that do not match the
    attributes of their item, ends whose node is missing, edges whose mirror or counterpart is
    missing or differs, and counts and sums that do not match their lists. The report shows only the keys of items.

    It also lists fields that no item of their type has, and attributes that belong to no field.
    They do not count as problems.

    The exit code is 0 if it found no problems, 3 if it found problems, and 1 if the table could not be read.
    """
    settings = read_settings(model=model, store=store)
    graph = load_model(settings.model).graph
    job = _Job(graph, settings, segments, examples, state, is_counting=count)
    started = time.monotonic()
    try:
        report = asyncio.run(job.run(resume=resume))
    except KeyboardInterrupt:
        typer.echo(f"keygraph: interrupted. {job.so_far}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    problems = sum(found.count for found in report.found.values())
    outcome = counted(report.total - job.before, time.monotonic() - started)
    notes = f", {job.before:,} verified earlier" if job.before else ""
    noun = "problem" if problems == 1 else "problems"
    typer.echo(
        f"Verified {outcome} of {graph.table.name}{notes}: {f'{problems:,}' if problems else 'no'} {noun}.",
        err=True,
    )
    if job.counted:
        typer.echo(f"Set the counts and sums of {job.counted:,} nodes.", err=True)
    if format_ is ReportFormat.JSON:
        typer.echo(orjson.dumps(_as_json(graph, report), option=orjson.OPT_INDENT_2).decode())
    else:
        _draw(graph, report)
    if problems:
        raise typer.Exit(FOUND)


class _Job:
    """A running verification, and the file with its progress."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        segments: int,
        examples: int,
        state: Path | None,
        *,
        is_counting: bool,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._segments = segments
        self._examples = examples
        self._is_counting = is_counting
        self.counted = 0
        # Identifies the verification. The state of another one cannot be resumed.
        self._what = [
            settings.store_address,
            graph.table.name,
            str(segments),
            str(examples),
            _declared(graph),
        ]
        self._file = StateFile(state) if state else StateFile.named("verifications", *self._what)
        self._saved = time.monotonic()
        self._is_kept = True
        self._verified = 0
        self.before = 0

    @property
    def so_far(self) -> str:
        """The number of verified items, and how to continue."""
        if not self._verified:
            return "Nothing was verified."
        noun = "item was" if self._verified == 1 else "items were"
        if not self._is_kept:
            return f"{self._verified:,} {noun} verified. Run it again from the start."
        return f"{self._verified:,} {noun} verified. Run it again with --resume to continue."

    async def run(self, *, resume: bool) -> Report:
        """Verifies the whole table. A CommandError says how many items were verified before it."""
        async with open_table(self._settings.patient, self._graph.table) as (store, found, _):
            _refuse_other_keys(self._graph.table, found)
            verification = Verification(
                self._graph,
                store,
                segments=self._segments,
                examples=self._examples,
                is_counting=self._is_counting,
            )
            if resume:
                self._take_up(verification)
            with progress("Verifying") as advance:

                def verified(items: int) -> None:
                    self._verified = items
                    advance(items, items)
                    if time.monotonic() - self._saved >= SAVE_SECONDS:
                        self._save(verification)

                try:
                    await verification.run(verified)
                except KeygraphError as error:
                    self._save(verification)
                    problem = str(error).removesuffix(".")
                    raise CommandError(problem, self.so_far.removesuffix(".")) from None
                except BaseException:
                    self._save(verification)
                    raise
        self._file.clear()
        self.counted = verification.counted
        return verification.report

    def _take_up(self, verification: Verification) -> None:
        """Resumes from the saved state. Raises CommandError if it belongs to another verification."""
        kept = self._file.read()
        if kept is None:
            typer.echo("Found no interrupted verification to resume. Verifying from the start.", err=True)
            return
        try:
            if kept["what"] != self._what:
                raise ValueError("of another verification")
            verification.resume(kept)
        except (KeyError, TypeError, ValueError):
            raise CommandError(
                f"{self._file.path} does not belong to a verification of this table with this model and these options",
                "Run it without --resume",
            ) from None
        self.before = self._verified = verification.report.total

    def _save(self, verification: Verification) -> None:
        self._saved = time.monotonic()
        if not self._verified:
            return
        try:
            self._file.save({"what": self._what, **verification.to_json()})
        except OSError:
            # Without write permission here, a verification still works, but cannot be resumed.
            self._is_kept = False


def _refuse_other_keys(declared: Table, found: Table) -> None:
    if found.keys != declared.keys:
        raise CommandError(
            f"the keys of the table {declared.name} are {found.shown_keys}, the model declares {declared.shown_keys}",
            "Fix the model, or name another store",
        )


def _declared(graph: Graph) -> str:
    """The model's declaration as one name. A changed model finds other problems."""
    said: list[str] = [str(graph.type_attribute)]
    for record in graph.types.values():
        said.append(
            f"{record.kind} {record.name} {record.type_value} {record.is_virtual} {record.is_mirrored}"
        )
        said += [f"{name} {keys} {keys.shards}" for name, keys in record.keys.items()]
        said += [
            f"{field.name} {field.type} {field.optional} {field.has_default} {field.attribute}"
            for field in record.fields.values()
        ]
        said += [
            f"{end.name} {end.type_name} {end.optional} {end.attributes} {end.written is not None}"
            for end in record.ends.values()
        ]
        said.append(str(record.counterpart))
    return StateFile.named("", *said).path.stem


# --- The report ---------------------------------------------------------------------------------------


def _types(graph: Graph, report: Report) -> Iterator[tuple[str | None, int, int]]:
    """Each type that has items, with the number of items and of problems."""
    problems = dict.fromkeys(report.items, 0)
    for kind, found in report.found.items():
        problems[kind.type] = problems.get(kind.type, 0) + found.count
    for name in (*graph.types, None):
        if name in report.items:
            yield name, report.items[name], problems[name]


def _as_json(graph: Graph, report: Report) -> dict[str, Any]:
    def key(of: Key) -> dict[str, str]:
        return {each.name: key_text(value) for each, value in zip(graph.table.keys, of, strict=True)}

    def example(of: Example) -> dict[str, Any]:
        return {"key": key(of.key)} if of.other is None else {"key": key(of.key), "other": key(of.other)}

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
        lines.append(f"  {shown_key(key)}" + (f" → {shown_key(other)}" if other else ""))
    if found.count > len(found.examples) > 0:
        lines.append(f"  and {found.count - len(found.examples):,} more")
    return kind.type or _NO_TYPE, f"{found.count:,}", "\n".join(lines)
