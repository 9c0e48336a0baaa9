"""The progress of an interrupted command, kept in a small file until the command is done."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import typer

from keygraph.dynamo.items import base64_text
from keygraph.errors import KeygraphError
from keygraph_server.errors import INTERRUPTED, CommandError
from keygraph_server.jobs.replacing import replacing
from keygraph_server.settings import DATA_FOLDER
from keygraph_server.terminal.output import Advance, progress

Result = TypeVar("Result")

_SAVE_SECONDS = 1.0
"""How often a command saves its progress."""


@dataclass(frozen=True, slots=True)
class LoadPosition:
    """A position in a source; everything before it is in the table."""

    entries: int
    """The number of lines, or of items of a sample."""
    items: int
    digest: str
    """The digest of these entries. It shows whether they are still the same."""
    last: str = ""
    """The typed line of the key of the last item in the table."""


NOWHERE = LoadPosition(0, 0, "")


_MARK = b'{"saved_by":"keygraph"'
"""How the content of each such file begins."""


class StateFile:
    """A file with the state that an interrupted command needs to resume."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def named(cls, folder: str, *names: str) -> StateFile:
        """The file for these names; equal names give the same file."""
        text = "\0".join(names).encode("utf-8", "surrogateescape")  # names of files need not be UTF-8
        name = hashlib.sha256(text).hexdigest()[:16]
        return cls(Path(DATA_FOLDER) / folder / f"{name}.json")

    @classmethod
    def at(cls, path: Path) -> StateFile:
        """The file that a user names. Raises CommandError if it has something else, which would be replaced."""
        try:
            beginning = b""
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise CommandError(f"{path} is not a file", "Name another file")
            if path.exists():
                with path.open("rb") as file:
                    beginning = file.read(len(_MARK))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CommandError(f"{path} cannot be read ({reason})", "Name another file") from None
        if beginning not in (b"", _MARK):
            problem = f"{path} is there, and is not the progress of a Keygraph command"
            raise CommandError(problem, "Name another file")
        return cls(path)

    def read(self) -> Any:
        """The saved content; None if there is no readable file."""
        try:
            return orjson.loads(self.path.read_bytes())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, content: object) -> None:
        """Saves the content, with bytes as base64. The file is replaced atomically, and readable by its owner alone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as new:
            new.write(orjson.dumps({"saved_by": "keygraph", "state": content}, default=base64_text))

    def clear(self) -> None:
        """Deletes the file: the command is done, or starts over."""
        with suppress(FileNotFoundError, NotADirectoryError):  # also by another run of the same command
            self.path.unlink()


@contextmanager
def interruptible(so_far: Callable[[], str]) -> Iterator[None]:
    """If the work of a command is interrupted, says what was done so far, and raises Exit."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"keygraph: interrupted. {so_far()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def finished(work: Coroutine[Any, Any, Result], so_far: Callable[[], str]) -> Result:
    """What the work of a command gives, which is interruptible."""
    with interruptible(so_far):
        return asyncio.run(work)


class CannotResumeError(CommandError):
    """What a command works on has changed since it was interrupted."""


class SavedProgress:
    """The progress of a running command: saved every second, and when it is interrupted."""

    def __init__(
        self, file: StateFile, job: str, title: str, state: Callable[[], object], so_far: Callable[[], str]
    ) -> None:
        """`state` returns what is saved, None while there is nothing yet; `so_far` is how to continue."""
        self.file = file
        self._job = job
        self._title = title
        self.is_kept = True
        """Whether it could be saved."""
        self._state = state
        self._so_far = so_far
        self._saved = time.monotonic()

    def resume(self, take: Callable[[Any], None]) -> None:
        """Lets `take` continue from what was saved, if anything was. Raises CommandError if that is of another job, by
        which `take` raises KeyError, TypeError or ValueError."""
        kept = self.file.read()
        if kept is None:
            typer.echo(f"Found no interrupted {self._job} to resume. {self._title} from the start.", err=True)
            return
        try:
            take(kept)
        except (KeyError, TypeError, ValueError):
            raise CommandError(
                f"{self.file.path} does not belong to a {self._job} of this table with this model and these options",
                "Run it without --resume",
            ) from None

    def _save(self) -> None:
        self._saved = time.monotonic()
        state = self._state()
        if state is not None:
            try:
                self.file.save(state)
            except OSError:
                # Without write permission here, a command still works, but cannot be resumed.
                self.is_kept = False

    @contextmanager
    def running(
        self, total: int | None = None, position: Callable[[], int] | None = None
    ) -> Iterator[Advance]:
        """Shows it, saves it every second and if the block fails, and forgets it otherwise. A CommandError says what was
        done before it."""
        try:
            with progress(self._title, total, position) as advance:

                def advanced(items: int) -> None:
                    advance(items)
                    if time.monotonic() - self._saved >= _SAVE_SECONDS:
                        self._save()

                yield advanced
        except CannotResumeError:
            raise
        except (CommandError, KeygraphError) as error:
            self._save()
            raise CommandError(str(error).removesuffix("."), self._so_far().removesuffix(".")) from None
        except BaseException:
            self._save()
            raise
        self.file.clear()
