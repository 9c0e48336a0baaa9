"""One step of a transaction: an action of the store, and the refusal if its condition fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from keygraph.dynamo import actions
from keygraph.dynamo.actions import Action, key_of
from keygraph.dynamo.conditions import And, Condition, Exists, Not, Path, at_path, holds, put_at_path
from keygraph.dynamo.items import Item, exact_sum, number
from keygraph.dynamo.table import Key, Table
from keygraph.dynamo.value import value
from keygraph.errors import InputPath, Refusal
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED, is_marked
from keygraph.writing.presence import NamedEnd


@value(frozen=True, slots=True)
class Addition:
    """An amount that a write adds to a number of a node whose list has its item."""

    keys: tuple[Key, ...]
    """The possible keys of the node."""
    path: Path
    amount: Decimal
    there: Condition
    """The condition that the node exists."""
    is_unknown: bool = False
    """Whether the node was read and has no such number, or is missing: then only a put is added to."""


@value(frozen=True, slots=True)
class TransactionStep:
    """One action of a transaction."""

    action: Action
    refusal: Callable[[Item | None], Refusal | None]
    """Returns the refusal for the stored item if the condition fails. None: somebody was faster, so try again."""
    is_check: bool = False
    """Whether it only checks that the item exists, which another step for the same item implies."""
    is_rule: bool = False
    """Whether it only checks that an item is as it was when it decided who may write; another step may write it."""
    is_partner: bool = False
    """Whether it is for the other item of an edge."""
    before: Item | None = None
    """The item that it replaces, changes or deletes, if that was read."""
    additions: tuple[Addition, ...] = ()
    """What it adds to nodes."""
    is_added_to: bool = False
    """Whether it adds to a node. If that fails, the node is read before another try."""

    def on_condition(self, *conditions: Condition) -> TransactionStep:
        """Returns the step with further conditions."""
        own = self.action.condition
        joined = And((*([] if own is None else [own]), *conditions))
        return replace(self, action=replace(self.action, condition=joined))


# --- What a failed condition means ----------------------------------------------------------------------


def again(item: Item | None) -> None:
    """The refusal when somebody was faster: none, so the write is tried again."""


def lost_or_again(lost: Refusal) -> Callable[[Item | None], Refusal | None]:
    """Returns the refusal for a missing item; none if somebody has changed it."""
    return lambda item: lost if item is None else None


def missing_or_again(named: NamedEnd, where: InputPath, item: Item | None) -> Refusal | None:
    """Returns the refusal for a missing node; None if it has a mark, since it may stay after all."""
    return None if is_marked(item) else named.missing(where)


def _again_unless(
    step: TransactionStep, conditions: Sequence[Condition]
) -> Callable[[Item | None], Refusal | None]:
    """Returns the refusal of a step with added conditions; none if the stored item does not meet one of those."""
    told = step.refusal
    return lambda item: None if item and not all(holds(each, item) for each in conditions) else told(item)


# --- Several steps --------------------------------------------------------------------------------------


def merged(
    steps: Iterable[tuple[InputPath, TransactionStep]], table: Table, refusals: Refusals
) -> list[TransactionStep]:
    """Returns the steps of one transaction, without checks of items that another step writes.

    Each step has the place of its request in the client's input.
    """
    found: dict[Key, TransactionStep] = {}
    places: dict[Key, InputPath] = {}
    checks: dict[Key, TransactionStep] = {}
    asked: list[tuple[Key, TransactionStep]] = []
    for where, step in steps:
        key = key_of(step.action, table)
        if step.is_rule:
            asked.append((key, step))
            continue
        there = found.setdefault(key, step)
        if step.is_check:
            checks.setdefault(key, step)
        elif there.is_check or there is step:
            found[key], places[key] = step, where
        else:
            both = [*_place(places[key]), " and ", *_place(where)] if where != places[key] else ["Two parts"]
            refusals.add(where, *both, " write the same item: change it in one place.")
    for key, check in checks.items():
        if not found[key].is_check:
            found[key] = _joined(found[key], check, refusals)
    additions = [addition for step in found.values() for addition in step.additions]
    if additions:
        _add(found, additions)
    for key, rule in asked:
        before = found.get(key)
        condition = rule.action.condition
        is_new = condition is not None and (before is None or before.action.condition != condition)
        if before is None:
            found[key] = rule
        elif is_new and condition is not None:
            joined = before.on_condition(condition)
            found[key] = replace(joined, refusal=_again_unless(before, [condition]))
    return [*found.values()]


def _place(path: InputPath) -> list[str]:
    """Returns a place in the input as parts of a message: `input.items.0`."""
    steps = [step if isinstance(step, str) else str(step) for step in path]
    return [part for step in steps for part in (".", step)][1:]


def _joined(step: TransactionStep, check: TransactionStep, refusals: Refusals) -> TransactionStep:
    """Returns the step of a checked node with the check's condition. Refuses one that deletes the node."""
    match step.action:
        case actions.DeleteItem():
            refusal = check.refusal(None)
            refusals.found += [refusal] if refusal else []
        case actions.UpdateItem() | actions.CheckItem():
            return step.on_condition(UNMARKED)
    return step


# --- What is added to nodes -----------------------------------------------------------------------------


def _add(found: dict[Key, TransactionStep], additions: Iterable[Addition]) -> None:
    """Makes the steps of nodes add what other steps add to them."""
    of_nodes: defaultdict[Key, list[Addition]] = defaultdict(list)
    for each in additions:
        of_nodes[next((key for key in each.keys if key in found), each.keys[0])].append(each)
    for key, several in of_nodes.items():
        step = _with_sums(key, found.get(key), several)
        if step is not None:
            found[key] = step
    for key, step in found.items():
        if step.additions:
            found[key] = replace(step, additions=())


def _with_sums(
    key: Key, step: TransactionStep | None, additions: Iterable[Addition]
) -> TransactionStep | None:
    """Returns the step of a node, or a new one, with what is added to the node."""
    amounts: defaultdict[Path, list[Decimal]] = defaultdict(list)
    asked: dict[Path, Condition] = {}
    for each in additions:
        amounts[each.path].append(each.amount)
        has = Exists(each.path) if step is not None else And((each.there, Exists(each.path)))
        asked[each.path] = Not(And((each.there, Exists(each.path)))) if each.is_unknown else has
    sums = {path: amount for path, several in amounts.items() if (amount := exact_sum(several))}
    match step and step.action:
        case actions.PutItem(item) as put if step is not None:
            new = dict(item)
            for path, amount in sums.items():
                before = at_path(item, path)
                if isinstance(before, Decimal):
                    put_at_path(new, path, number(exact_sum((before, amount))))
            return replace(step, action=replace(put, item=new, size=None))
        case actions.DeleteItem():
            return step
    conditions = [asked[path] for path in sums]
    changes = [
        actions.AddNumber(path, amount) for path, amount in sums.items() if not isinstance(asked[path], Not)
    ]
    if step is None:
        if not conditions:
            return None
        whole = And(tuple(conditions))
        action = actions.UpdateItem(key, tuple(changes), whole) if changes else actions.CheckItem(key, whole)
        return TransactionStep(action, again, is_added_to=True)
    if not conditions:
        return step
    made = step.on_condition(*conditions)
    if changes:
        own = step.action.changes if isinstance(step.action, actions.UpdateItem) else ()
        made = replace(made, action=actions.UpdateItem(key, _summed((*own, *changes)), made.action.condition))
    told = _again_unless(step, conditions)
    return replace(made, refusal=told, is_check=step.is_check and not changes, is_added_to=True)


def _summed(changes: Iterable[actions.AttributeChange]) -> tuple[actions.AttributeChange, ...]:
    """Returns the changes, with additions to the same number combined."""
    found: dict[Path, actions.AttributeChange] = {}
    for change in changes:
        before = found.get(change.path)
        if isinstance(before, actions.AddNumber) and isinstance(change, actions.AddNumber):
            change = actions.AddNumber(change.path, exact_sum((before.amount, change.amount)))
        found[change.path] = change
    return tuple(found.values())
