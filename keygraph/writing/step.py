"""One step of a transaction: an action of the store, and what is told where its condition fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from keygraph.dynamo import actions
from keygraph.dynamo.actions import Action, key_of
from keygraph.dynamo.conditions import And, Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, Table
from keygraph.dynamo.value import value
from keygraph.errors import InputPath, Refusal
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED, is_marked


@value(frozen=True, slots=True)
class TransactionStep:
    """One action of a transaction."""

    action: Action
    refusal: Callable[[Item | None], Refusal | None]
    """What is told where its condition fails, by the item that is there. None: somebody was faster, so try again."""
    is_check: bool = False
    """Whether it only asks that the item exists, which another step of the same item answers."""
    is_rule: bool = False
    """Whether it only asks that an item is as it was when it was decided who may write so; another step may write it."""
    is_partner: bool = False
    """Whether it is of the other item of an edge."""

    def on_condition(self, *conditions: Condition) -> TransactionStep:
        """The step with further conditions."""
        own = self.action.condition
        joined = And((*([] if own is None else [own]), *conditions))
        return replace(self, action=replace(self.action, condition=joined))


# --- What a failed condition means ----------------------------------------------------------------------


def again(item: Item | None) -> None:
    """Somebody was faster: what was read is not what is there."""


def lost_or_again(lost: Refusal) -> Callable[[Item | None], Refusal | None]:
    """What is told of an item that must be there: nothing where somebody has changed it."""
    return lambda item: lost if item is None else None


def missing_or_again(missing: Callable[[], Refusal], item: Item | None) -> Refusal | None:
    """What is told of a node that must be there: nothing where it has a mark, since it may stay after all."""
    return None if is_marked(item) else missing()


# --- Several steps --------------------------------------------------------------------------------------


def merged(
    steps: Iterable[TransactionStep], table: Table, where: InputPath, refusals: Refusals
) -> list[TransactionStep]:
    """The steps of one transaction: without checks of what another step writes. `where` is that of its input."""
    found: dict[Key, TransactionStep] = {}
    checks: dict[Key, TransactionStep] = {}
    asked: list[tuple[Key, TransactionStep]] = []
    for step in steps:
        key = key_of(step.action, table)
        if step.is_rule:
            asked.append((key, step))
            continue
        there = found.setdefault(key, step)
        if step.is_check:
            checks.setdefault(key, step)
        elif there.is_check:
            found[key] = step
        elif there is not step:
            refusals.add(where, "Two parts of the write are of the same item.")
    for key, check in checks.items():
        if not found[key].is_check:
            found[key] = _joined(found[key], check, refusals)
    for key, rule in asked:
        before = found.get(key)
        condition = rule.action.condition
        is_new = condition is not None and (before is None or before.action.condition != condition)
        if before is None:
            found[key] = rule
        elif is_new and condition is not None:
            found[key] = before.on_condition(condition)
    return [*found.values()]


def _joined(step: TransactionStep, check: TransactionStep, refusals: Refusals) -> TransactionStep:
    """A step of a node that something is joined to, with what the check asks. Refuses one that deletes the node."""
    match step.action:
        case actions.DeleteItem():
            refusal = check.refusal(None)
            refusals.found += [refusal] if refusal else []
        case actions.UpdateItem() | actions.CheckItem():
            return step.on_condition(UNMARKED)
    return step
