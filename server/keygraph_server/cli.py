"""The command line: `keygraph` with its commands.

An expected error is one line that says how to fix it, with exit code 1. A wrong option is exit code 2. Exit code 3
means that `verify` found problems.
"""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from keygraph_server.commands.describe import describe
from keygraph_server.commands.draft import draft
from keygraph_server.commands.explain import explain
from keygraph_server.commands.export import export
from keygraph_server.commands.load import SETTINGS as LOAD_SETTINGS
from keygraph_server.commands.load import load
from keygraph_server.commands.schema import schema
from keygraph_server.commands.serve import serve
from keygraph_server.commands.table import table_app
from keygraph_server.commands.trust import trust
from keygraph_server.commands.verify import verify
from keygraph_server.errors import expected_message
from keygraph_server.hot.command import hot

_UsageError: Any = typer.BadParameter.__base__
"""The base of all usage errors; typer exports only its subclasses."""


class _OneLineErrors(TyperGroup):
    """Runs a command and prints expected errors and usage errors as one line."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except _UsageError as error:
            if not error.message:
                # A group without a command: its help is more useful than one line.
                error.show()
            else:
                command = error.ctx.command_path if error.ctx else self.name
                problem = error.format_message()
                stop = "" if problem.endswith((".", "?")) else "."
                typer.echo(f"keygraph: {problem}{stop} Run `{command} --help` to see the options.", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            typer.echo("keygraph: aborted.", err=True)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = expected_message(error)
            if message is None:
                raise
            typer.echo(f"keygraph: {message}", err=True)
            raise typer.Exit(1) from None


def build_app() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="keygraph",
        help="Serve a graph stored in one DynamoDB table as GraphQL.",
        cls=_OneLineErrors,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command()(serve)
    app.command()(schema)
    app.command()(describe)
    app.command()(explain)
    app.command()(draft)
    app.command(context_settings=LOAD_SETTINGS)(load)
    app.command()(export)
    app.command()(verify)
    app.command()(hot)
    app.command()(trust)
    app.add_typer(table_app)
    return app


app = build_app()


def main() -> None:
    """The entry point of `keygraph`."""
    app()
