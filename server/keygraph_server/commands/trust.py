"""`keygraph trust`: checks documents, and writes those that the server may execute into a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keygraph.dynamo.store import UnreadStore
from keygraph_server.errors import CommandError, printable
from keygraph_server.jobs.replacing import output_file
from keygraph_server.models import configured_model
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import read_settings
from keygraph_server.stores import refuse_table_file
from keygraph_server.terminal.output import grid, out


def trust(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A folder with .graphql files, or a JSON file of persisted documents from Relay's compiler or Apollo's tools.",
            exists=True,
        ),
    ],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The manifest to write.")] = Path(
        "trusted-documents.json"
    ),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing. Exit with 1 if the manifest would change.")
    ] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Write the manifest of trusted documents, for KEYGRAPH_TRUSTED_DOCUMENTS.

    Each operation is checked against the schema and the limits, and shown with its bound: the most that
    it can cost, with the largest pages. If one is not valid, nothing is written. The store is not opened.
    """
    # Imported here, so that commands that need no GraphQL start without its libraries.
    from keygraph_server.documents.collecting import checked_documents, found_documents
    from keygraph_server.documents.manifest import manifest_text
    from keygraph_server.services import configured_service

    settings = read_settings(model=model, store=store)
    refuse_table_file(output, settings)
    found_model = configured_model(settings)
    service = configured_service(settings, found_model.schema, UnreadStore(found_model.graph.table))
    trusted, problems = checked_documents(found_documents(source), service)
    for problem in problems:
        typer.echo(f"keygraph: {printable(problem)}", err=True)
    if problems:
        raise CommandError(f"{len(problems)} of the documents cannot be trusted", "Fix them, or remove them")
    text = manifest_text(trusted)
    if check:
        if not output.is_file() or output.read_text("utf-8", "replace") != text:
            raise CommandError(
                f"{output} is not up to date", f"Write it with `keygraph trust {source} --output {output}`"
            )
        return
    rows = [
        (
            each.name,
            each.id[:12],
            *(f"{each.bound[figure]:,}" for figure in ("requests", "roundTrips", "readUnits")),
        )
        for each in trusted
    ]
    columns = ("operation", "id", "requests", "round trips", "read units")
    out().print(grid("The most that each document can cost", columns, rows))
    with output_file(str(output)) as file:
        file.write(text.encode())
    typer.echo(
        f"\nWrote {output}: {len(trusted)} {'document' if len(trusted) == 1 else 'documents'}. Serve it with KEYGRAPH_TRUSTED_DOCUMENTS={output}"
    )
