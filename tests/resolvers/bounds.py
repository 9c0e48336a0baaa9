"""Whether the bound is one: random operations on random tables, what each may cost at most and what it did cost.

`python -m tests.resolvers.bounds 5000` asks so many operations of each model's random tables and names those that
took more requests, round trips, items or read units than their bound, or sent what explain does not show; `--seed` begins with another one, `--model` takes one model alone.

The models of `tests.resolvers.differential`, but for the one whose methods read by themselves, which nobody can foresee;
and with items that are declared, since others may stand in any range.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from keygraph_resolvers import OperationRequest
from keygraph_resolvers.plan.explained import sent_requests
from tests.resolvers.differential import MODELS, Served, served
from tests.resolvers.made_operations import Choose, Maker
from tests.resolvers.many_operations import main

BOUNDED = tuple(name for name in MODELS if name != "methodical")
_AT_A_PLACE = ("requests", "roundTrips")
"""What holds at each place. The items and units of a BatchGetItem are shared out to its places by their keys."""
_IN_ALL = (*_AT_A_PLACE, "items", "readUnits")


async def exceeded(world: Served, choose: Choose) -> list[str]:
    """In what a random operation, and the same with cursors of its own answer, cost more than their bound."""
    operation = Maker(world.schema, world.words, choose).operation()
    variables: Mapping[str, Any] | None = operation.variables
    found: list[str] = []
    for _ in range(3):
        if variables is None:
            break
        answer = await world.planned.execute(OperationRequest(operation.document, variables, with_cost=True))
        cost = answer.get("extensions", {}).get("cost")
        if cost is None:
            break  # it was not executed
        for place, told in {"": cost, **cost["byPath"]}.items():
            if told["actual"] and told["bound"] is None:
                if told["actual"]["requests"]:
                    found.append(f"{place or 'in all'}: {told['actual']} was not foreseen")
            elif told["actual"]:
                found += [
                    f"{place or 'in all'}: {told['actual'][name]} {name}, at most {told['bound'][name]}"
                    for name in (_AT_A_PLACE if place else _IN_ALL)
                    if told["actual"][name] > told["bound"][name]
                ]
        sent = [(each["operation"], place) for each in cost["requests"] for place in each["paths"]]
        steps = world.planned.explain(operation.document, variables).steps
        described = {(each.target[:5], place) for each in sent_requests(steps) for place in each.places}
        # A Query with several parts may not reach one of them, which is then looked up by its key.
        described |= {("GetIt", place) for _, place in described} | {
            ("Batch", place) for _, place in described
        }
        found += [
            f"{place}: {each} is not explained" for each, place in sent if (each[:5], place) not in described
        ]
        if found:
            asked = f"{operation.document}\nvariables {json.dumps(variables)}"
            requests = "\n".join(f"  {each}" for each in cost["requests"])
            return [f"on {world.name}: {'; '.join(found)}\n{asked}\n{requests}"]
        variables = operation.changed(answer, choose)
    return found


async def run(wanted: int, seed: int, names: Sequence[str], tell: Callable[[str], None]) -> list[str]:
    """Asks that many operations in all, and gives what was found."""
    found: list[str] = []
    asked = 0
    with tempfile.TemporaryDirectory() as folder:
        while asked < wanted:
            # Every third table is one in order.
            name, turn = names[seed % len(names)], 3 * seed
            async with served(name, turn, Path(folder)) as world:
                for number in range(40):
                    for each in await exceeded(world, Random(f"{turn}/{number}").randrange):
                        found.append(f"[{turn}/{number}] {each}")
                        tell(found[-1])
                    asked += 1
            seed += 1
    tell(f"{asked} operations, {len(found)} above their bound")
    return found


if __name__ == "__main__":
    main(__doc__, BOUNDED, run)
