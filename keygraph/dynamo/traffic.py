"""Counts of the requests that a store has sent and of their outcomes, for monitoring while it runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from keygraph.dynamo.store import Store


@dataclass(slots=True)
class Traffic:
    """The requests of a store since it was opened."""

    sent: Counter[str] = field(default_factory=Counter)
    """Every attempt, by operation."""
    retried: int = 0
    throttled: int = 0
    failed: int = 0
    """Attempts without an answer, or with a server error, except those that were throttled."""
    refused: int = 0
    """Requests that were not sent, because of an outage."""
    under_way: int = 0
    """How many requests are sent and not answered at the moment."""
    waiting: int = 0
    """How many requests wait for answers to others before they are sent."""
    outages: int = 0
    outage: str | None = None
    """Why nothing is sent at the moment; None if requests are sent."""


def traffic_of(store: Store) -> Traffic | None:
    """Returns the counts of a store; None for one that sends no requests."""
    found: Traffic | None = getattr(store, "traffic", None)
    return found


def outage_of(store: Store) -> str | None:
    """Returns why a store answers nothing at the moment; None if it answers, or if that is not known."""
    found: str | None = getattr(traffic_of(store) or store, "outage", None)
    return found
