"""Makes objects of a model's classes from items and keys, for calls of the model's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from keygraph.dynamo.items import Value
from keygraph.errors import CorruptItem
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, Method, RecordType


def instance(record: RecordType, item: Mapping[str, Value], names: Iterable[str] | None = None) -> Any:
    """Returns an object of the type's class with the named fields (None: all) of the item.

    An end is an object of its node's class with only the key fields; if only reading the node would show its class, it
    is of none of them.
    """
    made: Any = object.__new__(record.cls)
    for name in record.fields.keys() | record.ends.keys() if names is None else names:
        end = record.ends.get(name)
        if end is not None:
            setattr(made, name, _bare_node(record, end, record.end_identity(item, end)))
        elif (end := record.list_ends.get(name)) is not None:
            named = record.member_identities(item, end)
            setattr(made, name, named and [_bare_node(record, end, each) for each in named])
        else:
            setattr(made, name, record.reader(record.fields[name])(item))
    return made


def instance_for(record: RecordType, item: Mapping[str, Value], method: Method) -> Any:
    """Returns an object with what a method needs. A CorruptItem names only the method: who may read it may not be able to
    read what it needs."""
    try:
        return instance(record, item, method.needs)
    except CorruptItem:
        raise CorruptItem(
            f"{record.name}.{method.name} of an item needs a value that is not of its type"
        ) from None


def value_of_method(record: RecordType, name: str, item: Mapping[str, Value]) -> Any:
    """Returns what a method returns for an item. It may raise anything."""
    method = record.methods[name]
    return method.function(instance_for(record, item, method))


def bare_instance(record: RecordType, identity: Iterable[str]) -> Any:
    """Returns an object of the type's class with only the key fields."""
    made: Any = object.__new__(record.cls)
    texts = tuple(identity)
    for name in record.key_fields:
        if name in record.ends:
            setattr(made, name, _bare_node(record, record.ends[name], record.end_readers[name](texts)))
        else:
            number, value_of = record.places_in_identity[name]
            setattr(made, name, value_of(texts[number]))
    return made


def _bare_node(record: RecordType, end: End, identity: Texts | CorruptItem | None) -> Any:
    if identity is None:
        return None
    if isinstance(identity, CorruptItem):
        raise identity
    try:
        members, own = end.nodes(identity)
    except ValueError:
        raise record.no_key(end) from None
    made = bare_instance(members[0], own)
    return made if len(members) == 1 else SimpleNamespace(**vars(made))
