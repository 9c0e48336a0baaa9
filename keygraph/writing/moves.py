"""The steps that give records another key."""

from __future__ import annotations

from collections.abc import Sequence

from keygraph.dynamo import actions
from keygraph.dynamo.conditions import And, Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.model.record_keys import Texts
from keygraph.writing.changes import ChangeSteps
from keygraph.writing.ground import Made, Stored
from keygraph.writing.items import Refusals, Replaced
from keygraph.writing.marks import MARK
from keygraph.writing.presence import after_changes, is_unchanged
from keygraph.writing.requests import Change, Done, Move
from keygraph.writing.rules import (
    check_rules,
    names_given,
)
from keygraph.writing.step import TransactionStep


class MoveSteps(ChangeSteps):
    """Makes the steps of moves."""

    def _moved(self, request: Move, stored: Stored, refusals: Refusals) -> Made:
        record, maker = request.record, self.maker(request.record)
        change, changes = self._move(request, refusals)
        key, old = self.place(request, stored, refusals)
        if refusals.found or old is None:
            return [], Done(record, request.identity, None)
        attributes = after_changes(maker.without_own_keys(old), changes)
        replaced = Replaced(old, frozenset(self.changed_names(request)))
        made, identity = maker.with_keys(attributes, request.to, refusals, replaced=replaced)
        if refusals.found:
            return [], Done(record, identity, None)
        check_rules(maker, made, request.to, refusals)
        if self.access is not None:
            names = names_given(request)
            self.access.check_new(maker, identity or (), made, "move", names, request.to, refusals)
        in_keys_alone = attributes.keys() - old.keys() - {change.path[0] for change in changes}
        new = {name: value for name, value in made.items() if name not in {MARK, *in_keys_alone}}
        declared = {path[0] for path in maker.paths((*record.fields, *record.ends))}
        read = (declared | old.keys()) - {MARK, *(key.name for key in self._graph.table.keys)}
        same = [is_unchanged((name,), old) for name in sorted(read)]
        steps = [
            *self._moving(request, key, new, identity, same, refusals, old),
            *self._partner_changed(change, old, new, stored, refusals),
        ]
        given = {named.name for named, _ in self._given_ends(request, stored)}
        checks = [*self._checks(request, stored, refusals), *self._unmarked(record, new, given)]
        return [*steps, *checks], Done(record, identity, new)

    def _move(self, request: Move, refusals: Refusals) -> tuple[Change, list[actions.AttributeChange]]:
        """Returns what a move changes. Refuses fields that are not in the key."""
        record = request.record
        change = Change(record, request.identity, request.values, where=request.to)
        for name in sorted({*names_given(change)} - self._told_by_key(record)):
            problem, shown = f" is no part of the key of {record.name}.", self.maker(record).shown(name)
            refusals.add((*request.to, shown), shown, problem)
        return change, self._changes(change, refusals)

    def _moving(
        self,
        request: Move,
        key: Key,
        new: Item,
        identity: Texts,
        same: Sequence[Condition],
        refusals: Refusals,
        old: Item | None = None,
    ) -> list[TransactionStep]:
        """Returns the steps that put the item under its new key, and delete the old one if it is as it was read."""
        record = request.record
        if identity == request.identity:
            refusals.add(request.to, f"The key of this {record.name} would stay the same.")
        exists, free = self._taken(record, request.to), self._presence.is_free(record)
        absent = [other for other in self._graph.table_keys(record, identity) if other != self._key_of(new)]
        guard = self.guard(request, old, refusals)
        delete = actions.DeleteItem(key, And((*self.conditions(request, guard), *same)))
        return [
            TransactionStep(actions.PutItem(new, free), exists),
            *(TransactionStep(actions.CheckItem(other, free), exists) for other in absent),
            TransactionStep(delete, self.refused(request, guard), before=old),
        ]
