"""The names in a graph's schema, and the mistakes that they can have.

The schema is built with the same functions. `check` finds duplicate names before there is a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from keygraph.dynamo.conditions import Path
from keygraph.errors import Mistake, ModelError
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.comparisons import OPERATORS
from keygraph.model.paths import AccessPath, Argument
from keygraph.model.records import RecordType
from keygraph.names import camel, pascal, plural, snake
from keygraph.resolve.several import NEIGHBOURS
from keygraph.resolve.walks import NodeWalk
from keygraph_resolvers.naming.mutation_names import (
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    mutation_name,
    mutation_types,
    plural_name,
)

_SCALARS = {
    "id": "ID",
    "string": "String",
    "int": "Int",
    "long": "Long",
    "float": "Float",
    "boolean": "Boolean",
    "decimal": "Decimal",
    "datetime": "DateTime",
    "date": "Date",
    "bytes": "Base64",
    "json": "JSON",
}
RESERVED_TYPES = frozenset(
    [
        "Query",
        "Mutation",
        "Subscription",
        "Node",
        "PageInfo",
        "WalkPageInfo",
        "SortDirection",
        *_SCALARS.values(),
    ]
)
ALSO_OF = "alsoOf"
WAY_FIELDS = ("path", "paths")
WAY_TYPES = ("Path", "PathEdge", "PathListEdge", "ListName")
PAGE_ARGUMENTS = ("first", "after", "last", "before", "direction")
"""The arguments that select a page of a list, but not its content."""
LIST_ARGUMENTS = (*PAGE_ARGUMENTS, "where", "to", ALSO_OF)
EDGE_FIELDS = ("cursor", "node")

_NAME = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]*", re.ASCII)
_ENUM_VALUE = re.compile(rf"(?!(?:true|false|null)\Z){_NAME.pattern}", re.ASCII)


def type_name(type_: FieldType) -> str:
    """The GraphQL name of a field's type, or of its elements' type for a list."""
    if type_.of is not None:
        return type_name(type_.of)
    return type_.python.__name__ if type_.python is not None else _SCALARS[type_.kind]


def field_name(record: RecordType) -> str:
    """The root field that returns one node by its key: `bigThing` for BigThing."""
    return camel(snake(record.name))


def key_arguments(record: RecordType) -> dict[str, Slot]:
    """The parts of a record's key, by the names of their arguments."""
    return {camel(record.leaf_name(slot.path)): slot for slot in record.identity}


def connection_prefix(path: AccessPath) -> str:
    """The prefix of a list's connection and edge types: the record type at the root, else the name of the list."""
    return path.record.name if path.owner is None and not path.members else _list_name(path)


def _list_name(path: AccessPath) -> str:
    """The owner and the field; only the field at the root, or if it begins with the owner's name."""
    if path.owner is None:
        return pascal(path.name)
    owner, field = snake(path.owner.name), snake(path.name)
    for name in (owner, plural(owner)):
        # `orders` beside `user_orders` of a User is UserOrders already.
        if field.startswith(f"{name}_") and field[len(name) + 1 :] not in path.owner.lists:
            return pascal(path.name)
    return path.owner.name + pascal(path.name)


def walk_prefix(walk: NodeWalk) -> str:
    """The prefix of a walk's connection and edge types."""
    return walk.owner.name + pascal(walk.name)


def union_name(members: Iterable[RecordType]) -> str:
    """The union of nodes: `UserOrOrganization`."""
    return "Or".join(member.name for member in members)


def neighbour_name(path: AccessPath) -> str:
    """The union of the nodes of a list: its name stays the same when a type is added."""
    return _list_name(path).removesuffix("s")


def where_name(path: AccessPath) -> str:
    """The filter of a list: that of the record type, or the list's own if its index projects less, or it has several
    types."""
    if path.members or not path.tells_all:
        return f"{_list_name(path)}{path.record.name * path.is_member}Where"
    return f"{path.record.name}Where"


def types_name(path: AccessPath) -> str:
    """The enum of a list's types, if it has several."""
    return f"{connection_prefix(path)}Type"


def aggregate_name(path: AccessPath) -> str:
    """The aggregate of a list: that of the record type, or its own if its index projects less, or it has several
    types."""
    if path.members or not path.tells_all:
        return f"{_list_name(path)}{path.record.name * path.is_member}Aggregate"
    return aggregate_name_of(path.record)


def aggregate_name_of(record: RecordType) -> str:
    """The aggregate of all records of a type."""
    return f"{record.name}Aggregate"


def condition_name(compared: Filterable) -> str:
    """The input with the comparisons of one attribute."""
    type_ = compared.type
    if compared.node is not None:
        return "NodeCondition"
    if type_.of is not None:
        return f"{type_name(type_.of)}ListCondition"
    return "AttributeCondition" if type_.kind in ("object", "json") else f"{type_name(type_)}Condition"


def has_between(type_: FieldType) -> bool:
    """Whether `between` is offered for attributes of the type."""
    return "between" in OPERATORS[type_.kind]


def between_name(type_: FieldType) -> str:
    """The input with the two bounds of a `between`."""
    return f"{type_name(type_)}Between"


def range_name(argument: Argument) -> str:
    """The input of an argument on a sort key."""
    kind = "Timed" * argument.has_time + type_name(argument.type)
    if argument.type.is_text and argument.has_range and not argument.is_text:
        return f"{kind}Bounds"
    if not argument.has_range:
        return f"{kind}Prefix" if argument.is_text else f"{kind}Equals"
    return f"{kind}Range"


@dataclass(frozen=True)
class Filterable:
    """An attribute that `where` can compare."""

    name: str
    """In snake case."""
    type: FieldType
    attribute: Path
    node: NodeText | None = None
    """How a node is written in it, if the attribute is the key of a node of one of several types."""
    is_key: bool = False
    """Whether it is the key of a node."""
    default: object = None
    """The value of a missing attribute; None or dataclasses.MISSING if it has none."""


def filterable_fields(path: AccessPath) -> Iterator[Filterable]:
    """The attributes that `where` offers on a list: those of the items that it reads."""
    record = path.record
    for field in record.fields.values():
        if field.name in path.told and not field.is_external:
            yield Filterable(field.name, field.type, field.attribute, default=field.default)
    for end in record.ends.values():
        if end.name not in path.told:
            continue
        for slot in {slot.path: slot for slot in end.identity}.values():
            name = record.leaf_name((end.name, *slot.path))
            type_ = end.attribute_type(slot)
            yield Filterable(name, type_, end.attributes[slot.path], end.text, is_key=True)


# --- Mistakes -----------------------------------------------------------------------------------------


def check(graph: Graph) -> Graph:
    """Returns the graph. Raises ModelError with every mistake in its declaration and in the names of its schema."""
    found = [*graph.mistakes, *name_mistakes(graph)]
    if found:
        raise ModelError(found)
    return graph


def name_mistakes(graph: Graph) -> list[Mistake]:
    """Mistakes in names: duplicate, reserved or invalid generated names, and arguments and fields that collide."""
    of_arguments = (mistake for path in graph.paths for mistake in _argument_mistakes(path))
    return [
        *_type_mistakes(graph),
        *_field_mistakes(graph),
        *_root_mistakes(graph),
        *_mutation_mistakes(graph),
        *of_arguments,
    ]


def _if_no_name(name: str, where: str, problem: str, pattern: re.Pattern[str] = _NAME) -> Iterator[Mistake]:
    if not pattern.fullmatch(name):
        yield Mistake("bad-name", where, problem, "Rename it.")


def _if_equal(where: str, names: Iterable[str], what: str = "fields") -> Iterator[Mistake]:
    """Mistakes for Python names that become the same name in the schema."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(camel(name))
        seen[camel(name)] = name
        if other is not None:
            both = "" if other == name else f", {other} and {name},"
            problem = f"two of its {what}{both} are called {camel(name)} in the schema."
            yield Mistake("name-twice", where, problem, "Rename one.")


# --- Of types -----------------------------------------------------------------------------------------


def _type_mistakes(graph: Graph) -> Iterator[Mistake]:
    declared: dict[str, object] = {}
    for name, what, holder in _declared_types(graph):
        if name in RESERVED_TYPES or name.endswith(("Connection", "Condition")):
            yield Mistake("reserved-name", what, f"{name} is a reserved name of the schema.", "Rename it.")
        elif not _NAME.fullmatch(name):
            yield from _if_no_name(name, what, f"{name} is not a valid GraphQL name.")
        elif declared.setdefault(name, holder) is not holder:
            yield Mistake("name-twice", what, f"two types are called {name}.", "Rename one.")
    made = {name: name for name in declared}
    for name, what in _made_types(graph):
        other = made.setdefault(name, what)
        if other != what:
            yield Mistake(
                "name-twice", what, f"the schema's name {name} is that of {other} too.", "Rename one."
            )


def _declared_types(graph: Graph) -> Iterator[tuple[str, str, object]]:
    """The classes that become types, each with its name and the place that names it."""
    for record in graph.types.values():
        yield record.name, record.name, record.cls
        used = [(field.name, field.type) for field in record.fields.values()]
        used += [(method.name, type_) for method in record.methods.values() for type_ in method.types]
        for name, type_ in used:
            for nested in _nested_types(type_):
                if nested.python is not None:
                    yield nested.python.__name__, f"{record.name}.{name}", nested.python


def _made_types(graph: Graph) -> Iterator[tuple[str, str]]:
    """The names of generated types, with a description of each."""
    for members in graph.unions.values():
        yield union_name(members), f"the union of {' and '.join(member.name for member in members)}"
    for path in graph.paths:
        owner, record, prefix = path.owner, path.record, connection_prefix(path)
        what = f"{owner.name}.{path.name}" if owner else f"the root's lists of {record.name}"
        if path.members:
            what = what if owner else f"the root's list {path.name}"
            yield types_name(path), f"the types of {what}"
        if path in graph.neighbours.values():
            yield neighbour_name(path), f"the nodes of {what}"
        if not path.is_one:
            yield f"{prefix}Connection", what
            compared = [each for member in path.each for each in filterable_fields(member)]
            betweens = [each.type for each in compared if each.node is None and has_between(each.type)]
            inputs = (
                *map(range_name, path.ranged),
                *map(condition_name, compared),
                *map(between_name, betweens),
            )
            for name in inputs:
                yield name, f"the input {name}"
            for each in dict.fromkeys((path, *path.members)):
                is_own = not each.tells_all or each.members
                yield where_name(each), f"the filter of {what if is_own else each.record.name}"
                told = f"the aggregate of {what if is_own else each.record.name}"
                for ending in ("", "Group", "Key", "Number", "Value") if not each.members else ("",):
                    yield f"{aggregate_name(each)}{ending}", told
        if not path.is_one or path.far_end:
            yield f"{prefix}Edge", what
    for walk in graph.walks.values():
        prefix, what = walk_prefix(walk), f"{walk.owner.name}.{walk.name}"
        yield f"{prefix}Connection", what
        yield f"{prefix}Edge", what
        for ending in ("", "Group", "Key", "Number", "Value") if len(walk.nodes) == 1 else ():
            yield f"{aggregate_name_of(walk.nodes[0])}{ending}", f"the aggregate of {walk.nodes[0].name}"
        if walk.is_reach and len(walk.paths) > 1:
            yield f"{prefix}Via", what
    if graph.followed:
        for name in WAY_TYPES:
            yield name, "a type of `path`"
    yield from mutation_types(graph)


def _nested_types(type_: FieldType) -> Iterator[FieldType]:
    """A type and all types nested in it."""
    if type_.of is not None:
        yield from _nested_types(type_.of)
    yield type_
    for member in type_.members:
        yield from _nested_types(member.type)


# --- Of fields and arguments --------------------------------------------------------------------------


def _field_mistakes(graph: Graph) -> Iterator[Mistake]:
    for record in graph.resolution.types.values():
        yield from _fields_called_id(record)
    for record in graph.types.values():
        names = [*record.fields, *record.ends, *record.lists, *record.walks, *record.methods]
        explored = [NEIGHBOURS] if record.name in graph.neighbours else []
        yield from _if_equal(record.name, [*names, *explored])
        for name in names:
            yield from _if_no_name(camel(name), f"{record.name}.{name}", "it is not a valid GraphQL name.")
        if record.is_node:
            keys = {slot.path: record.leaf_name(slot.path) for slot in record.identity}
            yield from _if_equal(f"the key of {record.name}", keys.values())
        places = {field.attribute: field.name for field in record.fields.values()}
        of_ends = [
            record.leaf_name((end.name, *path))
            for end in record.ends.values()
            for path, attribute in end.attributes.items()
            if attribute not in places
        ]
        own = {camel(name): name for name in places.values()}
        yield from _if_equal(f"the filter of {record.name}", [*own.values(), *of_ends])
        for name in sorted({*map(camel, names)} & set(EDGE_FIELDS)) if record.kind == "edge" else ():
            yield Mistake(
                "reserved-name",
                f"{record.name}.{name}",
                f"`{name}` is a field that every edge of a connection has.",
                "Rename the field, and name its attribute with stored().",
            )
        for name in sorted({*map(camel, names)} & {MUTATION_ID, IDEMPOTENCY_KEY}) if record.writes else ():
            yield Mistake(
                "reserved-name",
                f"{record.name}.{name}",
                f"`{name}` is a field of every mutation's input.",
                "Rename the field, and name its attribute with stored().",
            )
        for field in record.fields.values():
            yield from _member_mistakes(f"{record.name}.{field.name}", field.type)
        for method in record.methods.values():
            yield from _if_equal(f"{record.name}.{method.name}", method.parameters, "arguments")


def _fields_called_id(record: RecordType) -> Iterator[Mistake]:
    """Mistakes for fields called `id`, the name of the global id."""
    for name in (*record.fields, *record.ends, *record.lists, *record.walks, *record.methods):
        if camel(name) == "id":
            yield Mistake(
                "field-called-id",
                f"{record.name}.{name}",
                "`id` is the global id of every record.",
                f'Rename the field: {record.name.lower()}_id: ID = stored("{name}").',
            )


def _member_mistakes(where: str, type_: FieldType) -> Iterator[Mistake]:
    """Mistakes in the members of dataclasses and enums."""
    for nested in _nested_types(type_):
        yield from _if_equal(where, [each.name for each in nested.members])
        python = nested.python
        for name in python.__members__ if python is not None and issubclass(python, Enum) else ():
            problem = f"{type_name(nested)}.{name} is not a valid GraphQL name."
            yield from _if_no_name(name, where, problem, _ENUM_VALUE)


def _root_mistakes(graph: Graph) -> Iterator[Mistake]:
    fixed = ("node", "nodes", *(WAY_FIELDS if graph.followed else ()))
    named: dict[str, list[str]] = {name: ["the field of that name"] for name in fixed}
    for record in graph.nodes:
        named.setdefault(field_name(record), []).append(f"the {record.name} by its key")
    for path in (*graph.root_lists, *graph.finders):
        what = "what finds" if path.is_one else "the list of"
        named.setdefault(camel(path.name), []).append(f"{what} {path.record.name} in {_place_of(path)}")
        problem = f"{path.name!r}, a list or finder of {path.record.name}, is not a valid GraphQL name."
        yield from _if_no_name(camel(path.name), "the root", problem)
    for name, fields in named.items():
        if len(fields) > 1:
            problem = f"{len(fields)} fields are called {name} in the schema: {', '.join(fields)}."
            mend = 'Rename all but one: lists="…" names a list, and lists=False removes it.'
            yield Mistake("name-twice", "the root", problem, mend)


def _mutation_mistakes(graph: Graph) -> Iterator[Mistake]:
    """Mistakes for a plural of one type's name that is another's name."""
    named: dict[str, RecordType] = {}
    for record in graph.types.values():
        names = [name(action, record) for action in record.writes for name in (mutation_name, plural_name)]
        taken = next((name for name in names if name in named), None)
        if taken is not None:
            problem = f"its mutation {taken} has the name of one of {named[taken].name}."
            yield Mistake("name-twice", record.name, problem, "Rename one, or use writes=False.")
        named |= dict.fromkeys(names, record)


def _place_of(path: AccessPath) -> str:
    """The place from which a root list is read."""
    index, table = path.keys.index, path.record.table
    if index is None:
        return "the table"
    is_inverted = [key.name for key in index.keys] == [key.name for key in reversed(table.keys)]
    return f"the inverted index {index.name}" if is_inverted else f"the index {index.name}"


def _argument_mistakes(path: AccessPath) -> Iterator[Mistake]:
    where = f"{path.owner.name if path.owner else 'the root'}.{path.name}"
    arguments = (*path.required, *path.ranged)
    seen = set() if path.is_one else {*LIST_ARGUMENTS, *(["types"] if path.members else [])}
    for argument in arguments:
        name = camel(argument.name)
        if name in seen:
            alike = [each for each in arguments if each.slot.path == argument.slot.path]
            problem = f"two of its arguments are called {name}"
            mend = "Rename the key template's field, and name its attribute with stored()."
            if len(alike) > 1:
                shown = " and ".join(f"{{{each.slot.name}}}" for each in alike)
                problem += f", because one field is there in two formats, {shown}"
                field = argument.slot.path[0]
                mend = f'Replace one with a method: @field(needs=("{field}",)), with a name of its own.'
            yield Mistake("colliding-arguments", where, f"{problem}.", mend)
        seen.add(name)
