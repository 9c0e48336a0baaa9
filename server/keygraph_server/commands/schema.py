"""`keygraph schema`: prints the GraphQL schema, or compares it with a saved copy."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from keygraph_server.errors import CommandError, printable
from keygraph_server.models import configured_model, difference, printed
from keygraph_server.options import ModelOption, StoreOption
from keygraph_server.settings import read_settings
from keygraph_server.terminal.output import printable_lines

if TYPE_CHECKING:
    from graphql import DocumentNode

Kind: TypeAlias = Literal["breaking", "dangerous", "safe"]
EXIT_CODES: dict[Kind, int] = {"breaking": 3, "dangerous": 4, "safe": 5}
"""The exit code of a comparison, by the worst change; the worst kind first."""
_ANNOTATIONS: dict[Kind, str] = {"breaking": "error", "dangerous": "warning", "safe": "notice"}


def schema(
    model: ModelOption = None,
    store: StoreOption = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare the schema with this file. If there are differences, print them, say what they mean for "
            "clients, and exit with 3 (breaking), 4 (dangerous) or 5 (safe).",
        ),
    ] = None,
    format_: Annotated[
        Literal["text", "github"],
        typer.Option(
            "--format", help="With --check. text: a diff and a list. github: annotations of GitHub Actions."
        ),
    ] = "text",
) -> None:
    """Print the GraphQL schema of a model. It does not depend on the store, so the store is not opened."""
    settings = read_settings(model=model, store=store)
    found = configured_model(settings).schema
    if check is None:
        typer.echo(printed(found), nl=False)
        return
    if not check.is_file():
        raise CommandError(f"there is no file {check}", f"Create it with `{_command(model)} > {check}`")
    diff = difference(found, check)
    if not diff:
        return
    changes = _changes(check, printed(found))
    if format_ == "text":
        typer.echo(printable_lines(diff))
    for kind, text, line in changes:
        typer.echo(f"{kind}: {text}" if format_ == "text" else _annotation(kind, text, check, line))
    fix = f"If the change is intended, save it with `{_command(model)} > {check}`"
    error = CommandError(f"{check} is not the schema of the model", fix)
    typer.echo(f"keygraph: {error}", err=True)
    raise typer.Exit(EXIT_CODES[changes[0][0]])


def _changes(file: Path, new: str) -> list[tuple[Kind, str, int | None]]:
    """What the changes from the file's schema to the new one mean for clients: the kind, the change and the line in the
    file of what is changed. The worst come first; there is at least one.

    Raises CommandError if the file is not a schema.
    """
    from graphql import GraphQLError, build_ast_schema, build_schema, parse
    from graphql.utilities import BreakingChange, DangerousChange, find_schema_changes

    try:
        document = parse(file.read_text("utf-8", "replace"))
        # Not validated: a subgraph uses directives that the gateway declares.
        old = build_ast_schema(document, assume_valid_sdl=True)
        if old.query_type is None:
            raise TypeError("it has no type Query")
    except (GraphQLError, TypeError) as error:
        problem = getattr(error, "message", str(error)).rstrip(".")
        raise CommandError(
            f"{file} is not a GraphQL schema: {problem}", "Name a file made by `keygraph schema`"
        ) from None
    lines = _lines(document)
    found: list[tuple[Kind, str, int | None]] = []
    for change in find_schema_changes(old, build_schema(new, assume_valid_sdl=True)):
        kind: Kind = "safe"
        if isinstance(change, BreakingChange):
            kind = "breaking"
        elif isinstance(change, DangerousChange):
            kind = "dangerous"
        found.append(
            (kind, printable(" ".join(change.description.split())), _line(lines, change.description))
        )
    return sorted(found, key=lambda change: [*EXIT_CODES].index(change[0])) or [
        ("safe", "Only the order, the directives or the deprecations have changed.", None)
    ]


def _lines(document: DocumentNode) -> dict[str, int]:
    """The line of each type (`User`) and of each of its fields and values (`User.name`)."""
    found: dict[str, int] = {}
    for definition in document.definitions:
        name = getattr(definition, "name", None)
        if name is None or name.loc is None:
            continue
        found[name.value] = name.loc.start_token.line
        for member in (*getattr(definition, "fields", ()), *getattr(definition, "values", ())):
            found[f"{name.value}.{member.name.value}"] = member.name.loc.start_token.line
    return found


def _line(lines: dict[str, int], description: str) -> int | None:
    """The line of what graphql-core's description of a change names: a field, else its type."""
    subject = description.partition('"')[0]
    names = re.findall(r"\w+\.\w+", subject)[:1]
    names += [name.partition(".")[0] for name in names] or re.findall(r"\w+", subject)
    return next((lines[name] for name in names if name in lines), None)


def _annotation(kind: Kind, text: str, file: Path, line: int | None) -> str:
    """A workflow command of GitHub Actions, with its escapes."""
    place = str(file).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    at = f"file={place}" if line is None else f"file={place},line={line}"
    return f"::{_ANNOTATIONS[kind]} {at},title={kind.capitalize()} change::{text.replace('%', '%25')}"


def _command(model: str | None) -> str:
    """The command that prints the schema of the same model."""
    return "keygraph schema" if model is None else f"keygraph schema --model {shlex.quote(model)}"
