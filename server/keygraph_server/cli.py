"""The command line: `keygraph` with its commands.

An expected error is one line that says how to fix it, with exit code 1. A wrong option is exit code 2. Exit code 3
means that `verify` found problems; `schema --check` ends with 3, 4 or 5, by what changed.

A command's module is imported when the command runs, so that `keygraph --help` needs no library but Typer.
"""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from keygraph_server.processes.collection import keeping_all

_UsageError: Any = typer.BadParameter.__base__
"""The base of all usage errors; typer exports only its subclasses."""


_COMMANDS = {
    "init": ("commands.init:init", "Write a small model, its data and queries into this folder."),
    "serve": ("commands.serve:serve_app", "Serve a model as GraphQL, with a playground."),
    "schema": ("commands.schema:schema", "Print the GraphQL schema of a model."),
    "describe": (
        "commands.describe:describe",
        "Show the keys and access paths of every type, and the DynamoDB request of each path.",
    ),
    "explain": (
        "commands.explain:explain",
        "Show the plan of an operation: its steps, the DynamoDB request of each step, and the cost.",
    ),
    "draft": (
        "commands.draft:draft",
        "Print a first model of an existing table: its types, fields and lists, with comments on what is uncertain.",
    ),
    "load": ("commands.load:load_app", "Load items into the table."),
    "export": (
        "commands.export:export",
        "Export every item of the table as a line of JSON, for `keygraph load`.",
    ),
    "copy": (
        "commands.whole_table.copy:copy",
        "Copy every item of the table into a table of another store, as it is.",
    ),
    "verify": ("commands.verify:verify", "Read the whole table and report what does not match the model."),
    "summarize": (
        "commands.summarize:summarize",
        "Compute the summaries of a whole table, and write them to its items.",
    ),
    "follow": (
        "commands.follow:follow",
        'Read the stream of the table: keep the values that the model declares with kept="stream", and hand the changes on.',
    ),
    "backfill": (
        "commands.whole_table.backfill:backfill",
        "Write what items lack since the model has changed, while the table is in use.",
    ),
    "hot": (
        "hot.command:hot",
        "Show which partitions and fields cost a running server most, and how to reduce the cost.",
    ),
    "trust": (
        "commands.trust:trust",
        "Write the manifest of trusted documents, for KEYGRAPH_TRUSTED_DOCUMENTS.",
    ),
    "table": (
        "commands.table:table_app",
        "Create, describe or update the table, or compare it with the model.",
    ),
}
"""The place of each command (the module and the name of its function, or of an application), and the first sentence of
its docstring."""


class _Commands(TyperGroup):
    """The commands. Expected errors and usage errors are printed as one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command for the list in `keygraph --help`; None if there is no such command."""
        if cmd_name not in _COMMANDS:
            return None
        return TyperCommand(cmd_name, short_help=_COMMANDS[cmd_name][1], rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Imports the module of the command to run."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _imported(command.name or ""), rest

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except _UsageError as error:
            if error.ctx is not None and error.message == error.ctx.get_help():
                # `keygraph` alone: its help is more useful than one line.
                error.show()
            else:
                _echo_usage_error(error)
            sys.exit(error.exit_code)
        except typer.Abort:
            typer.echo("keygraph: aborted.", err=True)
            sys.exit(1)
        except Exception as error:
            from keygraph_server.errors import expected_message

            message = expected_message(error)
            if message is None:
                raise
            typer.echo(f"keygraph: {message}", err=True)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _echo_usage_error(error: Any) -> None:
    errors = getattr(error.__cause__, "errors", None)
    if errors is not None:  # pydantic's, of a value
        from keygraph_server.errors import value_problem

        error.message = value_problem(errors()[0])
    problem = error.format_message()
    stop = "" if problem.endswith((".", "?")) else "."
    command = error.ctx.command_path if error.ctx else "keygraph"
    typer.echo(f"keygraph: {problem}{stop} Run `{command} --help` to see the options.", err=True)


def _imported(name: str) -> Any:
    module, _, attribute = _COMMANDS[name][0].partition(":")
    with keeping_all():
        found = getattr(importlib.import_module(f"keygraph_server.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


app = typer.Typer(
    name="keygraph",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"keygraph {version('keygraph')}")
        raise typer.Exit


@app.callback()
def keygraph(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Serve a graph stored in one DynamoDB table as GraphQL."""


def main() -> None:
    """The entry point of `keygraph`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # it is None if it was closed
            # Whatever the locale, what files and models contain can be printed.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app()
