"""Global ids: opaque texts that identify a node, a record or an edge of any type. They differ from all keys."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import orjson

from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.text import IsoDatetime
from keygraph.keys.union import NodeText
from keygraph.model.records import RecordType
from keygraph.names import with_article
from keygraph_resolvers.naming.scalar_values import value_of_text

_BEGINNING = "Wy"
"""The beginning of every global id, rare in keys: the first bracket of its content."""


def global_id(record: RecordType, identity: Sequence[str]) -> str:
    """The id of the record of this type with these key texts."""
    return _written([record.name, *identity])


def _written(content: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()


def may_be_id(text: str) -> bool:
    """Whether a text begins as ids do."""
    return text.startswith(_BEGINNING)


def _content(text: str) -> list[str] | None:
    """The type name and the key texts in an id; None if the text does not have the form of an id."""
    if not may_be_id(text):
        return None
    try:
        content = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        is_one = isinstance(content, list) and all(isinstance(part, str) for part in content)
        return content if is_one and _written(content) == text else None
    except ValueError:
        return None


def _named(graph: Graph, text: str) -> tuple[RecordType, tuple[str, ...]] | None:
    """The type and the key texts that an id names, whether or not that record exists; None if the text is not an id."""
    content = _content(text)
    if content is None:
        return None
    name, *identity = content or [""]
    record = graph.types.get(name)
    return (record, tuple(identity)) if record and len(identity) == len(record.identity) else None


def read_global_id(graph: Graph, text: str, name: str = "id") -> tuple[RecordType, tuple[str, ...]]:
    """Reads the id in an argument with this name. Raises BadUserInput if it is not an id of this graph."""
    found = _named(graph, text)
    if found is None:
        wanted = "Pass the value of an `id` field, or look the node up by its key."
        raise BadUserInput(f"{name}: {text[:60]!r} is not a global id. {wanted}")
    graph.check_identity(*found)
    return found


def read_id_of(graph: Graph, record: RecordType, text: str) -> tuple[str, ...]:
    """Returns the key texts in the id of a record of this type. Raises BadUserInput if it is not one."""
    found = _named(graph, text)
    if found is None or found[0] is not record:
        problem = "not a global id" if found is None else f"the id of {with_article(found[0].name)}"
        wanted = f"Pass the value of the `id` field of {with_article(record.name)}, or its key."
        raise BadUserInput(f"id: {text[:60]!r} is {problem}. {wanted}")
    graph.check_identity(*found)
    return found[1]


def at_most(name: str, texts: Sequence[str], most: int) -> Sequence[str]:
    """Returns the ids of an argument with this name. Raises BadUserInput for more than `most`."""
    if len(texts) > most:
        raise BadUserInput(f"{name}: at most {most:,} ids")
    return texts


def are_identified_by_text(members: Sequence[RecordType]) -> bool:
    """Whether one text can be the key of a node of one of these types."""
    slots = [slot for member in members for slot in member.identity]
    return len(members) == len(slots) == 1 and not isinstance(slots[0].text, NodeText)


def read_any_id_or_key(
    graph: Graph, name: str, members: Sequence[RecordType], text: str
) -> tuple[RecordType, tuple[str, ...]]:
    """Reads an argument with this name: an id, or the key of a node of one of these types if that is one value.

    The key is what the argument of the field that returns the node takes: `team(teamId:)`. Raises BadUserInput.
    """
    if not are_identified_by_text(members) or _content(text) is not None:
        return read_global_id(graph, text, name)
    [record] = members
    [slot] = record.identity
    try:
        value = value_of_text(slot.text.type, text)
    except ValueError:
        raise BadUserInput(f"{name}: {text[:60]!r} is no {record.name}'s `id` or key") from None
    return record, graph.identity(record, {record.leaf_name(slot.path): as_in_keys(name, slot, value)})


def read_id_or_key(
    graph: Graph, name: str, members: Sequence[RecordType], text: str
) -> tuple[RecordType, tuple[str, ...]]:
    """The same, but an id must name a node of one of these types too."""
    record, identity = read_any_id_or_key(graph, name, members, text)
    if record not in members:
        wanted = " or ".join(member.name for member in members)
        raise BadUserInput(f"{name}: expected ids of {wanted}, and this is one of {record.name}")
    return record, identity


def text_of_client(slot: Slot, value: Any) -> str | None:
    """A time as the client wrote it, if the key writes it in another way: the table may hold the client's form."""
    return getattr(value, "original", None) if isinstance(slot.text, IsoDatetime) else None


def as_in_keys(name: str, slot: Slot, value: Any) -> Any:
    """Returns the value of an argument that is, or is part of, an exact key. Raises BadUserInput for a time that keys
    write in another way, because the table may have it either way."""
    if text_of_client(slot, value) is not None:
        text = slot.text.render(value)
        raise BadUserInput(f"{name}: a time that keys are found by is in UTC, with T: write {text}")
    return value


def is_key(record: RecordType, path: Sequence[str]) -> bool:
    """Whether the value at a path of a type is a node's key: its own, or that of an end. Others may be ids."""
    return path[0] in record.ends or (record.is_node and any(slot.path == path for slot in record.identity))


def refuse_global_id(graph: Graph, name: str, value: object) -> None:
    """Raises BadUserInput for a global id in the place of a key. `name` is the argument's name."""
    found = _named(graph, value) if isinstance(value, str) else None
    if found is not None:
        record, identity = found
        key = ", ".join(map(repr, identity))
        raise BadUserInput(
            f"{name}: expected a key, and this is the `id` of the {record.name} with the key {key}"
        )
