"""The steps that create or put records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from keygraph.access.language import Action
from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.conditions import Condition, conjunction
from keygraph.dynamo.items import Item
from keygraph.errors import Refusal
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.writing.ends import EndSteps
from keygraph.writing.ground import LASTING, Made, Stored
from keygraph.writing.items import Refusals
from keygraph.writing.partners import Partner
from keygraph.writing.requests import Create, Done, Put, Upsert
from keygraph.writing.rules import (
    WriteAccess,
    check_rules,
    names_given,
    names_written,
)
from keygraph.writing.step import TransactionStep, again

_NOTHING: Stored = {}


class NewSteps(EndSteps):
    """Makes the steps of new records."""

    def _written(self, request: Create | Put, stored: Stored, refusals: Refusals) -> Made:
        record, where = request.record, request.where
        maker, partner = self.maker(record), self._partners.of(record)
        known = self.new(request)[1] if self.is_replaced(request) else None
        there = None if known is None else self._found(record, known, stored, where, refusals)
        kept = self._kept(record, is_new=True, before=there)
        values = {**request.values, **kept} if kept else request.values
        attributes = maker.attributes(values, where, refusals)
        item, identity = maker.with_keys(attributes, where, refusals, values)
        size = maker.check(item, values, request, refusals)
        check_rules(maker, item, where, refusals)
        if refusals.found:
            return [], Done(record, identity, None)
        if known is None and stored:
            there = self._found(record, identity, stored, where, refusals)
        exists = self._taken(record, where)
        is_new = isinstance(request, Create)
        conditions = [self._presence.is_free(record)] if is_new else [*self._presence.is_replaceable(record)]
        if self.access is not None:
            conditions += self._held_new(self.access, request, identity, item, there, refusals)
        if there is not None and isinstance(request, Create):
            refusals.found.append(exists(there))
        elif there is not None:
            # It stays in the shard where it was put.
            item |= {key.name: there[key.name] for key in self._graph.table.keys}
            size = None
        if known is not None:
            lasting = [field.attribute for field in self._kept_fields(record, LASTING)]
            conditions += self._presence.is_as_read(record, lasting, there)
        others = [] if partner is None else self._partner_put(request, item, there, stored, refusals)
        if isinstance(request, Put) and partner is not None:
            conditions += self._presence.is_as_read(record, maker.paths(partner.moving), there)
        refusal = exists if isinstance(request, Create) else self._again(record, where)
        condition = conjunction(*conditions) if conditions else None
        steps = [
            TransactionStep(actions.PutItem(item, condition, size), refusal, before=there),
            *others,
        ]
        if there is None and stored:
            steps += self._free(record, identity, item, stored, exists)
        steps += self._checks(request, stored, refusals)
        return steps, Done(record, identity, item, is_new=there is None)

    def _free(
        self,
        record: RecordType,
        identity: Texts | None,
        item: Item,
        stored: Stored,
        exists: Callable[[Item | None], Refusal],
    ) -> list[TransactionStep]:
        """Returns checks that no item of a new record is in another shard where the viewer does not see it."""
        keys = [self._key_of(each) for each in self._read(record, identity or (), stored)]
        free = self._presence.is_free(record)
        others = [key for key in keys if key != self._key_of(item)]
        return [TransactionStep(actions.CheckItem(key, free), exists) for key in others]

    def new(self, request: Create | Put | Upsert) -> tuple[Item, Texts] | tuple[None, None]:
        """Returns the item and identity that the values give; None if they give none, which the steps report."""
        refusals = Refusals()
        maker = self.maker(request.record)
        given = request.values_of_new if isinstance(request, Upsert) else request.values
        values = {**given, **self._kept(request.record, is_new=True)}
        item = maker.attributes(values, request.where, refusals)
        refusals.found.clear()
        item, identity = maker.with_keys(item, request.where, refusals, values)
        return (None, None) if refusals.found else (item, identity)

    def is_replaced(self, request: Create | Put) -> bool:
        """Returns whether fields that the server keeps survive the record's replacement."""
        if type(request) is not Put:
            return False
        return request.is_read or bool(self._kept_fields(request.record, LASTING))

    def _held_new(
        self,
        access: WriteAccess,
        request: Create | Put,
        identity: Texts | None,
        item: Item,
        there: Item | None,
        refusals: Refusals,
    ) -> Sequence[Condition]:
        """Refuses what the viewer may not write. Returns the conditions that nothing has changed in between."""
        maker, own = self.maker(request.record), identity or ()
        action: Action = "create" if there is None or isinstance(request, Create) else "update"
        names = names_given(request) if action == "create" else names_written(request)
        access.check_new(maker, own, item, action, names, request.where, refusals)
        if isinstance(request, Create) or (
            access.may_put(request) and not self._holds_partner(request.record)
        ):
            return ()
        if there is None:
            return (self._presence.is_free(request.record),)
        guard = access.guard(maker, request, there, refusals, identity=own)
        return (self._presence.is_there(request.record), *guard.conditions)

    def _partner_put(
        self, request: Create | Put, item: Item, there: Item | None, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """Returns the steps by which a new edge, which may replace a stored one, writes its other item."""
        record, where, partners = request.record, request.where, self._partners
        partner = partners.of(record)
        made = None if partner is None else partners.item(record, item, where, refusals)
        if partner is None or made is None:
            return []
        mine = None if there is None else partners.item(record, there, where, refusals)
        if not partner.is_loose:
            held = self._held_partner(request, mine, made, refusals)
            return [
                TransactionStep(
                    actions.PutItem(made, conjunction(*held)), again, is_partner=True, before=mine
                )
            ]
        other = partner.record
        check_rules(self.maker(other), made, where, refusals)
        found = partners.there(record, item, stored)
        read = None if there is None else partners.there(record, there, stored)
        back = None if found is None else partners.item(other, found, where, refusals)
        key_of = self._key_of
        if found is not None:
            made |= {key.name: found[key.name] for key in self._graph.table.keys}
            if back is not None and key_of(back) != key_of(item):
                told = f"The {other.name} of this {record.name} is that of another one: change or delete that one first."
                refusals.add(where, told, code=Code.CONFLICT)
        held = self._held_partner(request, found or read, made, refusals)
        moving = self.maker(other).paths(cast(Partner, partners.of(other)).moving)
        conditions = [*self._presence.is_as_read(other, moving, found), *(held if found else ())]
        steps = [
            TransactionStep(
                actions.PutItem(made, conjunction(*conditions)), again, is_partner=True, before=found
            )
        ]
        before = read
        if there is not None and read is None:
            # It was read later than the edge, and may be back when this is carried out.
            before = partners.item(record, there, where, refusals)
        if before is not None and key_of(before) != key_of(made):
            gone = held
            if read is None:
                gone = [self._presence.is_free(other)] if self._holds_partner(record) else []
            elif found is not None:
                gone = self._held_partner(request, before, None, refusals)
            delete = actions.DeleteItem(key_of(before), conjunction(*gone))
            steps.append(TransactionStep(delete, again, is_partner=True, before=before))
        return steps
