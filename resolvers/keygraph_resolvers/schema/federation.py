"""Apollo Federation 2: makes a graph's schema a part of a supergraph.

Every node is an entity: its keys are its key fields, and its `id`. `_entities` is one more field that names nodes, so
all representations of a request are read in one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import strawberry
from strawberry.federation.schema import FederationAny
from strawberry.types.field import StrawberryField

from keygraph.daemon_thread import in_daemon_thread
from keygraph.declare.declaration import NO_NOTES
from keygraph.dynamo.conditions import put_at_path
from keygraph.dynamo.items import Item
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.keys.types import encode
from keygraph.keys.union import NodeText
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.global_ids import as_in_keys, read_global_id
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.definitions import (
    ServedField,
    UnionType,
    argument,
    definition_of,
    kind_of,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.inputs import key_value
from keygraph_resolvers.schema.scalars import value_of_json

_SERVICE = "Information about this server for a router."
_ENTITIES = "The entities of these representations, in the same order; null for each that does not exist."
_REPRESENTATIONS = "Each has `__typename`, and the fields of one of its type's keys."


@strawberry.type(name="_Service", description=_SERVICE)
class SubgraphService:
    """The answer of `_service`."""

    sdl: str = strawberry.field(description="The schema, with the directives of Apollo Federation.")


def service_field(printed: Callable[[], str]) -> StrawberryField:
    """The field that returns the schema to a router."""

    kept, turn = cache(printed), asyncio.Lock()

    async def resolve() -> SubgraphService:
        async with turn:
            if not kept.cache_info().currsize:  # the first time it takes long
                await in_daemon_thread(kept)
        return SubgraphService(sdl=kept())

    made: StrawberryField = cast(Any, strawberry.field)(
        resolver=resolve, name="_service", description=_SERVICE
    )
    made.python_name = "_service"
    return made


def entities_field(types: Sequence[type], resolve_type: Callable[..., str]) -> StrawberryField:
    """The field that returns nodes by their representations."""
    entity = UnionType("_Entity", types, resolve_type, "Anything that has keys.")
    given = argument("representations", list_of(cast(type, FederationAny)), _REPRESENTATIONS)
    return ServedField("_entities", list_of(nullable(entity)), kinds.Entities(), _ENTITIES, [given])


def mark(record: RecordType, type_: type) -> None:
    """Adds the directives of a record type to its object type and its fields."""
    from strawberry.federation.schema_directives import Key, Shareable  # only a subgraph has them

    definition = definition_of(type_)
    keys = [Key(fields=fields) for fields in key_sets(record)] if record.is_node else []
    definition.directives = [*keys, *([Shareable()] if record.notes.shareable else [])]
    for field in definition.fields:
        match kind_of(field):
            case kinds.Stored(of) | kinds.NodeAt(of) | kinds.Called(of) | kinds.ListOf(of):
                field.directives = _directives(record, of.name)


def _directives(record: RecordType, name: str) -> list[object]:
    from strawberry.federation.schema_directives import External, Requires, Shareable

    notes = record.own_notes.get(name, NO_NOTES)
    found: list[object] = [External()] if notes.external else [Shareable()] if notes.shareable else []
    method = record.methods.get(name)
    needs = method.needs or () if method is not None else ()
    needed = [each for each in needs if record.own_notes.get(each, NO_NOTES).external]
    return [*found, Requires(fields=cast(Any, " ".join(map(camel, needed))))] if needed else found


def key_sets(record: RecordType) -> list[Any]:
    """The keys of a node: sets of fields. If a key refers to one of several node types, the `id` is the only key."""
    if any(isinstance(slot.text, NodeText) for slot in record.identity):
        return ["id"]
    tree: dict[str, Any] = {}
    for slot in record.identity:
        inner = tree
        for name in slot.path:
            inner = inner.setdefault(camel(name), {})
    return [_rendered(tree), "id"]


def _rendered(tree: Mapping[str, Any]) -> str:
    return " ".join(name + (f" {{ {_rendered(inner)} }}" if inner else "") for name, inner in tree.items())


def read_representation(graph: Graph, given: object) -> tuple[RecordType, tuple[str, ...]]:
    """The node that a representation names. Raises BadUserInput."""
    name = given.get("__typename") if isinstance(given, dict) else None
    record = graph.types.get(name) if isinstance(name, str) else None
    if record is None or not record.is_node or not isinstance(given, dict):
        raise BadUserInput(f"representations: {str(name)[:60]!r} is not the __typename of an entity")
    values: dict[str, Any] = {}
    for slot in record.identity:
        value: Any = given
        for step in slot.path:
            value = value.get(camel(step)) if isinstance(value, dict) else None
        where = f"representations.{'.'.join(map(camel, slot.path))}"
        if isinstance(slot.text, NodeText) or (value is None and slot.name not in record.table_keys.optional):
            if not isinstance(given.get("id"), str):
                raise BadUserInput(f"{where}: a representation has all fields of one key of {record.name}")
            found = read_global_id(graph, given["id"], "representations.id")
            if found[0] is not record:
                raise BadUserInput(f"representations.id: expected one of {record.name}")
            return found
        read = None if value is None else value_of_json(slot.text.type, value, where)
        values[record.leaf_name(slot.path)] = key_value(graph, record, slot, as_in_keys(where, slot, read))
    return record, graph.identity(record, values)


def represented_item(record: RecordType, given: Mapping[str, Any]) -> Item:
    """Returns the fields of other servers in a representation, as they would be stored. Raises BadUserInput."""
    item: Item = {}
    for field in record.fields.values():
        value = given.get(camel(field.name)) if field.is_external else None
        if value is not None:
            where = f"representations.{camel(field.name)}"
            try:
                put_at_path(
                    item, field.attribute, encode(field.type, value_of_json(field.type, value, where))
                )
            except ValueError as error:
                raise BadUserInput(f"{where}: {error}") from None
    return item
