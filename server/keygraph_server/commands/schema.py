"""`keygraph schema`: prints the GraphQL schema, or compares it with the file that keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keygraph_server.errors import CommandError
from keygraph_server.models import load_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.schema_text import difference, printed
from keygraph_server.settings import read_settings


def schema(
    model: ModelOption = None,
    store: StoreOption = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Compare with the file; a difference is printed, and is exit code 1."
        ),
    ] = None,
) -> None:
    """Print the GraphQL schema of a model. It is the same in every store, and none is opened."""
    found = load_model(read_settings(model=model, store=store).model).schema
    if check is None:
        typer.echo(printed(found), nl=False)
        return
    if not check.is_file():
        raise CommandError(f"there is no file {check}", f"Make it with `keygraph schema > {check}`")
    changes = difference(found, check)
    if changes:
        typer.echo(changes, nl=False)
        mend = f"If the change is meant, keep it with `keygraph schema > {check}`"
        raise CommandError(f"{check} is not the schema of the model", mend)
