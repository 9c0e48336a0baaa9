"""Checks that the nodes that a record names exist, are visible and are not being deleted; and copies fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from keygraph.dynamo import actions
from keygraph.dynamo.conditions import And, Condition, disjunction
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key
from keygraph.errors import InputPath, Refusal
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.resolve.derived import Copy
from keygraph.writing.ground import StepGround, Stored
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED
from keygraph.writing.presence import NamedEnd, is_unchanged
from keygraph.writing.requests import Change, Create, Delete, Put, WriteRequest
from keygraph.writing.rules import WriteAccess
from keygraph.writing.step import TransactionStep, again, missing_or_again


class EndSteps(StepGround):
    """Makes the checks of ends."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._ends_of = cache(self._find_ends)
        self._spread_ends_of = cache(self._find_spread_ends)

    def _checks(
        self, request: Create | Put | Change, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """Returns the checks that each end of the record is a node that exists; virtual nodes have no item."""
        steps, where = [], request.where
        for end, keys, condition in self._named_nodes(request, self._ends_of(request.record), stored):
            if len(keys) > 1:
                keys = [key for key in keys if stored.get(key) is not None]
            if condition is None or not keys:
                refusals.found.append(end.missing(where))
                continue
            told = partial(self._not_open, end, where)
            steps.append(TransactionStep(actions.CheckItem(keys[0], condition), told, True))
        return steps

    def _not_open(self, end: NamedEnd, where: InputPath, item: Item | None) -> Refusal | None:
        """Returns the refusal for a node that must exist; None if another try may find it."""
        told = missing_or_again(end, where, item)
        if told is None or item is None or self.access is None:
            return told
        record = self._graph.recognise(item)
        if record is None or record not in end.end.members or self._graph.is_expired(item, now()):
            return told
        # The store does not see values that only a key holds.
        identity = record.read_identity(item) if self.access.sees_by_item(record, is_whole=True) else None
        return None if identity is not None and self.access.sees(record, identity, item) else told

    def _unmarked(self, record: RecordType, item: Item, given: Iterable[str]) -> list[TransactionStep]:
        """Returns checks that no node that an item names under its new key is being deleted and was searched."""
        kept = (named for named in self._ends_of(record) if named.name not in given)
        found = ((named, record.end_identity(item, named.end)) for named in kept)
        nodes = (named.nodes(identity) for named, identity in found if identity is not None)
        keys = (self._graph.table_keys(members[0], own) for members, own in nodes if members)
        checks = (actions.CheckItem(key, UNMARKED) for several in keys for key in several)
        return [TransactionStep(check, again, is_check=True) for check in checks]

    # --- Copied fields ------------------------------------------------------------------------------------

    def _copies(self, request: WriteRequest) -> list[tuple[Copy, NamedEnd, Texts | None]]:
        """Returns what a request copies, and the node at each end that it gives; None if it removes the end."""
        copies = self._graph.copies.get(request.record.name, ())
        if not copies or isinstance(request, Delete):
            return []
        ends = {named.name: named for named in self._ends_of(request.record)}
        given = request.values
        return [
            (copy, ends[copy.end.name], given[copy.end.name]) for copy in copies if copy.end.name in given
        ]

    def copied_from(self, request: WriteRequest) -> list[Key]:
        """Returns the keys of the nodes that a request copies from."""
        nodes = [named.nodes(identity) for _, named, identity in self._copies(request) if identity]
        return [key for members, own in nodes for key in self._graph.table_keys(members[0], own)]

    def with_copies(
        self, request: WriteRequest, stored: Stored, made: Stored, refusals: Refusals
    ) -> tuple[WriteRequest, list[TransactionStep]]:
        """Returns the request with what it copies from known nodes, and the steps that check that these are as read.

        `made` has the nodes that the same transaction makes. Refuses to copy from a missing node.
        """
        values: dict[str, Any] = {}
        steps: list[TransactionStep] = []
        for copy, named, identity in self._copies(request):
            if identity is None:
                values[copy.field.name] = None
                continue
            members, own = named.nodes(identity)
            keys = self._graph.table_keys(members[0], own)
            before = {key: stored[key] for key in keys if stored.get(key) is not None}
            there = next(
                ((key, made.get(key) or before.get(key)) for key in keys if key in made or key in before),
                None,
            )
            if there is None:
                if all(key in stored for key in keys):
                    refusals.found.append(named.missing(request.where))
                continue
            key, item = there
            node = self._graph.recognise(item or {})
            source = None if node is None else copy.sources.get(node)
            if node is None or item is None or source is None:
                refusals.found.append(named.missing(request.where))
                continue
            values[copy.field.name] = node.reader(source)(item)
            if key in before:
                same = is_unchanged(source.attribute, before[key] or {})
                steps.append(
                    TransactionStep(actions.CheckItem(key, same), again, is_check=True, is_rule=True)
                )
        if isinstance(request, Delete) or not values:
            return request, steps
        return replace(request, values={**request.values, **values}), steps

    def _named_nodes(
        self, request: WriteRequest, ends: Iterable[NamedEnd], stored: Stored
    ) -> list[tuple[NamedEnd, list[Key], Condition | None]]:
        """Returns the given ends that a request names, with the possible keys of the node and the condition that it
        exists; None if its key shows that the viewer does not see it."""
        found: list[tuple[NamedEnd, list[Key], Condition | None]] = []
        given = {} if isinstance(request, Delete) else request.values
        for named in ends:
            identity = given.get(named.name)
            if identity is None:
                continue
            members, own = named.nodes(identity)
            if members:
                keys = self._graph.table_keys(members[0], own)
                if self.access is None:
                    found.append((named, keys, self._presence.is_open(members)))
                    continue
                there = None
                if stored:
                    there = next((item for key in keys if (item := stored.get(key)) is not None), None)
                found.append((named, keys, self._is_open(self.access, members, own, there)))
        return found

    def _is_open(
        self, access: WriteAccess, members: tuple[RecordType, ...], identity: Texts, there: Item | None
    ) -> Condition | None:
        """Returns the condition that a node that the viewer sees exists; None if they see none with that key."""
        is_open = self._presence.is_open
        seen = {each: access.seen(each, identity, there) for each in members}
        if all(decision is True for decision in seen.values()):
            return is_open(members)
        parts: list[Condition] = []
        for each, decision in seen.items():
            if decision is not False:
                own = is_open((each,))
                parts.append(own if isinstance(decision, bool) else And((own, decision)))
        if not parts and there is not None and any(access.seen(each, identity, None) for each in members):
            # The transaction fails as if nothing were there, so that other failures are reported too.
            return self._presence.nothing
        return disjunction(*parts)

    def _find_ends(self, record: RecordType) -> list[NamedEnd]:
        shown = self.maker(record).shown
        return [NamedEnd(end, shown(name)) for name, end in record.ends.items()]

    def _find_spread_ends(self, record: RecordType) -> list[NamedEnd]:
        """Returns the ends whose node may be in one of several places."""
        ends = self._ends_of(record)
        return [each for each in ends if any(member.table_keys.shards for member in each.end.members)]
