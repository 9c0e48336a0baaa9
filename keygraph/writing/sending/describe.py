"""Describes a write as text: its reads, then each action of its transaction with its condition.

The actions are made and rendered as for sending (`keygraph.writing.steps`, `keygraph.engines.dynamodb.requests`), but
nothing is read: values that depend on an item that is read first are named instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.actions import SetTo, key_of
from keygraph.dynamo.items import Item, Value, exact_sum, to_typed
from keygraph.dynamo.store import Transaction
from keygraph.dynamo.table import Key
from keygraph.engines.dynamodb.requests import render
from keygraph.errors import InputPath, KeygraphError, Refusal
from keygraph.graph import Graph
from keygraph.keys.types import INT_MAX, INT_MIN
from keygraph.lists.describe import DescribedRequest, described_requests, expression_text, value_text
from keygraph.lists.placeholders import shown_key
from keygraph.model.permissions import Permissions
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.names import with_article
from keygraph.writing.ground import Stored
from keygraph.writing.items import Refusals
from keygraph.writing.presence import after_changes
from keygraph.writing.requests import Change, Create, Delete, Done, Move, OnEdges, Put, Upsert, WriteRequest
from keygraph.writing.sending.edges import ranges
from keygraph.writing.sending.idempotency import IdempotencyKey, note_key, note_step
from keygraph.writing.sending.removal import named_nodes
from keygraph.writing.step import Addition, TransactionStep, again
from keygraph.writing.steps import StepMaker

_UNREAD = Decimal(10) ** 30
"""Stands for an amount that only a read determines."""


@dataclass(frozen=True, slots=True)
class DescribedAction:
    """One action of a transaction, as text."""

    operation: str
    """DynamoDB's name: Put, Update, Delete or ConditionCheck."""
    keys: str
    """The key of its item."""
    path: InputPath
    """Its place in the input."""
    attributes: str | None
    """The attributes that are put in addition to the key."""
    changes: str | None
    """DynamoDB's update expression, with its names and values."""
    condition: str | None
    failures: tuple[Refusal, ...]
    """The refusals if the condition does not hold. Empty: the write is tried again."""


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """The actions of one transaction."""

    case: str
    """When it is sent, if that depends on what is read first."""
    actions: tuple[DescribedAction, ...]
    notes: tuple[str, ...]
    """Further contents that depend on what is read first."""


@dataclass(frozen=True, slots=True)
class DescribedWrite:
    """A write as text."""

    read: DescribedRequest | None
    """What is read first."""
    read_later: tuple[DescribedRequest, ...]
    """What is read once the first items are known."""
    marks: tuple[DescribedRequest, ...]
    """How nodes that are deleted or moved are marked, so that nothing new names them."""
    searches: tuple[DescribedRequest, ...]
    """How the records that name these nodes are then found."""
    transactions: tuple[DescribedTransaction, ...]
    """One, or one for each case of what is read first."""
    identity: Texts | None
    """The identity of the first request's record; None if the first read determines it."""


def describe_write(
    graph: Graph,
    requests: Sequence[WriteRequest],
    idempotency_key: IdempotencyKey | None = None,
    permissions: Permissions | None = None,
) -> DescribedWrite:
    """Returns what a write sends. Raises WriteRefused for one that is refused without reading anything.

    `permissions` are the writer's; None allows everything.
    """
    return _Describing(graph, requests, idempotency_key, permissions).write()


class _UnreadSteps(StepMaker):
    """Makes the steps of deletes and moves of unread items from the input alone."""

    def told(self, request: WriteRequest) -> Item:
        """Returns the values that the key of a record holds."""
        if isinstance(request, Create | Put | Upsert):
            identity = self.new(request)[1] or ("",) * len(request.record.identity)
        else:
            identity = request.identity
        return self._in_key(request.record, identity)

    def partner_key(self, record: RecordType, item: Item) -> Key | None:
        """Returns the key of an edge's other item, with placeholders for unknowns; None if it is its own mirror."""
        correspondence = self._graph.correspondences[record.name]
        key = shown_key(correspondence.other, told=correspondence.told_identity(item))
        return None if key == self._key_of(item) else key

    def _deleted(
        self, request: Delete, stored: Stored, refusals: Refusals
    ) -> tuple[list[TransactionStep], Done]:
        made, done = super()._deleted(request, stored, refusals)
        told = self.told(request)
        made = [replace(step, additions=self._taken_away(request.record, told)) for step in made]
        if request.record.name in self._graph.correspondences:
            key = self.partner_key(request.record, told)
            if key is not None:
                gone = TransactionStep(actions.DeleteItem(key), again)
                made.append(replace(gone, additions=self._taken_away(*self._at(request.record, key))))
        return made, done

    def _changed(
        self, request: Change, stored: Stored, refusals: Refusals, *, is_upsert: bool = False
    ) -> tuple[list[TransactionStep], Done]:
        made, done = super()._changed(request, stored, refusals, is_upsert=is_upsert)
        if made and self._tallies.has(request.record, self.changed_names(request)):
            sums = self._tallies.unread(request.record, self.told(request), _UNREAD)
            added = tuple(each for each in sums if each.amount == _UNREAD)
            made[0] = replace(made[0], additions=added)
        return made, done

    def _at(self, record: RecordType, key: Key) -> tuple[RecordType, Item]:
        """Returns the other item of an edge, with the values that its key holds."""
        other = self._graph.correspondences[record.name].other
        names = (attribute.name for attribute in self._graph.table.keys)
        return other, other.completed(dict(zip(names, key, strict=True)))

    def _taken_away(self, record: RecordType, item: Item) -> tuple[Addition, ...]:
        return self._tallies.unread(record, item, -_UNREAD)

    def _moved(self, request: Move, stored: Stored, refusals: Refusals) -> tuple[list[TransactionStep], Done]:
        record, maker, old = request.record, self.maker(request.record), self.told(request)
        change, changes = self._move(request, refusals)
        done = Done(record, request.identity, None)
        given = [change for change in changes if isinstance(change, SetTo)]
        attributes = after_changes(maker.without_own_keys(old), given)
        try:
            texts = maker.texts_after(request.identity, attributes, self.changed_names(request))
        except KeygraphError:
            return [], done  # only a read determines the new key
        new, identity = maker.with_rendered(attributes, texts, request.to, refusals)
        if refusals.found:
            return [], done
        known = {change.path[0] for change in given}.union(
            each.name for each in self._graph.table.key_attributes()
        )
        new = {name: value for name, value in new.items() if name in known}
        key, *_ = self._graph.table_keys(record, request.identity)
        put, *others, delete = self._moving(request, key, new, identity, (), refusals)
        put = replace(put, additions=self._tallies.unread(record, old | new, _UNREAD))
        steps = [put, *others, replace(delete, additions=self._taken_away(record, old))]
        if record.name in self._graph.correspondences:
            before, after = (self.partner_key(record, each) for each in (old, old | new))
            if before != after:
                names = [attribute.name for attribute in self._graph.table.keys]
                gone, there = (
                    None if key is None else dict[str, Value](zip(names, key, strict=True))
                    for key in (before, after)
                )
                away = [] if before is None else [self._taken_away(*self._at(record, before))]
                added = [] if after is None else [self._tallies.unread(*self._at(record, after), _UNREAD)]
                moved = self._partner_moved(change, gone, there, ())
                steps += [
                    replace(step, additions=each) for step, each in zip(moved, [*away, *added], strict=True)
                ]
        named = {each.name for each, _ in self._given_ends(request, stored)}
        checks = [*self._checks(request, stored, refusals), *self._unmarked(record, old | new, named)]
        return [*steps, *checks], done


class _Describing:
    def __init__(
        self,
        graph: Graph,
        requests: Sequence[WriteRequest],
        idempotency_key: IdempotencyKey | None,
        permissions: Permissions | None,
    ) -> None:
        self._graph = graph
        self._requests = requests
        self._key_of_note = idempotency_key
        self._maker = graph.made(_UnreadSteps).of(permissions)
        if permissions is not None:
            permissions.are_assumed = True

    def write(self) -> DescribedWrite:
        requests, refusals = self._requests, Refusals()
        self._maker.refuse(requests, refusals)
        refusals.stop()
        keys = dict.fromkeys(key for request in requests for key in self._maker.needed(request))
        read = None
        nodes = named_nodes(self._graph, requests)
        if (keys or nodes) and self._key_of_note is not None:
            keys[note_key(self._graph, self._key_of_note)] = None
        if keys:
            operation = "GetItem" if len(keys) == 1 else "BatchGetItem"
            read = DescribedRequest(operation, None, "; ".join(map(self._key, keys)))
        later = tuple(self._read_later())
        if any(isinstance(request, Upsert) for request in requests):
            present, identity = self._transaction("if it is there", [*map(self._as_change, requests)])
            if any(isinstance(request, Upsert) and request.version is not None for request in requests):
                return DescribedWrite(read, later, (), (), (present,), identity)
            absent, _ = self._transaction("if it is not there", requests)
            return DescribedWrite(read, later, (), (), (absent, present), identity)
        transaction, identity = self._transaction("", requests)
        marks = tuple(
            DescribedRequest(
                "UpdateItem", None, self._key(self._graph.table_keys(each.record, each.identity)[0])
            )
            for each in nodes
        )
        searches = tuple(search for each in nodes for search in self._searches(each))
        is_moved = isinstance(requests[0], Move)
        return DescribedWrite(read, later, marks, searches, (transaction,), None if is_moved else identity)

    def _read_later(self) -> Iterator[DescribedRequest]:
        for request in self._requests:
            if self._maker.read_later(request) is not None:
                told = self._maker.partner_key(request.record, self._maker.told(request))
                if told is not None:
                    yield DescribedRequest("GetItem", None, self._key(told))

    def _searches(self, request: Delete | Move) -> Iterator[DescribedRequest]:
        for reference in self._graph.references[request.record.name]:
            queries = [each.query for each in ranges(self._graph, [reference], request.identity)]
            partitions = dict.fromkeys(query.partition for query in queries)
            pieces = [query for query in queries if query.partition == next(iter(partitions))]
            if pieces:
                yield described_requests(self._graph, pieces, len(partitions))

    def _as_change(self, request: WriteRequest) -> WriteRequest:
        identity = self._maker.new(request)[1] if isinstance(request, Upsert) else None
        return (
            self._maker.change_of(request, identity) if isinstance(request, Upsert) and identity else request
        )

    def _transaction(self, case: str, requests: Sequence[WriteRequest]) -> tuple[DescribedTransaction, Texts]:
        refusals = Refusals()
        steps, done = self._steps(requests, refusals)
        refusals.stop()
        if self._key_of_note is not None:
            steps.append(note_step(self._graph, self._key_of_note, done))
        described = tuple(self._actions(steps, requests))
        return DescribedTransaction(case, described, tuple(self._notes(requests))), done[0].identity

    def _steps(
        self, requests: Sequence[WriteRequest], refusals: Refusals
    ) -> tuple[list[TransactionStep], list[Done]]:
        # Nodes that may be in several places are assumed to be in the first.
        stored: dict[Key, Item | None] = {
            key: {} for request in requests for key in self._maker.keys_of_ends(request)
        }
        return self._maker.steps(requests, stored, refusals)

    # --- Actions ------------------------------------------------------------------------------------------

    def _actions(
        self, steps: Sequence[TransactionStep], requests: Sequence[WriteRequest]
    ) -> Iterator[DescribedAction]:
        if not steps:
            return
        table = self._graph.table
        [wire] = render(Transaction(tuple(step.action for step in steps), "explained"), table)
        of_keys = {
            key_of(step.action, table): request
            for request in requests
            for step in self._steps([request], Refusals())[0]
            if not step.is_check
        }
        for step, typed in zip(steps, wire.body["TransactItems"], strict=True):
            [(operation, body)] = typed.items()
            key = key_of(step.action, table)
            failures = self._failures(step, of_keys.get(key))
            yield DescribedAction(
                operation,
                self._key(key),
                of_keys[key].where if key in of_keys else failures[0].path if failures else (),
                self._attributes(body["Item"]) if isinstance(step.action, actions.PutItem) else None,
                _with_unread(step, expression_text(body, "UpdateExpression")),
                _with_unread(step, expression_text(body, "ConditionExpression")),
                failures,
            )

    def _attributes(self, typed: Mapping[str, Any]) -> str:
        keys = {key.name for key in self._graph.table.keys}
        return ", ".join(f"{name} = {value_text(value)}" for name, value in typed.items() if name not in keys)

    def _key(self, key: Key) -> str:
        return " AND ".join(
            f"{attribute.name} = {value_text(to_typed(value))}"
            for attribute, value in zip(self._graph.table.keys, key, strict=True)
        )

    def _failures(self, step: TransactionStep, request: WriteRequest | None) -> tuple[Refusal, ...]:
        """Returns the refusals if the condition fails: the item is missing or exists, or has another version."""
        told = step.refusal(None) if step.action.condition is not None else None
        if told is None or self._is_upserted(request):
            return ()
        if isinstance(request, Change | Delete) and request.version is not None:
            stale = f"This {request.record.name} has changed."
            return (told, Refusal(Code.CONFLICT, (stale,), request.where))
        return (told,)

    def _is_upserted(self, request: WriteRequest | None) -> bool:
        """Returns whether a concurrent write could turn an upsert's change into a creation, or the reverse."""
        wheres = {each.where for each in self._requests if isinstance(each, Upsert)}
        return request is not None and request.where in wheres

    # --- What depends on what is read ---------------------------------------------------------------------

    def _notes(self, requests: Iterable[WriteRequest]) -> Iterator[str]:
        if self._key_of_note is not None:
            yield "The last action is the note of the idempotency key. If it is there, nothing is written."
        for request in requests:
            record = request.record
            is_partner = record.name in self._graph.correspondences
            if isinstance(request, Put) and self._maker.is_replaced(request):
                yield f"If there is {with_article(record.name)} with this key, it keeps the fields that the server keeps."
            if isinstance(request, Change):
                yield from self._notes_of_change(request)
            if isinstance(request, Move):
                yield (
                    "The item is put under its new key if none is there. The old one is deleted if it is as it was read. "
                    "No node that the item names may be under deletion."
                )
            is_counted = isinstance(request, Put | Upsert | Change | Delete | Move) and self._maker.counts(
                request
            )
            if is_counted:
                yield f"Also a condition: what the {record.name} adds to counts and sums is as read. If not, the write is tried again."
            yield from self._notes_of_node(request)
            if isinstance(request, Change | Delete | Move) and is_partner:
                done = "deleted" if isinstance(request, Delete) else "changed"
                yield f"The other item of this {record.name} is {done} with it."
            if len(self._graph.table_keys(record, ("",) * len(record.identity))) > 1:
                yield f"If there is {with_article(record.name)} with this key, it stays in its shard."

    def _notes_of_node(self, request: WriteRequest) -> Iterator[str]:
        for node in named_nodes(self._graph, [request]):
            if isinstance(node, Delete) and node.on_edges is OnEdges.DETACH:
                yield "What is found is deleted with it, or its end removed; before it, if one transaction does not hold all."
            else:
                yield f"If anything is found, the {node.record.name} stays, and the client gets `CONFLICT`."
            yield "Also a condition: the mark is still there. If not, the write is tried again."

    def _notes_of_change(self, request: Change) -> Iterator[str]:
        following, relied = self._maker.relied(request)
        names = dict.fromkeys(key.name for keys in following for key in keys.attributes)
        if names:
            yield f"{_joined(names)}: rendered from the item that is read first."
        if relied:
            shown = _joined(".".join(path) for path in relied)
            yield f"Also a condition: {shown} as read. If not, the write is tried again."


def _with_unread(step: TransactionStep, text: str | None) -> str | None:
    """Returns an expression with `{what is read}` for amounts that a read determines."""
    made = step.action.changes if isinstance(step.action, actions.UpdateItem) else ()
    for change in made:
        if isinstance(change, actions.AddNumber) and text and abs(change.amount) >= _UNREAD - 1:
            sign, opposite = ("-", "+") if change.amount < 0 else ("", "-")
            text = text.replace(f"{change.amount:f}", f"{sign}{{what is read}}")
            for end in (INT_MIN, INT_MAX):
                bound = exact_sum((Decimal(end), change.amount.copy_negate()))
                text = text.replace(f"{bound:f}", f"{end} {opposite} {{what is read}}")
    return text


def _joined(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
