"""Changes the copies that follow a node when it changes.

In the node's own transaction if that holds them all. Otherwise the node changes first, with a mark that says what is left
(`keygraph.writing.marks`), and the copies page by page, each with what the mark says then. Whoever reads the mark of a
write that has died goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from keygraph.codes import Code
from keygraph.dynamo.actions import DeleteItem, PutItem, UpdateItem, changed, outcome
from keygraph.dynamo.conditions import And, Condition
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import TRANSACTION_ACTIONS
from keygraph.dynamo.store import BatchGet
from keygraph.dynamo.table import Key, KeyAttribute, Table
from keygraph.errors import CorruptItem, KeygraphError, Refusal, WriteRefused
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.writing.context import Stored, WriteContext
from keygraph.writing.marks import (
    CLEARED,
    COPIED,
    COPYING,
    UNMARKED,
    CopyingMark,
    copying_mark,
    has_mark,
    is_left,
)
from keygraph.writing.presence import are_as_read
from keygraph.writing.requests import Change
from keygraph.writing.sending.edges import NamingRecord, RecordSteps, Search, batches, followers, searches
from keygraph.writing.sending.sender import TransactionSender
from keygraph.writing.step import TransactionStep, again, merged
from keygraph.writing.steps import following_steps
from keygraph.writing.tallies import with_rendered_keys

Written: TypeAlias = Mapping[Key, PutItem | UpdateItem | DeleteItem]
Nodes: TypeAlias = Mapping[tuple[str, Texts], Item]
"""Nodes as their copies shall be, by the type's name and the identity."""


@dataclass(frozen=True, slots=True)
class CopySource:
    """A node of which a write changes fields that copies follow."""

    change: Change
    key: Key
    node: Item
    """The node as it will be."""
    same: Sequence[Condition]
    """The conditions that these fields are as they were read."""
    is_marked: bool
    """Whether copies of an earlier change may be left."""

    def guarded(self, step: TransactionStep) -> TransactionStep:
        """Returns the step of the node, on condition that the fields are as read."""
        return step.on_condition(*self.same)

    def changing(self, step: TransactionStep, token: str | None, mark: CopyingMark | None) -> TransactionStep:
        """Returns the step of the node, on condition that it has the mark with a token, if given, which it removes; with
        a mark for the copies that are left."""
        update = step.action
        if not isinstance(update, UpdateItem):
            return step
        changes, condition = [*update.changes], update.condition
        if token is not None:
            changes.append(CLEARED)
            condition = And((_when_marked(condition), has_mark(token)))
        if mark is not None:
            changes.append(mark.as_change)
        return replace(step, action=replace(update, changes=tuple(changes), condition=condition))


def _when_marked(condition: Condition | None) -> Condition:
    """Returns a condition without the part that the node has no mark."""
    own = condition.conditions if isinstance(condition, And) else (condition,)
    return And(
        tuple(
            _when_marked(each) if isinstance(each, And) else each for each in own if each and each != UNMARKED
        )
    )


def changed_sources(
    write: WriteContext, changes: Iterable[Change], actions: Mapping[Key, Any]
) -> list[CopySource]:
    """Returns the nodes whose copies have to change with them. `actions` are those of the transaction."""
    found, write = list[CopySource](), write.separate()
    for change in changes:
        record = change.record
        key, old = write.place(change)
        update = actions.get(key)
        if old is None or not isinstance(update, UpdateItem):
            continue
        fields = [copy.sources[record] for each in followers(write, change) for copy in each.copies]
        node = changed(old, update.changes)
        is_marked = COPYING in old
        values = [[record.readable_value(each, of, object()) for of in fields] for each in (old, node)]
        if is_marked or values[0] != values[1]:
            same = are_as_read(record, [path for each in fields for path in each.attributes], old)
            found.append(CopySource(change, key, node, same, is_marked))
    return found


@dataclass(slots=True)
class _Copying:
    """One record whose copies follow nodes."""

    record: RecordType
    item: Item
    values: dict[str, object] = field(default_factory=dict)
    same: list[NamingRecord] = field(default_factory=list)

    def is_outdated(self, item: Item) -> bool:
        record = self.record
        return any(
            record.readable_value(item, record.fields[name], object()) != value
            for name, value in self.values.items()
        )


async def copying_records(
    sender: TransactionSender,
    found: Iterable[NamingRecord],
    nodes: Nodes,
    known: dict[Key, Item | None],
    written: Written | None = None,
) -> list[RecordSteps] | None:
    """Returns what makes the copies in these records as the nodes; None if another action of the write changes one.

    `known` gets the nodes to which the records add. `written` are the write's own actions. Without them, records that
    cannot have the copies are left as they are.
    """
    table, of_keys = sender.graph.table, dict[Key, _Copying]()
    for named in found:
        reference, node = named.of.reference, named.of.reference.node
        own = of_keys.setdefault(table.key_of(named.item), _Copying(reference.record, named.item))
        own.same.append(named)
        item = nodes[node.name, named.of.request.identity]
        [copies] = [each.copies for each in sender.graph.followers[node.name] if each.reference is reference]
        with suppress(CorruptItem):
            own.values |= {each.field.name: node.reader(each.sources[node])(item) for each in copies}
    outdated = list[_Copying]()
    for key, each in of_keys.items():
        action = (written or {}).get(key)
        if action is None:
            outdated += [each] if each.is_outdated(each.item) else []
            continue
        after = outcome(replace(action, condition=None), each.item, table)
        names = [one for one in each.same if after and one.of.reference.names(after, one.of.request.identity)]
        if after is not None and names and each.is_outdated(after):
            return None
    return await _steps(sender, outdated, known, is_refused=written is not None)


async def _steps(
    sender: TransactionSender, several: Sequence[_Copying], known: dict[Key, Item | None], *, is_refused: bool
) -> list[RecordSteps]:
    """Returns the steps that change the copies of records, each record's once. Raises WriteRefused if `is_refused`."""
    graph, write = sender.graph, sender.graph.made(WriteContext)
    requests = [
        Change(each.record, each.record.read_identity(each.item) or (), each.values) for each in several
    ]
    own_items: dict[Key, Item | None] = {
        key: None for request in requests for key in graph.table_keys(request.record, request.identity)
    }
    own_items |= {graph.table.key_of(each.item): each.item for each in several}
    stored = await sender.stored(requests, own_items, write) if requests else own_items
    known |= {key: item for key, item in stored.items() if key not in own_items}
    found, before = list[RecordSteps](), set[Key]()
    for request, each in zip(requests, several, strict=True):
        own = write.knowing(stored)
        steps = following_steps(own, request, {one.of.reference.end.name for one in each.same}, each.item)
        if own.refusals.found and is_refused:
            where, reasons = each.same[0].of.request.where, own.refusals.found
            if not sender.context.is_visible(each.record, each.item):
                problem = ("Something that copies this cannot have the new value.",)
                reasons = [Refusal(Code.BAD_USER_INPUT, problem, is_by_hidden=True)]
            raise WriteRefused([replace(refusal, path=where) for refusal in reasons])
        keys = frozenset([sender.key_of(step) for step in steps])
        if not own.refusals.found and before.isdisjoint(keys):  # else its other item was found before
            before |= keys
            found.append(RecordSteps(steps, each.same, keys))
    return found


# --- More than one transaction holds --------------------------------------------------------------------


async def copy_to_rest(
    sender: TransactionSender, record: RecordType, identity: Texts, *, is_whole: bool = True
) -> None:
    """Goes on with the copies of a node that has a mark for them: all, or one page unless `is_whole`."""
    write = sender.graph.made(WriteContext)
    # A model that has no such copies any more leaves the mark.
    several = sender.graph.followers.get(record.name, ())
    names = [copy.sources[record].name for each in several for copy in each.copies]
    wanted = searches(write, [Change(record, identity, dict.fromkeys(names))])
    keys = tuple(sender.graph.table_keys(record, identity))
    while True:
        batch = await sender.send(BatchGet(keys, consistent=True))
        there = {key: item for key, item in zip(keys, batch.items, strict=True) if item and COPYING in item}
        for key, node in there.items():
            if await _copy_page(
                sender, key, node, wanted, {(record.name, identity): node}, is_whole=is_whole
            ):
                return
        if not there:
            return


async def _copy_page(
    sender: TransactionSender,
    key: Key,
    node: Item,
    wanted: Sequence[Search],
    nodes: Nodes,
    *,
    is_whole: bool,
) -> bool:
    """Changes the copies in the next page that has outdated ones, or in the next one unless `is_whole`. Returns whether
    that was all there was to do."""
    mark = copying_mark(node)
    mark = reached = mark.renewed if is_whole else mark
    if not _is_place(sender.graph.table, wanted, mark):
        reached = mark._replace(search=0, after=())
    records, known = list[RecordSteps](), dict[Key, Item | None]()
    while reached.search < len(wanted) and not records:
        search = wanted[reached.search]
        query = replace(search.query, start=reached.after or None)
        found, rest = await sender.look([replace(search, query=query)])
        records = await copying_records(sender, found, nodes, known) or []
        reached = reached._replace(search=reached.search + (not rest), after=())
        if rest:
            reached = reached._replace(after=rest[0].query.start or ())
        if records and query.index is not None:
            # A change of its keys may move a record that was not found yet to where the search has been.
            reached = reached._replace(is_repeated=True)
        if not is_whole:
            break
    is_last = reached.search == len(wanted) and not records
    end = reached._replace(search=0, is_repeated=False).as_change if reached.is_repeated else COPIED
    several = [each.steps for each in batches(records, TRANSACTION_ACTIONS - 1)] or [[]]
    for number, steps in enumerate(several):
        next_change = (reached if number == len(several) - 1 else mark).as_change
        update = UpdateItem(key, (end if is_last else next_change,), mark.is_there)
        if not await sender.transact(_with_update(sender, steps, update, known)):
            await sender.pause()
            return False
    return not is_whole or (is_last and not reached.is_repeated)


def _is_place(table: Table, wanted: Sequence[Search], mark: CopyingMark) -> bool:
    """Returns whether a mark says where a search can be: it may be of another model, or of another program."""
    if not mark.after or mark.search >= len(wanted):
        return not mark.after and mark.search <= len(wanted)
    query = wanted[mark.search].query
    keys = table.position(query.index)
    is_position = len(mark.after) == len(keys) and all(map(KeyAttribute.holds, keys, mark.after))
    return is_position and mark.after[0] == query.partition


def _with_update(
    sender: TransactionSender, steps: Sequence[TransactionStep], update: UpdateItem, known: Stored
) -> list[TransactionStep]:
    """Returns the steps of one transaction with the update of the node, which may have a copy of its own field."""
    own = TransactionStep(update, again)
    others = list[TransactionStep]()
    for step in steps:
        if (
            sender.key_of(step) == update.key
            and isinstance(step.action, UpdateItem)
            and step.action.condition
        ):
            both = And((step.action.condition, *([update.condition] if update.condition else [])))
            own = replace(step, action=UpdateItem(update.key, (*step.action.changes, *update.changes), both))
        else:
            others.append(step)
    context = sender.graph.made(WriteContext).knowing(known)
    joined = merged([((), step) for step in (own, *others)], sender.graph.table, context.refusals)
    return [with_rendered_keys(context, step) for step in joined]


async def resume(sender: TransactionSender, stored: Stored) -> None:
    """Goes on with the copies of nodes that were read, one page of each, if nobody does any more."""
    for item in stored.values():
        record = sender.graph.recognise(item) if item and COPYING in item and is_left(item) else None
        identity = None if record is None else record.read_identity(item or {})
        if record is not None and identity is not None:
            with suppress(KeygraphError):
                await copy_to_rest(sender, record, identity, is_whole=False)
