"""How far an interrupted command has come, kept in a small file until it is done."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from keygraph_server.settings import DATA_FOLDER


@dataclass(frozen=True, slots=True)
class Reached:
    """A place in a source up to which everything is in the table."""

    entries: int
    """How many lines, or items of a sample."""
    items: int
    digest: str
    """Of the content of those entries: what tells whether they are still the same."""
    last: str = ""
    """The typed line of the last item, which the table has."""


class StateFile:
    """A file with what an interrupted command needs to go on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def named(cls, folder: str, *names: str) -> StateFile:
        """The file of the command with these names, of which the same make the same file."""
        name = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
        return cls(Path(DATA_FOLDER) / folder / f"{name}.json")

    def read(self) -> Any:
        """What was kept; None where there is nothing that can be read."""
        try:
            return orjson.loads(self.path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None

    def save(self, content: object) -> None:
        """Keeps the content, with bytes as base64. Whoever reads the file sees the former or this, never a half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(f".{os.getpid()}.new")
        new.write_bytes(orjson.dumps(content, default=_base64))
        new.replace(self.path)

    def clear(self) -> None:
        """Forgets it: the command is done, or begins anew."""
        if self.path.exists():
            self.path.unlink()


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a value of type {type(value).__name__}")


class Checkpoint:
    """How far one load has come: of these sources into this table of this store."""

    def __init__(self, store: str, table: str, source: str) -> None:
        self._file = StateFile.named("loads", store, table, source)

    def read(self) -> Reached | None:
        """What was reached; None where no such load was interrupted."""
        try:
            return Reached(**self._file.read())
        except TypeError:
            return None

    def save(self, reached: Reached) -> None:
        """Keeps what was reached."""
        self._file.save(asdict(reached))

    def clear(self) -> None:
        """Forgets it: the load is done, or begins anew."""
        self._file.clear()
