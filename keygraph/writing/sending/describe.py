"""Describes a write as text: its reads, then each action of its transaction with its condition.

The actions are made and rendered as for sending (`keygraph.writing.steps`, `keygraph.engines.dynamodb.requests`), but
nothing is read: values that depend on an item that is read first are named instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby

from keygraph.codes import Code
from keygraph.dynamo import actions
from keygraph.dynamo.actions import Action, key_of
from keygraph.dynamo.items import exact_sum, to_typed
from keygraph.dynamo.limits import LOCAL_ENTRY_BYTES
from keygraph.dynamo.store import TRANSACTION_UNITS, Transaction, write_units
from keygraph.dynamo.table import Key, Table
from keygraph.engines.dynamodb.requests import render
from keygraph.errors import InputPath, Refusal
from keygraph.graph import Graph
from keygraph.keys.types import INT_MAX, INT_MIN
from keygraph.lists.describe import DescribedRequest, described_requests, expression_text, value_text
from keygraph.model.permissions import Permissions
from keygraph.model.record_keys import Texts
from keygraph.model.records import RecordType
from keygraph.names import with_article
from keygraph.writing import ends, partners, reads, records, rules, tallies
from keygraph.writing.context import WriteContext
from keygraph.writing.requests import Change, Delete, Move, NewRequest, OnEdges, Upsert, WriteRequest
from keygraph.writing.sending.edges import Search, copied_nodes, named_nodes
from keygraph.writing.sending.idempotency import IdempotencyKey, note_step
from keygraph.writing.sending.sender import Outline
from keygraph.writing.step import TransactionStep
from keygraph.writing.steps import transaction_steps
from keygraph.writing.tallies import UNREAD


@dataclass(frozen=True, slots=True)
class DescribedAction:
    """One action of a transaction, as text."""

    operation: str
    """DynamoDB's name: Put, Update, Delete or ConditionCheck."""
    keys: str
    path: InputPath
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
    write_units: int = 0
    """The most write units that its actions take, if items are as large as their types declare; 0 if nobody computes it."""


@dataclass(frozen=True, slots=True)
class DescribedWrite:
    """A write as text."""

    read: DescribedRequest | None
    """What is read first."""
    read_later: tuple[DescribedRequest, ...]
    """What is read once the first items are known."""
    delete_locks: tuple[DescribedRequest, ...]
    """How nodes that are deleted or moved, or whose copies change, are marked, so that nothing new names them."""
    searches: tuple[DescribedRequest, ...]
    """How the records that name these nodes are then found."""
    transactions: tuple[DescribedTransaction, ...]
    """One, or one for each case of what is read first."""
    identity: Texts | None
    """The identity of the first request's record; None if the first read determines it."""

    @property
    def write_units(self) -> int | None:
        """The most write units that it takes; None if what a search finds decides."""
        return None if self.searches else max(each.write_units for each in self.transactions)


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
        self._context = graph.made(WriteContext).of(permissions).separate()
        self._context.is_described, self._context.sent, self._context.new_shards = True, requests, {}
        if permissions is not None:
            permissions.are_links_assumed = True

    def write(self) -> DescribedWrite:
        requests = self._requests
        rules.refuse_forbidden(self._context, requests)
        outline, read = Outline(self._context, requests, self._key_of_note), None
        if outline.keys:
            operation = "GetItem" if len(outline.keys) == 1 else "BatchGetItem"
            read = DescribedRequest(operation, None, "; ".join(map(self._key, outline.keys)))
        later = tuple(self._read_later())
        marked = (key for node, shards in outline.marked for key in (node, *shards))
        marks = tuple(DescribedRequest("UpdateItem", None, self._key(key)) for key in marked)
        searches = tuple(self._searches(outline.searches))
        if any(isinstance(request, Upsert) for request in requests):
            present, identity = self._transaction("if it is there", [*map(self._as_change, requests)])
            if any(isinstance(request, Upsert) and request.version is not None for request in requests):
                return DescribedWrite(read, later, marks, searches, (present,), identity)
            absent, _ = self._transaction("if it is not there", requests)
            return DescribedWrite(read, later, marks, searches, (absent, present), identity)
        transaction, identity = self._transaction("", requests)
        is_moved = isinstance(requests[0], Move)
        return DescribedWrite(read, later, marks, searches, (transaction,), None if is_moved else identity)

    def _read_later(self) -> Iterator[DescribedRequest]:
        for request in self._requests:
            if reads.is_counting(self._context, request) and not isinstance(request, NewRequest):
                named = self._context.in_key(request.record, request.identity)
                keys = dict.fromkeys(tallies.counted_nodes(self._context, request.record, named))
                if keys:
                    operation = "GetItem" if len(keys) == 1 else "BatchGetItem"
                    yield DescribedRequest(operation, None, "; ".join(map(self._key, keys)))
            if reads.other_read_later(self._context, request) is not None:
                identity = records.identity_of(self._context, request) or ("",) * len(request.record.identity)
                item = self._context.in_key(request.record, identity)
                other = partners.described(self._context, request.record, item)
                if other is not None:
                    yield DescribedRequest("GetItem", None, self._key(self._context.key_of(other)))

    def _searches(self, searches: Iterable[Search]) -> Iterator[DescribedRequest]:
        for _, several in groupby(searches, key=lambda each: (each.request, each.reference)):
            queries = [each.query for each in several]
            partitions = dict.fromkeys(query.partition for query in queries)
            pieces = [query for query in queries if query.partition == queries[0].partition]
            yield described_requests(self._graph, pieces, len(partitions))

    def _as_change(self, request: WriteRequest) -> WriteRequest:
        identity = records.identity_of(self._context, request)
        return request.as_change(identity) if isinstance(request, Upsert) and identity else request

    def _transaction(self, case: str, requests: Sequence[WriteRequest]) -> tuple[DescribedTransaction, Texts]:
        # Nodes that may be in several places are assumed to be in the first.
        keys = [key for request in requests for key in ends.keys_of_spread_ends(self._context, request)]
        context = self._context.knowing({key: {} for key in keys})
        steps, done = transaction_steps(context, requests)
        context.refusals.stop()
        if self._key_of_note is not None:
            steps.append(note_step(self._graph, self._key_of_note, done))
        described = tuple(self._actions(context, steps, requests))
        notes, units = tuple(self._notes(requests)), self._write_units(context, steps, requests)
        return DescribedTransaction(case, described, notes, units), done[0].identity

    def _write_units(
        self, context: WriteContext, steps: Sequence[TransactionStep], requests: Sequence[WriteRequest]
    ) -> int:
        """Returns the most write units of the steps. An update or a deletion of a node of another request may be of any type."""
        table, every = self._graph.table, self._graph.types.values()
        own = {
            context.key_of(context.in_key(each.record, each.identity)): each.record
            for each in requests
            if isinstance(each, Change | Delete)
        }
        total = 0
        for step in steps:
            action = step.action
            written = self._graph.identified(action.item) if isinstance(action, actions.PutItem) else None
            record = written[0] if written else own.get(key_of(action, table))
            is_check = isinstance(action, actions.CheckItem)
            total += max(_most_units(each, table, is_check) for each in ([record] if record else every))
        for request in requests:
            # The other item of an edge may be known only once this one is read.
            is_paired = (
                isinstance(request, Change | Delete | Move)
                and request.record.name in self._graph.correspondences
            )
            if is_paired and not any(step.is_partner for step in steps):
                total += 2 * max(_most_units(each, table, False) for each in every)
        return total

    # --- Actions ------------------------------------------------------------------------------------------

    def _actions(
        self, context: WriteContext, steps: Sequence[TransactionStep], requests: Sequence[WriteRequest]
    ) -> Iterator[DescribedAction]:
        if not steps:
            return
        table = self._graph.table
        described = described_actions([step.action for step in steps], table)
        of_keys = {
            key_of(step.action, table): request
            for request in requests
            for step in transaction_steps(context.separate(), [request])[0]
            if not step.is_check
        }
        for step, action in zip(steps, described, strict=True):
            key = key_of(step.action, table)
            failures = self._failures(step, of_keys.get(key))
            yield replace(
                action,
                path=of_keys[key].where if key in of_keys else failures[0].path if failures else (),
                changes=_with_unread(step, action.changes),
                condition=_with_unread(step, action.condition),
                failures=failures,
            )

    def _key(self, key: Key) -> str:
        return _key_text(key, self._graph.table)

    def _failures(self, step: TransactionStep, request: WriteRequest | None) -> tuple[Refusal, ...]:
        """Returns the refusals if the condition fails: the item is missing or exists, or has another version."""
        refusal = step.refusal(None) if step.action.condition is not None else None
        upserted = {each.where for each in self._requests if isinstance(each, Upsert)}
        if refusal is None or (request is not None and request.where in upserted):
            return ()  # a concurrent write could turn an upsert's change into a creation, or the reverse
        if isinstance(request, Change | Delete) and request.version is not None:
            stale = f"This {request.record.name} has changed."
            return (refusal, Refusal(Code.CONFLICT, (stale,), request.where))
        return (refusal,)

    # --- What depends on what is read ---------------------------------------------------------------------

    def _notes(self, requests: Iterable[WriteRequest]) -> Iterator[str]:
        if self._key_of_note is not None:
            yield "The last action is the note of the idempotency key. If it is there, nothing is written."
        for request in requests:
            yield from self._notes_of_item(request)
            yield from self._notes_of_numbers(request)
            yield from self._notes_of_others(request)
            if len(request.record.table_keys.shard_texts) > 1:
                yield f"If there is {with_article(request.record.name)} with this key, it stays in its shard."

    def _notes_of_item(self, request: WriteRequest) -> Iterator[str]:
        """Yields how the item itself depends on what is read."""
        if self._context.is_replaced(request):
            name = with_article(request.record.name)
            yield f"If there is {name} with this key, it keeps the fields that the server keeps."
        if isinstance(request, Change):
            following, relied = records.relied_on(self._context, request)
            names = dict.fromkeys(key.name for keys in following for key in keys.attributes)
            if names:
                yield f"{_joined(names)}: rendered from the item that is read first."
            if relied:
                paths = _joined(".".join(path) for path in relied)
                yield f"Also a condition: {paths} as read. If not, the write is tried again."
        if isinstance(request, Move):
            yield (
                "The item is put under its new key if none is there. The old one is deleted if it is as it was read. "
                "No node that the item names may be under deletion."
            )

    def _notes_of_numbers(self, request: WriteRequest) -> Iterator[str]:
        """Yields how what nodes keep of their lists depends on what is read."""
        if reads.lists_of_ends(self._context, request):
            yield "If its item is the first or last of a list that a node keeps, the next one is read from the list."
        rendered = tallies.rendered_keys_of_nodes(self._context, request.record)
        if rendered:
            yield f"{_joined(rendered)} of the nodes that it adds to: rendered from the items that are read first."
        if reads.is_counting(self._context, request):
            what = f"what the {request.record.name} adds to counts and sums"
            yield f"Also a condition: {what} is as read. If not, the write is tried again."

    def _notes_of_others(self, request: WriteRequest) -> Iterator[str]:
        """Yields what happens to the items that copy from it, name it, or are the same edge."""
        record = request.record
        if isinstance(request, Change) and copied_nodes(self._context, [request]):
            yield (
                "If what copies follow changes, the copies in what is found change too; "
                "afterwards, if one transaction does not hold all."
            )
            yield "Also a condition: the mark is still there, and what is copied is as read. If not, the write is tried again."
        for node in named_nodes(self._graph, [request]):
            if isinstance(node, Delete) and node.on_edges is OnEdges.DETACH:
                yield "What is found is deleted with it, or its end removed; before it, if one transaction does not hold all."
            else:
                yield f"If anything is found, the {record.name} stays, and the client gets `CONFLICT`."
            yield "Also a condition: the mark is still there. If not, the write is tried again."
        if isinstance(request, Change | Delete | Move) and record.name in self._graph.correspondences:
            done = "deleted" if isinstance(request, Delete) else "changed"
            yield f"The other item of this {record.name} is {done} with it."


def _most_units(record: RecordType, table: Table, is_check: bool) -> int:
    """Returns the most write units of one action in a transaction: its item leaves one place in each index, and enters another."""
    in_indexes = 0
    for index in (each for each in table.indexes if each.name in record.keys and not is_check):
        in_indexes += 2 * write_units(record.item_bytes + (LOCAL_ENTRY_BYTES if index.local else 0))
    return TRANSACTION_UNITS * (write_units(record.item_bytes) + in_indexes)


def described_actions(several: Sequence[Action], table: Table) -> Iterator[DescribedAction]:
    """Yields the actions of a transaction, or one that is sent alone, as they are sent. Raises BadUserInput for one that
    DynamoDB refuses."""
    [wire] = render(Transaction(tuple(several), "explained"), table)
    names = {key.name for key in table.keys}
    for action, typed in zip(several, wire.body["TransactItems"], strict=True):
        [(operation, body)] = typed.items()
        put = {name: value for name, value in body.get("Item", {}).items() if name not in names}
        yield DescribedAction(
            operation,
            _key_text(key_of(action, table), table),
            (),
            ", ".join(f"{name} = {value_text(value)}" for name, value in put.items())
            if "Item" in body
            else None,
            expression_text(body, "UpdateExpression"),
            expression_text(body, "ConditionExpression"),
            (),
        )


def _key_text(key: Key, table: Table) -> str:
    return " AND ".join(
        f"{attribute.name} = {value_text(to_typed(value))}"
        for attribute, value in zip(table.keys, key, strict=True)
    )


def _with_unread(step: TransactionStep, text: str | None) -> str | None:
    """Returns an expression with `{what is read}` for amounts that a read determines."""
    made = step.action.changes if isinstance(step.action, actions.UpdateItem) else ()
    for change in made:
        if isinstance(change, actions.AddNumber) and text and abs(change.amount) >= UNREAD - 1:
            sign, opposite = ("-", "+") if change.amount < 0 else ("", "-")
            text = text.replace(f"{change.amount:f}", f"{sign}{{what is read}}")
            for end in (INT_MIN, INT_MAX):
                bound = exact_sum((Decimal(end), change.amount.copy_negate()))
                text = text.replace(f"{bound:f}", f"{end} {opposite} {{what is read}}")
    return text


def _joined(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
