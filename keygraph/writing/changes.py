"""The steps that change or delete records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.actions import (
    SetTo,
    changed,
)
from keygraph.dynamo.conditions import And, Condition, Path, conjunction, put_at_path
from keygraph.dynamo.items import Item
from keygraph.errors import Refusal
from keygraph.model.permissions import as_it_is
from keygraph.model.record_keys import Keys
from keygraph.model.references import EndReference
from keygraph.writing.ends import EndSteps
from keygraph.writing.ground import Made, Stored, named_in
from keygraph.writing.items import Refusals, Replaced
from keygraph.writing.presence import are_as_read, has_version, is_unchanged, within_maps
from keygraph.writing.requests import Change, Delete, Done, WriteRequest, emptied, place_of
from keygraph.writing.rules import (
    UNGUARDED,
    Foreseen,
    broken_rule,
    check_rules,
    foreseen_rules,
    readable_after,
    told_in_keys,
)
from keygraph.writing.step import TransactionStep, again, lost_or_again

_MISSING: Any = object()


class ChangeSteps(EndSteps):
    """Makes the steps of changes and deletes."""

    def _changed(
        self, request: Change, stored: Stored, refusals: Refusals, *, is_upsert: bool = False
    ) -> Made:
        record, where, done = request.record, request.where, Done(request.record, request.identity, None)
        maker = self.maker(record)
        names = named_in(request)
        for name in sorted(names & self._told_by_key(record)):
            mend = f" Use move{record.name}." if "move" in record.writes else ""
            problem = f" is part of the key of {record.name} and cannot be changed.{mend}"
            refusals.add((*place_of(request, name), maker.shown(name)), maker.shown(name), problem)
        changes = self._without_key(request, self._changes(request, refusals), refusals)
        key, old = self.place(request, stored, refusals)
        if refusals.found:
            return [], done
        partner = self._partners.of(record)
        following, relied = self.relied(request)
        changes, are_maps = within_maps(changes, old)
        conditions: list[Condition] = [self._presence.is_there(record), *are_maps]
        others: list[TransactionStep] = []
        rules = self._foreseen(request, changes, old, conditions, refusals)
        readable = readable_after(maker, request, changes, old, refusals)
        conditions += [each.condition for each in readable]
        rules += readable
        guard = UNGUARDED
        if self.access is not None:
            own = request.identity if is_upsert else None
            guard = self.access.guard(maker, request, old, refusals, identity=own, changes=changes)
            conditions += guard.conditions
        if old is not None and (following or partner):
            attributes = changed(maker.without_own_keys(old), changes)
            replaced = Replaced(old, frozenset(self.changed_names(request)))
            new, _ = maker.with_keys(attributes, where, refusals, replaced=replaced)
            # Values that keys hold are not written a second time.
            left_out = attributes.keys() - new.keys()
            changes = [change for change in changes if change.path[0] not in left_out]
            changes += _differences({**old, **attributes}, new, maker.own_keys)
            changes += [actions.Remove((name,)) for name in sorted(left_out & old.keys())]
            # Values of which a key has gone become attributes.
            alone = attributes.keys() - old.keys() - {change.path[0] for change in changes}
            held = record.completed({name: value for name, value in new.items() if name not in alone})
            lost = [name for name in sorted(alone & new.keys()) if held.get(name) != new[name]]
            changes += [SetTo((name,), new[name]) for name in lost]
            others = self._partner_changed(request, old, new, stored, refusals)
        if old is not None:
            conditions += are_as_read(relied, following, old)
            maker.check(changed(old, changes), names, request, refusals)
        version = has_version(request.record, request.version)
        condition = And((*conditions, *version))
        # DynamoDB refuses an update in a transaction that changes nothing.
        update = (
            actions.UpdateItem(key, tuple(changes), condition)
            if changes
            else actions.CheckItem(key, condition)
        )
        # If an upsert finds nothing here, somebody has deleted the record in the meantime.
        may_create = is_upsert and request.version is None
        told, broken = again if may_create else self.refused(request, guard), broken_rule(rules)
        refusal = (lambda item: told(item) or (broken(item) if item else None)) if rules else told
        steps = [TransactionStep(update, refusal, before=old), *others]
        return [*steps, *self._checks(request, stored, refusals)], done

    def _foreseen(
        self,
        request: Change,
        changes: Sequence[actions.AttributeChange],
        old: Item | None,
        conditions: list[Condition],
        refusals: Refusals,
    ) -> list[Foreseen]:
        """Returns what the model's rules require of the stored item, and adds it to the conditions."""
        record, names = request.record, self.changed_names(request)
        if not record.rules:
            return []
        maker, known = self.maker(record), [*changes]
        in_keys = told_in_keys(record, names) if old is not None else []
        if old is not None and in_keys:
            whole = record.completed(old)
            for path in maker.paths(in_keys):
                known.append(as_it_is(whole, path))
            keys = maker.keys_that_follow(in_keys)
            relied = [(key.name,) for each in keys for key in each.attributes]
            conditions += [is_unchanged(path, old) for path in (*maker.paths(in_keys), *relied)]
        rules = foreseen_rules(maker, names, known, request, refusals)
        conditions += [each.condition for each in rules]
        return rules

    def relied(self, request: Change) -> tuple[list[Keys], list[Path]]:
        """Returns the keys that a change renders again, and the attributes that must still be as read for it."""
        record, maker, names = request.record, self.maker(request.record), self.changed_names(request)
        following = maker.keys_that_follow(names)
        sources, partner = maker.sources(following), self._partners.of(record)
        sources |= {end.name for end in self._undecided_ends(request)} | {*emptied(request)}
        if partner is not None:
            sources |= {*names, *self._kept(record), *partner.moving}
            sources |= partner.shared if partner.is_loose else set()
            sources |= {record.version.name} if record.version else set()
        return following, maker.paths(sorted(sources))

    def _without_key(
        self, request: Change, changes: Sequence[actions.AttributeChange], refusals: Refusals
    ) -> list[actions.AttributeChange]:
        """Returns the changes without attributes that the table's key determines. Refuses other values of them."""
        maker = self.maker(request.record)
        own = {change.path: change for change in changes}
        for path, number, text_of in maker.shared.in_key:
            change, item = own.get(path), Item()
            if change is None:
                continue
            if isinstance(change, SetTo):
                put_at_path(item, path, change.value)
            if (text_of(item) or "") != request.identity[number]:
                named = [
                    name for name in (*request.values, *request.added) if path in maker.shared.paths[name]
                ]
                maker.refuse_other(named[0], place_of(request, named[0]), refusals)
        return [change for change in changes if change.path not in maker.shared.paths_in_key]

    # --- The other item of an edge ----------------------------------------------------------------------

    def _partner_changed(
        self, request: Change, old: Item, new: Item, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """Returns the steps by which a change of an edge changes its other item."""
        record, where, partners = request.record, request.where, self._partners
        before = partners.item(record, old, where, refusals)
        after = partners.item(record, new, where, refusals)
        if refusals.found or (before is None and after is None):
            return []
        if before is None or after is None:
            return self._partner_moved(
                request, before, after, self._held_partner(request, before, after, refusals)
            )
        conditions: list[Condition] = []
        partner = partners.of(record)
        if partner is not None and (partner.is_loose or partner.own):
            there = partners.there(record, old, stored)
            if there is not None:
                before, after = there, partners.changed(record, there, after, where, refusals)
                check_rules(self.maker(partner.record), after, where, refusals)
                maker = self.maker(partner.record)
                conditions += are_as_read(
                    maker.paths(partner.own), maker.keys_that_follow(partner.own), there
                )
        conditions += self._held_partner(request, before, after, refusals)
        key, key_after = map(self._key_of, (before, after))
        if key != key_after:
            return self._partner_moved(request, before, after, conditions)
        changes = _differences(before, after, before.keys() | after.keys())
        if not changes:
            return []
        update = actions.UpdateItem(key, tuple(changes), And((self._presence.there, *conditions)))
        return [TransactionStep(update, _lost(request), is_partner=True, before=before)]

    def _partner_moved(
        self,
        request: Change,
        before: Item | None,
        after: Item | None,
        conditions: Sequence[Condition],
    ) -> list[TransactionStep]:
        """Returns the steps that move the other item of an edge. An edge that is its own mirror has no other item."""
        other = self._graph.correspondences[request.record.name].other
        taken = taken_by_another(request)
        steps = []
        if before is not None:
            delete = actions.DeleteItem(self._key_of(before), And((self._presence.there, *conditions)))
            steps.append(TransactionStep(delete, _lost(request), is_partner=True, before=before))
        if after is not None:
            put = actions.PutItem(after, self._presence.is_free(other))
            steps.append(TransactionStep(put, lambda _: taken, is_partner=True))
        return steps

    # --- Deletes ----------------------------------------------------------------------------------------

    def _deleted(self, request: Delete, stored: Stored, refusals: Refusals) -> Made:
        record, done = request.record, Done(request.record, request.identity, None)
        key, old = self.place(request, stored, refusals)
        guard = self.guard(request, old, refusals)
        conditions = self.conditions(request, guard)
        others: list[TransactionStep] = []
        partner = self._partners.of(record)
        if old is not None and partner is not None:
            conditions += [is_unchanged(path, old) for path in self.maker(record).paths(partner.moving)]
            other = self._partners.there(record, old, stored) if partner.is_loose else None
            other = other or self._partners.item(record, old, request.where, refusals)
            if other and self._key_of(other) != key:
                held = self._held_partner(request, other, None, refusals)
                gone = actions.DeleteItem(self._key_of(other), conjunction(*held))
                others = [TransactionStep(gone, again, is_partner=True, before=other)]
        delete = actions.DeleteItem(key, And(tuple(conditions)))
        return [TransactionStep(delete, self.refused(request, guard), before=old), *others], done

    def detaching(self, references: Sequence[EndReference], item: Item) -> Change | Delete:
        """Returns the request that stops a record from naming a deleted node: it removes the ends, or the record."""
        record = references[0].record
        identity = record.read_identity(item) or ()
        if all(reference.is_removable for reference in references):
            ends = dict.fromkeys(reference.end.name for reference in references)
            copies = self._graph.copies.get(record.name, ())
            given = self._given_ends(Change(record, identity, ends), {})
            lost = {named.name for named, own in given if own is None}
            ends |= {each.field.name: None for each in copies if each.end.name in lost}
            return Change(record, identity, ends)
        return Delete(record, identity)

    def detached(
        self, references: Sequence[EndReference], item: Item, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """Returns the steps of that, on condition that the record still names the node."""
        request = self.detaching(references, item)
        carry_out: Callable[..., Made] = self._changed if isinstance(request, Change) else self._deleted
        mine = Refusals()
        made, _ = carry_out(request, stored, mine)
        if mine.found and self.access is not None:
            # The viewer need not be able to see the record.
            refusals.add(request.where, "You may not delete everything that names this.", code=Code.FORBIDDEN)
            return []
        refusals.found += mine.found
        if not made:
            return []
        paths = self.maker(request.record).paths(reference.end.name for reference in references)
        first = made[0].on_condition(*(is_unchanged(path, item) for path in paths))
        return [replace(step, refusal=again) for step in (first, *made[1:])]


def taken_by_another(request: WriteRequest) -> Refusal:
    """Returns the refusal for an edge whose other item would take the place of another one."""
    told = f"The other item of this {request.record.name} would take the place of another one."
    return Refusal(Code.CONFLICT, (told,), request.where)


def _lost(request: Change) -> Callable[[Item | None], Refusal | None]:
    """Returns the refusal for a missing other item of an edge."""
    told = f"The other item of this {request.record.name} is missing."
    return lost_or_again(Refusal(Code.CONFLICT, (told,), request.where))


def _differences(before: Item, after: Item, names: Iterable[str]) -> list[actions.AttributeChange]:
    """Returns the changes that turn the attributes of one item into those of the other."""
    return [
        SetTo((name,), after[name]) if name in after else actions.Remove((name,))
        for name in sorted(names)
        if before.get(name, _MISSING) != after.get(name, _MISSING)
    ]
