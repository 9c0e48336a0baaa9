"""The ends that a request gives, by their names or by attributes that they share.

Checks that the nodes there exist, are visible and are not being deleted; and copies fields of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from typing import Any, cast

from keygraph.dynamo import actions
from keygraph.dynamo.actions import AddMembers, AddNumber, Append, RemoveMembers, SetTo
from keygraph.dynamo.conditions import And, Condition, Path, at_path, disjunction
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.table import Key
from keygraph.errors import CorruptItem, FieldName, InputPath, Refusal
from keygraph.graph import Graph
from keygraph.model.expiry import now
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.resolve.derived import Copy
from keygraph.writing.ground import StepGround, Stored
from keygraph.writing.items import Refusals
from keygraph.writing.marks import UNMARKED
from keygraph.writing.presence import NamedEnd, after_changes, is_unchanged
from keygraph.writing.requests import Change, Create, Delete, Move, Put, Upsert, WriteRequest, place_of
from keygraph.writing.rules import WriteAccess
from keygraph.writing.step import TransactionStep, again, missing_or_again


class EndSteps(StepGround):
    """Makes the checks of ends."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._ends_of = cache(self._find_ends)
        self._spread_ends_of = cache(self._find_spread_ends)

    # --- What a request changes ---------------------------------------------------------------------------

    def _changes(self, request: Change, refusals: Refusals) -> list[actions.AttributeChange]:
        """Returns what a change does to attributes; each is set or removed once, whatever names are stored in it."""
        record, where, maker = request.record, request.where, self.maker(request.record)
        values, part = {**request.values, **self._kept(record)}, Item()
        for name, value in values.items():
            if value is not None:
                maker.place(part, name, value, where, refusals)
        maker.check_texts(
            part, {name for name, value in request.values.items() if value is not None}, where, refusals
        )
        own: dict[Path, actions.AttributeChange] = {}
        for name, value in values.items():
            paths = maker.shared.paths[name]
            if value is None:
                paths = maker.shared.removed_with(name)
                self._refuse_removal(request, name, paths, part, refusals)
            for path in paths:
                given = cast(Value, at_path(part, path))
                own[path] = actions.Remove(path) if given is None else SetTo(path, given)
        changes = [*own.values()]
        for name, value in request.added.items():
            stored: Any = maker.encoded(name, value, place_of(request, name), refusals)
            [path] = maker.paths([name])
            match record.fields[name].type.kind:
                case "set":
                    changes += [AddMembers(path, stored)] if stored else []
                case "list":
                    changes += [Append(path, tuple(stored))] if stored else []
                case _:
                    changes += [] if stored is None else [AddNumber(path, stored)]
        for name, value in request.taken.items():
            members: Any = maker.encoded(name, value, place_of(request, name), refusals)
            changes += [RemoveMembers(maker.paths([name])[0], members)] if members else []
        version = record.version
        return [*changes, *([AddNumber(version.attribute, Decimal(1))] if version else [])]

    def _refuse_removal(
        self, request: Change, name: str, removed: Sequence[Path], part: Item, refusals: Refusals
    ) -> None:
        """Refuses the removal of a field or an end that is required, or whose attributes are needed or given."""
        record, maker = request.record, self.maker(request.record)
        shown = maker.shown(name)
        if not maker.is_optional(name):
            refusals.add((*request.where, shown), shown, f" of {record.name} cannot be removed.")
        elif not removed:
            problem = f" of {record.name} cannot be removed: its attributes also store "
            others = [FieldName(other) for other in maker.shared.others_at(name)]
            joined = [part for other in others for part in (", ", other)][1:]
            refusals.add((*request.where, shown), shown, problem, *joined, ".")
        elif any(at_path(part, path) is not None for path in removed):
            maker.refuse_other(name, request.where, refusals)

    def _after(self, request: Change | Move, item: Item) -> Item:
        """Returns the attributes of ends that share some, after what a request changes in an item."""
        maker, change = self.maker(request.record), request
        if isinstance(change, Move):
            change = Change(request.record, request.identity, request.values, where=change.to)
        paths = {path for end in maker.shared.ends for path in maker.shared.paths[end.name]}
        names = {path[0] for path in paths}
        whole = maker.without_own_keys(item)
        after = {name: value for name, value in whole.items() if name in names}
        changes = [each for each in self._changes(change, Refusals()) if each.path in paths]
        return after_changes(after, changes)

    # --- The ends that it gives -----------------------------------------------------------------------------

    def _given_ends(self, request: WriteRequest, stored: Stored) -> list[tuple[NamedEnd, Texts | None]]:
        """Returns the ends that a request gives, with the identity of the node there; None if it removes the end.

        It names some. Others follow from attributes that it gives by another name; such an end is shown with that name.
        One that becomes the same node as before, as far as that is known, is not given.
        """
        if isinstance(request, Delete):
            return []
        values = request.values
        found = [
            (named, values[named.name]) for named in self._ends_of(request.record) if named.name in values
        ]
        ends = [end for end in self.maker(request.record).shared.ends if end.name not in values]
        for end, identity in self._following_ends(request, ends, stored) if ends else ():
            found.append((NamedEnd(end, self._given_as(request, end)), identity))
        return found

    def _following_ends(
        self, request: Create | Put | Upsert | Change | Move, ends: Sequence[End], stored: Stored
    ) -> Iterator[tuple[End, Texts | None]]:
        """Yields the ends among these that follow from other values of a request, with the node's identity."""
        record, maker = request.record, self.maker(request.record)
        if isinstance(request, Create | Put | Upsert):
            item = maker.attributes(request.values, request.where, Refusals())
            for end in ends:
                identity = _identity_at(record, item, end)
                if identity is not None:
                    yield end, identity
            return
        written = self._changed_attributes(request)
        ends = [end for end in ends if not written.isdisjoint(maker.shared.paths[end.name])]
        if not ends:
            return
        old = next(iter(self._read(record, request.identity, stored)), None)
        item = self._after(request, old or self._in_key(record, request.identity))
        undecided = self._undecided(request, ends)
        for end in ends:
            identity = _identity_at(record, item, end)
            is_decided = end not in undecided and (old is None or isinstance(request, Change))
            if is_decided or (old is not None and identity != _identity_at(record, old, end)):
                yield end, identity

    def _undecided_ends(self, request: Change) -> list[End]:
        """Returns the ends that a change gives by other names, and whose node depends on the stored item too."""
        shared, written = self.maker(request.record).shared, self._changed_attributes(request)
        ends = [end for end in shared.ends if end.name not in request.values]
        return self._undecided(
            request, [end for end in ends if not written.isdisjoint(shared.paths[end.name])]
        )

    def _undecided(self, request: Change | Move, ends: Iterable[End]) -> list[End]:
        shared = self.maker(request.record).shared
        removed = {
            path
            for name, value in request.values.items()
            if value is None
            for path in shared.removed_with(name)
        }
        known = shared.changed(request.values) | shared.paths_in_key
        return [
            end
            for end in ends
            if not known.issuperset(shared.paths[end.name]) and not shared.is_lost(end.name, removed)
        ]

    def _in_key(self, record: RecordType, identity: Texts) -> Item:
        """Returns the values that the key of a record holds."""
        key, *_ = self._graph.table_keys(record, identity)
        names = (attribute.name for attribute in self._graph.table.keys)
        return record.completed(dict(zip(names, key, strict=True)))

    def _given_as(self, request: Create | Put | Upsert | Change | Move, end: End) -> FieldName:
        """Returns the name by which a request gives an end that it does not name: first one outside the key."""
        maker = self.maker(request.record)
        mine = {*maker.shared.paths[end.name]}
        further = (*request.added, *request.taken) if isinstance(request, Change) else ()
        names = [name for name in (*request.values, *further) if mine.intersection(maker.shared.paths[name])]
        in_key = maker.shared.paths_in_key
        return maker.shown(
            min(
                names,
                key=lambda name: in_key.issuperset(mine & {*maker.shared.paths[name]}),
                default=end.name,
            )
        )

    # --- Checks ---------------------------------------------------------------------------------------------

    def _checks(
        self, request: Create | Put | Change | Move, stored: Stored, refusals: Refusals
    ) -> list[TransactionStep]:
        """Returns the checks that each end of the record is a node that exists; virtual nodes have no item."""
        steps, where = [], place_of(request)
        for end, keys, condition in self._named_nodes(self._given_ends(request, stored), stored):
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

    def _copies(self, request: WriteRequest, stored: Stored) -> list[tuple[Copy, NamedEnd, Texts | None]]:
        """Returns what a request copies, and the node at each end that it gives; None if it removes the end."""
        copies = self._graph.copies.get(request.record.name, ())
        if not copies or isinstance(request, Delete):
            return []
        given = {named.name: (named, identity) for named, identity in self._given_ends(request, stored)}
        return [(copy, *given[copy.end.name]) for copy in copies if copy.end.name in given]

    def copied_from(self, request: WriteRequest, stored: Stored) -> list[Key]:
        """Returns the keys of the nodes that a request copies from."""
        nodes = [named.nodes(identity) for _, named, identity in self._copies(request, stored) if identity]
        return [key for members, own in nodes for key in self._graph.table_keys(members[0], own)]

    def with_copies(
        self, request: WriteRequest, stored: Stored, made: Stored, refusals: Refusals
    ) -> tuple[WriteRequest, list[TransactionStep]]:
        """Returns the request with what it copies from known nodes, and the steps that check that these are as read.

        `made` has the nodes that the same transaction makes. Refuses to copy from a missing node.
        """
        values: dict[str, Any] = {}
        steps: list[TransactionStep] = []
        for copy, named, identity in self._copies(request, stored):
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
                    refusals.put(named.missing(place_of(request)))
                continue
            key, item = there
            node = self._graph.recognise(item or {})
            source = None if node is None else copy.sources.get(node)
            if node is None or item is None or source is None:
                refusals.put(named.missing(place_of(request)))
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
        self, given: Iterable[tuple[NamedEnd, Texts | None]], stored: Stored
    ) -> list[tuple[NamedEnd, list[Key], Condition | None]]:
        """Returns the ends that a request gives, with the possible keys of the node and the condition that it
        exists; None if its key shows that the viewer does not see it."""
        found: list[tuple[NamedEnd, list[Key], Condition | None]] = []
        for named, identity in given:
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


def _identity_at(record: RecordType, item: Item, end: End) -> Texts | None:
    """Returns the identity of the node at an end of an item; None if it names none."""
    try:
        return record.end_identity(item, end)
    except CorruptItem:
        return None
