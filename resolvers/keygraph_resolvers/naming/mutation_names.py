"""The mutations of a graph: their names, the names of their types, and their input fields.

A node is created, updated, upserted, moved and deleted; an edge and a record are put, updated, moved and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from math import isfinite
from typing import Any, cast

from keygraph.declare.declaration import WriteName
from keygraph.graph import Graph
from keygraph.keys.template import FieldPath
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph.names import camel, pascal, plural, snake, with_article
from keygraph.writing.requests import OnEdges

ID = "id"
MUTATION_ID = "clientMutationId"
IDEMPOTENCY_KEY = "idempotencyKey"
EXPECTED_VERSION = "expectedVersion"
ON_EDGES = "onEdges"
TO = "to"
_DESCRIPTIONS: Mapping[WriteName, str] = {
    "create": "Creates {}. Fails with `ALREADY_EXISTS` if there is one with this key.",
    "put": "Writes {}: a new one, or in place of the one with this key.",
    "update": "Changes the given fields of {}; null removes a value. Fails with `NOT_FOUND` if there is none with this key.",
    "upsert": "Creates {}, or changes the given fields of the one with this key.",
    "move": "Gives {} another key. Fails with `NOT_FOUND` if there is none with this key, with `ALREADY_EXISTS` if there is one with the other key.",
    "delete": "Deletes {}. Fails with `NOT_FOUND` if there is none with this key.",
}


def mutation_name(action: WriteName, record: RecordType) -> str:
    """`createUser`."""
    return f"{action}{record.name}"


def mutation_description(graph: Graph, action: WriteName, record: RecordType) -> str:
    described = _DESCRIPTIONS[action].format(with_article(record.name))
    if action == "move" and is_named(graph, record):
        described += " Fails with `CONFLICT` while something names it."
    if action == "update" and "move" in record.writes:
        described += f" The key stays: `{mutation_name('move', record)}` changes it."
    unfound = [each for each in graph.references.get(record.name, ()) if not each.is_found]
    if unfound and action in ("move", "delete"):
        names = " or ".join(f"`{each.record.name}.{camel(each.end.name)}`" for each in unfound)
        described += f" Records that name it as {names} are not found."
    return described


def is_named(graph: Graph, record: RecordType) -> bool:
    """Whether other records can refer to records of the type."""
    return bool(graph.references.get(record.name))


def plural_name(action: WriteName, record: RecordType) -> str:
    """`createUsers`."""
    return f"{action}{pascal(plural(snake(record.name)))}"


def payload_name(action: WriteName, record: RecordType) -> str:
    """The type of a mutation's payload."""
    return f"{pascal(action)}{record.name}Payload"


# --- What can be given ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """One field of an input: its name there, and the field or end of the record that it sets."""

    name: str
    of: Field | End

    @property
    def default(self) -> Any:
        """Its value in a new record that is given none; MISSING if there is none."""
        return default_input(self.of.type, self.of.default) if isinstance(self.of, Field) else MISSING

    @property
    def is_optional(self) -> bool:
        return self.of.optional or (
            isinstance(self.of, Field) and (self.of.has_default or self.of.kept == "id")
        )


def default_input(type_: FieldType, default: Any) -> Any:
    """The default of a field or member as a value of its input; MISSING for none, and for what GraphQL cannot write."""
    if default is None or default is MISSING or type_.kind == "json":
        return MISSING
    if isinstance(default, float) and not isfinite(default):
        return MISSING
    if type_.of is not None:
        members = sorted(default, key=str) if type_.kind == "set" else default
        found = [default_input(type_.of, each) for each in members]
        return MISSING if MISSING in found else found
    if type_.kind != "object":
        return default
    values = {member: getattr(default, member.name) for member in type_.members}
    inputs = {
        camel(each.name): value if value is None else default_input(each.type, value)
        for each, value in values.items()
    }
    return MISSING if MISSING in inputs.values() else inputs


def given_fields(record: RecordType, without: str | None = None) -> list[Given]:
    """The input fields of a new record of the type, its key first, in the order of the declaration; without one end."""
    found: list[Given] = []
    for name in record.order:
        if name in record.fields:
            if record.fields[name].is_given:
                found.append(Given(camel(name), record.fields[name]))
        elif name in record.ends and name != without:
            end = record.ends[name]
            only = [record.leaf_name((name, *slot.path)) for slot in end.identity]
            found.append(Given(camel(only[0] if len(only) == 1 else name), end))
    key = key_names(record)
    return sorted(found, key=lambda each: each.of.name not in key)


def key_names(record: RecordType) -> set[str]:
    """The fields and ends in the table's key."""
    return {
        slot.path[0] for slot in record.identity if slot.path[0] in record.fields.keys() | record.ends.keys()
    }


def computed_key_names(record: RecordType) -> list[str]:
    """The methods in the table's key. Inputs that name a stored record take their texts."""
    return [slot.path[0] for slot in record.identity if slot.computed and len(slot.path) == 1]


def moved_names(record: RecordType) -> set[str]:
    """The fields and ends that only a move changes: those in the table's key, and those from which methods write it."""
    return key_names(record).union(*(record.needs_of(slot) for slot in record.identity))


def may_be_absent(record: RecordType, path: FieldPath) -> bool:
    """Whether what is at a path of a record type is only in optional parts of the table's key."""
    found = [slot for slot in record.identity if slot.path[: len(path)] == path]
    return bool(found) and all(slot.name in record.table_keys.optional for slot in found)


def nested_lists(graph: Graph, record: RecordType) -> list[AccessPath]:
    """The lists of a node whose records may be created with it: those with the node at one end, one for each end."""
    found: dict[tuple[str, str], AccessPath] = {}
    for name in record.lists if record.is_node else ():
        path = graph.node_lists.get((record.name, name))
        end = path.end if path else None
        if path is None or end is None or path.members or path.record.is_virtual:
            continue
        if not path.record.ends[end].text and given_fields(path.record, without=end):
            there = found.setdefault((path.record.name, end), path)
            if there.is_one and not path.is_one:
                found[path.record.name, end] = path
    return [*found.values()]


def nested_name(path: AccessPath) -> str:
    """The input of a record that is created with the node that lists it: `OrderItemsInput`."""
    return f"{cast(RecordType, path.owner).name}{pascal(path.name)}Input"


# --- Names of types -------------------------------------------------------------------------------------


TOGETHER = "write"
"""The mutation that does any of the others in one transaction."""
TOGETHER_TYPES: Mapping[str, str] = {
    "WriteAction": "the input of write",
    "WriteResult": "the result of an action of write",
    "WriteInput": "the input of write",
    "WritePayload": "the payload of write",
}


def results_name(action: WriteName, record: RecordType) -> str:
    """The type of the payload of a mutation of several records."""
    return f"{pascal(plural_name(action, record))}Payload"


def inputs_name(action: WriteName, record: RecordType) -> str:
    """The type of the input of a mutation of several records."""
    return f"{pascal(plural_name(action, record))}Input"


def input_name(action: WriteName, record: RecordType) -> str:
    """The type of a mutation's input."""
    return f"{pascal(action)}{record.name}Input"


def to_name(record: RecordType) -> str:
    """The input of the key that a record is moved to."""
    return f"Move{record.name}ToInput"


def key_name(record: RecordType) -> str:
    """The input of the key of a node with several key fields."""
    return f"{record.name}Key"


def part_name(record: RecordType, word: str) -> str:
    """The input of the values that an update adds or removes."""
    return f"{record.name}{pascal(word)}Input"


def is_added_to(type_: FieldType) -> bool:
    """Whether an update can add to a value of the type."""
    return type_.kind in ("int", "long", "float", "decimal", "set", "list") and type_.written is None


def is_removed_from(type_: FieldType) -> bool:
    """Whether an update can remove members from a value of the type."""
    return type_.kind == "set"


PARTS: Mapping[str, tuple[str, Callable[[FieldType], bool]]] = {
    "add": ("Adds to numbers and sets, and appends to lists.", is_added_to),
    "remove": ("Removes members from sets.", is_removed_from),
}
"""The changes to parts of values in an update: the field of the input, its description, and the types it is for."""


def part_fields(record: RecordType, word: str) -> list[Field]:
    """The fields of a record type that an update can change in this way."""
    _, fits = PARTS[word]
    key = key_names(record)
    own = [field for field in record.fields.values() if field.is_given]
    return [field for field in own if fits(field.type) and field.name not in key]


def mutation_types(graph: Graph) -> Iterator[tuple[str, str]]:
    """The names of the types that mutations need, with a description of each."""
    for record in graph.types.values():
        for action in record.writes:
            name = mutation_name(action, record)
            yield input_name(action, record), f"the input of {name}"
            yield payload_name(action, record), f"the payload of {name}"
            yield results_name(action, record), f"the payload of {plural_name(action, record)}"
            yield inputs_name(action, record), f"the input of {plural_name(action, record)}"
            if action == "move":
                yield to_name(record), f"the new key of {name}"
        for word in PARTS if record.writes else ():
            if part_fields(record, word):
                yield part_name(record, word), f"the part {word} of update{record.name}"
        for path in nested_lists(graph, record):
            yield nested_name(path), f"what creates the {path.name} of a {record.name}"
    if any(record.writes for record in graph.types.values()):
        yield from TOGETHER_TYPES.items()
    if any("delete" in record.writes and is_named(graph, record) for record in graph.nodes):
        yield OnEdges.__name__, "what becomes of a deleted node's edges"
    for record in graph.nodes:
        if len(record.identity) > 1:
            yield key_name(record), f"the key of {record.name}"
    structs = {
        type_.cls.__name__: None
        for record in graph.types.values()
        for field in record.fields.values()
        for type_ in _objects(field.type)
    }
    for name in structs:
        yield f"{name}Input", f"the input of {name}"


def _objects(type_: FieldType) -> Iterator[FieldType]:
    if type_.of is not None:
        yield from _objects(type_.of)
    if type_.kind == "object":
        yield type_
        for member in type_.members:
            yield from _objects(member.type)
