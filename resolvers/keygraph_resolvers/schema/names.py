"""The names that a graph's schema has, and what can be wrong with them.

The schema is built with these same functions. `check` finds two names that are one before there is a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from keygraph.dynamo.conditions import Path
from keygraph.errors import Mistake, ModelError
from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.paths import AccessPath, Argument
from keygraph.model.records import RecordType
from keygraph.names import camel, pascal, plural, snake

RESERVED_TYPES = frozenset(
    [
        "Query",
        "Mutation",
        "Subscription",
        "Node",
        "PageInfo",
        "SortDirection",
        "String",
        "Int",
        "Float",
        "Boolean",
        "ID",
        "Long",
        "Decimal",
        "DateTime",
        "Date",
        "Base64",
        "JSON",
    ]
)
LIST_ARGUMENTS = ("first", "after", "last", "before", "direction", "where", "to")
EDGE_FIELDS = ("cursor", "node")

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
_NAME = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]*", re.ASCII)


def type_name(type_: FieldType) -> str:
    """The GraphQL name of a field's type, or of its elements' type for a list."""
    if type_.of is not None:
        return type_name(type_.of)
    return type_.python.__name__ if type_.python is not None else _SCALARS[type_.kind]


def field_name(record: RecordType) -> str:
    """The field at the root that gives one node by its key: `bigThing` for BigThing."""
    return camel(snake(record.name))


def connection_prefix(path: AccessPath) -> str:
    """What the connection's and the edge's types begin with: the type at the root, else what the list is called."""
    return path.record.name if path.owner is None else _list_name(path)


def _list_name(path: AccessPath) -> str:
    """The owner and the field; at the root, and where the field begins with the owner's name, the field alone."""
    if path.owner is None:
        return pascal(path.name)
    owner, field = snake(path.owner.name), f"{snake(path.name)}_"
    for name in (owner, plural(owner)):
        # `orders` beside `user_orders` of a User is UserOrders already.
        if field.startswith(f"{name}_") and field[len(name) + 1 : -1] not in path.owner.lists:
            return pascal(path.name)
    return path.owner.name + pascal(path.name)


def union_name(members: Iterable[RecordType]) -> str:
    """The union of nodes: `UserOrOrganization`."""
    return "Or".join(member.name for member in members)


def where_name(path: AccessPath) -> str:
    """The filter of a list: that of the record type, or the list's own where its index projects less."""
    return f"{path.record.name if path.tells_all else _list_name(path)}Where"


def condition_name(compared: Filterable) -> str:
    """The input with the comparisons of one attribute."""
    type_ = compared.type
    if compared.node is not None:
        return "NodeCondition"
    if type_.of is not None:
        return f"{type_name(type_.of)}ListCondition"
    return "AttributeCondition" if type_.kind in ("object", "json") else f"{type_name(type_)}Condition"


def range_name(argument: Argument) -> str:
    """The input of an argument on a sort key."""
    kind = type_name(argument.type)
    if argument.type.is_text and argument.has_range and not argument.is_text:
        return f"{kind}Bounds"
    return f"{kind}Range" if argument.has_range else f"{kind}Equals"


@dataclass(frozen=True)
class Filterable:
    """An attribute that `where` can compare."""

    name: str
    """In snake case."""
    type: FieldType
    attribute: Path
    node: NodeText | None = None
    """How a node stands in it, where the attribute is the key of a node of one of several types."""


def filterable_fields(path: AccessPath) -> Iterator[Filterable]:
    """What `where` offers on a list: the attributes of the items that it reads."""
    record = path.record
    for field in record.fields.values():
        if field.name in path.told:
            yield Filterable(field.name, field.type, field.attribute)
    for end in record.ends.values():
        if end.name not in path.told:
            continue
        for slot in {slot.path: slot for slot in end.identity}.values():
            name = record.leaf_name((end.name, *slot.path))
            yield Filterable(name, slot.text.type, end.attributes[slot.path], end.text)


# --- Mistakes -----------------------------------------------------------------------------------------


def check(graph: Graph) -> Graph:
    """The graph itself. Raises ModelError with every mistake: of its declaration, and of the names in its schema."""
    found = [*graph.mistakes, *name_mistakes(graph)]
    if found:
        raise ModelError(found)
    return graph


def name_mistakes(graph: Graph) -> list[Mistake]:
    """Generated names that are one, reserved, or no names of GraphQL; arguments and fields that collide."""
    found: list[Mistake] = []
    _look_at_types(graph, found)
    _look_at_fields(graph, found)
    for path in graph.paths:
        _look_at_arguments(path, found)
    return found


def _look_at_types(graph: Graph, found: list[Mistake]) -> None:
    made: dict[str, str] = {}
    declared: dict[str, object] = {}

    def take(name: str, what: str) -> None:
        other = made.setdefault(name, what)
        if other != what:
            found.append(
                Mistake(
                    "name-twice", what, f"the schema's name {name} is that of {other} too.", "Rename one."
                )
            )

    def declare(name: str, what: str, holder: object) -> None:
        if name in RESERVED_TYPES or name.endswith(("Connection", "Condition")):
            found.append(
                Mistake("reserved-name", what, f"{name} is a reserved name of the schema.", "Rename it.")
            )
        elif not _NAME.fullmatch(name):
            found.append(Mistake("bad-name", what, f"{name} is not a valid GraphQL name.", "Rename it."))
        elif declared.setdefault(name, holder) is not holder:
            found.append(Mistake("name-twice", what, f"two types are called {name}.", "Rename one."))
        else:
            take(name, name)

    for record in graph.types.values():
        declare(record.name, record.name, record.cls)
        for field in record.fields.values():
            for python in _classes_of(field.type):
                declare(python.__name__, f"{record.name}.{field.name}", python)
        for method in record.methods.values():
            for python in {python: None for type_ in method.types for python in _classes_of(type_)}:
                declare(python.__name__, f"{record.name}.{method.name}", python)
    for members in graph.unions.values():
        take(union_name(members), f"the union of {' and '.join(member.name for member in members)}")
    for path in graph.paths:
        what = (
            f"the root's lists of {path.record.name}"
            if path.owner is None
            else f"{path.owner.name}.{path.name}"
        )
        prefix = connection_prefix(path)
        if not path.is_one:
            take(f"{prefix}Connection", what)
            for name in (*map(range_name, path.ranged), *_conditions(path)):
                take(name, f"the input {name}")
            take(where_name(path), f"the filter of {path.record.name if path.tells_all else what}")
        if not path.is_one or path.far_end:
            take(f"{prefix}Edge", what)


def _conditions(path: AccessPath) -> set[str]:
    return set(map(condition_name, filterable_fields(path)))


def _classes_of(type_: FieldType) -> Iterator[type]:
    return (nested.python for nested in _nested_types(type_) if nested.python is not None)


def _nested_types(type_: FieldType) -> Iterator[FieldType]:
    """The type, with those that it is made of before and after it."""
    if type_.of is not None:
        yield from _nested_types(type_.of)
    yield type_
    for member in type_.members:
        yield from _nested_types(member.type)


def _look_at_fields(graph: Graph, found: list[Mistake]) -> None:
    for record in graph.resolution.types.values():
        _look_for_ids(record, found)
    for record in graph.types.values():
        names = [*record.fields, *record.ends, *record.lists, *record.methods]
        _look_for_equal(record.name, names, found)
        for name in names:
            if not _NAME.fullmatch(camel(name)):
                found.append(
                    Mistake(
                        "bad-name", f"{record.name}.{name}", "it is not a valid GraphQL name.", "Rename it."
                    )
                )
        if record.is_node:
            keys = {slot.path: record.leaf_name(slot.path) for slot in record.identity}
            _look_for_equal(f"the key of {record.name}", keys.values(), found)
        places = {field.attribute: field.name for field in record.fields.values()}
        of_ends = [
            record.leaf_name((end.name, *path))
            for end in record.ends.values()
            for path, attribute in end.attributes.items()
            if attribute not in places
        ]
        _look_for_equal(
            f"the filter of {record.name}",
            [*{camel(name): name for name in places.values()}.values(), *of_ends],
            found,
        )
        if record.kind == "edge":
            for name in sorted({camel(name) for name in names} & set(EDGE_FIELDS)):
                found.append(
                    Mistake(
                        "reserved-name",
                        f"{record.name}.{name}",
                        f"`{name}` is a field that every edge of a connection has.",
                        "Rename the field, and name its attribute with stored().",
                    )
                )
        for field in record.fields.values():
            _look_at_members(record, field.name, field.type, found)
        for method in record.methods.values():
            _look_for_equal(f"{record.name}.{method.name}", method.parameters, found, "arguments")
    _look_at_root(graph, found)
    for path in (*graph.root_lists, *graph.finders):
        if not _NAME.fullmatch(camel(path.name)):
            problem = f"{path.name!r}, a list or finder of {path.record.name}, is not a valid GraphQL name."
            found.append(Mistake("bad-name", "the root", problem, "Rename it."))


def _look_at_root(graph: Graph, found: list[Mistake]) -> None:
    named: dict[str, list[str]] = {name: ["the field of that name"] for name in ("node", "nodes")}
    for record in graph.nodes:
        named.setdefault(field_name(record), []).append(f"the {record.name} by its key")
    for path in (*graph.root_lists, *graph.finders):
        what = "what finds" if path.is_one else "the list of"
        named.setdefault(camel(path.name), []).append(f"{what} {path.record.name} in {_place_of(path)}")
    for name, fields in named.items():
        if len(fields) > 1:
            problem = f"{len(fields)} fields are called {name} in the schema: {', '.join(fields)}."
            mend = 'Rename all but one: lists="…" names a list, and lists=False removes it.'
            found.append(Mistake("name-twice", "the root", problem, mend))


def _place_of(path: AccessPath) -> str:
    """Where a list at the root is read."""
    index, table = path.keys.index, path.record.table
    if index is None:
        return "the table"
    is_inverted = [key.name for key in index.keys] == [key.name for key in reversed(table.keys)]
    return f"the inverted index {index.name}" if is_inverted else f"the index {index.name}"


def _look_for_ids(record: RecordType, found: list[Mistake]) -> None:
    """A node's own id is called so already."""
    for name in (*record.fields, *record.ends, *record.lists, *record.methods):
        if record.is_node and camel(name) == "id":
            found.append(
                Mistake(
                    "field-called-id",
                    f"{record.name}.{name}",
                    "`id` is the global id of a node.",
                    f'Rename the field: {record.name.lower()}_id: ID = stored("{name}").',
                )
            )


def _look_at_members(record: RecordType, name: str, type_: FieldType, found: list[Mistake]) -> None:
    for nested in _nested_types(type_):
        _look_for_equal(f"{record.name}.{name}", [each.name for each in nested.members], found)
        python = nested.python
        if python is None or not issubclass(python, Enum):
            continue
        for member in python.__members__:
            if not _NAME.fullmatch(member) or member in ("true", "false", "null"):
                found.append(
                    Mistake(
                        "bad-name",
                        f"{record.name}.{name}",
                        f"{python.__name__}.{member} is not a valid GraphQL name.",
                        "Rename it.",
                    )
                )


def _look_for_equal(where: str, names: Iterable[str], found: list[Mistake], what: str = "fields") -> None:
    """Look for names of Python that are one in the schema."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(camel(name))
        seen[camel(name)] = name
        if other is not None:
            both = "" if other == name else f", {other} and {name},"
            problem = f"two of its {what}{both} are called {camel(name)} in the schema."
            found.append(Mistake("name-twice", where, problem, "Rename one."))


def _look_at_arguments(path: AccessPath, found: list[Mistake]) -> None:
    where = f"{path.owner.name if path.owner else 'the root'}.{path.name}"
    seen = set() if path.is_one else set(LIST_ARGUMENTS)
    for argument in (*path.required, *path.ranged):
        name = camel(argument.name)
        if name in seen:
            found.append(_collision(path, where, argument, name))
        seen.add(name)


def _collision(path: AccessPath, where: str, argument: Argument, name: str) -> Mistake:
    alike = [each for each in (*path.required, *path.ranged) if each.slot.path == argument.slot.path]
    problem = f"two of its arguments are called {name}"
    mend = "Rename the key template's field, and name its attribute with stored()."
    if len(alike) > 1:
        shown = " and ".join(f"{{{each.slot.name}}}" for each in alike)
        problem += f", because one field is there in two formats, {shown}"
        mend = (
            f'Replace one with a method: @field(needs=("{argument.slot.path[0]}",)), with a name of its own.'
        )
    return Mistake("colliding-arguments", where, f"{problem}.", mend)
