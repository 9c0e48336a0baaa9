"""`keygraph explain`: the requests and round trips of an operation, and their cost."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from keygraph.dynamo.store import UnreadStore
from keygraph.errors import BadUserInput
from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explain import Explanation
from keygraph_resolvers.plan.explained import round_trip_lines, sent_json, steps_json, steps_text
from keygraph_server.commands.serve import check_table
from keygraph_server.cursor_secret import with_secret
from keygraph_server.errors import CommandError, printable
from keygraph_server.jobs.sources import STANDARD_INPUT
from keygraph_server.models import Model, configured_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.services import configured_service
from keygraph_server.settings import Settings, read_settings
from keygraph_server.stores import open_configured_store
from keygraph_server.terminal.output import json_text, out, printable_lines
from keygraph_server.terminal.waterfall import cost_table, waterfall


def explain(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="A GraphQL document. @FILE reads it from a file, - from standard input."
        ),
    ],
    variables: Annotated[
        str | None, typer.Option(metavar="JSON", help="The variables as a JSON object, or @FILE.")
    ] = None,
    operation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The operation to explain, if the document has several."),
    ] = None,
    viewer: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="JSON",
            help="The claims of the viewer as a JSON object, or @FILE. Default: the anonymous viewer.",
        ),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Also run the operation, and show its actual cost.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Show the plan of an operation: its steps, the DynamoDB request of each step, and the cost.

    Nothing is read or written: the cost is the bound, the most that the operation can cost. For a mutation, the
    output shows its transaction, with the condition of each action and the error if the condition fails. With
    --run, the operation also runs, and the output shows its actual cost next to the bound, and every request on
    a time axis. Variables without a value are shown by name.
    """
    settings = read_settings(model=model, store=store)
    request = OperationRequest(
        _text_of(query),
        _object(variables, "--variables", '{"first": 10}') or {},
        operation,
        viewer=_object(viewer, "--as", '{"sub": "12345"}'),
    )
    report = asyncio.run(_report(configured_model(settings), settings, request, run=run))
    if as_json:
        typer.echo(json_text(_as_json(report), is_indented=True))
    else:
        _draw(*report)


_Report: TypeAlias = tuple[Explanation, Mapping[str, Any] | None]
"""The explanation, and the answer if the operation was run."""


async def _report(model: Model, settings: Settings, request: OperationRequest, *, run: bool) -> _Report:
    # An operation that cannot be explained is refused before the store is opened.
    unread = configured_service(settings, model.schema, UnreadStore(model.graph.table))
    try:
        explanation = unread.explain(
            request.document, request.variables, request.operation_name, viewer=request.viewer
        )
    except BadUserInput as error:
        if not _is_file(request.document):
            raise
        problem = f"{request.document} is a file, and not a GraphQL document"
        raise CommandError(problem, f"Write @{request.document} to read the document from it") from error
    if not run:
        return explanation, None
    if explanation.stand_ins:
        missing = ", ".join(f"${name}" for name in explanation.stand_ins)
        raise CommandError(f"the operation needs a value for {missing}", "Pass it with --variables")
    await check_table(settings, model.graph.table)
    settings = with_secret(settings)
    async with open_configured_store(settings, model.graph.table) as store:
        answer = await configured_service(settings, model.schema, store).execute(request)
        # The viewer may not be allowed to see what was read, but whoever runs this command has the table.
        cost = request.observation.cost(model.graph.table)
        if cost is not None:
            answer.setdefault("extensions", {})["cost"] = cost
    return explanation, answer


# --- What is given ------------------------------------------------------------------------------------


def _text_of(given: str) -> str:
    """Returns the text itself, the content of the file after an @, or standard input."""
    if given == STANDARD_INPUT:
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"{given[1:]} cannot be read: {reason}", "Name a text file") from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long to be a name, or with a null character
        return False


def _object(given: str | None, option: str, example: str) -> dict[str, Any] | None:
    """Returns the JSON object of an option; None if it is not given."""
    if given is None:
        return None
    try:
        value = json.loads(_text_of(given))
    except ValueError as error:
        raise CommandError(f"{option} is not JSON: {error}", f"Write it as '{example}', or @FILE") from None
    if not isinstance(value, dict):
        raise CommandError(f"{option} is not a JSON object", f"Write it as '{example}'")
    return value


# --- What is shown ------------------------------------------------------------------------------------


def _draw(explanation: Explanation, answer: Mapping[str, Any] | None) -> None:
    console = out()
    is_written = any(step.kind == "write" for step in explanation.steps)
    console.print("What is read and written" if is_written else "What is read", style="bold")
    typer.echo()
    if explanation.steps:
        text = printable_lines(steps_text(explanation.steps, console.width))
        console.print(text, end="", soft_wrap=True)
    elif not explanation.elsewhere:
        console.print("Nothing from the table.")
    for name in explanation.elsewhere:
        console.print(f"{name}: answered by graphql-core's own execution [no bound]", markup=False)
    if explanation.stand_ins:
        taken = ", ".join(
            f"${name}" if value == f"${name}" else f"${name} (assumed: {json.dumps(value, default=str)})"
            for name, value in explanation.stand_ins.items()
        )
        typer.echo()
        console.print(f"No value was given for {taken}. Pass it with --variables.", style="dim")
    cost = answer.get("extensions", {}).get("cost") if answer else None
    if lines := list(round_trip_lines(explanation.steps, console.width)):
        typer.echo()
        console.print("When it is sent", style="bold")
        typer.echo()
        console.print(printable_lines("\n".join(lines)), markup=False, soft_wrap=True)
    if explanation.steps or cost:
        figures = cost or _bound_of(explanation)
        typer.echo()
        console.print(cost_table(figures, has_run=cost is not None))
        if figures["open"]:
            typer.echo()
            console.print(
                f"Limited by the server, not by a page size: {', '.join(figures['open'])}", markup=False
            )
    if explanation.refusal is not None and answer is None:
        typer.echo()
        console.print(printable(f"The server refuses it. {explanation.refusal}"), markup=False)
    if cost:
        typer.echo()
        for line in waterfall(cost["requests"], console.width):
            console.print(line, soft_wrap=True)
    for error in (answer or {}).get("errors", ()):
        place = ".".join(map(str, error.get("path", ())))
        typer.echo(
            printable(
                f"keygraph: the answer has an error{f' at {place}' if place else ''}: {error['message']}"
            ),
            err=True,
        )


def _bound_of(explanation: Explanation) -> dict[str, Any]:
    """The bound, in the same form as in an answer."""
    bound = explanation.bound
    places = {place: {"bound": each.as_dict} for place, each in bound.by_place.items()}
    return {"bound": bound.total.as_dict, "byPath": places, "open": bound.open_places}


def _as_json(report: _Report) -> dict[str, Any]:
    explanation, answer = report
    found: dict[str, Any] = {
        "plan": steps_json(explanation.steps),
        "sent": sent_json(explanation.steps),
        "standIns": explanation.stand_ins,
        "elsewhere": list(explanation.elsewhere),
        "refused": explanation.refusal,
        **_bound_of(explanation),
        "actual": None,
        "requests": None,
    }
    if answer is not None:
        found |= answer.get("extensions", {}).get("cost", {})
        found["errors"] = answer.get("errors", [])
    return found
