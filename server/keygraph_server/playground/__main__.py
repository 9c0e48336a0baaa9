"""The command that installs the playground's browser files: `python -m keygraph_server.playground install`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keygraph_server.playground.assets import ASSETS_FOLDER, AssetError, install_assets, read_manifest

_app = typer.Typer(add_completion=False)


@_app.callback()
def _playground() -> None:
    """The playground's browser files."""


@_app.command()
def install(
    node_modules: Annotated[
        Path | None,
        typer.Option("--from", help="Copy the files from this node_modules folder instead of running npm."),
    ] = None,
) -> None:
    """Install the pinned files, so that the server serves them itself instead of using a CDN."""
    try:
        install_assets(ASSETS_FOLDER, read_manifest(), node_modules)
    except AssetError as error:
        typer.echo(f"The playground will load its files from a CDN: {error}.", err=True)
        raise typer.Exit(1) from error


_app()
