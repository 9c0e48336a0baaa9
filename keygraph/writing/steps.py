"""The actions of one transaction: what each request does to the items of the table, and what a failure means.

What has to be known of stored items first is read once for all requests (`needed`). `StepMaker.steps` only computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any, Self, TypeAlias, cast

from keygraph.access.language import Action
from keygraph.dynamo import actions
from keygraph.dynamo.actions import (
    AddMembers,
    AddNumber,
    Append,
    RemoveMembers,
    SetTo,
    changed,
)
from keygraph.dynamo.conditions import And, Condition, Or, Path, at_path
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, Refusal
from keygraph.graph import Graph
from keygraph.model.declaration import Kept
from keygraph.model.expiry import now
from keygraph.model.fields import Field
from keygraph.model.permissions import Permissions
from keygraph.model.record_keys import Keys, Texts
from keygraph.model.records import RecordType
from keygraph.model.references import EndReference
from keygraph.names import with_article
from keygraph.writing.items import ItemMaker, Refusals
from keygraph.writing.marks import MARK, UNMARKED
from keygraph.writing.partners import Partner, Partners
from keygraph.writing.presence import NamedEnd, Presence, all_of, has_version, is_unchanged
from keygraph.writing.requests import Change, Create, Delete, Done, Move, Put, Upsert, WriteRequest
from keygraph.writing.rules import (
    UNGUARDED,
    Foreseen,
    Guard,
    WriteAccess,
    broken_rule,
    check_rules,
    foreseen_rules,
    told_in_keys,
)
from keygraph.writing.step import TransactionStep, again, lost_or_again, merged, missing_or_again

Stored: TypeAlias = Mapping[Key, Item | None]
"""The items that were read for a transaction, by key."""
_MISSING: Any = object()
_NOTHING: Stored = {}


class StepMaker:
    """Makes the steps of requests to one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers: dict[str, ItemMaker] = {}
        self._partners = Partners(graph, self.maker)
        self._presence = Presence(graph)
        self._kept_fields = cache(_kept_fields)
        self._is_looked_for = cache(self._may_be_elsewhere)
        self._ends_of = cache(self._find_ends)
        self._spread_ends_of = cache(self._find_spread_ends)
        self._key_of = graph.table.key_of
        self.access: WriteAccess | None = None
        """What the viewer may write; None where the graph has no rules."""

    def of(self, permissions: Permissions | None) -> Self:
        """The same for a viewer, with what was made so far."""
        if permissions is None:
            return self
        made = copy(self)
        made.access = WriteAccess(permissions)
        return made

    def refuse(self, requests: Iterable[WriteRequest], refusals: Refusals) -> None:
        """Refuses what the viewer may not write, as far as that is known before anything is read."""
        if self.access is not None:
            for request in requests:
                self.access.refuse(self.maker(request.record), request, refusals)

    def maker(self, record: RecordType) -> ItemMaker:
        """What makes the items of a type."""
        found = self._makers.get(record.name)
        if found is None:
            found = self._makers[record.name] = ItemMaker(self._graph, record)
        return found

    # --- What has to be read ------------------------------------------------------------------------------

    def needed(
        self, request: WriteRequest, stored: Stored = _NOTHING, *, is_whole: bool = False
    ) -> list[Key]:
        """The keys of the items that must be known before the request can be carried out; `is_whole`: what it changes is.

        What is stored under some of them may name further ones.
        """
        keys, record = self.keys_of_ends(request), request.record
        item: Item | None = None
        if self.access is not None:
            is_whole = is_whole or self.access.must_read(self.maker(record), request)
        if isinstance(request, Create | Put | Upsert):
            is_read = self._is_looked_for(record) or isinstance(request, Upsert) or self.is_replaced(request)
            is_read = is_read or (is_whole and isinstance(request, Put))
            identity = None
            if is_read:
                item, identity = self.new(request)
        else:
            is_relied = is_whole or self._is_relied_on(request)
            is_read = bool(record.table_keys.shards) or self._partners.of(record) is not None or is_relied
            identity = request.identity
        if not is_read:
            return keys
        own = [] if identity is None else self._graph.table_keys(record, identity)
        there = [stored.get(key) for key in own]
        others = self._partners.keys(record, [item, *there]) if self._partners.is_read(request) else []
        return [*keys, *own, *others]

    def read_later(self, request: WriteRequest) -> RecordType | None:
        """The other type of an edge, if its item has to be read once the edge is; None for nothing to read."""
        partner = self._partners.of(request.record)
        if partner is None or not self._partners.is_read(request):
            return None
        is_told = isinstance(request, Create | Put | Upsert) and not partner.moving
        return None if is_told else partner.record

    def _may_be_elsewhere(self, record: RecordType) -> bool:
        """Whether a new record may be in another place than its key says, or go with an item that must be known."""
        partner = self._partners.of(record)
        return bool(record.table_keys.shards) or (partner is not None and partner.is_loose)

    def _is_relied_on(self, request: Change | Delete | Move) -> bool:
        """Whether what is there is a part of what will be."""
        if isinstance(request, Change):
            names = _named(request)
            is_in_key = bool(request.record.rules and told_in_keys(request.record, names))
            return is_in_key or bool(self.maker(request.record).keys_that_follow(names))
        return isinstance(request, Move)

    def is_replaced(self, request: Create | Put) -> bool:
        """Whether what is kept of a record outlives its replacement."""
        return isinstance(request, Put) and bool(self._kept_fields(request.record, ("created", "version")))

    def keys_of_ends(self, request: WriteRequest) -> list[Key]:
        """The keys of nodes that may stand in one of several places."""
        ends = self._spread_ends_of(request.record)
        return [key for _, keys, _ in self._named_nodes(request, ends) if len(keys) > 1 for key in keys]

    def new(self, request: Create | Put | Upsert) -> tuple[Item, Texts] | tuple[None, None]:
        """The item that the values give, and its identity; None where they give none, which is told with the steps."""
        refusals = Refusals()
        maker = self.maker(request.record)
        values = {**request.values, **self._kept(request.record, is_new=True)}
        item = maker.attributes(values, request.where, refusals)
        refusals.found.clear()
        item, identity = maker.with_keys(item, request.where, refusals)
        return (None, None) if refusals.found else (item, identity)

    # --- Steps --------------------------------------------------------------------------------------------

    def steps(
        self, requests: Sequence[WriteRequest], stored: Stored, refusals: Refusals
    ) -> tuple[list[TransactionStep], list[Done]]:
        """The steps of all requests, none twice of one item, and what they make of each record."""
        steps: list[TransactionStep] = []
        done: list[Done] = []
        for request in requests:
            # What is wrong with one request says nothing of the others.
            mine = Refusals()
            match request:
                case Create() | Put():
                    made, outcome = self._written(request, stored, mine)
                case Upsert():
                    made, outcome = self._upserted(request, stored, mine)
                case Change():
                    made, outcome = self._changed(request, stored, mine)
                case Move():
                    made, outcome = self._moved(request, stored, mine)
                case _:
                    made, outcome = self._deleted(request, stored, mine)
            steps += [] if mine.found else made
            refusals.found += mine.found
            done.append(outcome)
        return merged(steps, self._graph.table, requests[0].where, refusals), done

    # --- New items ----------------------------------------------------------------------------------------

    def _written(self, request: Create | Put, stored: Stored, refusals: Refusals) -> _Made:
        record, where = request.record, request.where
        maker = self.maker(record)
        known = self.new(request)[1] if self.is_replaced(request) else None
        there = None if known is None else self._found(record, known, stored, where, refusals)
        values = {**request.values, **self._kept(record, is_new=True, before=there)}
        item, identity = maker.with_keys(maker.attributes(values, where, refusals), where, refusals)
        maker.check(item, values, where, refusals)
        if refusals.found:
            return [], Done(record, identity, None)
        if known is None:
            there = self._found(record, identity, stored, where, refusals)
        exists = partial(_exists, record, where)
        conditions = [self._presence.is_free(record)] if isinstance(request, Create) else []
        if self.access is not None:
            conditions += self._held_new(self.access, request, identity, item, there, refusals)
        if there is not None and conditions:
            refusals.found.append(exists(there))
        elif there is not None:
            # It stays in the shard where somebody put it.
            item |= {key.name: there[key.name] for key in self._graph.table.keys}
        if known is not None:
            kept = self._kept_fields(record, ("created", "version"))
            conditions += self._presence.is_as_read(record, [field.attribute for field in kept], there)
        check_rules(maker, item, where, refusals)
        others = self._partner_put(request, item, there, stored, refusals)
        if isinstance(request, Put) and (partner := self._partners.of(record)):
            conditions += self._presence.is_as_read(record, maker.paths(partner.moving), there)
        refusal = exists if isinstance(request, Create) else again
        steps = [TransactionStep(actions.PutItem(item, all_of(conditions)), refusal), *others]
        return [*steps, *self._checks(request, stored, refusals)], Done(record, identity, item)

    def _partner_put(
        self, request: Create | Put, item: Item, there: Item | None, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """What a new edge, which may be in the place of one that is there, does to its other item."""
        record, where, partners = request.record, request.where, self._partners
        partner = partners.of(record)
        made = None if partner is None else partners.item(record, item, where, refusals)
        if partner is None or made is None:
            return []
        if not partner.is_loose:
            return [TransactionStep(actions.PutItem(made), again)]
        other = partner.record
        check_rules(self.maker(other), made, where, refusals)
        found = partners.there(record, item, stored)
        back = None if found is None else partners.item(other, found, where, refusals)
        key_of = self._key_of
        if found is not None:
            made |= {key.name: found[key.name] for key in self._graph.table.keys}
            if back is not None and key_of(back) != key_of(item):
                told = f"The {other.name} of this {record.name} is that of another one: change or delete that one first."
                refusals.add(where, told, code="CONFLICT")
        moving = self.maker(other).paths(cast(Partner, partners.of(other)).moving)
        steps = [
            TransactionStep(
                actions.PutItem(made, all_of(self._presence.is_as_read(other, moving, found))), again
            )
        ]
        before = None if there is None else partners.there(record, there, stored)
        if there is not None and before is None:
            # It was read later than the edge, and may be back when this is carried out.
            before = partners.item(record, there, where, refusals)
        if before is not None and key_of(before) != key_of(made):
            steps.append(TransactionStep(actions.DeleteItem(key_of(before)), again))
        return steps

    # --- Changes ------------------------------------------------------------------------------------------

    def _upserted(self, request: Upsert, stored: Stored, refusals: Refusals) -> _Made:
        record = request.record
        _, identity = self.new(request)
        if identity is None or not self._found(record, identity, stored, request.where, refusals):
            made, done = self._written(Create(record, request.values, request.where), stored, refusals)
        else:
            return self._changed(self.change_of(request, identity), stored, refusals, is_upsert=True)
        # Where the first step fails, somebody created it in the meantime.
        return [*(replace(step, refusal=again) for step in made[:1]), *made[1:]], done

    def change_of(self, request: Upsert, identity: Texts) -> Change:
        """The change that an upsert is where its record is there."""
        told = self._told_by_key(request.record)
        values = {name: value for name, value in request.values.items() if name not in told}
        return Change(request.record, identity, values, where=request.where)

    def _told_by_key(self, record: RecordType) -> set[str]:
        """The fields and ends that stand in the table's key."""
        return self.maker(record).sources([record.table_keys])

    def _changed(
        self, request: Change, stored: Stored, refusals: Refusals, *, is_upsert: bool = False
    ) -> _Made:
        record, where, done = request.record, request.where, Done(request.record, request.identity, None)
        maker = self.maker(record)
        names = _named(request)
        for name in sorted(names & self._told_by_key(record)):
            mend = f" Use move{record.name}." if "move" in record.writes else ""
            problem = f" is part of the key of {record.name} and cannot be changed.{mend}"
            refusals.add((*where, maker.shown(name)), maker.shown(name), problem)
        changes = self._changes(request, refusals)
        key, old = self.place(request, stored, refusals)
        if refusals.found:
            return [], done
        partner = self._partners.of(record)
        following, relied = self.relied(request)
        conditions: list[Condition] = [self._presence.is_there(record)]
        others: list[TransactionStep] = []
        rules = self._foreseen(request, changes, old, conditions, refusals)
        guard = UNGUARDED
        if self.access is not None:
            own = request.identity if is_upsert else None
            guard = self.access.guard(maker, request, old, refusals, identity=own, changes=changes)
            conditions += guard.conditions
        if old is not None and (following or partner):
            attributes = changed(maker.without_own_keys(old), changes)
            new, _ = maker.with_keys(attributes, where, refusals)
            # What the keys say is not written a second time.
            left_out = attributes.keys() - new.keys()
            changes = [change for change in changes if change.path[0] not in left_out]
            changes += _differences({**old, **attributes}, new, maker.own_keys)
            changes += [actions.Remove((name,)) for name in sorted(left_out & old.keys())]
            conditions += [is_unchanged(path, old) for path in relied]
            others = self._partner_changed(request, old, new, stored, refusals)
        if old is not None:
            maker.check(changed(old, changes), names, where, refusals)
        version = has_version(request.record, request.version)
        condition = And((*conditions, *version))
        # DynamoDB takes no update in a transaction that changes nothing.
        update = (
            actions.UpdateItem(key, tuple(changes), condition)
            if changes
            else actions.CheckItem(key, condition)
        )
        # Where an upsert finds nothing, somebody has deleted it in the meantime.
        told, broken = again if is_upsert else self.refused(request, guard), broken_rule(rules)
        refusal = (lambda item: told(item) or (broken(item) if item else None)) if rules else told
        steps = [TransactionStep(update, refusal), *others]
        return [*steps, *self._checks(request, stored, refusals)], done

    def _foreseen(
        self,
        request: Change,
        changes: Sequence[actions.AttributeChange],
        old: Item | None,
        conditions: list[Condition],
        refusals: Refusals,
    ) -> list[Foreseen]:
        """What the model's rules ask of what is there, which is added to the conditions."""
        record, names = request.record, _named(request)
        if not record.rules:
            return []
        maker, known = self.maker(record), [*changes]
        in_keys = told_in_keys(record, names) if old is not None else []
        if old is not None and in_keys:
            whole = record.completed(old)
            for path in maker.paths(in_keys):
                value = at_path(whole, path, _MISSING)
                known.append(actions.Remove(path) if value is _MISSING else SetTo(path, cast(Value, value)))
            keys = maker.keys_that_follow(in_keys)
            relied = [(key.name,) for each in keys for key in each.attributes]
            conditions += [is_unchanged(path, old) for path in (*maker.paths(in_keys), *relied)]
        rules = foreseen_rules(maker, names, known, request.where, refusals)
        conditions += [each.condition for each in rules]
        return rules

    def relied(self, request: Change) -> tuple[list[Keys], list[Path]]:
        """The keys that a change makes anew, and the attributes that must still be what was read for it."""
        record, maker, names = request.record, self.maker(request.record), _named(request)
        following = maker.keys_that_follow(names)
        sources, partner = maker.sources(following), self._partners.of(record)
        if partner is not None:
            sources |= {*names, *self._kept(record), *partner.moving}
            sources |= partner.shared if partner.is_loose else set()
            sources |= {record.version.name} if record.version else set()
        return following, maker.paths(sorted(sources))

    def _changes(self, request: Change, refusals: Refusals) -> list[actions.AttributeChange]:
        record, where, maker = request.record, request.where, self.maker(request.record)
        changes: list[actions.AttributeChange] = []
        for name, value in {**request.values, **self._kept(record)}.items():
            part: Item = {}
            if value is not None:
                maker.place(part, name, value, where, refusals)
            elif not maker.is_optional(name):
                shown = maker.shown(name)
                refusals.add((*where, shown), shown, f" of {record.name} cannot be removed.")
            for path in maker.paths([name]):
                given = cast(Value, at_path(part, path))
                changes.append(actions.Remove(path) if given is None else SetTo(path, given))
        for name, value in request.added.items():
            stored: Any = maker.encoded(name, value, where, refusals)
            [path] = maker.paths([name])
            match record.fields[name].type.kind:
                case "set":
                    changes += [AddMembers(path, stored)] if stored else []
                case "list":
                    changes += [Append(path, tuple(stored))] if stored else []
                case _:
                    changes += [] if stored is None else [AddNumber(path, stored)]
        for name, value in request.taken.items():
            members: Any = maker.encoded(name, value, where, refusals)
            changes += [RemoveMembers(maker.paths([name])[0], members)] if members else []
        version = record.version
        return [*changes, *([AddNumber(version.attribute, Decimal(1))] if version else [])]

    def _partner_changed(
        self, request: Change, old: Item, new: Item, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """What a change of an edge does to its other item."""
        record, where, partners = request.record, request.where, self._partners
        before = partners.item(record, old, where, refusals)
        after = partners.item(record, new, where, refusals)
        if before is None or after is None:
            return []
        conditions: list[Condition] = []
        partner = partners.of(record)
        if partner is not None and (partner.is_loose or partner.own):
            there = partners.there(record, old, stored)
            if there is not None:
                before, after = there, partners.changed(record, there, after, where, refusals)
                check_rules(self.maker(partner.record), after, where, refusals)
                own = self.maker(partner.record).paths(partner.own)
                conditions += [is_unchanged(path, there) for path in own]
        key, key_after = map(self._key_of, (before, after))
        if key != key_after:
            return self._partner_moved(request, key, after, conditions)
        changes = _differences(before, after, before.keys() | after.keys())
        if not changes:
            return []
        update = actions.UpdateItem(key, tuple(changes), And((self._presence.there, *conditions)))
        return [TransactionStep(update, _lost(request), is_partner=True)]

    def _partner_moved(
        self, request: Change, key: Key, after: Item, conditions: Sequence[Condition]
    ) -> list[TransactionStep]:
        """What gives the other item of an edge another key."""
        other = self._graph.correspondences[request.record.name].other
        told = f"The other item of this {request.record.name} would take the place of another one."
        taken = Refusal("CONFLICT", (told,), request.where)
        delete = actions.DeleteItem(key, And((self._presence.there, *conditions)))
        put = actions.PutItem(after, self._presence.is_free(other))
        return [
            TransactionStep(delete, _lost(request), is_partner=True),
            TransactionStep(put, lambda _: taken, is_partner=True),
        ]

    # --- Deletes ------------------------------------------------------------------------------------------

    def _deleted(self, request: Delete, stored: Stored, refusals: Refusals) -> _Made:
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
                others = [TransactionStep(actions.DeleteItem(self._key_of(other)), again)]
        delete = actions.DeleteItem(key, And(tuple(conditions)))
        return [TransactionStep(delete, self.refused(request, guard)), *others], done

    def detaching(self, references: Sequence[EndReference], item: Item) -> Change | Delete:
        """What keeps a record from naming a node that is deleted: its ends go, or else the record itself."""
        record = references[0].record
        identity = record.read_identity(item) or ()
        if all(reference.is_removable for reference in references):
            return Change(record, identity, dict.fromkeys(reference.end.name for reference in references))
        return Delete(record, identity)

    def detached(
        self, references: Sequence[EndReference], item: Item, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """The steps of that, as long as the record names the node."""
        request = self.detaching(references, item)
        carry_out: Callable[..., _Made] = self._changed if isinstance(request, Change) else self._deleted
        mine = Refusals()
        made, _ = carry_out(request, stored, mine)
        if mine.found and self.access is not None:
            # What it is need not be seen.
            refusals.add(request.where, "You may not delete everything that names this.", code="FORBIDDEN")
            return []
        refusals.found += mine.found
        if not made:
            return []
        paths = self.maker(request.record).paths(reference.end.name for reference in references)
        first = made[0].on_condition(*(is_unchanged(path, item) for path in paths))
        return [replace(step, refusal=again) for step in (first, *made[1:])]

    # --- Moves --------------------------------------------------------------------------------------------

    def _moved(self, request: Move, stored: Stored, refusals: Refusals) -> _Made:
        record, maker = request.record, self.maker(request.record)
        change, changes = self._move(request, refusals)
        key, old = self.place(request, stored, refusals)
        if refusals.found or old is None:
            return [], Done(record, request.identity, None)
        attributes = changed(maker.without_own_keys(old), changes)
        made, identity = maker.with_keys(attributes, request.to, refusals)
        if refusals.found:
            return [], Done(record, identity, None)
        check_rules(maker, made, request.to, refusals)
        if self.access is not None:
            given = request.values
            self.access.check_new(maker, identity or (), made, "update", given, request.to, refusals)
        in_keys_alone = attributes.keys() - old.keys() - {change.path[0] for change in changes}
        new = {name: value for name, value in made.items() if name not in {MARK, *in_keys_alone}}
        declared = {path[0] for path in maker.paths((*record.fields, *record.ends))}
        names = (declared | old.keys()) - {MARK, *(key.name for key in self._graph.table.keys)}
        same = [is_unchanged((name,), old) for name in sorted(names)]
        steps = [
            *self._moving(request, key, new, identity, same, refusals, old),
            *self._partner_changed(change, old, new, stored, refusals),
        ]
        checks = [*self._checks(change, stored, refusals), *self._unmarked(record, new, change.values)]
        return [*steps, *checks], Done(record, identity, new)

    def _move(self, request: Move, refusals: Refusals) -> tuple[Change, list[actions.AttributeChange]]:
        """What a move changes. Refuses what stands in no key."""
        record = request.record
        change = Change(record, request.identity, request.values, where=request.to)
        for name in sorted(_named(change) - self._told_by_key(record)):
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
        """What puts the item under its new key, and deletes the one that is as it was read."""
        record = request.record
        if identity == request.identity:
            refusals.add(request.to, f"The key of this {record.name} would stay the same.")
        exists, free = partial(_exists, record, request.to), self._presence.is_free(record)
        absent = [other for other in self._graph.table_keys(record, identity) if other != self._key_of(new)]
        guard = self.guard(request, old, refusals)
        delete = actions.DeleteItem(key, And((*self.conditions(request, guard), *same)))
        return [
            TransactionStep(actions.PutItem(new, free), exists),
            *(TransactionStep(actions.CheckItem(other, free), exists) for other in absent),
            TransactionStep(delete, self.refused(request, guard)),
        ]

    # --- What is there ------------------------------------------------------------------------------------

    def place(
        self, request: Change | Delete | Move, stored: Stored, refusals: Refusals
    ) -> tuple[Key, Item | None]:
        """The key of the record, and what is there where that was read. Refuses one that is not there."""
        keys = self._graph.table_keys(request.record, request.identity)
        if keys[0] not in stored:
            return keys[0], None
        found = self._found(request.record, request.identity, stored, request.where, refusals)
        if found is None:
            refusals.found.append(self._missing(request))
            return keys[0], None
        return self._key_of(found), found

    def _found(
        self, record: RecordType, identity: Texts, stored: Stored, where: InputPath, refusals: Refusals
    ) -> Item | None:
        """The item of the record, of those that were read. Refuses one that is in two shards."""
        if not stored:
            return None
        read = [stored.get(key) for key in self._graph.table_keys(record, identity)]
        found = [item for item in read if item is not None and self._graph.recognise(item) is record]
        if len(found) > 1:
            problem = f"There are two items of this {record.name}, in two shards: delete one of them first."
            refusals.add(where, problem, code="CONFLICT")
        return found[0] if found else None

    def conditions(self, request: Change | Delete | Move, guard: Guard | None = None) -> list[Condition]:
        """The conditions that the record is there as the request wants it, and that the viewer may write it."""
        guard = self.guard(request) if guard is None else guard
        version = has_version(request.record, request.version)
        return [self._presence.is_there(request.record), *version, *guard.conditions]

    def guard(
        self, request: Change | Delete | Move, old: Item | None = None, refusals: Refusals | None = None
    ) -> Guard:
        """What the rules of who may write ask of what is there."""
        if self.access is None:
            return UNGUARDED
        return self.access.guard(self.maker(request.record), request, old, refusals or Refusals())

    def _held_new(
        self,
        access: WriteAccess,
        request: Create | Put,
        identity: Texts | None,
        item: Item,
        there: Item | None,
        refusals: Refusals,
    ) -> Sequence[Condition]:
        """Refuses what the viewer may not write so; the conditions that nobody comes in between."""
        maker, own = self.maker(request.record), identity or ()
        action: Action = "create" if there is None or isinstance(request, Create) else "update"
        access.check_new(maker, own, item, action, request.values, request.where, refusals)
        if isinstance(request, Create) or access.may_put(request):
            return ()
        if there is None:
            return (self._presence.is_free(request.record),)
        return access.guard(maker, request, there, refusals, identity=own).conditions

    def _missing(self, request: Change | Delete | Move) -> Refusal:
        return Refusal("NOT_FOUND", (f"There is no {request.record.name} with this key.",), request.where)

    def refused(
        self, request: Change | Delete | Move, guard: Guard | None = None
    ) -> Callable[[Item | None], Refusal | None]:
        """What is told where the record is not as it must be."""
        version, wanted = request.record.version, request.version
        guard = self.guard(request) if guard is None else guard

        def refusal(item: Item | None) -> Refusal | None:
            is_gone = item is None or self._graph.recognise(item) is not request.record
            if item is None or is_gone or self._graph.is_expired(item, now()):
                return self._missing(request)
            broken = guard.refusal(item)
            if broken is not None:
                return broken
            if version is not None and wanted is not None:
                current = request.record.reader(version)(item)
                if current != wanted:
                    told = (f"This {request.record.name} has changed: its version is {current}.",)
                    return Refusal("CONFLICT", told, request.where, {"currentVersion": current})
            return None

        return refusal

    # --- Ends ---------------------------------------------------------------------------------------------

    def _checks(
        self, request: Create | Put | Change, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """That each end of the record is a node that exists; virtual nodes have no item."""
        steps = []
        for end, keys, condition in self._named_nodes(request, self._ends_of(request.record)):
            missing = partial(end.missing, request.where)
            if condition is None:
                refusals.found.append(missing())
                continue
            if len(keys) > 1:
                keys = [key for key in keys if stored.get(key) is not None]
                if not keys:
                    refusals.found.append(missing())
                    continue
            check = actions.CheckItem(keys[0], condition)
            steps.append(TransactionStep(check, partial(missing_or_again, missing), is_check=True))
        return steps

    def _unmarked(self, record: RecordType, item: Item, given: Iterable[str]) -> list[TransactionStep]:
        """That no node is being deleted that an item goes on naming under another key: its edges have been looked for."""
        kept = (named for named in self._ends_of(record) if named.end.name not in given)
        found = ((named, record.end_identity(item, named.end)) for named in kept)
        nodes = (named.nodes(identity) for named, identity in found if identity is not None)
        keys = (self._graph.table_keys(members[0], own) for members, own in nodes if members)
        checks = (actions.CheckItem(key, UNMARKED) for several in keys for key in several)
        return [TransactionStep(check, again, is_check=True) for check in checks]

    def _named_nodes(
        self, request: WriteRequest, ends: Iterable[NamedEnd]
    ) -> Iterator[tuple[NamedEnd, list[Key], Condition | None]]:
        """Those of the ends that a request names: where the node there can be, and the condition that it is there; None
        where its key tells that the viewer does not see it."""
        given = {} if isinstance(request, Delete) else request.values
        for named in ends:
            identity = given.get(named.end.name)
            if identity is None:
                continue
            members, own = named.nodes(identity)
            if members:
                yield named, self._graph.table_keys(members[0], own), self._is_open(members, own)

    def _is_open(self, members: tuple[RecordType, ...], identity: Texts) -> Condition | None:
        """The condition that a node is there which the viewer sees; None where they see none with that key."""
        is_open = self._presence.is_open
        if self.access is None:
            return is_open(members)
        seen = {each: self.access.seen(each, identity) for each in members}
        if all(decision is True for decision in seen.values()):
            return is_open(members)
        parts: list[Condition] = []
        for each, decision in seen.items():
            if decision is not False:
                own = is_open((each,))
                parts.append(own if isinstance(decision, bool) else And((own, decision)))
        return None if not parts else parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _find_ends(self, record: RecordType) -> list[NamedEnd]:
        shown = self.maker(record).shown
        return [NamedEnd(end, shown(name)) for name, end in record.ends.items()]

    def _find_spread_ends(self, record: RecordType) -> list[NamedEnd]:
        """The ends at which a node may stand in one of several places."""
        ends = self._ends_of(record)
        return [each for each in ends if any(member.table_keys.shards for member in each.end.members)]

    # --- What the server keeps ----------------------------------------------------------------------------

    def _kept(
        self, record: RecordType, *, is_new: bool = False, before: Item | None = None
    ) -> dict[str, Any]:
        """The values of the fields that every write keeps; of a whole record, which may be in the place of another one."""
        fields = self._kept_fields(record, ("updated", "created", "version") if is_new else ("updated",))
        if not fields:
            return {}
        at = datetime.now(UTC)
        values: dict[str | None, Any] = {"updated": at, "created": at, "version": 1}
        kept = {field.name: values[field.kept] for field in fields}
        for field in fields if before is not None else ():
            value = None if field.kept == "updated" else record.reader(field)(before or {})
            if value is not None:
                kept[field.name] = value + 1 if field.kept == "version" else value
        return kept


def _exists(record: RecordType, where: InputPath, item: Item | None) -> Refusal:
    """What is told of a new record where there is one."""
    return Refusal("ALREADY_EXISTS", (f"There is already {with_article(record.name)} with this key.",), where)


_Made: TypeAlias = "tuple[list[TransactionStep], Done]"
"""The steps of a request, and what they make of its record."""


def _kept_fields(record: RecordType, kept: tuple[Kept, ...]) -> list[Field]:
    """The fields of a type in which the server keeps one of these."""
    return [field for field in record.fields.values() if field.kept in kept]


def _named(request: Change) -> set[str]:
    """The fields and ends that a change is of."""
    return {*request.values, *request.added, *request.taken}


def _lost(request: Change) -> Callable[[Item | None], Refusal | None]:
    """What is told where the other item of an edge is not there."""
    told = f"The other item of this {request.record.name} is missing."
    return lost_or_again(Refusal("CONFLICT", (told,), request.where))


def _differences(before: Item, after: Item, names: Iterable[str]) -> list[actions.AttributeChange]:
    """The changes that make the attributes of one item those of the other."""
    return [
        SetTo((name,), after[name]) if name in after else actions.Remove((name,))
        for name in sorted(names)
        if before.get(name, _MISSING) != after.get(name, _MISSING)
    ]
