"""The schema that introspection shows to one viewer, without the parts that no rule can ever allow them.

Fields that a rule allows for some record are shown. The viewer's claims and roles alone decide what is hidden, so
viewers who are shown the same share one schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import graphql

from keygraph.access.language import Action
from keygraph.declare.declaration import WriteName
from keygraph.graph import Graph
from keygraph.model.paths import AccessPath, WalkedPath
from keygraph.model.permissions import Permissions, names_by_order
from keygraph.model.records import RecordType
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.walk_types import lists_by_name

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
"""Hidden fields, values of enums and members of unions, each as the name of its type and its own; with an empty name, the
type itself is hidden."""


class VisibleSchemas:
    """Caches the schemas that viewers are shown."""

    def __init__(self, core: graphql.GraphQLSchema, graph: Graph) -> None:
        self._core = core
        self._graph = graph
        self._kept: dict[Hidden, graphql.GraphQLSchema] = {}

    def of(self, access: Permissions) -> tuple[Hidden, graphql.GraphQLSchema]:
        """Returns what is hidden from one viewer, and the schema that they are shown."""
        hidden = Hidden(_hidden(self._core, self._graph, access))
        made = self._kept.pop(hidden, None)
        if made is None:
            made = without(self._core, hidden) if hidden else self._core
            if len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
        self._kept[hidden] = made  # the one that was asked for last goes last
        return hidden, made


def _hidden(core: graphql.GraphQLSchema, graph: Graph, access: Permissions) -> Iterator[tuple[str, str]]:
    """Yields what is hidden from one viewer."""
    for name, each in lists_by_name(graph).items():
        if _is_hidden_list(each.path, access):
            yield "ListName", name
    for type_ in core.type_map.values():
        record = graph.types.get(type_.name)
        if record is not None and _is_never(access, record):
            yield type_.name, ""
        elif graphql.is_object_type(type_) or graphql.is_input_object_type(type_):
            yield from _hidden_fields(type_, record, access)


def _hidden_fields(
    type_: graphql.GraphQLObjectType | graphql.GraphQLInputObjectType,
    record: RecordType | None,
    access: Permissions,
) -> Iterator[tuple[str, str]]:
    of_fields = {name: kind_of(each) for name, each in type_.fields.items()}
    # An edge has the fields of its item.
    edges = [kind.path.record for kind in of_fields.values() if isinstance(kind, kinds.FarNode)]
    for name, kind in of_fields.items():
        named = graphql.get_named_type(type_.fields[name].type)
        match kind:
            case kinds.Aggregate():
                yield from _hidden_values(named, kind, access)
            case kinds.Via(paths) if graphql.is_union_type(named):
                edges_of = zip(named.types, paths, strict=True)
                yield from ((named.name, of.name) for of, path in edges_of if _is_hidden_list(path, access))
            case kinds.ListOf(path) if path.members:
                enum = graphql.get_named_type(type_.fields[name].args["types"].type)
                yield from ((enum.name, each.name) for each in path.records if _is_never(access, each))
        if kind is not None and _is_hidden(kind, record or next(iter(edges), None), access):
            yield type_.name, name
            if isinstance(type_, graphql.GraphQLInputObjectType) and graphql.is_required_input_field(
                type_.fields[name]
            ):
                yield type_.name, ""


def _hidden_values(
    type_: graphql.GraphQLObjectType, kind: kinds.Aggregate, access: Permissions
) -> Iterator[tuple[str, str]]:
    """Yields the values of the enums of an aggregate's arguments that stand for fields that the viewer may never read."""
    never = {name for name, of in kind.fields.items() if _is_never(access, kind.record, "read", of.source)}
    for argument in (each for field in type_.fields.values() for each in field.args.values()):
        enum = graphql.get_named_type(argument.type)
        if graphql.is_enum_type(enum):
            yield from ((enum.name, name) for name in enum.values if name in never)


def _is_hidden_list(path: WalkedPath, access: Permissions) -> bool:
    """Whether a viewer may never see a list, or a list of ids, or the nodes that have it."""
    kind = kinds.ListOf(path) if isinstance(path, AccessPath) else kinds.NodesAt(path.end)
    return _is_hidden(kind, path.owner, access)


def _is_hidden(kind: kinds.FieldKind, record: RecordType | None, access: Permissions) -> bool:
    def is_never(records: Iterable[RecordType]) -> bool:
        return all(_is_never(access, each) for each in records)

    match kind:
        case kinds.Stored(of) | kinds.NodeAt(of) | kinds.Called(of) if record is not None and _is_never(
            access, record, "read", of.name
        ):
            return True
        case kinds.NodeAt(end):
            return is_never(end.members)
        case kinds.Called(method):
            return bool(method.nodes) and is_never(method.nodes)
        case kinds.ListOf(path):
            if path.owner is not None and _is_never(access, path.owner, "read", path.name):
                return True
            # It would be sorted by fields that the viewer may not read.
            used = (None, *names_by_order(path))
            return any(_is_never(access, path.record, "read", name) for name in used)
        case kinds.WalkOf(walk):
            weights = frozenset[str]() if walk.options.is_kept else walk.options.weighing
            last = [path for path in walk.levels[-1] if isinstance(path, AccessPath)]
            return (
                _is_never(access, walk.owner, "read", walk.name)
                or is_never(walk.nodes)
                or any(all(_is_never(access, path.record, "read", name) for path in last) for name in weights)
            )
        case kinds.FarNode(path):
            return is_never(path.nodes)
        case kinds.NodeByKey(of) | kinds.WrittenRecord(of) | kinds.ChangesOf(of) | kinds.Aggregate(of):
            return is_never([of])
        case kinds.OwnNode(records):
            return is_never(records)
        case kinds.Via(paths):
            return all(_is_hidden_list(path, access) for path in paths)
        case kinds.ComparedField(record, names):
            return any(_is_never(access, record, "read", name) for name in (None, *names))
        case kinds.WrittenField(record, action, name, is_read):
            is_written = not all(_is_never(access, record, each, name) for each in _NEEDED[action])
            return not is_written or (is_read and _is_never(access, record, "read", name))
        case kinds.Writes(action, record) | kinds.WritesEach(action, record):
            return _is_never_written(access, record, action)
    return False


def _is_never(
    access: Permissions, record: RecordType, action: Action = "read", name: str | None = None
) -> bool:
    """Whether no record of the type allows the action to the viewer."""
    return any(access.decision(record, action, each) is False for each in dict.fromkeys((None, name)))


def _is_never_written(access: Permissions, record: RecordType, action: WriteName) -> bool:
    if action in ("update", "move", "delete") and _is_never(access, record):
        return True  # nobody changes what they do not see
    names = [slot.path[0] for slot in record.identity] if action == "move" else []
    if names and all(_is_never(access, record, "move", each) for each in names):
        return True
    return all(_is_never(access, record, each) for each in _NEEDED[action])


def without(core: graphql.GraphQLSchema, hidden: Hidden) -> graphql.GraphQLSchema:
    """Returns a schema for introspection without what is hidden, what nothing else refers to, and descriptions with the
    name of such a thing in backticks."""
    described: dict[str, Any] = cast(Any, graphql.introspection_from_schema(core))["__schema"]
    known = {each["name"] for each in _parts(described)}
    types = {each["name"]: each for each in described["types"] if (each["name"], "") not in hidden}
    for name, type_ in types.items():
        for members in ("fields", "inputFields", "enumValues", "possibleTypes"):
            if type_[members] is not None:
                type_[members] = [each for each in type_[members] if (name, each["name"]) not in hidden]
    roots = [
        described[kind]["name"]
        for kind in ("queryType", "mutationType", "subscriptionType")
        if described[kind]
    ]
    kept: set[str] = set()
    while len(kept) != len(types):
        kept = {*types}
        types = {name: each for name, each in types.items() if _keep(each, kept)}
    reached = _reached(types, [*roots, *_named(described["directives"])])
    for kind in ("queryType", "mutationType", "subscriptionType"):
        if described[kind] and described[kind]["name"] not in types:
            described[kind] = None
    described["types"] = [each for name, each in types.items() if name in reached or name.startswith("__")]
    parts = [*_parts(described)]
    unsaid = known - {each["name"] for each in parts}
    for each in parts:
        if not unsaid.isdisjoint(
            re.findall(r"\w+", " ".join((each.get("description") or "").split("`")[1::2]))
        ):
            each["description"] = None
    return graphql.build_client_schema(cast(Any, {"__schema": described}))


def _keep(type_: dict[str, Any], kept: set[str]) -> bool:
    """Removes everything from a type that refers to types that are not kept. Returns whether what is left can be used."""

    def lacks(inputs: Iterable[Mapping[str, Any]]) -> bool:
        """Returns whether a required argument or input field is not kept."""
        required = (each["type"] for each in inputs if each["defaultValue"] is None)
        return any(each["kind"] == "NON_NULL" and _name(each) not in kept for each in required)

    if lacks(type_["inputFields"] or ()):
        return False
    for members in ("fields", "inputFields"):
        if type_[members] is not None:
            named = [each for each in type_[members] if _name(each["type"]) in kept]
            type_[members] = [each for each in named if not lacks(each.get("args", ()))]
    for field in type_["fields"] or ():
        field["args"] = [each for each in field["args"] if _name(each["type"]) in kept]
    for members in ("interfaces", "possibleTypes"):
        if type_[members] is not None:
            type_[members] = [each for each in type_[members] if each["name"] in kept]
    is_empty = any(
        type_[members] == [] for members in ("fields", "inputFields", "enumValues", "possibleTypes")
    )
    return type_["kind"] == "INTERFACE" or not is_empty


def _reached(types: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    found: set[str] = {"String", "Boolean"}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in types and name not in found:
            found.add(name)
            type_ = types[name]
            waiting += _named([*(type_["fields"] or ()), *(type_["inputFields"] or ())])
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


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """The types, fields, arguments and values of a schema, and what they refer to."""
    if isinstance(value, dict) and "name" in value:
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(each)


def _name(type_: Mapping[str, Any]) -> str:
    """The name of a type, without list and non-null wrappers."""
    while type_.get("ofType"):
        type_ = type_["ofType"]
    return cast(str, type_["name"])
