"""`keygraph init`: writes a small model, its data and queries."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from keygraph_server.errors import CommandError

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
    written = {Path(name).with_suffix(file.suffix): file.read_bytes() for file in files}
    taken = [str(file) for file in written if file.exists()]
    if taken:
        exist = "exists" if len(taken) == 1 else "exist"
        raise CommandError(f"{' and '.join(taken)} already {exist}", "Choose another name, or another folder")
    for file, content in written.items():
        file.write_bytes(content)
    *others, last = map(str, written)
    typer.echo(
        f"Wrote {', '.join(others)} and {last}. Serve the model and its data with `keygraph serve --model {name}`."
    )


def _files(example: str) -> list[Path]:
    """The files of an example. Raises CommandError if there is no such example."""
    spec = importlib.util.find_spec("keygraph_examples")
    [folder] = (spec and spec.submodule_search_locations) or [""]
    examples = {file.stem for file in Path(folder).glob("*.graphql")}
    if example not in examples:
        raise CommandError(
            f"there is no example {example}", f"Choose one of {', '.join(sorted(examples))}: --from EXAMPLE"
        )
    files = [Path(folder, example).with_suffix(suffix) for suffix in _SUFFIXES]
    return [file for file in files if file.is_file()]
