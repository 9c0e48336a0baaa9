"""The steps of one transaction: the changes of each request to the items of the table, and the meaning of a failure.

The stored items that the steps depend on are first read once for all requests (`needed`). `StepMaker.steps` only
computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import cast

from keygraph.dynamo import actions
from keygraph.dynamo.conditions import And, Condition, Not, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, Refusal
from keygraph.graph import Graph
from keygraph.model.links import LinkName
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.model.references import EndReference
from keygraph.writing.changes import taken_by_another
from keygraph.writing.ground import LASTING, Made, Stored
from keygraph.writing.items import Refusals
from keygraph.writing.moves import MoveSteps
from keygraph.writing.new import NewSteps
from keygraph.writing.presence import after_changes
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Done,
    Move,
    Put,
    Upsert,
    WriteRequest,
    emptied,
)
from keygraph.writing.rules import WriteAccess, are_unchanged, check_rules, missing, told_in_keys
from keygraph.writing.step import TransactionStep, again, merged

_NOTHING: Stored = {}


class StepMaker(NewSteps, MoveSteps):
    """Makes the steps of requests to one graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._is_looked_for = cache(self._may_be_elsewhere)
        self._is_told = cache(self._is_told_alone)
        self._most_counted = cache(self._find_most_counted)
        self._reads_later = bool(graph.correspondences or graph.tallies)
        """Whether items that are read may lead to more."""

    def needed(
        self,
        request: WriteRequest,
        stored: Stored = _NOTHING,
        *,
        is_whole: bool = False,
        with_nodes: bool = False,
    ) -> list[Key]:
        """Returns the keys of the items that must be known first. With `is_whole`, the changed items must be known;
        with `with_nodes`, the nodes that the request adds to.

        The items under some of them may name further ones.
        """
        kind = type(request)
        is_new = (kind is Create or kind is Put) and not is_whole and self.access is None
        is_new = is_new and not (isinstance(request, Put) and request.is_read)
        if is_new and self._is_told(request.record, kind is Put):
            return []
        copied = self.copied_from(request, stored)
        request, _ = self.with_copies(request, stored, _NOTHING, Refusals())
        keys = [*copied, *self._needed(request, stored, is_whole=is_whole)]
        keys += self._counting(request, stored, with_nodes=with_nodes)
        return keys if self.access is None else [*keys, *self._learned(request, stored, is_whole=is_whole)]

    def _is_told_alone(self, record: RecordType, is_put: bool) -> bool:
        """Returns whether a request to create or put a record alone determines everything that is written."""
        is_elsewhere = (
            self._is_looked_for(record) or self._spread_ends_of(record) or self._partners.of(record)
        )
        is_kept = is_put and self._kept_fields(record, LASTING)
        is_told_elsewhere = self._tallies.has(record) or record.name in self._graph.copies
        return not (is_elsewhere or is_kept or is_told_elsewhere)

    def _needed(self, request: WriteRequest, stored: Stored, *, is_whole: bool) -> list[Key]:
        keys, record = self.keys_of_ends(request, stored), request.record
        item: Item | None = None
        if self.access is not None:
            is_whole = is_whole or self.access.must_read(self.maker(record), request)
            is_whole = is_whole or self._holds_partner(record)
        if isinstance(request, Create | Put | Upsert):
            is_read = self._is_looked_for(record) or isinstance(request, Upsert) or self.is_replaced(request)
            is_read = is_read or ((is_whole or self._tallies.has(record)) and isinstance(request, Put))
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

    def counts(self, request: WriteRequest) -> bool:
        """Returns whether the stored item may be counted elsewhere, and a request changes that."""
        names = self.changed_names(request) if isinstance(request, Change) else None
        return not isinstance(request, Create) and self._tallies.has(request.record, names)

    def most_read_later(self, request: WriteRequest) -> int:
        """Returns how many items may have to be read once the first ones are known."""
        if not self._reads_later:
            return 0
        other = self.read_later(request)
        count = 0 if other is None else len(other.table_keys.shard_texts)
        return count + self._most_counted(request.record)

    def _find_most_counted(self, record: RecordType) -> int:
        same = self._graph.correspondences.get(record.name)
        # Before and after the write an item may add to two nodes.
        counted = [record] if same is None else [record, same.other]
        return 2 * sum(map(self._tallies.places, counted))

    def read_later(self, request: WriteRequest) -> RecordType | None:
        """Returns the other type of an edge, if its item has to be read after the edge; None if nothing is."""
        partner = self._partners.of(request.record)
        if partner is None or not self._partners.is_read(request):
            return None
        is_told = isinstance(request, Create | Put | Upsert) and not partner.moving
        return None if is_told else partner.record

    def _may_be_elsewhere(self, record: RecordType) -> bool:
        """Returns whether a new record may be in another place than its key says, or depend on another item."""
        partner = self._partners.of(record)
        return bool(record.table_keys.shards) or (partner is not None and partner.is_loose)

    def _is_relied_on(self, request: Change | Delete | Move) -> bool:
        """Returns whether the new item depends on the stored one."""
        if isinstance(request, Change):
            names = self.changed_names(request)
            is_in_key = bool(request.record.rules and told_in_keys(request.record, names))
            is_counted = self._tallies.has(request.record, names)
            is_followed = bool(self.maker(request.record).keys_that_follow(names))
            parts = [request.record.fields[name] for name in (*request.added, *request.taken)]
            in_sets = any(each.type.kind == "set" and len(each.attribute) > 1 for each in parts)
            is_relied = is_in_key or is_counted or is_followed or in_sets or bool(emptied(request))
            return is_relied or bool(self._undecided_ends(request))
        return isinstance(request, Move) or self._tallies.has(request.record)

    def keys_of_ends(self, request: WriteRequest, stored: Stored = _NOTHING) -> list[Key]:
        """Returns the keys of nodes that may be in one of several places."""
        ends = self._spread_ends_of(request.record)
        if not ends:
            return []
        names = {each.name for each in ends}
        given = [each for each in self._given_ends(request, stored) if each[0].name in names]
        named = self._named_nodes(given, _NOTHING)
        return [key for _, keys, _ in named if len(keys) > 1 for key in keys]

    def _counting(self, request: WriteRequest, stored: Stored, *, with_nodes: bool) -> list[Key]:
        """Returns the keys of the nodes that the record or its other item adds to."""
        same = self._graph.correspondences.get(request.record.name)
        records = [request.record] if same is None else [request.record, same.other]
        if not any(
            self._tallies.has(each) and (with_nodes or self._tallies.places(each)) for each in records
        ):
            return []
        found: list[Key] = []
        for record, _, item in self._states(request, stored):
            if record is request.record and item is not None:
                other = None if same is None else self._partners.item(record, item, (), Refusals())
                for each, own in ((record, item), (records[-1], other)):
                    nodes = self._tallies.nodes(each, [own] if own else [])
                    found += (key for node in nodes for key in self._graph.table_keys(*node))
        return found

    # --- Other items that decide --------------------------------------------------------------------------

    def _may_be_linked(self, record: RecordType) -> bool:
        """Returns whether other items may decide who writes records of the type, or names the nodes at their ends."""
        if self.access is None:
            return False
        partner = self._partners.of(record)
        types = [record, *(member for end in record.ends.values() for member in end.members)]
        types += [partner.record] if partner else []
        return any(each.access is not None and each.access.has_links for each in types)

    def _learned(self, request: WriteRequest, stored: Stored, *, is_whole: bool) -> list[Key]:
        """Returns the keys of other items that decide who may write and that stored items determine, and of nodes whose
        items must be known. Learns the stored ones."""
        access, keys = cast(WriteAccess, self.access), list[Key]()
        linked = self._linked(request, stored) if self._may_be_linked(request.record) else {}
        for key in linked.keys() & stored.keys():
            access.permissions.learn(key, stored[key])
        for members, own in self._named(request, stored):
            if any(access.sees_by_item(each, is_whole=is_whole) for each in members):
                keys += self._graph.table_keys(members[0], own)
        return [*keys, *linked]

    def _linked(self, request: WriteRequest, stored: Stored) -> dict[Key, LinkName]:
        access, found = cast(WriteAccess, self.access), dict[Key, LinkName]()
        for record, identity, item in self._states(request, stored):
            found |= access.linked(request, record, identity, item)
            if record is request.record and item is not None and self._holds_partner(record):
                other = self._graph.correspondences[record.name].other
                there = self._partners.there(record, item, stored)
                there = there or self._partners.item(record, item, (), Refusals())
                own = None if there is None else other.read_identity(there)
                found |= {} if own is None else access.linked(request, other, own, there)
        return found

    def _named(self, request: WriteRequest, stored: Stored) -> Iterator[tuple[tuple[RecordType, ...], Texts]]:
        """Yields the nodes that a request gives at ends."""
        for named, identity in self._given_ends(request, stored):
            members, own = ((), ()) if identity is None else named.nodes(identity)
            if members:
                yield members, own

    def _states(
        self, request: WriteRequest, stored: Stored
    ) -> Iterator[tuple[RecordType, Texts, Item | None]]:
        """Yields what rules apply to: the record before and after the write, and the nodes that it names."""
        record, ignored, maker = request.record, Refusals(), self.maker(request.record)
        if isinstance(request, Create | Put | Upsert):
            item, identity = self.new(request)
            if identity is not None:
                yield record, identity, item
        else:
            identity = request.identity
        there = next(iter([] if identity is None else self._read(record, identity, stored)), None)
        if identity is not None and (there is not None or isinstance(request, Change | Delete | Move)):
            yield record, identity, there
        change = self.change_of(request, identity) if isinstance(request, Upsert) and identity else request
        if there is not None and isinstance(change, Change):
            yield record, change.identity, after_changes(there, self._changes(change, ignored))
        elif there is not None and isinstance(change, Move):
            attributes = after_changes(maker.without_own_keys(there), self._move(change, ignored)[1])
            made, moved = maker.with_keys(attributes, change.to, ignored)
            if not ignored.found:
                yield record, moved, made
        for members, own in self._named(request, stored):
            keys = self._graph.table_keys(members[0], own)
            node = next((found for key in keys if (found := stored.get(key)) is not None), None)
            for member in members:
                yield member, own, node

    def detached(
        self, references: Sequence[EndReference], item: Item, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        request = self.detaching(references, item)
        made = [
            self._tallies.counted(self._beside_others(step, request), stored)
            for step in super().detached(references, item, stored, refusals)
        ]
        return [*made, *self._link_checks(request, stored)] if made else made

    def _link_checks(self, request: WriteRequest, stored: Stored) -> list[TransactionStep]:
        """Returns checks that the other items that decide are as they were read."""
        steps = []
        for key, name in self._linked(request, stored).items() if self._may_be_linked(request.record) else ():
            item, record = stored.get(key), name.link.record
            own = [] if name.condition is None else [name.condition]
            if self.access is not None and self.access.permissions.are_assumed:
                condition: Condition = And((self._presence.is_there(record), *own))
            elif item is None or not self._graph.is_of(item, (record,)):
                condition = Not(self._presence.is_there(record))
            else:
                same = are_unchanged(record, [path for each in own for path in paths_of(each)], item)
                condition = And((self._presence.is_there(record), *same))
            steps.append(
                TransactionStep(actions.CheckItem(key, condition), again, is_check=True, is_rule=True)
            )
        return steps

    # --- Steps ------------------------------------------------------------------------------------------

    def steps(
        self, requests: Sequence[WriteRequest], stored: Stored, refusals: Refusals
    ) -> tuple[list[TransactionStep], list[Done]]:
        """Returns the steps of all requests, at most one for each item, and the resulting records."""
        steps: list[tuple[InputPath, TransactionStep]] = []
        done: list[Done] = []
        made_here = self._made_of_nodes(requests, stored) if self._graph.copies else _NOTHING
        for each in requests:
            # A problem of one request says nothing about the others.
            mine, request = Refusals(), each
            further: list[TransactionStep] = []
            if self._graph.copies:
                request, further = self.with_copies(each, stored, made_here, mine)
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
            made = [self._beside_others(step, request) for step in made]
            if self._graph.tallies:
                made = [self._tallies.counted(step, stored) for step in made]
            if mine.found:
                refusals.found += mine.found
            else:
                if self.access is not None:
                    made = [*made, *self._link_checks(request, stored)]
                steps += [(each.where, step) for step in (*made, *further)]
            done.append(outcome)
        joined = merged(steps, self._graph.table, refusals)
        return joined, self._as_put(joined, done)

    def problems(self, request: WriteRequest) -> list[Refusal]:
        """Returns what is wrong with the values of a request, whatever is stored.

        The identity of a node at an end may be empty, which is no problem of this request.
        """
        refusals, maker, where = Refusals(), self.maker(request.record), request.where
        if isinstance(request, Change):
            self._changes(request, refusals)
        if not isinstance(request, Create | Put | Upsert):
            return refusals.found
        given = request.values_of_new if isinstance(request, Upsert) else request.values
        values = {**given, **self._kept(request.record, is_new=True)}
        unknown = {name for name, value in values.items() if value == ()}
        values = {name: value for name, value in values.items() if name not in unknown}
        item = maker.attributes(values, where, refusals)
        item, _ = maker.with_keys(item, where, refusals, values)
        check_rules(maker, item, where, refusals)
        left_out = {(*where, maker.shown(name)) for name in unknown}
        return [each for each in refusals.found if each.path not in left_out]

    def _beside_others(self, step: TransactionStep, request: WriteRequest) -> TransactionStep:
        """Returns a step for the other item of an edge, on condition that no item of another type has its key."""
        conditions: tuple[Condition, ...] = ()
        if step.is_partner:
            other = self._graph.correspondences[request.record.name].other
            conditions = self._presence.is_replaceable(other)
        if not conditions:
            return step
        taken = taken_by_another(request)

        def refusal(item: Item | None) -> Refusal | None:
            is_taken = item is not None and self._graph.recognise(item) is not other
            return taken if is_taken else step.refusal(item)

        return replace(step.on_condition(*conditions), refusal=refusal)

    def _made_of_nodes(self, requests: Sequence[WriteRequest], stored: Stored) -> Stored:
        """Returns the nodes that the requests create or change, as they will be."""
        found: dict[Key, Item | None] = {}
        for request in requests:
            if request.record.is_node and isinstance(request, Create | Upsert | Change):
                item = identity = None
                if not isinstance(request, Change):
                    item, identity = self.new(request)
                else:
                    identity = request.identity
                there = (
                    None
                    if identity is None
                    else self._found(request.record, identity, stored, (), Refusals())
                )
                if there is not None and identity is not None and not isinstance(request, Create):
                    change = request if isinstance(request, Change) else self.change_of(request, identity)
                    item = after_changes(there, self._changes(change, Refusals()))
                if item is not None:
                    found[self._key_of(item)] = item
        return found

    def _as_put(self, steps: Sequence[TransactionStep], done: list[Done]) -> list[Done]:
        """Returns the results, with what other steps add to each record."""
        if not self._graph.tallies:
            return done
        items = [step.action.item for step in steps if isinstance(step.action, actions.PutItem)]
        put = {self._key_of(item): item for item in items}
        return [
            each if each.item is None else replace(each, item=put.get(self._key_of(each.item), each.item))
            for each in done
        ]

    def _upserted(self, request: Upsert, stored: Stored, refusals: Refusals) -> Made:
        record = request.record
        _, identity = self.new(request)
        if identity is None or not self._found(record, identity, stored, request.where, refusals):
            if request.version is not None:
                refusals.found.append(missing(request))
                return [], Done(record, identity or (), None)
            new = Create(record, request.values_of_new, request.where)
            made, done = self._written(new, stored, refusals)
        else:
            return self._changed(self.change_of(request, identity), stored, refusals, is_upsert=True)
        # If the first step fails, somebody created it in the meantime.
        told = self._again(record, request.where)
        return [*(replace(step, refusal=told) for step in made[:1]), *made[1:]], done

    def change_of(self, request: Upsert, identity: Texts) -> Change:
        """Returns the change that an upsert makes if its record exists."""
        told = self._told_by_key(request.record)
        values = {name: value for name, value in request.values.items() if name not in told}
        parts = (request.added, request.taken, request.version)
        return Change(request.record, identity, values, *parts, request.where)
