"""The steps of records that are created, or changed where they are there."""

from __future__ import annotations

from dataclasses import replace

from keygraph.model.record_keys import Texts
from keygraph.writing.changes import ChangeSteps
from keygraph.writing.ground import Made, Stored
from keygraph.writing.items import Refusals
from keygraph.writing.new import NewSteps
from keygraph.writing.requests import Change, Create, Upsert


class UpsertSteps(NewSteps, ChangeSteps):
    """Makes the steps of upserts."""

    def _upserted(self, request: Upsert, stored: Stored, refusals: Refusals) -> Made:
        record = request.record
        _, identity = self.new(request)
        if identity is None or not self._found(record, identity, stored, request.where, refusals):
            made, done = self._written(Create(record, request.values, request.where), stored, refusals)
        else:
            return self._changed(self.change_of(request, identity), stored, refusals, is_upsert=True)
        # Where the first step fails, somebody created it in the meantime.
        told = self._again(record, request.where)
        return [*(replace(step, refusal=told) for step in made[:1]), *made[1:]], done

    def change_of(self, request: Upsert, identity: Texts) -> Change:
        """The change that an upsert is where its record is there."""
        told = self._told_by_key(request.record)
        values = {name: value for name, value in request.values.items() if name not in told}
        return Change(request.record, identity, values, where=request.where)
