"""Collects the mistakes of a declaration while it is resolved."""

from __future__ import annotations

from keygraph.errors import Mistake
from keygraph.model.records import RecordType


class Mistakes:
    """The mistakes so far, and the types that one of them has broken: dependent checks are skipped."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []
        self._broken: set[str] = set()

    def add(self, kind: str, where: str, problem: str, mend: str, *, breaks: str | None = None) -> None:
        """Adds a mistake; `breaks` names the type that cannot be used because of it."""
        self.found.append(Mistake(kind, where, problem, mend))
        if breaks is not None:
            self._broken.add(breaks)

    def break_silently(self, record: RecordType) -> None:
        """Leaves out a type that depends on a broken one."""
        self._broken.add(record.name)

    def is_broken(self, record: RecordType) -> bool:
        return record.name in self._broken
