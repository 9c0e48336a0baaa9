"""`keygraph backfill`: writes what items lack since the model has changed."""

from __future__ import annotations

from functools import partial
from inspect import iscoroutinefunction
from typing import Annotated

import typer

from keygraph.graph import Graph
from keygraph.tables.backfill import Backfill
from keygraph.tables.bulk import WriteRate
from keygraph.tables.repair import BACKFILLED, Repairs
from keygraph_server.commands.verify import RunningVerification, print_report
from keygraph_server.errors import CommandError
from keygraph_server.models import configured_model
from keygraph_server.options import (
    ExplainOption,
    ModelOption,
    RateOption,
    ReportOption,
    ResumeOption,
    SegmentsOption,
    StateOption,
    StoreOption,
)
from keygraph_server.settings import read_settings
from keygraph_server.terminal.changes import PrintedChanges


def backfill(
    index: Annotated[
        str | None,
        typer.Option(help="Write only the keys of this index. Default: of all indexes.", show_default=False),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            help="Write only this field, in all types that have it. Default: all fields.", show_default=False
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="METHOD",
            help="With --field: write the result of this method (@field). Default: the field's default.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print each change. Changes nothing.")] = False,
    explain: ExplainOption = None,
    rate: RateOption = None,
    segments: SegmentsOption = 4,
    format_: ReportOption = "table",
    resume: ResumeOption = False,
    state: StateOption = None,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Write what items lack since the model has changed, while the table is in use.

    Writes keys of indexes, defaults of fields, copies, counts and sums that are missing, and moves attributes that
    have a new name (was=), each on the condition that the item is as it was read. Existing values are not changed,
    except keys that do not match.
    --field with --from writes the result of a method into a field.

    --dry-run prints each change as keygraph verify --repair does. You can interrupt it, and run it again.

    The exit code is 0 if nothing is left to write, 3 if something is, and 1 if the table could not be read.
    """
    settings = read_settings(model=model, store=store)
    graph = configured_model(settings).graph
    _refuse_unknown(graph, index, field, method)
    changes = PrintedChanges(graph, is_json=format_ == "json", is_quiet=not dry_run)
    repairs = partial(
        Repairs,
        kinds=BACKFILLED,
        listen=changes.add,
        rate=WriteRate(rate),
        is_dry_run=dry_run,
        backfill=Backfill(index, field, method),
    )
    job = RunningVerification(graph, settings, segments, 5, state, repairs)
    if explain is not None:
        job.explain(explain, is_json=format_ == "json")
        return
    report, read = job.reported(resume=resume)
    outcome = f"{report.repaired_items:,} written"
    if dry_run:
        outcome = f"{changes.count:,} can be changed. Nothing was changed"
    elif report.problems:
        outcome += f", {report.problems:,} cannot be written"
    typer.echo(f"Read {read}: {outcome}.", err=True)
    print_report(graph, report, changes if dry_run else None, is_json=format_ == "json")


def _refuse_unknown(graph: Graph, index: str | None, field: str | None, method: str | None) -> None:
    """Raises CommandError if the model has no such index, field or method."""
    names = [each.name for each in graph.table.indexes]
    if index is not None and index not in names:
        raise CommandError(f"the model has no index {index}", f"Its indexes: {', '.join(names) or 'none'}")
    records = [record for record in graph.types.values() if field in record.fields and not record.is_virtual]
    if field is not None and not records:
        raise CommandError(f"no type of the model has a field {field}", "Name a field as the model does")
    if method is None:
        return
    if field is None:
        raise CommandError("--from is an option of --field", "Name the field to write")
    declared = [record.methods[method] for record in records if method in record.methods]
    if len(declared) < len(records):
        raise CommandError(f"a type with the field {field} has no method {method}", "Decorate it with @field")
    if any(iscoroutinefunction(each.function) or [*each.signature.parameters][1:] for each in declared):
        fix = "Write a method that takes only self"
        raise CommandError(f"{method} is async or takes arguments", fix)
