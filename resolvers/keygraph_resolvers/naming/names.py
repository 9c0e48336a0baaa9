"""The names in a graph's schema, and the mistakes that they can have.

The schema is built with the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from keygraph.dynamo.conditions import Path
from keygraph.errors import Mistake
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import RESERVED_TYPES, camel, pascal, plural, snake
from keygraph.resolve.several import NEIGHBOURS
from keygraph_resolvers.naming.mutation_names import (
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    mutation_name,
    plural_name,
)
from keygraph_resolvers.naming.scalar_values import SCALARS

ALSO_OF = "alsoOf"
PATH_FIELDS = ("path", "paths")
PAGE_ARGUMENTS = ("first", "after", "last", "before", "direction")
"""The arguments that select a page of a list, but not its content."""
LIST_ARGUMENTS = (*PAGE_ARGUMENTS, "where", "to", ALSO_OF)
FIRST, SKIP = "first", "skip"
"""The arguments that select a part of the nodes that a list in an item names."""
EDGE_FIELDS = ("cursor", "node")

_NAME = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]*", re.ASCII)
_ENUM_VALUE = re.compile(rf"(?!(?:true|false|null)\Z){_NAME.pattern}", re.ASCII)


def type_name(type_: FieldType) -> str:
    """The GraphQL name of a field's type, or of its elements' type for a list."""
    if type_.of is not None:
        return type_name(type_.of)
    return type_.python.__name__ if type_.python is not None else SCALARS[type_.kind].name


def field_name(record: RecordType) -> str:
    """The root field that returns one node by its key: `bigThing` for BigThing."""
    return camel(snake(record.name))


def key_arguments(record: RecordType) -> dict[str, Slot]:
    """The parts of a record's key, by the names of their arguments."""
    return {camel(record.leaf_name(slot.path)): slot for slot in record.identity}


def change_field(record: RecordType) -> str:
    """The root field of subscriptions with the changes of a type's records: `orderChanged`."""
    return f"{field_name(record)}Changed"


def change_type(record: RecordType) -> str:
    """The type of this field: `OrderChangedPayload`."""
    return f"{record.name}ChangedPayload"


def has_changes(record: RecordType) -> bool:
    """Whether records of the type can change: a virtual node has no item."""
    return not record.is_virtual


def change_arguments(record: RecordType) -> dict[str, Slot]:
    """The arguments by which the changes of a type's records are narrowed: what identifies one, and then the parts of its
    partitions in indexes."""
    slots = [*record.identity, *(slot for keys in record.keys.values() for slot in keys.partition.slots)]
    found: dict[str, Slot] = {}
    for slot in slots:
        if not slot.is_shard:
            found.setdefault(camel(record.leaf_name(slot.path)), slot)
    return found


def connection_prefix(path: AccessPath) -> str:
    """The prefix of a list's connection and edge types: the record type at the root, else the name of the list."""
    return path.record.name if path.owner is None and not path.members else list_name(path)


def list_name(path: AccessPath) -> str:
    """The owner and the field; only the field at the root, or if it begins with the owner's name."""
    if path.owner is None:
        return pascal(path.name)
    owner, field = snake(path.owner.name), snake(path.name)
    for name in (owner, plural(owner)):
        # `orders` beside `user_orders` of a User is UserOrders already.
        if field.startswith(f"{name}_") and field[len(name) + 1 :] not in path.owner.lists:
            return pascal(path.name)
    return path.owner.name + pascal(path.name)


def shared_name(path: AccessPath, ending: str) -> str:
    """The name of a type that a list shares with others of its record type; or its own if its index projects less, or
    it has several types."""
    if path.members or not path.keys.reads_whole_items:
        return f"{list_name(path)}{path.record.name * path.is_member}{ending}"
    return f"{path.record.name}{ending}"


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
    default: object = None
    """The value of a missing attribute; None or dataclasses.MISSING if it has none."""


def filterable_fields(path: AccessPath) -> Iterator[Filterable]:
    """The attributes that `where` offers on a list: those of the items that it reads."""
    record = path.record
    for field in record.fields.values():
        is_whole = field.type.kind != "average" and not field.shards and field.kept != "walk"
        if field.name in path.projected and not field.is_external and is_whole:
            end = record.list_ends.get(field.name)
            node, is_key = None if end is None else end.text, end is not None
            yield Filterable(
                field.input_name, field.type, field.attribute, node, is_key=is_key, default=field.default
            )
    for end in record.ends.values():
        if end.name not in path.projected:
            continue
        for slot in {slot.path: slot for slot in end.identity}.values():
            name = record.leaf_name((end.name, *slot.path))
            type_ = end.attribute_type(slot)
            yield Filterable(name, type_, end.attributes[slot.path], end.text, is_key=True)


def list_in_words(path: AccessPath) -> str:
    """A list, as mistakes in names call it."""
    if path.owner is not None:
        return f"{path.owner.name}.{path.name}"
    return f"the root's list {path.name}" if path.members else f"the root's lists of {path.record.name}"


# --- Mistakes -----------------------------------------------------------------------------------------


def name_mistakes(graph: Graph) -> list[Mistake]:
    """Mistakes in names: of classes, reserved or invalid ones, and arguments and fields that collide.

    The code that makes a schema finds the generated types that have one name (`schema.types.check`).
    """
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
    taken: dict[str, str] = {}
    for name in names:
        other = taken.get(camel(name))
        taken[camel(name)] = name
        if other is not None:
            both = "" if other == name else f", {other} and {name},"
            problem = f"two of its {what}{both} are called {camel(name)} in the schema."
            yield Mistake("name-twice", where, problem, "Rename one.")


# --- Of types -----------------------------------------------------------------------------------------


def _type_mistakes(graph: Graph) -> Iterator[Mistake]:
    declared: dict[str, object] = {}
    of_changes = {change_type(record): record.name for record in graph.types.values() if has_changes(record)}
    for name, what, holder in declared_types(graph):
        if name in RESERVED_TYPES or name.endswith(("Connection", "Condition")):
            yield Mistake("reserved-name", what, f"{name} is a reserved name of the schema.", "Rename it.")
        elif not _NAME.fullmatch(name):
            yield from _if_no_name(name, what, f"{name} is not a valid GraphQL name.")
        elif name in of_changes:
            problem = f"{name} is the type of the changes of {of_changes[name]} in the schema."
            yield Mistake("name-twice", what, problem, "Rename one.")
        elif declared.setdefault(name, holder) is not holder:
            yield Mistake("name-twice", what, f"two types are called {name}.", "Rename one.")


def declared_types(graph: Graph) -> Iterator[tuple[str, str, object]]:
    """The classes that become types, each with its name and the place that names it."""
    for record in graph.types.values():
        yield record.name, record.name, record.cls
        used = [(field.name, field.type) for field in record.fields.values()]
        used += [(method.name, type_) for method in record.methods.values() for type_ in method.types]
        for name, type_ in used:
            for nested in _nested_types(type_):
                if nested.python is not None:
                    yield nested.python.__name__, f"{record.name}.{name}", nested.python


def _nested_types(type_: FieldType) -> Iterator[FieldType]:
    if type_.of is not None:
        yield from _nested_types(type_.of)
    yield type_
    for member in type_.members:
        yield from _nested_types(member.type)


# --- Of fields and arguments --------------------------------------------------------------------------


def _field_mistakes(graph: Graph) -> Iterator[Mistake]:
    for record in graph.resolution.types.values():
        for name in (*record.fields, *record.ends, *record.lists, *record.walks, *record.methods):
            if camel(name) == "id":
                problem = "`id` is the global id of every record."
                fix = f'Rename the field: {record.name.lower()}_id: ID = stored("{name}").'
                yield Mistake("field-called-id", f"{record.name}.{name}", problem, fix)
    for record in graph.types.values():
        every = (*record.fields, *record.ends, *record.lists, *record.walks, *record.methods)
        names = [*dict.fromkeys(every)]  # a walk that is kept is a field too
        explored = [NEIGHBOURS] if record.name in graph.neighbours else []
        yield from _if_equal(record.name, [*names, *explored])
        for name in names:
            yield from _if_no_name(camel(name), f"{record.name}.{name}", "it is not a valid GraphQL name.")
        if record.is_node:
            keys = {slot.path: record.leaf_name(slot.path) for slot in record.identity}
            yield from _if_equal(f"the key of {record.name}", keys.values())
        places = {field.attribute: field.name for field in record.fields.values() if not field.ids_name}
        of_ends = [
            record.leaf_name((end.name, *path))
            for end in record.ends.values()
            for path, attribute in end.attributes.items()
            if attribute not in places
        ]
        of_ends += [record.fields[name].input_name for name in record.list_ends]
        own = {camel(name): name for name in places.values()}
        yield from _if_equal(f"the filter of {record.name}", [*own.values(), *of_ends])
        reserved = (
            dict.fromkeys(EDGE_FIELDS, "that every edge of a connection has") if record.kind == "edge" else {}
        )
        if record.writes:
            reserved |= dict.fromkeys((MUTATION_ID, IDEMPOTENCY_KEY), "of every mutation's input")
        for name in sorted({*map(camel, names)} & reserved.keys()):
            problem = f"`{name}` is a field {reserved[name]}."
            fix = "Rename the field, and name its attribute with stored()."
            yield Mistake("reserved-name", f"{record.name}.{name}", problem, fix)
        for field in record.fields.values():
            yield from _member_mistakes(f"{record.name}.{field.name}", field.type)
        for method in record.methods.values():
            yield from _if_equal(f"{record.name}.{method.name}", method.parameters, "arguments")


def _member_mistakes(where: str, type_: FieldType) -> Iterator[Mistake]:
    for nested in _nested_types(type_):
        yield from _if_equal(where, [each.name for each in nested.members])
        python = nested.python
        for name in python.__members__ if python is not None and issubclass(python, Enum) else ():
            problem = f"{type_name(nested)}.{name} is not a valid GraphQL name."
            yield from _if_no_name(name, where, problem, _ENUM_VALUE)


def _root_mistakes(graph: Graph) -> Iterator[Mistake]:
    fixed = ("node", "nodes", *(PATH_FIELDS if graph.followed else ()))
    named: dict[str, list[str]] = {name: ["the field of that name"] for name in fixed}
    for record in graph.nodes:
        named.setdefault(field_name(record), []).append(f"the {record.name} by its key")
    for record in filter(has_changes, graph.types.values()):
        named.setdefault(change_field(record), []).append(f"the changes of {record.name}")
    for path in (*graph.root_lists, *graph.finders):
        what = "what finds" if path.is_one else "the list of"
        named.setdefault(camel(path.name), []).append(f"{what} {path.record.name} in {_place_of(path)}")
        problem = f"{path.name!r}, a list or finder of {path.record.name}, is not a valid GraphQL name."
        yield from _if_no_name(camel(path.name), "the root", problem)
    for name, fields in named.items():
        if len(fields) > 1:
            problem = f"{len(fields)} fields are called {name} in the schema: {', '.join(fields)}."
            fix = 'Rename all but one: lists="…" names a list, and lists=False removes it.'
            yield Mistake("name-twice", "the root", problem, fix)


def _mutation_mistakes(graph: Graph) -> Iterator[Mistake]:
    """Mistakes for a plural of one type's name that is another's name."""
    named: dict[str, RecordType] = {}
    for record in graph.types.values():
        made = (mutation_name, plural_name) if record.has_bulk_writes else (mutation_name,)
        names = [name(action, record) for action in record.writes for name in made]
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
    where = path.place
    arguments = (*path.required, *path.ranged)
    taken = set() if path.is_one else {*LIST_ARGUMENTS, *(["types"] if path.members else [])}
    for argument in arguments:
        name = camel(argument.name)
        if name in taken:
            alike = [each for each in arguments if each.slot.path == argument.slot.path]
            problem = f"two of its arguments are called {name}"
            fix = "Rename the key template's field, and name its attribute with stored()."
            if len(alike) > 1:
                placeholders = " and ".join(f"{{{each.slot.name}}}" for each in alike)
                problem += f", because one field is there in two formats, {placeholders}"
                field = argument.slot.path[0]
                fix = f'Replace one with a method: @field(needs=("{field}",)), with a name of its own.'
            yield Mistake("colliding-arguments", where, f"{problem}.", fix)
        taken.add(name)
