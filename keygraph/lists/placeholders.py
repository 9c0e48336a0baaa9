"""Placeholders for unknown values: the texts of the templates' slots, for keys and lists that are displayed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keygraph.dynamo.table import Key
from keygraph.keys.template import Slot
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType

NO_TEXTS: Mapping[str, str] = MappingProxyType({})


def placeholder(name: str) -> str:
    """Returns the text in a key for an unknown value."""
    return "{" + name + "}"


def placeholder_key(
    record: RecordType, identity: tuple[str, ...] | None = None, known: Mapping[str, str] = NO_TEXTS
) -> Key:
    """Returns the table key of a node or an item, with placeholders if its identity is not known.

    `known` are known texts, by slot, without the whole identity.
    """
    texts = {slot.name: placeholder(record.leaf_name(slot.path)) for slot in record.table_keys.slots}
    if identity is not None:
        texts |= zip((slot.name for slot in record.identity), identity, strict=True)
    texts |= known
    return tuple(template.render(texts) or "" for template in record.table_keys.templates)


def placeholder_texts(path: AccessPath) -> dict[str, str | None]:
    """Returns a placeholder for each slot of a path's keys: the owner's own key field, else the argument."""
    return {slot.name: _label(path, slot) for slot in path.keys.slots}


def _label(path: AccessPath, slot: Slot) -> str:
    source, owner = path.known.get(slot.name), path.owner
    if source is None or owner is None:
        return placeholder(path.record.leaf_name(slot.path))
    if not source.path:  # the whole key of the owner, which is one of several types
        return str(placeholder_key(owner)[0])
    return placeholder(owner.leaf_name(source.path))
