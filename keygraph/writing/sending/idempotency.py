"""Idempotency keys: a write with one is carried out once, however often it is sent, and from whatever process.

The transaction of the write also puts a note of it into the table, under a key of its own. The note holds a hash of what was
asked for and the identities of what was written, so that whoever sends the write again is answered as the first time. A
write that fails leaves no note. DynamoDB deletes a note after a day, by the graph's TTL attribute.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from keygraph.codes import Code
from keygraph.dynamo.actions import PutItem
from keygraph.dynamo.conditions import Exists, Le, Not, Or
from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Key, KeyAttribute, KeyValue
from keygraph.errors import InputPath, Refusal, WriteRefused
from keygraph.graph import Graph
from keygraph.writing.requests import Done
from keygraph.writing.step import TransactionStep

NOTE = "_keygraph"
"""The attribute of a note that holds what it says. No other item has it."""
NOTE_SECONDS = 24 * 60 * 60
LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """What a client calls a write."""

    name: tuple[str | int, ...]
    """What the client sent, and which part of it is meant."""
    asked: bytes
    """A hash of what is asked for: the same in every process, and another for another write."""
    where: InputPath = ()
    """Where it stands in the client's input."""


def is_note(item: Item) -> bool:
    """Whether an item is a note, and none of the graph."""
    return NOTE in item


def note_key(graph: Graph, key: IdempotencyKey) -> Key:
    """The table key of the note."""
    digest = hashlib.sha256(repr(key.name).encode()).digest()
    return tuple(_key_value(attribute, digest) for attribute in graph.table.keys)


def note_step(graph: Graph, key: IdempotencyKey, done: Sequence[Done]) -> TransactionStep:
    """The step that leaves the note, where there is none that is still good."""
    names = [attribute.name for attribute in graph.table.keys]
    now = int(time.time())
    item: dict[str, Any] = {
        **dict(zip(names, note_key(graph, key), strict=True)),
        NOTE: {
            "asked": key.asked,
            "done": [[each.record.name, *each.identity] for each in done],
            "detached": [Decimal(each.detached) for each in done],
        },
        graph.ttl_attribute: Decimal(now + NOTE_SECONDS),
    }
    # DynamoDB may take days to delete what has expired.
    is_free = Or((Not(Exists((names[0],))), Le((graph.ttl_attribute,), Decimal(now))))
    return TransactionStep(PutItem(item, is_free), lambda _: None)


def done_before(graph: Graph, key: IdempotencyKey, note: Item | None) -> tuple[Done, ...] | None:
    """What was done under the key; None where nothing was. Raises WriteRefused where it was another write."""
    if note is None or cast(Decimal, note[graph.ttl_attribute]) <= time.time():
        return None
    said: Any = note[NOTE]
    if said["asked"] != key.asked:
        told = "This idempotency key was used for another write in the last 24 hours. Use a new one."
        raise WriteRefused([Refusal(Code.CONFLICT, (told,), key.where)])
    return tuple(
        Done(graph.types[name], tuple(identity), None, int(detached))
        for (name, *identity), detached in zip(said["done"], said["detached"], strict=True)
    )


def _key_value(attribute: KeyAttribute, digest: bytes) -> KeyValue:
    match attribute.type:
        case "N":
            return Decimal(int.from_bytes(digest[:15]))  # a number has 38 digits
        case "B":
            return digest
    return f"{NOTE}#{digest.hex()}"
