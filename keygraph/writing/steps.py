"""The steps of one transaction: the changes of each request to the items of the table, and the meaning of a failure.

The stored items that the steps depend on are first read once for all requests (`reads`). These functions only compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.conditions import And, Condition, Not, paths_of
from keygraph.dynamo.items import Item
from keygraph.dynamo.limits import TRANSACTION_ACTIONS
from keygraph.dynamo.table import Key
from keygraph.errors import BadUserInput, InputPath, Refusal
from keygraph.model.permissions import names_by_order
from keygraph.model.records import RecordType
from keygraph.model.references import EndReference
from keygraph.writing import ends, records, rules
from keygraph.writing.context import NOTHING_STORED, Made, Stored, WriteContext
from keygraph.writing.presence import after_changes, are_as_read
from keygraph.writing.reads import all_linked
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Done,
    Move,
    NewRequest,
    Put,
    Upsert,
    WriteRequest,
)
from keygraph.writing.step import TransactionStep, again, merged
from keygraph.writing.tallies import adds, with_additions, with_rendered_keys


def transaction_steps(
    write: WriteContext, requests: Sequence[WriteRequest]
) -> tuple[list[TransactionStep], list[Done]]:
    """Returns the steps of all requests, at most one for each item, and the resulting records."""
    steps: list[tuple[InputPath, TransactionStep]] = []
    done: list[Done] = []
    copies, made_here = write.graph.copies, NOTHING_STORED
    if any(each.record.name in copies for each in requests):
        made_here = _made_nodes(write, requests)
    checked = None if write.is_guarded else set[tuple[Key, tuple[RecordType, ...]]]()
    write.new_shards.clear()
    write.unspread = frozenset(_unspread_nodes(write, requests))
    for each in requests:
        # A problem of one request says nothing about the others.
        own, request = write.separate(), each
        own.checked = checked
        further: list[TransactionStep] = []
        if each.record.name in copies:
            request, further = ends.with_copies(own, each, made_here)
        made, outcome = _own_steps(own, request)
        made = _joined(own, request, made)
        if own.refusals.found:
            write.refusals.found += own.refusals.found
        else:
            links = _link_checks(own, request) if write.is_guarded else ()
            steps += [(each.where, step) for step in (*made, *links, *further)]
        done.append(outcome)
    joined = merged(steps, write.graph.table, write.refusals)
    # One more is left for the note of an idempotency key.
    joined += [*write.new_shards.values()][: max(0, TRANSACTION_ACTIONS - 1 - len(joined))]
    if any(write.fact(adds, each.record) for each in requests):
        joined = [with_rendered_keys(write, step) for step in joined]
        # Other steps may have added to a new record.
        puts = (step.action.item for step in joined if isinstance(step.action, actions.PutItem))
        put = {write.key_of(item): item for item in puts}
        done = [
            each if each.item is None else replace(each, item=put.get(write.key_of(each.item), each.item))
            for each in done
        ]
    return joined, done


def _unspread_nodes(write: WriteContext, requests: Iterable[WriteRequest]) -> Iterator[Key]:
    """Yields the keys of nodes that requests create, delete or move: none of their shards stands for them."""
    for request in requests:
        if request.record.shard_count and not isinstance(request, Change):
            identity = records.identity_of(write, request)
            yield from () if identity is None else write.graph.table_keys(request.record, identity)


def _own_steps(write: WriteContext, request: WriteRequest) -> Made:
    """Returns the steps for the record of a request and the other item of an edge, and the checks of its nodes."""
    match request:
        case Create() | Put():
            return records.written(write, request)
        case Upsert():
            return records.upserted(write, request)
        case Change():
            return records.changed(write, request)
        case Move():
            return records.moved(write, request)
        case Delete():
            return records.deleted(write, request)


def _joined(
    write: WriteContext, request: WriteRequest, steps: Sequence[TransactionStep]
) -> list[TransactionStep]:
    """Returns the steps of a request with what they add to nodes, and conditions for the other items of edges."""
    made = [_beside_others(write, request, step) if step.is_partner else step for step in steps]
    return (
        [with_additions(write, request, step) for step in made] if write.fact(adds, request.record) else made
    )


def _beside_others(write: WriteContext, request: WriteRequest, step: TransactionStep) -> TransactionStep:
    """Returns a step for the other item of an edge, on condition that no item of another type has its key."""
    other = write.graph.correspondences[request.record.name].other
    conditions = write.presence.is_replaceable(other)
    if not conditions:
        return step
    taken = records.taken_by_another(request)

    def refusal(item: Item | None) -> Refusal | None:
        is_taken = item is not None and write.graph.recognise(item) is not other
        hidden = rules.hidden_at_key(write, request, item)
        return hidden or taken if is_taken else step.refusal(item)

    return replace(step.on_condition(*conditions), refusal=refusal)


def _link_checks(write: WriteContext, request: WriteRequest) -> Iterator[TransactionStep]:
    """Yields the checks that other items that decided who may write are as they were read."""
    for key, name in all_linked(write, request):
        item, record = write.stored.get(key), name.link.record
        own = [] if name.condition is None else [name.condition]
        if write.permissions.are_links_assumed:
            condition: Condition = And((write.presence.is_there(record), *own))
        elif item is None or not write.graph.is_of(item, (record,)):
            condition = Not(write.presence.is_there(record))
        else:
            same = are_as_read(record, [path for each in own for path in paths_of(each)], item)
            condition = And((write.presence.is_there(record), *same))
        yield TransactionStep(actions.CheckItem(key, condition), again, is_check=True, is_rule=True)


def _made_nodes(write: WriteContext, requests: Sequence[WriteRequest]) -> Stored:
    """Returns the nodes that the requests create or change, as they will be."""
    nodes: dict[Key, Item | None] = {}
    separate = write.separate()
    for request in requests:
        if request.record.is_node and isinstance(request, Create | Upsert | Change):
            item, identity = None, getattr(request, "identity", None)
            if not isinstance(request, Change):
                item, identity = records.new_item(write, request)
            there = None if identity is None else separate.found(request.record, identity, ())
            if there is not None and identity is not None and not isinstance(request, Create):
                change = request if isinstance(request, Change) else request.as_change(identity)
                with suppress(BadUserInput):  # its own step refuses what does not fit
                    item = after_changes(there, ends.attribute_changes(separate, change))
            if item is not None:
                nodes[write.key_of(item)] = item
    return nodes


def detaching_steps(
    write: WriteContext, references: Sequence[EndReference], item: Item
) -> list[TransactionStep]:
    """Returns the steps that stop a record from naming a records.deleted node, on condition that it still names the node."""
    request, own = records.detaching(write, references, item), write.separate()
    made, _ = _own_steps(own, request)
    is_hidden = not all(sees_reference(write, each, item) for each in references)
    if is_hidden or (own.refusals.found and write.is_guarded):
        # The viewer need not be able to see the record.
        problem = "You may not delete everything that names this."
        write.refusals.add(request.where, problem, code=Code.FORBIDDEN)
        return []
    write.refusals.found += own.refusals.found
    if not made:
        return []
    made = _on_ends_as_read(write, request, made, (reference.end.name for reference in references), item)
    links = _link_checks(write, request) if write.is_guarded else ()
    return [*_joined(write, request, made), *links]


def following_steps(
    write: WriteContext, request: Change, names: Iterable[str], item: Item
) -> list[TransactionStep]:
    """Returns the steps that change copies in a record, on condition that its ends `names` still name the same nodes."""
    made, _ = _own_steps(write, request)
    return _joined(write, request, _on_ends_as_read(write, request, made, names, item)) if made else []


def _on_ends_as_read(
    write: WriteContext,
    request: Change | Delete,
    steps: Sequence[TransactionStep],
    names: Iterable[str],
    item: Item,
) -> list[TransactionStep]:
    """Returns the steps of a write that no client asked for, on condition that the record's ends are as read."""
    paths = write.maker(request.record).paths(names)
    first = steps[0].on_condition(*are_as_read(request.record, paths, item))
    return [replace(step, refusal=again) for step in (first, *steps[1:])]


def sees_reference(write: WriteContext, reference: EndReference, item: Item) -> bool:
    """Returns whether the viewer sees that a record names a node: the record, and what `revealed_by` returns."""
    record, names = reference.record, revealed_by(reference)
    return write.is_visible(record, item) and all(write.is_visible(record, item, name) for name in names)


def may_hide_reference(write: WriteContext, reference: EndReference) -> bool:
    """Returns whether the viewer may not see that some record of this type names a node, or something that is read with
    it."""
    path, names = reference.path, {reference.record: revealed_by(reference)}
    if path is not None:
        for each in write.graph.siblings(path):
            slots = each.keys[path.keys.index_name].slots
            names[each] = {slot.path[0] for slot in slots if not slot.is_shard}
    rights, told = write.permissions, ((each, name) for each in names for name in (None, *names[each]))
    return write.is_guarded and any(rights.decision(each, "read", name) is not True for each, name in told)


def revealed_by(reference: EndReference) -> set[str]:
    """Returns the fields and ends about which it tells something that a record was found by this reference."""
    path, end = reference.path, reference.end.name
    return {end} if path is None or path.keys.index is None else {end, *names_by_order(path)}


def value_problems(write: WriteContext, request: WriteRequest) -> list[Refusal]:
    """Returns what is wrong with the values of a request, whatever is stored.

    The identity of a node at an end may be empty, which is no problem of this request.
    """
    write, record, where = write.separate(), request.record, request.where
    refusals, maker = write.refusals, write.maker(record)
    if isinstance(request, Change):
        ends.attribute_changes(write, request)
    if not isinstance(request, NewRequest):
        return refusals.found
    given = request.values_of_new if isinstance(request, Upsert) else request.values
    values = {**given, **write.kept(record, is_new=True)}
    unknown = {name for name, value in values.items() if value == ()}
    values = {name: value for name, value in values.items() if name not in unknown}
    item = maker.attributes(values, refusals.at(where))
    item, _ = maker.with_keys(item, refusals.at(where), values)
    rules.check(write, record, item, where)
    left_out = {(*where, maker.input_name(name)) for name in unknown}
    return [each for each in refusals.found if each.path not in left_out]
