"""The command line: `keygraph` with its commands.

An expected error is one line that says the mend, and exit code 1; a wrong option is exit code 2.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from server.commands.describe import describe
from server.commands.export import export
from server.commands.load import SETTINGS as LOAD_SETTINGS
from server.commands.load import load
from server.commands.schema import schema
from server.commands.serve import serve
from server.commands.table import table_app
from server.errors import expected_message


class _OneLineErrors(TyperGroup):
    """Runs a command and says an expected error in one line."""

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
    """The commands, assembled."""
    app = typer.Typer(
        name="keygraph",
        help="Serve a graph that lives in one DynamoDB table as GraphQL.",
        cls=_OneLineErrors,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command()(serve)
    app.command()(schema)
    app.command()(describe)
    app.command(context_settings=LOAD_SETTINGS)(load)
    app.command()(export)
    app.add_typer(table_app)
    return app


app = build_app()


def main() -> None:
    """The entry point of `keygraph`."""
    app()
