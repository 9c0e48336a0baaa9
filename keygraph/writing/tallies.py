"""Updates the counts and sums of nodes in the transaction that writes their items.

An item adds to the node whose list contains it (`keygraph.resolve.derived`), and what it added before is subtracted. So
a write that replaces, changes or deletes such an item needs the stored item, on condition that it is as it was read. A
number that a node does not have is unknown: nothing is added to it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from keygraph.declare.declaration import OF_ENDS
from keygraph.dynamo.actions import (
    AttributeChange,
    CheckItem,
    PutItem,
    SetTo,
    UpdateItem,
    changed,
    key_of,
)
from keygraph.dynamo.conditions import And, Condition, Path, at_path
from keygraph.dynamo.items import Item, Value, exact_sum
from keygraph.dynamo.store import Page, Query
from keygraph.dynamo.table import Key, Position
from keygraph.lists.query import ListForm
from keygraph.lists.reading import requests_of_all
from keygraph.model.fields import Field
from keygraph.model.record_keys import Keys, Texts
from keygraph.model.records import RecordType
from keygraph.resolve import derived
from keygraph.resolve.fields import VALUE
from keygraph.writing import shards
from keygraph.writing.context import WriteContext
from keygraph.writing.items import Refusals, Replaced, differences
from keygraph.writing.presence import are_as_read, is_unchanged
from keygraph.writing.requests import Change, Move, WriteRequest
from keygraph.writing.step import Addition, TransactionStep

UNREAD = Decimal(10) ** 30
"""Stands for an amount that only a read determines, where a write is explained."""


def is_counted(write: WriteContext, record: RecordType, names: Iterable[str] | None = None) -> bool:
    """Returns whether items of a type add to any node; only through these fields and ends, if some are given."""
    tallies = write.graph.tallies.get(record.name, ())
    return any(names is None or not each.names.isdisjoint(names) for each in tallies)


def adds(write: WriteContext, record: RecordType) -> bool:
    """Returns whether a write of items of a type may add to nodes, or to keys that hold numbers."""
    types = counted_types(write, record)
    return any(is_counted(write, each) or write.fact(_rendered_keys, each) for each in types)


def counted_types(write: WriteContext, record: RecordType) -> list[RecordType]:
    """Returns the types of the items that a write of one of a type may write: its own, and that of its other item."""
    pair = write.graph.correspondences.get(record.name)
    return [record] if pair is None else [record, pair.other]


def counted_nodes(write: WriteContext, record: RecordType, item: Item) -> Iterator[Key]:
    """Yields the possible keys of the nodes that must be read of those that an item adds to, or may add to once it has
    other keys, and of the shards that stand for them."""
    for tally in write.graph.tallies.get(record.name, ()):
        node = tally.at_end(item)
        if node is not None and (write.are_others_read or write.fact(_is_read_first, tally.owner)):
            yield from write.graph.table_keys(tally.owner, node)
            yield from shards.keys_to_read(write, tally.owner, node)


def node_places(write: WriteContext, record: RecordType) -> int:
    """Returns the number of possible places of the nodes that an item adds to and that are read first."""
    owners = {each.owner for each in write.graph.tallies.get(record.name, ())}
    return sum(len(each.table_keys.shard_texts) for each in owners if write.fact(_is_read_first, each))


def _is_read_first(write: WriteContext, owner: RecordType) -> bool:
    """Returns whether a node is read before something is added to it: it may be in several places, have keys that hold
    one of its numbers, or keep the first or last item of a list."""
    has_ends = any(field.kept in OF_ENDS for field in owner.fields.values())
    return bool(owner.table_keys.shards or has_ends or write.fact(_rendered_keys, owner))


def with_additions(write: WriteContext, request: WriteRequest, step: TransactionStep) -> TransactionStep:
    """Returns the step with what it adds to nodes, on condition that the item is as it was read."""
    before, action = step.before, step.action
    if isinstance(action, CheckItem):
        return step
    if write.is_described and (isinstance(request, Move) or not isinstance(action, PutItem)):
        return replace(step, additions=tuple(_unread_additions(write, request, step)))
    after: Item | None = None
    if isinstance(action, PutItem):
        after = action.item
    elif before is None:
        return step
    elif isinstance(action, UpdateItem):
        after = changed(before, action.changes)
    record = write.graph.recognise(after or before or {})
    tallies = () if record is None else write.graph.tallies.get(record.name, ())
    if record is None or not tallies:
        return step
    found, paths = [*additions(write, tallies, before, after)], write.fact(_counted_paths, record)
    if isinstance(action, UpdateItem):
        names = {change.path[0] for change in action.changes}
        if not found and names.isdisjoint(path[0] for path in paths):
            return step
    conditions: list[Condition] = [write.presence.is_free(record)]
    if before is not None:
        conditions = [write.presence.is_there(record), *are_as_read(record, paths, before)]
    own = action.condition
    there = own.conditions if isinstance(own, And) else (own,)
    conditions = [each for each in conditions if each not in there]
    made = step.on_condition(*conditions) if conditions else step
    return replace(made, additions=tuple(found))


def additions(
    write: WriteContext, tallies: Iterable[derived.Tally], before: Item | None, after: Item | None
) -> Iterator[Addition]:
    """Yields what an item that becomes another one adds to nodes."""
    for tally in tallies:
        if tally.field.kept in OF_ENDS:
            yield from _replacements(write, tally, before, after)
            continue
        amounts: defaultdict[tuple[Texts, Path], list[Decimal]] = defaultdict(list)
        for item, is_after in ((before, False), (after, True)):
            counted = None if item is None else tally.of(item)
            if counted is not None:
                node, value = counted
                for path, amount in derived.numbers(tally.field, value):
                    amounts[node, path].append(amount if is_after else amount.copy_negate())
        for (identity, path), several in amounts.items():
            if amount := exact_sum(several):
                yield _addition(write, tally, identity, (path, amount))


def _replacements(
    write: WriteContext, tally: derived.Tally, before: Item | None, after: Item | None
) -> Iterator[Addition]:
    """Yields what an item that becomes another one changes in lists of which nodes keep the first or last item."""
    old, new = (None if item is None else tally.of(item) for item in (before, after))
    if old == new:
        return
    is_same = old is not None and new is not None and old[0] == new[0]
    pairs = [(old, new)] if is_same else [(old, None), (None, new)]
    for here, there in pairs:
        node = (there or here or ((),))[0]
        if node:
            [number] = derived.numbers(tally.field, None)
            addition = _addition(write, tally, node, number)
            values = tuple(None if each is None else each[1] for each in (here, there))
            yield replace(addition, replaced=cast("tuple[Value, Value]", values))


# --- The first and last items of lists -------------------------------------------------------------------


@dataclass(slots=True)
class ListEnd:
    """The first or last items of a list of a node, which are needed because the one that the node has goes."""

    tally: derived.Tally
    identity: Texts
    count: int
    """How many items decide: one more than are removed."""
    values: Sequence[Value] | None = None
    """What they add to the node, in order; None if that was not read yet."""

    def query(self, write: WriteContext) -> Query:
        of_list = ListForm(write.graph, self.tally.path).of(self.identity)
        [query] = requests_of_all(of_list, self.count)
        return replace(query, forward=self.tally.field.kept == "minimum")

    def take(self, page: Page) -> Position | None:
        """Takes the items of a page. Returns the start of the next one, if that is needed."""
        counted = (self.tally.of(item) for item in page.items)
        self.values = [*(self.values or ()), *(each[1] for each in counted if each is not None)]
        return page.last if len(self.values) < self.count else None


async def read_list_ends(write: WriteContext, send: Callable[[Query], Awaitable[Page]]) -> bool:
    """Reads the first and last items of lists that steps turned out to need. Returns whether there are any: then the
    steps are made again."""

    async def read(end: ListEnd) -> None:
        query = end.query(write)
        while (last := end.take(await send(query))) is not None:
            query = replace(query, start=last)

    wanted = [each for each in write.list_ends.values() if each.values is None]
    await asyncio.gather(*map(read, wanted))
    return bool(wanted)


def _with_ends(
    write: WriteContext, step: TransactionStep, action: PutItem | UpdateItem, before: Item, record: RecordType
) -> tuple[TransactionStep, PutItem | UpdateItem]:
    """Returns the step of a node with the first and last items of its lists as they are after all steps, on condition
    that they are as they were read."""
    several: defaultdict[Field, list[Addition]] = defaultdict(list)
    for each in step.replaced:
        several[each.field].append(each)
    changes, conditions = list[AttributeChange](), list[Condition]()
    for field, additions_ in several.items():
        root, pairs = field.kept_attribute, [each.replaced for each in additions_ if each.replaced]
        known: Any = derived.stored_value(field, before)
        types = {type(each[derived.AT]) for pair in pairs for each in pair if isinstance(each, dict)}
        # What another program has stored stays: it cannot be compared, and is reported by `keygraph verify`.
        if not isinstance(known, dict) or type(known[derived.AT]) not in types | {type(None)}:
            continue
        gone = {old[derived.AT] for old, _ in pairs if isinstance(old, dict)}
        added = [new for _, new in pairs if new is not None]
        conditions += [is_unchanged((*root, derived.AT), before)]
        best: Any = derived.combined(field, added)
        if known[derived.AT] not in gone:
            best = derived.combined(field, [known, best])
        elif cast(Any, derived.combined(field, [best, known]))[derived.AT] != best[derived.AT]:
            rest = _rest(write, record, field, before, gone)
            best = derived.combined(field, [*rest, best])
            conditions.append(is_unchanged((*root, derived.WRITES), before))
        if best != known or known[derived.AT] in gone:
            # Also what is as it was read: another write can have changed it and changed it back.
            changes += [SetTo((*root, name), best[name]) for name in (derived.AT, VALUE)]
    if isinstance(action, PutItem):
        put = replace(action, item=changed(action.item, changes), size=None)
        return replace(step, action=put), put
    made = step.on_condition(*conditions) if conditions else step
    new = {each.path for each in changes}
    others = (each for each in action.changes if each.path not in new)
    update = UpdateItem(action.key, (*others, *changes), made.action.condition)
    return replace(made, action=update), update


def _rest(
    write: WriteContext, owner: RecordType, field: Field, node: Item, gone: Set[Any]
) -> Sequence[Value]:
    """Returns the first or last items of a list without those that go. If they were not read, they are to be."""
    identity = owner.read_identity(node) or ()
    every = (each for several in write.graph.tallies.values() for each in several)
    tally = next(each for each in every if each.field is field)
    end = write.list_ends.setdefault((field, identity), ListEnd(tally, identity, len(gone) + 1))
    if end.count <= len(gone):
        end.count, end.values = len(gone) + 1, None
    return [each for each in end.values or () if isinstance(each, dict) and each[derived.AT] not in gone]


# --- Keys that hold what is counted ----------------------------------------------------------------------


def _rendered_keys(write: WriteContext, owner: RecordType) -> list[Keys]:
    """Returns the keys of a node that are rendered from what is computed over its lists."""
    return derived.keys_of_numbers(owner, write.maker(owner).counted)


def rendered_keys_of_nodes(write: WriteContext, record: RecordType) -> list[str]:
    """Returns the key attributes of nodes that are rendered again when items of a type are added or removed."""
    owners = dict.fromkeys(each.owner for each in write.graph.tallies.get(record.name, ()))
    following = (keys for owner in owners for keys in write.fact(_rendered_keys, owner))
    return [*dict.fromkeys(key.name for keys in following for key in keys.attributes)]


def with_rendered_keys(write: WriteContext, step: TransactionStep) -> TransactionStep:
    """Returns the step of a node with what it keeps of the first and last items of lists, and with the keys that hold
    what it keeps as they are after the step, on condition that what they are rendered from is as it was read."""
    action = step.action
    before = (
        action.item if isinstance(action, PutItem) else write.stored.get(key_of(action, write.graph.table))
    )
    record = None if before is None else write.graph.recognise(before)
    if before is None or record is None or not isinstance(action, PutItem | UpdateItem):
        return step
    if step.replaced:
        step, action = _with_ends(write, step, action, before, record)
        before = action.item if isinstance(action, PutItem) else before
    if not write.fact(_rendered_keys, record):
        return step
    maker, changing = write.maker(record), write.maker(record).counted
    changes = action.changes if isinstance(action, UpdateItem) else ()
    if isinstance(action, UpdateItem):
        written = {each.path[0] for each in changes}
        changing = [field for field in changing if field.attribute[0] in written]
    following = derived.keys_of_numbers(record, changing)
    if not following:
        return step
    names = frozenset(field.name for field in changing)
    attributes = changed(maker.without_own_keys(before), changes)
    unfit = Refusals()
    new, _ = maker.with_keys(attributes, unfit.at(()), replaced=Replaced(before, names))
    if unfit.found:
        # The viewer need not be able to see the node.
        problem = f"A key of the {record.name} that this adds to cannot hold what it would have then."
        write.refusals.add((), problem)
        return step
    if isinstance(action, PutItem):
        return replace(step, action=replace(action, item=new, size=None))
    own = {key.name for each in following for key in each.attributes}
    own -= {field.attribute[0] for field in maker.counted}
    # Also keys that stay as they were read: whoever repairs one of them does not see that the number has changed.
    rendered = {each.path: each for each in differences({}, new, own)}
    rendered |= {each.path: each for each in differences(before, new, own)}
    same = are_as_read(record, maker.paths(sorted(maker.sources(following))), before)
    made = step.on_condition(*same)
    changes = (*(each for each in changes if each.path not in rendered), *rendered.values())
    return replace(made, action=UpdateItem(action.key, changes, made.action.condition))


def _unread_additions(
    write: WriteContext, request: WriteRequest, step: TransactionStep
) -> Iterator[Addition]:
    """Yields what a step adds to nodes, as far as its key tells: an unknown amount to each sum."""
    record, action = request.record, step.action
    if step.is_partner:
        record = write.graph.correspondences[record.name].other
    is_change = isinstance(action, UpdateItem)
    if is_change and not (
        isinstance(request, Change) and is_counted(write, record, write.changed_names(request))
    ):
        return
    is_put = isinstance(action, PutItem)
    item = write.of_key(record, key_of(action, write.graph.table))
    # Of the other item of an edge, the ends may be known and not all of its key.
    item |= action.item if isinstance(action, PutItem) else step.before or {}
    for tally in write.graph.tallies.get(record.name, ()):
        # Whether an item that is not read is in the index of the list is not known.
        node = tally.node(item) if is_put and not step.is_partner else tally.at_end(item)
        if node is not None and not (is_change and tally.is_constant):
            amount = Decimal(1) if tally.is_constant else UNREAD
            for path, one in derived.numbers(tally.field, derived.combined(tally.field, ())):
                added = amount if is_put or is_change else -amount
                added = one if tally.field.kept in OF_ENDS else added
                yield _addition(write, tally, node, (path, added))


def _addition(write: WriteContext, tally: derived.Tally, identity: Texts, number: derived.Number) -> Addition:
    (path, amount), shard = number, shards.standing_for(write, tally.owner, identity)
    if shard is not None and tally.field.shards:
        own = (tally.field.shard_attributes[path],)
        return Addition((shard,), tally.field, own, amount, write.presence.there, is_of_shard=True)
    keys = tuple(write.graph.table_keys(tally.owner, identity))
    there, is_unknown = write.presence.is_there(tally.owner), False
    if all(key in write.stored for key in keys):
        items = {key: item for key in keys if (item := write.stored[key]) is not None}
        found = [key for key, item in items.items() if write.graph.recognise(item) is tally.owner]
        keys = tuple(found[:1]) or keys
        is_unknown = not found or at_path(items[found[0]], path) is None
    return Addition(keys, tally.field, path, amount, there, is_unknown=is_unknown)


def _counted_paths(write: WriteContext, record: RecordType) -> list[Path]:
    """Returns the attributes that determine what an item of a type adds."""
    tallies = write.graph.tallies.get(record.name, ())
    names = {name for tally in tallies for name in tally.names}
    indexed = {
        (key.name,)
        for tally in tallies
        if tally.path.keys.index is not None
        for key in tally.path.keys.attributes
    }
    own = {(key.name,) for key in write.graph.table.keys}
    return sorted({*write.maker(record).paths(sorted(names)), *indexed} - own)
