"""The mutations of a graph: their names, the names of their types, and their input fields.

A node is created, updated, upserted, moved and deleted; an edge and a record are put, updated, moved and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from keygraph.declare.declaration import WriteName
from keygraph.errors import FieldName
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.keys.template import FieldPath, Slot
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph.names import camel, pascal, plural, snake, with_article

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


# --- What can be given ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputField:
    """One field of an input: its name there, and the field or end of the record that it sets."""

    name: FieldName
    record: RecordType
    of: Field | End

    @property
    def is_optional(self) -> bool:
        return self.of.optional or (
            isinstance(self.of, Field) and (self.of.has_default or self.of.kept == "id")
        )

    @cached_property
    def default(self) -> Any:
        """Its value in a new record that is given none; MISSING if there is none."""
        return default_input(self.of.type, self.of.default) if isinstance(self.of, Field) else MISSING

    @cached_property
    def end(self) -> End | None:
        """The end that it sets, or that of each member of a list or set of nodes."""
        return self.of if isinstance(self.of, End) else self.record.list_ends.get(self.of.name)

    @cached_property
    def in_key(self) -> bool:
        return self.of.name in key_names(self.record)

    @cached_property
    def of_new(self) -> RecordType | None:
        """The type whose new id it may be."""
        return _of_new_id(self.record, (self.of.name,))

    @cached_property
    def is_meant(self) -> bool:
        """Whether a value means itself."""
        is_scalar = isinstance(self.of, Field) and self.of.type.of is None and self.of.type.kind != "object"
        return is_scalar and self.of_new is None and not self.in_key

    @cached_property
    def parts(self) -> list[tuple[Slot, str, str, RecordType | None]]:
        """The parts of the key of the node that it names: their names in the model and here, and the types whose new
        ids they may be."""
        member = None if self.end is None else self.end.members[0]
        leaves = [(slot, member.leaf_name(slot.path), member) for slot in member.identity] if member else []
        return [(slot, leaf, camel(leaf), _of_new_id(of, slot.path)) for slot, leaf, of in leaves]


def _of_new_id(record: RecordType, path: Sequence[str]) -> RecordType | None:
    """The type whose records get ids in the field at the end of a path; None for other fields."""
    name, *inner = path
    if inner:
        end = record.ends.get(name)
        return None if end is None or end.text else _of_new_id(end.members[0], inner)
    field = record.fields.get(name)
    return record if field is not None and field.kept == "id" else None


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


@kept("inputs", 2048, 5_000)
def input_fields(record: RecordType, without: str | None = None) -> list[InputField]:
    """The input fields of a new record of the type, its key first, in the order of the declaration; without one end."""
    found: list[InputField] = []
    for name in record.order:
        of, given = record.fields.get(name) or record.ends.get(name), name
        if isinstance(of, End):
            only = [record.leaf_name((name, *slot.path)) for slot in of.identity]
            given = only[0] if len(only) == 1 else name
        elif of is not None:
            given = of.input_name
        is_kept = isinstance(of, Field) and (of.kept not in (None, "id") or of.is_external)
        if of is not None and name != without and not is_kept:
            found.append(InputField(FieldName(camel(given)), record, of))
    return sorted(found, key=lambda each: not each.in_key)


@kept("inputs", 2048, 500)
def key_names(record: RecordType) -> set[str]:
    """The fields and ends in the table's key."""
    return {slot.path[0] for slot in record.identity} & {*record.fields, *record.ends}


def computed_key_names(record: RecordType) -> list[str]:
    """The methods in the table's key. Inputs that name a stored record take their texts."""
    return [slot.path[0] for slot in record.identity if slot.computed and len(slot.path) == 1]


def may_be_absent(record: RecordType, path: FieldPath) -> bool:
    """Whether what is at a path of a record type is only in optional parts of the table's key."""
    found = [slot for slot in record.identity if slot.path[: len(path)] == path]
    return bool(found) and all(slot.name in record.table_keys.optional for slot in found)


@kept("inputs", 2048, 500)
def new_id_names(record: RecordType) -> list[str]:
    """The input fields of a type in which new records get ids."""
    return [camel(field.name) for field in record.fields.values() if field.kept == "id"]


@kept("inputs", 2048, 1_000)
def nested_lists(graph: Graph, record: RecordType) -> list[AccessPath]:
    """The lists of a node whose records may be created with it: those with the node at one end, one for each end."""
    found: dict[tuple[str, str], AccessPath] = {}
    for name in record.lists if record.is_node else ():
        path = graph.node_lists.get((record.name, name))
        end = path.end if path else None
        if path is None or end is None or path.members or path.record.is_virtual:
            continue
        if not path.record.ends[end].text and input_fields(path.record, without=end):
            there = found.setdefault((path.record.name, end), path)
            if there.is_one and not path.is_one:
                found[path.record.name, end] = path
    return [*found.values()]


WRITE_ACTIONS = "write"
"""The mutation that does any of the others in one transaction."""


PARTS: Mapping[str, tuple[str, Callable[[FieldType], bool]]] = {
    "add": (
        "Adds to numbers and sets, and appends to lists.",
        lambda type_: (
            type_.kind in ("int", "long", "float", "decimal", "set", "list") and type_.written is None
        ),
    ),
    "remove": ("Removes members from sets.", lambda type_: type_.kind == "set"),
}
"""The changes to parts of values in an update: the field of the input, its description, and the types it is for."""
