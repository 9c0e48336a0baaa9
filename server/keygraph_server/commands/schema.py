"""`keygraph schema`: prints the GraphQL schema, or compares it with a saved copy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from keygraph_server.errors import CommandError
from keygraph_server.models import difference, load_model, printed
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import read_settings


def schema(
    model: ModelOption = None,
    store: StoreOption = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare the schema with this file. If there are differences, print them and exit with 1.",
        ),
    ] = None,
) -> None:
    """Print the GraphQL schema of a model. It does not depend on the store, so the store is not opened."""
    settings = read_settings(model=model, store=store)
    found = load_model(settings.model, federation=settings.federation).schema
    if check is None:
        typer.echo(printed(found), nl=False)
        return
    if not check.is_file():
        raise CommandError(f"there is no file {check}", f"Create it with `{_command(model)} > {check}`")
    changes = difference(found, check)
    if changes:
        typer.echo(changes, nl=False)
        fix = f"If the change is intended, save it with `{_command(model)} > {check}`"
        raise CommandError(f"{check} is not the schema of the model", fix)


def _command(model: str | None) -> str:
    """The command that prints the schema of the same model."""
    return "keygraph schema" if model is None else f"keygraph schema --model {shlex.quote(model)}"
