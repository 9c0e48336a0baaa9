"""The schema fields at the places of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.schema.field_kinds import Edges, FarNode, Nodes
from keygraph_resolvers.steps.selection import SelectedField, Selection


def field_at(plan: Plan, place: str) -> str | None:
    """The schema coordinate of a place: `User.orders` for `friend.orders`. None if the plan has no such place."""
    selections: tuple[Selection, ...] = (plan.root,)
    found: SelectedField | None = None
    for key in place.split("."):
        fields = (each for selection in selections for each in _with_places(selection))
        found = next((each for each in fields if each.key == key), None)
        if found is None:
            return None
        selections = tuple(found.below.values())
    return None if found is None else f"{found.owner.name}.{found.name}"


def _with_places(selection: Selection) -> Iterator[SelectedField]:
    """The fields whose keys are part of places. Those of a connection's page are in between."""
    for each in selection.fields:
        if isinstance(each.kind, Edges | Nodes | FarNode):
            for below in each.below.values():
                yield from _with_places(below)
        else:
            yield each
