"""A rule of a model on what is written: a condition on a record as it is after a write, and its message."""

from __future__ import annotations

from dataclasses import dataclass

from keygraph.dynamo.conditions import Condition


@dataclass(frozen=True, slots=True)
class WriteRule:
    """A rule of one record type."""

    condition: Condition
    names: tuple[str, ...]
    """The fields that it is about."""
    message: str
    """What a client is told."""
