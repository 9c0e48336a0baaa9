"""The declaration of a model as one name, by which a job that is resumed knows that the model is the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.records import RecordType


def declaration_digest(graph: Graph) -> str:
    """Returns the digest of all that decides what items have: keys, fields, ends, and what is kept in them."""
    parts = [f"{graph.type_attribute} {graph.store_key_fields} {sorted(graph.options.get('ignore') or ())}"]
    for record in graph.types.values():
        parts += _record_parts(record)
    # Of objects and functions, the address is another one in each process.
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", "\0".join(parts))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record_parts(record: RecordType) -> Iterator[str]:
    yield f"{record.kind} {record.name} {record.type_value} {record.is_virtual} {record.is_mirrored}"
    yield f"{record.counterpart} {record.rules}"
    for name, keys in record.keys.items():
        yield f"{name} {keys} {keys.shards}"
    for field in record.fields.values():
        yield _field_text(field)
        yield from _enums(field.type)
    for each in record.lists.values():
        yield f"{each.name} {each.of} {replace(each.options, access=())}"
    for walk in record.walks.values():
        if walk.options.is_kept:
            yield f"{walk.name} {replace(walk.options, access=())}"
    for end in (*record.ends.values(), *record.list_ends.values()):
        yield f"{end.name} {end.type_name} {end.optional} {end.attributes} {end.written is not None}"


def _field_text(field: Field) -> str:
    default: Any = field.default
    if isinstance(default, set | frozenset):
        default = sorted(default, key=str)
    return repr(replace(field, description=None, default=default))


def _enums(type_: FieldType) -> Iterator[str]:
    if type_.kind == "enum":
        yield repr(type_.cls.__members__)
    for inner in (type_.of, *(member.type for member in type_.members)):
        if inner is not None:
            yield from _enums(inner)
