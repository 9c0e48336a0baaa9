"""Visits: the objects of an answer while it is read, with what was found for the fields that lead on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from keygraph_resolvers.plan.field_plans import FieldPlan
from keygraph_resolvers.plan.plan import NeighbourNeeds, ObjectPlan
from keygraph_resolvers.read.connection import Connection, Edge, PageInfo
from keygraph_resolvers.read.meter import ListKind, Origin
from keygraph_resolvers.read.sources import Source
from keygraph_resolvers.schema.meanings import FarNode


@dataclass(slots=True, eq=False)
class Visit:
    """One object of the answer: its plan, its source, and what was found for the fields that lead on."""

    plan: ObjectPlan
    source: Source
    is_missing: bool = False
    """Whether it is a node that was looked for and does not exist."""
    error: Exception | None = None
    """What looking for it gave instead."""
    found: dict[FieldPlan, Any] = field(default_factory=dict)
    """A `Visit`, a `ListVisit`, a list of visits, a value, None; or the exception that there was instead."""


@dataclass(slots=True, eq=False)
class ListVisit:
    """One connection of the answer."""

    page: list[Edge] | Exception | None = None
    info: PageInfo | None = None
    total: int | Exception | None = None
    found: dict[FieldPlan, list[Visit]] = field(default_factory=dict)
    """The edges, or nodes, for each field that shows them."""


@dataclass(slots=True, eq=False)
class BegunList:
    """A list of the answer that is about to be read."""

    selected: FieldPlan
    needs: NeighbourNeeds
    connection: Connection
    visit: Visit
    """The object whose list it is."""
    found: ListVisit | None
    """None for an only neighbour, which is left on the visit."""
    place: str
    kind: ListKind

    def origin(self, round_trip: int) -> Origin:
        """Where its reads in that round trip come from."""
        return Origin((self.place,), round_trip, self.kind)

    def fail(self, error: Exception) -> None:
        """Leaves what reading gave instead of the page."""
        if self.found is None:
            self.visit.found[self.selected] = error
        else:
            self.found.page = error


def place_below(place: str, selected: FieldPlan) -> str:
    """The place of a field: the keys of the answer that lead to it, without what a connection is made of."""
    if isinstance(selected.meaning, FarNode):
        return place
    return f"{place}.{selected.key}" if place else selected.key
