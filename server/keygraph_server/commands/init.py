"""`keygraph init`: writes a small model, its data and queries."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from keygraph_server.errors import CommandError
from keygraph_server.models import example_names, examples_folder

_SUFFIXES = (".py", ".jsonl", ".graphql")
_SMALLEST = "league"


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the model's module.")] = _SMALLEST,
    example: Annotated[
        str, typer.Option("--from", metavar="EXAMPLE", help="The example to copy.")
    ] = _SMALLEST,
) -> None:
    """Write a small model, its data and queries into this folder.

    NAME.py, NAME.jsonl and NAME.graphql are copies of an example. Existing files are not replaced.
    """
    if not name.isidentifier():
        raise CommandError(f"{name!r} is not the name of a Python module", "Use letters, digits and _")
    files = _files(example)
    other = _other_module(name)
    if other is not None:
        raise CommandError(f"{name} is the name of {other}", "Choose another name: keygraph init NAME")
    written = {Path(name).with_suffix(file.suffix): file.read_bytes() for file in files}
    taken = [str(file) for file in written if file.exists() or file.is_symlink()]
    if taken:
        exist = "exists" if len(taken) == 1 else "exist"
        raise CommandError(f"{' and '.join(taken)} already {exist}", "Choose another name, or another folder")
    for file, content in written.items():
        file.write_bytes(content)
    *others, last = map(str, written)
    typer.echo(
        f"Wrote {', '.join(others)} and {last}. Serve the model and its data with `keygraph serve {name}`."
    )


def _other_module(name: str) -> str | None:
    """The module elsewhere that Python would import instead of the model, or the model instead of it; None if there is none."""
    if name in sys.stdlib_module_names:
        return "a module of Python's standard library"
    spec = find_spec(name)
    if spec is None or spec.origin is None or Path(spec.origin).is_relative_to(Path.cwd()):
        return None
    return "an installed Python module"


def _files(example: str) -> list[Path]:
    """The files of an example. Raises CommandError if there is no such example."""
    if example not in example_names():
        raise CommandError(
            f"there is no example {example}", f"Choose one of {', '.join(example_names())}: --from EXAMPLE"
        )
    files = [(examples_folder() / example).with_suffix(suffix) for suffix in _SUFFIXES]
    return [file for file in files if file.is_file()]
