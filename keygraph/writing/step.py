"""One step of a transaction: an action of the store, and the refusal if its condition fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.actions import Action, key_of
from keygraph.dynamo.conditions import And, Between, Condition, Exists, Not, Path, at_path, holds
from keygraph.dynamo.items import Item, Value, exact_sum, number
from keygraph.dynamo.table import Key, Table
from keygraph.dynamo.value import value
from keygraph.errors import FieldName, InputPath, Refusal
from keygraph.keys.types import INT_MAX, INT_MIN
from keygraph.model.fields import Field
from keygraph.writing.items import Refusals
from keygraph.writing.marks import ADDED, UNMARKED, is_marked


@value(frozen=True, slots=True)
class Addition:
    """An amount that a write adds to a number of a node whose list has its item."""

    keys: tuple[Key, ...]
    """The possible keys of the node."""
    field: Field
    """The field of the node that has the number."""
    path: Path
    """The attribute that holds it."""
    amount: Decimal
    there: Condition
    """The condition that the node exists."""
    replaced: tuple[Value, Value] | None = None
    """What an item had at its place in a list and has now (None: nothing there), if the node keeps a value of the first
    or last item."""
    is_unknown: bool = False
    """Whether the node was read and has no such number, or is missing: then only a put is added to."""
    is_of_shard: bool = False
    """Whether it is added to a shard that stands for the node. A number that a shard lacks is 0."""


@value(frozen=True, slots=True)
class TransactionStep:
    """One action of a transaction."""

    action: Action
    refusal: Callable[[Item | None], Refusal | None]
    """Returns the refusal for the stored item if the condition fails. None: somebody was faster, so try again."""
    is_check: bool = False
    """Whether it only checks that the item exists, which another step for the same item implies."""
    of_types: Condition | None = None
    """What a node must be that another step of the transaction writes, if this only checks it: it exists, of a type that is
    allowed there, and may be named. Whether the viewer sees it does not matter then."""
    is_rule: bool = False
    """Whether it only checks that an item is as it was when it decided who may write; another step may write it."""
    is_partner: bool = False
    """Whether it is for the other item of an edge."""
    before: Item | None = None
    """The item that it replaces, changes or deletes, if that was read."""
    additions: tuple[Addition, ...] = ()
    """What it adds to nodes."""
    replaced: tuple[Addition, ...] = ()
    """The items of lists that other steps replace, of which the node keeps a value of the first or last."""
    is_added_to: bool = False
    """Whether it adds to a node. If that fails, the node is read before another try."""

    def on_condition(self, *conditions: Condition) -> TransactionStep:
        own = self.action.condition
        joined = And((*([] if own is None else [own]), *conditions))
        return replace(self, action=replace(self.action, condition=joined))


# --- What a failed condition means ----------------------------------------------------------------------


def again(item: Item | None) -> None:
    """The refusal when somebody was faster: none, so the write is tried again."""


def _again_unless(
    step: TransactionStep, conditions: Sequence[Condition]
) -> Callable[[Item | None], Refusal | None]:
    """Returns the refusal of a step with added conditions; none if the stored item does not meet one of those."""
    return lambda item: (
        None if item and not all(holds(each, item) for each in conditions) else step.refusal(item)
    )


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
    rules: list[tuple[Key, TransactionStep]] = []
    for where, step in steps:
        key = key_of(step.action, table)
        if step.is_rule:
            rules.append((key, step))
            continue
        there = found.setdefault(key, step)
        if step.is_check:
            known = checks.setdefault(key, step)
            if known.action.condition != step.action.condition:
                checks[key] = of_both = _both(known, step)
                found[key] = of_both if there is known else there
        elif there.is_check or there is step:
            found[key], places[key] = step, where
        else:
            both = [*_place(places[key]), " and ", *_place(where)] if where != places[key] else ["Two parts"]
            refusals.add(where, *both, " write the same item: change it in one place.")
    for key, check in checks.items():
        if not found[key].is_check:
            found[key] = _joined(found[key], check, refusals)
    additions = [(places[key], each) for key, step in found.items() for each in step.additions]
    if additions:
        _add(found, additions, refusals)
    for key, rule in rules:
        before, condition = found.get(key), rule.action.condition
        if before is None:
            found[key] = rule
        elif condition is not None and before.action.condition != condition:
            joined = before.on_condition(condition)
            found[key] = replace(joined, refusal=_again_unless(before, [condition]))
    return [*found.values()]


def _place(path: InputPath) -> list[str]:
    """Returns a place in the input as parts of a message: `input.items.0`."""
    steps = [step if isinstance(step, str) else str(step) for step in path]
    return [part for step in steps for part in (".", step)][1:]


def _both(one: TransactionStep, other: TransactionStep) -> TransactionStep:
    """Returns one check for two of an item, such as a node that two ends name which allow different types."""
    first, second = one.action.condition, other.action.condition
    if first is None or second is None:
        return other if first is None else one

    def refusal(item: Item | None) -> Refusal | None:
        return (other if item is not None and holds(first, item) else one).refusal(item)

    types = [each.of_types for each in (one, other) if each.of_types is not None]
    return replace(one.on_condition(second), refusal=refusal, of_types=And(tuple(types)) if types else None)


def _joined(step: TransactionStep, check: TransactionStep, refusals: Refusals) -> TransactionStep:
    """Returns the step of a checked node, on condition that it may be named. Refuses one that deletes the node, or that
    writes one of a type that is not allowed there."""
    required = UNMARKED if check.of_types is None else check.of_types
    match step.action:
        case actions.UpdateItem() | actions.CheckItem():

            def refusal(item: Item | None) -> Refusal | None:
                is_other = item is not None and not is_marked(item) and not holds(required, item)
                return check.refusal(None) if is_other else step.refusal(item)

            known = _parts(step.action.condition)
            conditions = [each for each in _parts(required) if each not in known]
            return replace(step.on_condition(*conditions), refusal=refusal)
        case actions.PutItem(made) if holds(required, made):
            return step
    refused = check.refusal(None)
    refusals.found += [refused] if refused else []
    return step


def _parts(condition: Condition | None) -> Sequence[Condition]:
    if condition is None:
        return ()
    return condition.conditions if isinstance(condition, And) else (condition,)


# --- What is added to nodes -----------------------------------------------------------------------------


def _add(
    found: dict[Key, TransactionStep], additions: Iterable[tuple[InputPath, Addition]], refusals: Refusals
) -> None:
    """Makes the steps of nodes add what other steps add to them."""
    of_nodes: defaultdict[Key, list[tuple[InputPath, Addition]]] = defaultdict(list)
    for where, each in additions:
        of_nodes[next((key for key in each.keys if key in found), each.keys[0])].append((where, each))
    for key, several in of_nodes.items():
        step = _with_sums(key, found.get(key), [*_sums(several, refusals)], refusals)
        if step is not None:
            of_ends = [each for _, each in several if each.replaced is not None]
            found[key] = replace(step, replaced=(*step.replaced, *of_ends)) if of_ends else step
    for key, step in found.items():
        if step.additions:
            found[key] = replace(step, additions=())


class _Sum(NamedTuple):
    """What is added to one number of a node."""

    change: actions.AddNumber
    there: Condition
    is_unknown: bool
    fits: Condition
    """The condition that the node has the number, and can still be read when the sum is added."""
    refusal: Refusal


def _sums(additions: Iterable[tuple[InputPath, Addition]], refusals: Refusals) -> Iterator[_Sum]:
    of_paths: defaultdict[Path, list[tuple[InputPath, Addition]]] = defaultdict(list)
    for where, each in additions:
        of_paths[each.path].append((where, each))
    for path, several in of_paths.items():
        amount = exact_sum(each.amount for _, each in several)
        where, last = several[-1]
        field = last.field
        if not amount:
            continue
        try:
            number(amount)
        except ValueError as error:
            refusals.add(where, "The difference in ", FieldName(field.name), f" is {error}.")
        fits: Condition = last.there if last.is_of_shard else Exists(path)
        if field.kept == "sum" and field.type.kind == "int" and not last.is_of_shard:
            low, high = (exact_sum((Decimal(end), amount.copy_negate())) for end in (INT_MIN, INT_MAX))
            fits = Between(path, low, high)
        problem = (FieldName(field.name), " would be an integer of more than 32 bits.")
        refusal = Refusal(Code.BAD_USER_INPUT, problem, where)
        yield _Sum(actions.AddNumber(path, amount), last.there, last.is_unknown, fits, refusal)


def _with_sums(
    key: Key, step: TransactionStep | None, sums: Sequence[_Sum], refusals: Refusals
) -> TransactionStep | None:
    """Returns the step of a node, or a new one, with what is added to the node."""

    def too_much(item: Item | None) -> Refusal | None:
        has_number = (each for each in sums if at_path(item or {}, each.change.path) is not None)
        return next((each.refusal for each in has_number if not holds(each.fits, item or {})), None)

    match step and step.action:
        case actions.PutItem(item) as put if step is not None:
            refusal = too_much(item)
            refusals.found += [refusal] if refusal else []
            changes = [each.change for each in sums if at_path(item, each.change.path) is not None]
            return replace(step, action=replace(put, item=actions.changed(item, changes), size=None))
        case actions.DeleteItem():
            return step
    conditions = [
        Not(And((each.there, Exists(each.change.path))))
        if each.is_unknown
        else each.fits
        if step is not None or each.fits is each.there
        else And((each.there, each.fits))
        for each in sums
    ]
    known = _parts(None if step is None else step.action.condition)
    conditions = [each for each in dict.fromkeys(conditions) if each not in known]
    changes = [each.change for each in sums if not each.is_unknown]
    changes += [actions.AddNumber((ADDED,), Decimal(1))] if changes else []
    if not sums:
        return step
    if step is None:
        whole = And(tuple(conditions))
        action = actions.UpdateItem(key, tuple(changes), whole) if changes else actions.CheckItem(key, whole)
        return TransactionStep(action, too_much, is_added_to=True)
    made = step.on_condition(*conditions) if conditions else step
    if changes:
        own = step.action.changes if isinstance(step.action, actions.UpdateItem) else ()
        made = replace(made, action=actions.UpdateItem(key, _summed((*own, *changes)), made.action.condition))
    required = step.action.condition

    def refusal_of(item: Item | None) -> Refusal | None:
        # What is added to a node that the viewer does not see says nothing about it.
        is_met = item is not None and (required is None or holds(required, item))
        return too_much(item) if is_met else step.refusal(item)

    return replace(
        made,
        refusal=refusal_of,
        is_check=step.is_check and not changes,
        is_added_to=True,
    )


def _summed(changes: Iterable[actions.AttributeChange]) -> tuple[actions.AttributeChange, ...]:
    """Returns the changes, with additions to the same number combined."""
    found: dict[Path, actions.AttributeChange] = {}
    for change in changes:
        before = found.get(change.path)
        if isinstance(before, actions.AddNumber) and isinstance(change, actions.AddNumber):
            change = actions.AddNumber(change.path, exact_sum((before.amount, change.amount)))
        found[change.path] = change
    return tuple(found.values())
