"""The sources of a load: files of JSON lines, standard input, or the `sample` function of a model."""

from __future__ import annotations

import gzip
import inspect
import sys
import zlib
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from keygraph.tables.interchange import lines_of
from keygraph_server.errors import CommandError
from keygraph_server.models import Model, example_names, load_model

STANDARD_INPUT = "-"
_BUFFER_BYTES = 1024 * 1024
"""Each read of a file lets the writing thread run, which may take milliseconds; too long for the default 8 KB."""


class SourceEntry(NamedTuple):
    """One entry of a source: its location, its bytes (which show whether it changed), and its item."""

    where: str
    content: bytes
    item: Mapping[str, Any] | None
    """None if the content is a line that has to be parsed."""


class Lines:
    """The lines of files, in order. `-` is standard input; `.gz` files are decompressed."""

    def __init__(self, files: Sequence[str]) -> None:
        """Raises CommandError for a file that does not exist."""
        for file in files:
            if file != STANDARD_INPUT and not Path(file).is_file():
                problem = f"{file} is a folder" if Path(file).is_dir() else f"there is no file {file}"
                raise CommandError(
                    problem,
                    "Name files of JSON lines, .jsonl or .jsonl.gz, or - for standard input",
                )
        self._files = files
        self._before = 0
        self._reading: IO[bytes] | None = None

    @property
    def name(self) -> str:
        """The identity of the source, the same in every run."""
        return "\n".join(
            file if file == STANDARD_INPUT else str(Path(file).resolve()) for file in self._files
        )

    @property
    def total(self) -> int | None:
        """The last position; None if it is unknown."""
        if STANDARD_INPUT in self._files:
            return None
        return sum(Path(file).stat().st_size for file in self._files)

    @property
    def position(self) -> int:
        """The position up to which it has been read."""
        return self._before + (0 if self._reading is None else self._reading.tell())

    def entries(self) -> Generator[SourceEntry, None, None]:
        """Every entry. Raises CommandError if the source cannot be read."""
        for file in self._files:
            if file == STANDARD_INPUT:
                yield from _numbered("standard input", sys.stdin.buffer)
                continue
            with Path(file).open("rb", buffering=_BUFFER_BYTES) as self._reading:
                unpacked = gzip.GzipFile(fileobj=self._reading) if file.endswith(".gz") else self._reading
                try:
                    yield from _numbered(file, unpacked)
                finally:
                    self._before, self._reading = self.position, None


def _numbered(name: str, lines: IO[bytes] | gzip.GzipFile) -> Generator[SourceEntry, None, None]:
    number = 0
    try:
        for number, line in enumerate(lines_of(lines), 1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            yield SourceEntry(f"{name}:{number}", content, None)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"{name} cannot be read after line {number} ({reason})", "Fix the file") from None


class Sample:
    """The items that the `sample` function of a model makes from command-line options."""

    total = None
    """The last position is unknown."""

    def __init__(self, name: str, model: Model, options: Sequence[str]) -> None:
        """`options` are command-line words. Raises CommandError for options that the function does not take."""
        found = _sample_model(name, model)
        if found.sample is None:
            raise CommandError(
                f"the module {found.module.__name__} has no function named sample",
                "Name a module that has one: --sample module.name",
            )
        self._sample = found.sample
        self._described = f"sample {name}"
        self._options = _read_options(self._described, _offered(self._sample), options)
        self.position = 0
        """How many items were made."""
        self._module = found.module.__name__

    @property
    def name(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in sorted(self._options.items()))
        return f"sample {self._module} {options}"

    def entries(self) -> Generator[SourceEntry, None, None]:
        try:
            for item in self._sample(**self._options):
                self.position += 1
                yield SourceEntry(f"{self._described}, item {self.position}", repr(item).encode(), item)
        except ValueError as error:
            raise CommandError(f"{self._described}: {error}", "Use other numbers") from None


Source: TypeAlias = Lines | Sample
"""Entries in a fixed order."""


def _sample_model(name: str, model: Model) -> Model:
    """The served model if it has that name, else the module, else the example of that name."""
    if name in (model.module.__name__, model.module.__name__.rpartition(".")[2]):
        return model
    if "." in name:
        return load_model(name)
    if name not in example_names():
        examples = [each for each in example_names() if load_model(f"keygraph_examples.{each}").sample]
        fix = f"Choose {' or '.join(examples)}, or name a module: --sample module.name"
        raise CommandError(f"there is no example {name}", fix)
    return load_model(f"keygraph_examples.{name}")


def _offered(sample: Any) -> dict[str, bool]:
    """The integer parameters of the function, and whether each is required."""
    return {
        name: parameter.default is parameter.empty
        for name, parameter in inspect.signature(sample).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and (parameter.annotation in (int, "int") or type(parameter.default) is int)
    }


def _read_options(source: str, offered: Mapping[str, bool], words: Sequence[str]) -> dict[str, int]:
    takes = ", ".join(f"--{name.replace('_', '-')}" for name in offered) or "no options"
    options: dict[str, int] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, has_value, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in offered:
            raise CommandError(f"{source} does not take {option}", f"It takes {takes}")
        if not has_value:
            value = rest.pop(0) if rest else ""
        try:
            options[name] = int(value)
        except ValueError:
            raise CommandError(
                f"{option} {value}".rstrip() + " is not a number", f"Write {option} 1000"
            ) from None
    missing = [name for name, is_required in offered.items() if is_required and name not in options]
    if missing:
        raise CommandError(f"{source} needs --{missing[0].replace('_', '-')}", f"It takes {takes}")
    return options
