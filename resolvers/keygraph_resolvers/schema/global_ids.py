"""Global ids: opaque texts that name a node of any type."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence

from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.model.records import RecordType


def global_id(record: RecordType, identity: tuple[str, ...]) -> str:
    """The id of the node of that type with those key texts."""
    content = json.dumps([record.name, *identity], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_global_id(graph: Graph, text: str) -> tuple[RecordType, tuple[str, ...]]:
    """The node's type and key texts. Raises BadUserInput for what is no id of a node of this graph."""
    try:
        content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        name, *parts = content
        record, identity = graph.types[name], tuple(parts)
        are_texts = all(isinstance(part, str) for part in parts)
        is_one = record.is_node and are_texts and len(identity) == len(record.identity)
        if not is_one or global_id(record, identity) != text:
            raise ValueError("another type's, or written otherwise")
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError):
        raise BadUserInput(f"{text[:60]!r} is not an id of this schema") from None
    graph.check_identity(record, identity)
    return record, identity


def read_global_ids(
    graph: Graph, name: str, texts: Sequence[str], most: int
) -> list[tuple[RecordType, tuple[str, ...]]]:
    """The nodes that an argument of that name lists. Raises BadUserInput, also for more ids than `most`."""
    if len(texts) > most:
        raise BadUserInput(f"{name}: at most {most:,} ids")
    return [read_global_id(graph, text) for text in texts]
