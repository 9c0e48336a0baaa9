"""Idempotency keys: a write with a key is executed once, however often it is sent, by any process.

The transaction of the write also puts a note into the table, under its own key. The note holds a hash of the request
and the identities of the written records, so that a repeated write gets the first answer. A write that fails leaves no
note. DynamoDB deletes a note after a day, by the graph's TTL attribute.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from keygraph.codes import Code
from keygraph.dynamo.actions import CheckItem, PutItem
from keygraph.dynamo.conditions import Condition, Exists, Le, Not, Or
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyAttribute, KeyValue
from keygraph.errors import BadUserInput, InputPath, Refusal, WriteRefused
from keygraph.graph import Graph
from keygraph.model.node_shards import is_shard
from keygraph.names import NOTE
from keygraph.writing.requests import Done, Put, WriteRequest
from keygraph.writing.step import TransactionStep, again

NOTE_SECONDS = 24 * 60 * 60
LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's name for a write."""

    name: tuple[str | int, ...]
    """The key that the client sent, and the part of its request that it names."""
    request_hash: bytes
    """A hash of the request: the same in every process, and different for another write."""
    where: InputPath = ()
    """Its place in the client's input."""


def is_note(item: Item) -> bool:
    """Returns whether an item is a note and so not part of the graph."""
    return NOTE in item and not is_shard(item)


def is_own(item: Item) -> bool:
    """Returns whether an item is the server's own: a note, or a shard of a node (`keygraph.writing.shards`)."""
    return NOTE in item


def note_key(graph: Graph, name: tuple[str | int, ...]) -> Key:
    digest = hashlib.sha256(repr(name).encode()).digest()
    return tuple(_key_value(attribute, digest) for attribute in graph.table.keys)


def new_note(graph: Graph, name: tuple[str | int, ...], content: Any) -> Item:
    return {**graph.table.attributes_of(note_key(graph, name)), NOTE: content}


def note_step(graph: Graph, key: IdempotencyKey, done: Sequence[Done]) -> TransactionStep:
    """Returns the step that leaves the note, unless there is one that is still valid."""
    now = int(time.time())
    content = {
        "asked": key.request_hash,
        "done": [[each.record.name, *each.identity] for each in done],
        "detached": [Decimal(each.detached) for each in done],
        "new": [each.is_new for each in done],
    }
    item = {**new_note(graph, key.name, content), graph.ttl_attribute: Decimal(now + NOTE_SECONDS)}
    return TransactionStep(PutItem(item, _is_free(graph, now)), again)


def note_check(graph: Graph, key: IdempotencyKey) -> TransactionStep:
    """Returns the step that checks that there is no note that is still valid."""
    return TransactionStep(CheckItem(note_key(graph, key.name), _is_free(graph, int(time.time()))), again)


def _is_free(graph: Graph, now: int) -> Condition:
    # DynamoDB may take days to delete expired items.
    return Or((Not(Exists((graph.table.partition.name,))), Le((graph.ttl_attribute,), Decimal(now))))


def done_before(
    graph: Graph, key: IdempotencyKey, note: Item | None, requests: Sequence[WriteRequest]
) -> tuple[Done, ...] | None:
    """Returns what was done under the key; None if nothing was. Raises WriteRefused if it was another write, or if an
    answer now has to say what was not read then."""
    until = None if note is None else note.get(graph.ttl_attribute)
    if note is None or (isinstance(until, Decimal) and until <= time.time()):
        return None

    def conflict(problem: str) -> WriteRefused:
        return WriteRefused([Refusal(Code.CONFLICT, (problem,), key.where)])

    content: Any = note.get(NOTE)
    try:
        if content["asked"] != key.request_hash:
            raise conflict(
                "This idempotency key was used for another write in the last 24 hours. Use a new one."
            )
        for request, is_new in zip(requests, content["new"], strict=True):
            if isinstance(request, Put) and request.is_read and is_new is None:
                raise conflict(
                    "The first answer under this idempotency key did not select `created`, which is no longer known."
                )
        noted = zip(requests, content["done"], content["detached"], content["new"], strict=True)
        return tuple(_done(graph, *each) for each in noted)
    except (BadUserInput, LookupError, TypeError, ValueError):
        # Another program has stored it, or the model had other types.
        raise conflict("What was done under this idempotency key is no longer known.") from None


def _done(graph: Graph, request: WriteRequest, named: Any, detached: Any, is_new: Any) -> Done:
    """Returns what a note says of a request. Raises BadUserInput, LookupError, TypeError or ValueError if it cannot be true."""
    name, *identity = named
    if name != request.record.name or not all(isinstance(each, str) for each in identity):
        raise ValueError("another record")
    if not (isinstance(is_new, bool | None) and 0 <= detached < 2**31):
        raise ValueError("another answer")
    graph.table_keys(request.record, tuple(identity))
    return Done(request.record, tuple(identity), None, int(detached), is_new)


def _key_value(attribute: KeyAttribute, digest: bytes) -> KeyValue:
    match attribute.type:
        case "N":
            return Decimal(int.from_bytes(digest[:15]))  # a number has 38 digits
        case "B":
            return digest
    return f"{NOTE}#{digest.hex()}"
