"""Damages right tables at random, and says what they are when they are repaired."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TypeAlias

from keygraph import Graph
from keygraph.dynamo.items import Item, Value
from keygraph.dynamo.store import BatchWrite, Scan, Store, pages
from keygraph.dynamo.table import Key
from keygraph.errors import WriteRefused
from keygraph.model.node_shards import shard_keys, with_shards
from keygraph.model.records import RecordType
from keygraph.tables.totals import tallies_of
from keygraph.writing.marks import ADDED
from keygraph.writing.requests import Delete, OnEdges
from keygraph.writing.sending.idempotency import is_note
from keygraph.writing.sending.writer import write

Items: TypeAlias = dict[Key, Item]
_KINDS = ("key", "one-sided", "differing", "miscounted")


async def items_of(store: Store) -> Items:
    """What is in a table, without notes of idempotency keys, and without how often something was added to a node."""
    read = [item async for page in pages(store, Scan(consistent=True)) for item in page.items]
    known = [
        {name: value for name, value in item.items() if name != ADDED} for item in read if not is_note(item)
    ]
    return {store.table.key_of(item): item for item in known}


def added_up(graph: Graph, items: Items) -> Items:
    """The items of a graph with the numbers of nodes added up, whichever shard has which part."""
    found = Items()
    for key, item in items.items():
        record = graph.recognise(item)
        if record is not None:
            found[key] = with_shards(record, item, map(items.get, shard_keys(record, key)))
    return found


async def damage(graph: Graph, store: Store, dice: random.Random, share: float) -> tuple[Items, list[str]]:
    """Damages so many of the items of a right table. Returns what it is once repaired, and what was done to it."""
    right = await items_of(store)
    gone = await _deleted_node(graph, store, dice, right)
    expected = await items_of(store)
    wrong = {key: item for key, item in right.items() if key != gone}
    done = [] if gone is None else ["dangling"]
    for key in sorted(right.keys() - expected.keys() - {gone}):
        record = graph.recognise(right[key])
        if record is not None and record.name in graph.correspondences and dice.random() < share / 2:
            del wrong[key]  # an edge of that node, of which the other item may stay
    of_others = set[Key]()
    for key in dice.sample(sorted(expected), len(expected)):
        if dice.random() > share or key in of_others or right.get(key) != expected[key]:
            continue
        kinds, items = dice.sample(_KINDS, len(_KINDS)), {**expected, **wrong}
        every = (_damaged(graph, kind, dice, expected[key], items) for kind in kinds)
        made = next((each for each in every if each is not None), None)
        if made is not None:
            kind, new, other = made
            done.append(kind)
            wrong[key] = new
            of_others |= {key, *([] if other is None else [other])}
            if not new:
                del wrong[key]
    await store.send(
        BatchWrite(tuple(wrong.values()), tuple((expected.keys() | right.keys()) - wrong.keys()))
    )
    return expected, done


async def _deleted_node(graph: Graph, store: Store, dice: random.Random, right: Items) -> Key | None:
    """Deletes a node with everything that names it. Returns its key; None if there is none that can be deleted so."""
    for key in dice.sample(sorted(right), len(right)):
        item = right[key]
        record = graph.recognise(item)
        identity = None if record is None or not record.is_node else record.read_identity(item)
        if record is None or identity is None:
            continue
        of_all = graph.references.get(record.name, ())
        # A delete does not find what no key leads to.
        if not of_all or not all(each.is_found and each.end.name in each.record.ends for each in of_all):
            continue
        try:
            await write(graph, store, [Delete(record, identity, on_edges=OnEdges.DETACH)])
        except WriteRefused:
            continue
        return key
    return None


def _damaged(
    graph: Graph, kind: str, dice: random.Random, item: Item, items: Items
) -> tuple[str, Item, Key | None] | None:
    """What was done to an item, what it becomes, and the key of the other item of an edge, which must stay as it is."""
    record = graph.recognise(item)
    if record is None:
        return None
    declared = {place.attribute[0] for place in record.places}
    names = sorted(item.keys() & record.key_attributes - record.table_keys.names - declared)
    if kind == "key" and names:
        return with_wrong_key(graph, record, dice, item, dice.choice(names))
    numbers = [field.attribute[0] for field in tallies_of(graph, record) if len(field.attribute) == 1]
    if kind == "miscounted" and numbers:
        name, number = dice.choice(numbers), dice.choice([Decimal(77), None])
        return kind, _with(item, name, number), None
    pair = graph.correspondences.get(record.name)
    other = graph.counterpart(record, item) if pair and kind in ("one-sided", "differing") else None
    if pair is None or other is None:
        return None
    own = [field for field in record.fields.values() if field.name not in pair.fields]
    there = [key for key in graph.table_keys(other.record, other.identity) if key in items]
    if kind == "one-sided" and not any(record.reader(field)(item) is not None for field in own):
        return (kind, {}, there[0]) if there else None
    is_wrong = graph.table.key_of(item) > there[0] if pair.is_mirror else record.counterpart is None
    in_keys = {slot.path[0] for slot in (*record.slots.values(), *other.record.slots.values())}
    texts = [
        record.fields[name].attribute[0]
        for name in pair.fields
        if name not in in_keys and record.fields[name].type.kind == "string"
    ]
    if kind != "differing" or not is_wrong or not texts:
        return None
    return kind, _with(item, dice.choice(texts), dice.choice(["another", None])), there[0]


def with_wrong_key(
    graph: Graph, record: RecordType, dice: random.Random, item: Item, name: str
) -> tuple[str, Item, None] | None:
    """Returns what was done to an item whose key attribute is made wrong or removed; None if that cannot be repaired."""
    without = _with(item, name, None)
    if {**record.completed(without), name: item[name]} != record.completed(item):
        return None  # only this key holds a value
    if any(keys.shards and name in keys.names for keys in record.keys.values()):
        return None  # any shard is right
    wrong = Decimal(77) if isinstance(item[name], Decimal) else dice.choice(["undefined", "X#undefined#y"])
    return "key", _with(item, name, dice.choice([None, wrong])), None


def _with(item: Item, name: str, value: Value) -> Item:
    return {**item, name: value} if value is not None else {n: v for n, v in item.items() if n != name}
