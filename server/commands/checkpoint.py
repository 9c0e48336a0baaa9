"""How far an interrupted load has come, kept in a small file until the load is done."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from server.settings import DATA_FOLDER


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


class Checkpoint:
    """The file of one load: of these sources into this table of this store."""

    def __init__(self, store: str, table: str, source: str) -> None:
        name = hashlib.sha256("\0".join((store, table, source)).encode()).hexdigest()[:16]
        self.path = Path(DATA_FOLDER) / "loads" / f"{name}.json"

    def read(self) -> Reached | None:
        """What was reached; None where no such load was interrupted."""
        try:
            return Reached(**orjson.loads(self.path.read_bytes()))
        except (OSError, orjson.JSONDecodeError, TypeError):
            return None

    def save(self, reached: Reached) -> None:
        """Keeps what was reached. Whoever reads the file sees the former or this, never a half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(f".{os.getpid()}.new")
        new.write_bytes(orjson.dumps(asdict(reached)))
        new.replace(self.path)

    def clear(self) -> None:
        """Forgets it: the load is done, or begins anew."""
        if self.path.exists():
            self.path.unlink()
