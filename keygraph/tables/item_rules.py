"""Checks that items keep the rules of their types (`check=`), alone or combined with the stored items."""

from __future__ import annotations

from collections.abc import Iterator

from keygraph.dynamo.actions import SetTo
from keygraph.dynamo.conditions import Condition, Exists, Not, Or, holds
from keygraph.dynamo.expressions import simplified
from keygraph.dynamo.foreseen import NEVER, before
from keygraph.dynamo.items import Item
from keygraph.errors import ConditionFailed
from keygraph.graph import Graph


class ItemRules:
    """The rules of a graph's types, checked for items that are put into the table."""

    def __init__(self, graph: Graph, *, is_merged: bool) -> None:
        """`is_merged`: an item in the table keeps the attributes that a new one lacks."""
        self._graph = graph
        self._is_merged = is_merged
        self._is_new = Not(Exists((graph.table.partition.name,)))

    def refusal(self, item: Item) -> str | None:
        """Returns the rule that the item breaks whatever the table holds; None if there is none."""
        return next((told for condition, told in self._asked(item) if condition == NEVER), None)

    def conditions(self, item: Item) -> list[Condition]:
        """Conditions on the item in the table."""
        return [condition for condition, _ in self._asked(item)]

    def broken(self, item: Item, failed: ConditionFailed) -> str:
        """Returns the rule that the item would break, combined with the stored one."""
        there = failed.item or {}
        return next(
            (told for condition, told in self._asked(item) if not holds(condition, there)), str(failed)
        )

    def _asked(self, item: Item) -> Iterator[tuple[Condition, str]]:
        record = self._graph.recognise(item)
        if record is None or not record.rules:
            return
        whole = record.completed(item)
        changes = [SetTo((name,), value) for name, value in whole.items()]
        for rule in record.rules:
            told = f"it breaks a rule of {record.name}: {rule.message}"
            is_kept = holds(rule.condition, whole)
            if not self._is_merged:
                if not is_kept:
                    yield NEVER, told
                continue
            condition = simplified(before(rule.condition, changes))
            if condition is False:
                yield NEVER, told
            elif not isinstance(condition, bool):
                yield (Or((self._is_new, condition)) if is_kept else condition), told
