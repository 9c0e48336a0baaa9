"""The schema that introspection shows to one viewer, without the parts that no rule can ever allow them.

Fields that a rule allows for some record are shown. The viewer's claims and roles alone decide what is hidden, so
viewers who are shown the same share one schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLSchema,
    build_client_schema,
    introspection_from_schema,
    is_object_type,
    is_required_input_field,
)

from keygraph.access.language import Action
from keygraph.declare.declaration import WriteName
from keygraph.graph import Graph
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import Permissions
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.mutation_names import (
    PARTS,
    given_fields,
    input_name,
    key_names,
    mutation_name,
    nested_lists,
    nested_name,
    part_fields,
    part_name,
)
from keygraph_resolvers.naming.names import filterable_fields, where_name
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.field_kinds import (
    Called,
    FarNode,
    FieldKind,
    ListOf,
    NodeAt,
    NodeByKey,
    OwnNode,
    Stored,
    Writes,
    WritesEach,
    WrittenRecord,
)
from keygraph_resolvers.schema.strawberry_internals import strawberry_field

_KEPT = 16
"""The number of cached schemas."""
_NEEDED: Mapping[WriteName, tuple[Action, ...]] = {
    "create": ("create",),
    "put": ("create", "update"),
    "upsert": ("create", "update"),
    "update": ("update",),
    "move": ("move",),
    "delete": ("delete",),
}
"""The actions of each mutation; one that is allowed is enough to show it."""

Hidden = frozenset[tuple[str, str]]
"""Hidden fields, each as the name of its type and its own; with an empty field name, the type itself is hidden."""


class VisibleSchemas:
    """Caches the schemas that viewers are shown."""

    def __init__(self, core: GraphQLSchema, graph: Graph) -> None:
        self._core = core
        self._graph = graph
        self._kept: dict[Hidden, GraphQLSchema] = {}

    def of(self, access: Permissions) -> tuple[Hidden, GraphQLSchema]:
        """Returns what is hidden from one viewer, and the schema that they are shown."""
        hidden = Hidden(_Hiding(self._core, self._graph, access).found())
        made = self._kept.pop(hidden, None)
        if made is None:
            made = without(self._core, hidden) if hidden else self._core
            if len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
        self._kept[hidden] = made  # the one that was asked for last goes last
        return hidden, made


class _Hiding:
    """Finds what is hidden from one viewer."""

    def __init__(self, core: GraphQLSchema, graph: Graph, access: Permissions) -> None:
        self._core = core
        self._graph = graph
        self._access = access

    def found(self) -> Iterator[tuple[str, str]]:
        for type_ in self._core.type_map.values():
            record = self._graph.types.get(type_.name)
            if record is not None and self._is_never(record):
                yield type_.name, ""
            elif is_object_type(type_):
                yield from self._fields(type_, record)
        for record in self._graph.types.values():
            yield from self._inputs(record)
        for path in self._graph.paths:
            record = path.record
            for compared in filterable_fields(path):
                names = [n for n, each in record.fields.items() if each.attribute == compared.attribute]
                names += [
                    n for n, each in record.ends.items() if compared.attribute in each.attributes.values()
                ]
                if any(self._is_never(record, "read", name) for name in names):
                    yield where_name(path), camel(compared.name)

    def _is_never(self, record: RecordType, action: Action = "read", name: str | None = None) -> bool:
        """Whether no record of the type allows the action to the viewer."""
        decision = self._access.decision
        return decision(record, action) is False or (
            name is not None and decision(record, action, name) is False
        )

    def _is_never_written(self, record: RecordType, action: WriteName, name: str | None = None) -> bool:
        if action in ("update", "move", "delete") and self._is_never(record):
            return True  # nobody changes what they do not see
        key = [slot.path[0] for slot in record.identity] if action == "move" and name is None else []
        if key and all(self._is_never(record, "move", each) for each in key):
            return True
        if name is None and self._asks_for_more(input_name(action, record), record, _NEEDED[action]):
            return True
        return all(self._is_never(record, each, name) for each in _NEEDED[action])

    def _asks_for_more(
        self, input_: str, record: RecordType, actions: Iterable[Action], without: str | None = None
    ) -> bool:
        """Whether an input requires a field that the viewer may not write."""
        type_, key = self._core.type_map.get(input_), key_names(record)
        if not isinstance(type_, GraphQLInputObjectType):
            return False
        asked = {name for name, each in type_.fields.items() if is_required_input_field(each)}
        return any(
            each.name in asked
            and each.of.name not in key
            and all(self._is_never(record, action, each.of.name) for action in actions)
            for each in given_fields(record, without)
        )

    # --- Fields of types ------------------------------------------------------------------------------

    def _fields(self, type_: GraphQLObjectType, record: RecordType | None) -> Iterator[tuple[str, str]]:
        kinds = {name: kind_of(strawberry_field(each)) for name, each in type_.fields.items()}
        # An edge has the fields of its item.
        edges = [kind.path.record for kind in kinds.values() if isinstance(kind, FarNode)]
        for name, kind in kinds.items():
            if kind is not None and self._is_left_out(kind, record or next(iter(edges), None)):
                yield type_.name, name

    def _is_left_out(self, kind: FieldKind, record: RecordType | None) -> bool:
        match kind:
            case Stored(field):
                return record is not None and self._is_never(record, "read", field.name)
            case NodeAt(end):
                is_never = record is not None and self._is_never(record, "read", end.name)
                return is_never or self._are_never(end.members)
            case Called(method):
                is_never = record is not None and self._is_never(record, "read", method.name)
                return is_never or (bool(method.nodes) and self._are_never(method.nodes))
            case ListOf(path):
                return self._is_never_listed(path)
            case FarNode(path):
                return self._are_never(path.nodes)
            case NodeByKey(record) | WrittenRecord(record):
                return self._is_never(record)
            case OwnNode(records):
                return self._are_never(records)
            case Writes(action, record) | WritesEach(action, record):
                return self._is_never_written(record, action)
        return False

    def _are_never(self, records: Iterable[RecordType]) -> bool:
        return all(self._is_never(each) for each in records)

    def _is_never_listed(self, path: AccessPath) -> bool:
        """Whether a list shows the viewer nothing, or is sorted by a field that they may not read."""
        if path.owner is not None and self._is_never(path.owner, "read", path.name):
            return True
        used = {slot.path[0] for slot in path.keys.slots if not slot.is_shard}
        return self._is_never(path.record) or any(self._is_never(path.record, "read", name) for name in used)

    # --- Inputs ---------------------------------------------------------------------------------------

    def _inputs(self, record: RecordType) -> Iterator[tuple[str, str]]:
        """The fields of a type's mutation inputs that the viewer may not give."""
        key = key_names(record)
        for action in record.writes:
            name = input_name(action, record)
            if self._is_never_written(record, action):
                yield name, ""
                yield "WriteAction", mutation_name(action, record)
            for each in given_fields(record):
                if each.of.name not in key and self._is_never_written(record, action, each.of.name):
                    yield name, each.name
        for word in PARTS:
            for field in part_fields(record, word):
                if self._is_never(record, "update", field.name):
                    yield part_name(record, word), camel(field.name)
        for path in nested_lists(self._graph, record):
            below = nested_name(path)
            is_asked_for_more = self._asks_for_more(below, path.record, ("create",), path.end)
            if is_asked_for_more or self._is_never(path.record, "create"):
                yield below, ""
            for each in given_fields(path.record, without=path.end):
                if self._is_never(path.record, "create", each.of.name):
                    yield below, each.name


def without(core: GraphQLSchema, hidden: Hidden) -> GraphQLSchema:
    """Returns a schema for introspection without what is hidden, and without what nothing else refers to."""
    told: dict[str, Any] = cast(Any, introspection_from_schema(core))["__schema"]
    types = {each["name"]: each for each in told["types"] if (each["name"], "") not in hidden}
    for name, type_ in types.items():
        for members in ("fields", "inputFields"):
            if type_[members] is not None:
                type_[members] = [each for each in type_[members] if (name, each["name"]) not in hidden]
    roots = [told[kind]["name"] for kind in ("queryType", "mutationType", "subscriptionType") if told[kind]]
    kept: set[str] = set()
    while len(kept) != len(types):
        kept = {*types}
        for type_ in types.values():
            _keep(type_, kept)
        types = {
            name: each
            for name, each in types.items()
            if all(
                each[members] != []
                for members in ("fields", "inputFields", "possibleTypes")
                if each["kind"] != "INTERFACE"
            )
        }
    reached = _reached(types, [*roots, *_named(told["directives"])])
    for kind in ("queryType", "mutationType", "subscriptionType"):
        if told[kind] and told[kind]["name"] not in types:
            told[kind] = None
    told["types"] = [each for name, each in types.items() if name in reached or name.startswith("__")]
    return build_client_schema(cast(Any, {"__schema": told}))


def _keep(type_: dict[str, Any], kept: set[str]) -> None:
    """Removes everything from a type that refers to types that are not kept."""
    for members in ("fields", "inputFields"):
        for each in type_[members] or ():
            if "args" in each:
                each["args"] = [given for given in each["args"] if _name(given["type"]) in kept]
        if type_[members] is not None:
            type_[members] = [each for each in type_[members] if _name(each["type"]) in kept]
    for members in ("interfaces", "possibleTypes"):
        if type_[members] is not None:
            type_[members] = [each for each in type_[members] if each["name"] in kept]


def _reached(types: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """The types that can be reached from these."""
    found: set[str] = {"String", "Boolean"}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in types and name not in found:
            found.add(name)
            type_ = types[name]
            waiting += _named(type_["fields"] or ())
            waiting += [_name(each["type"]) for each in type_["inputFields"] or ()]
            waiting += [
                each["name"] for kind in ("interfaces", "possibleTypes") for each in type_[kind] or ()
            ]
    return found


def _named(having: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The types of fields and their arguments, or of the arguments of directives."""
    for each in having:
        yield from (_name(given["type"]) for given in each.get("args", ()))
        if "type" in each:
            yield _name(each["type"])


def _name(type_: Mapping[str, Any]) -> str:
    """The name of a type, without list and non-null wrappers."""
    while type_.get("ofType"):
        type_ = type_["ofType"]
    return cast(str, type_["name"])
