"""The progress of an interrupted command, kept in a small file until the command is done."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from keygraph_server.settings import DATA_FOLDER

SAVE_SECONDS = 1.0
"""How often a command saves its progress."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A position in a source; everything before it is in the table."""

    entries: int
    """The number of lines, or of items of a sample."""
    items: int
    digest: str
    """The digest of these entries. It shows whether they are still the same."""
    last: str = ""
    """The typed line of the last item in the table."""


class StateFile:
    """A file with the state that an interrupted command needs to resume."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def named(cls, folder: str, *names: str) -> StateFile:
        """The file for these names; equal names give the same file."""
        name = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
        return cls(Path(DATA_FOLDER) / folder / f"{name}.json")

    def read(self) -> Any:
        """The saved content; None if there is no readable file."""
        try:
            return orjson.loads(self.path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None

    def save(self, content: object) -> None:
        """Saves the content, with bytes as base64. The file is replaced atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(f".{os.getpid()}.new")
        new.write_bytes(orjson.dumps(content, default=_base64))
        new.replace(self.path)

    def clear(self) -> None:
        """Deletes the file: the command is done, or starts over."""
        if self.path.exists():
            self.path.unlink()


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a value of type {type(value).__name__}")


class Checkpoint:
    """The progress of one load: from these sources into this table of this store."""

    def __init__(self, store: str, table: str, source: str) -> None:
        self._file = StateFile.named("loads", store, table, source)

    def read(self) -> Reached | None:
        """The position that was reached; None if no such load was interrupted."""
        try:
            return Reached(**self._file.read())
        except TypeError:
            return None

    def save(self, reached: Reached) -> None:
        """Saves the position."""
        self._file.save(asdict(reached))

    def clear(self) -> None:
        """Deletes the file: the load is done, or starts over."""
        self._file.clear()
