"""What runs of a plan were estimated to cost lately, so that a small operation is not longer estimated than read.

An estimate depends on the plan, on how much is asked for, and on what was learned of the table, which changes slowly:
so it holds for some runs of the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keygraph_resolvers.plan.arguments import Arguments
from keygraph_resolvers.plan.plan import Plan
from keygraph_resolvers.schema.meanings import ListOf, NodesByIds, OnlyOf

_KEPT = 64
"""How many estimates one plan keeps, each for another size."""
_USES = 50
"""How many runs one estimate is good for."""


@dataclass(slots=True)
class _Late:
    read_units: float
    uses: int = 0


class LateEstimates:
    """Those of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._variables = _sized_by(plan)
        self._kept: dict[tuple[str, ...], _Late] = {}

    def read_units(self, arguments: Arguments, estimate: Callable[[], float]) -> float:
        """The read units of a run with these arguments; `estimate` says them where nobody knows."""
        size = arguments.texts_of(self._variables)
        known = self._kept.get(size)
        if known is None or known.uses >= _USES:
            self._kept.pop(size, None)
            if len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            known = self._kept[size] = _Late(estimate())
        known.uses += 1
        return known.read_units


def _sized_by(plan: Plan) -> tuple[str, ...]:
    """The variables that say how much is read: those in the arguments of lists, and the ids of nodes."""
    return tuple(
        {
            name: None
            for each in plan.objects
            for field in each.having(ListOf, OnlyOf, NodesByIds)
            for name in field.variables
        }
    )
