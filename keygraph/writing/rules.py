"""The rules of a model on what is written: refused at once where the input decides, else by a condition of the transaction.

A rule is about the record as it is after the write. Of a change it becomes a condition on the item as it is before, so that
whatever others write meanwhile, the rule is kept. Rules of fields that a change does not touch are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from keygraph.dynamo.actions import AttributeChange
from keygraph.dynamo.conditions import Condition, holds
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import before
from keygraph.dynamo.items import Item
from keygraph.errors import InputPath, Refusal
from keygraph.model.records import RecordType
from keygraph.model.write_rules import WriteRule
from keygraph.writing.items import ItemMaker, Refusals


class Foreseen(NamedTuple):
    """A condition on what is there, and what is told where it does not hold."""

    condition: Condition
    refusal: Refusal


def rules_of(record: RecordType, names: Iterable[str]) -> list[WriteRule]:
    """The rules that are about one of these fields."""
    changed = {*names}
    return [rule for rule in record.rules if not changed.isdisjoint(rule.names)]


def told_in_keys(record: RecordType, names: Iterable[str]) -> list[str]:
    """The fields that rules of these are about besides, and that an item may have in a key alone."""
    changed = {*names}
    others = dict.fromkeys(name for rule in rules_of(record, changed) for name in rule.names)
    in_keys = record.attributes_in_keys
    return [name for name in others if name not in changed and record.fields[name].attribute[0] in in_keys]


def check_rules(maker: ItemMaker, item: Item, where: InputPath, refusals: Refusals) -> None:
    """Refuses an item that breaks a rule."""
    if maker.record.rules and not refusals.found:
        whole = maker.record.completed(item)
        broken = [rule for rule in maker.record.rules if not holds(rule.condition, whole)]
        refusals.found += [_refusal(maker, rule, where, "BAD_USER_INPUT") for rule in broken]


def foreseen_rules(
    maker: ItemMaker,
    names: Iterable[str],
    changes: Sequence[AttributeChange],
    where: InputPath,
    refusals: Refusals,
) -> list[Foreseen]:
    """What has to hold of the item that is changed so that the rules hold afterwards. Refuses what breaks one anyway."""
    found = []
    for rule in rules_of(maker.record, names):
        condition = simplified(before(rule.condition, changes))
        if condition is False:
            refusals.found.append(_refusal(maker, rule, where, "BAD_USER_INPUT"))
        elif not isinstance(condition, bool):
            found.append(Foreseen(condition, _refusal(maker, rule, where, "CONFLICT")))
    return found


def broken_rule(foreseen: Sequence[Foreseen]) -> Callable[[Item | None], Refusal | None]:
    """What is told of an item that the rules keep from being changed; None where they do not."""

    def refusal(item: Item | None) -> Refusal | None:
        there = item or {}
        return next((each.refusal for each in foreseen if not holds(each.condition, there)), None)

    return refusal


def _refusal(maker: ItemMaker, rule: WriteRule, where: InputPath, code: str) -> Refusal:
    path = (*where, maker.shown(rule.names[0])) if len(rule.names) == 1 else where
    return Refusal(code, (rule.message,), path)
