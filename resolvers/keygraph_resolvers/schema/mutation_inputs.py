"""The types of mutation inputs. Each mutation has one input; `mutations` interprets its values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any, cast

import strawberry

from keygraph.declare.declaration import WriteName
from keygraph.declare.docstrings import class_docstring, docstring, member_docstrings
from keygraph.dynamo.items import number_text
from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import RecordType
from keygraph.names import camel, with_article
from keygraph.writing.requests import OnEdges
from keygraph_resolvers.naming.descriptions import (
    WITHOUT_PART,
    a,
    in_words,
    of_field,
    of_given_end,
    of_key_part,
    of_list,
    of_stored,
    of_type,
    sentences,
)
from keygraph_resolvers.naming.mutation_names import (
    EXPECTED_VERSION,
    ID,
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    ON_EDGES,
    PARTS,
    TO,
    TOGETHER,
    Given,
    computed_key_names,
    default_input,
    given_fields,
    input_name,
    inputs_name,
    is_named,
    key_name,
    key_names,
    may_be_absent,
    moved_names,
    mutation_description,
    mutation_name,
    nested_lists,
    nested_name,
    part_fields,
    part_name,
    plural_name,
    to_name,
)
from keygraph_resolvers.naming.names import type_name
from keygraph_resolvers.schema.definitions import (
    OutputType,
    add_fields,
    enum_type,
    input_field,
    input_type,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.mutations import MOST_INPUTS, NAME_PREFIX

_ATOMIC = "Whether all inputs are written in one transaction, or each in its own."
_MOST = f"At most {MOST_INPUTS:,}."
INPUTS: Mapping[WriteName, str] = {
    "create": "What is created.",
    "put": "What is written.",
    "update": "The key, and the fields that change.",
    "upsert": "The key, and the fields that are set or change.",
    "move": "The current key and the new key.",
    "delete": "The key of the one to delete.",
}
"""The description of a mutation's input."""
_BY_KEY_ALONE: tuple[WriteName, ...] = ("delete", "move")
_OF_STORED: tuple[WriteName, ...] = ("update", *_BY_KEY_ALONE)


class MutationInputs:
    """Makes the inputs of a schema's mutations, each once."""

    def __init__(self, graph: Graph, scalar: Callable[[FieldType], OutputType]) -> None:
        """`scalar` returns the GraphQL type of a field's type."""
        self._graph = graph
        self._scalar = scalar
        self._made: dict[str, type] = {}

    def input(self, action: WriteName, record: RecordType) -> type:
        """The input of a mutation."""
        name = input_name(action, record)
        if name in self._made:
            return self._made[name]
        made = self._made[name] = input_type(name, f"The input of `{mutation_name(action, record)}`.")
        key, moved = key_names(record), moved_names(record)
        fields = []
        if action in _OF_STORED:
            texts = [(name, of_key_part(name, optional=False)) for name in computed_key_names(record)]
            fields = [
                _id_field(record),
                *(input_field(camel(name), nullable(str), told) for name, told in texts),
            ]
        for each in given_fields(record):
            in_key = each.of.name in key
            if (action in _BY_KEY_ALONE and not in_key) or (
                action == "update" and not in_key and each.of.name in moved
            ):
                continue
            if action in _OF_STORED and in_key:
                fields.append(self._key_field(record, each))
                continue
            fields.append(self._field(record, each, action))
        if action == "create":
            fields += self._nested_fields(record)
        if action in ("update", "upsert"):
            fields += self._part_fields(record)
        if action == "move":
            described = "The new key. Omitted parts stay the same."
            fields.append(input_field(TO, self._to(record), described))
        if action == "delete" and is_named(self._graph, record):
            described = "What becomes of the edges, records and nodes that name it."
            fields.append(input_field(ON_EDGES, self._on_edges, described, OnEdges.REFUSE))
        if action in (*_OF_STORED, "upsert") and record.version is not None:
            described = "The version that it must have; otherwise the mutation fails with `CONFLICT`."
            fields.append(
                input_field(EXPECTED_VERSION, nullable(self._scalar(record.version.type)), described)
            )
        add_fields(made, [*fields, *_of_every_input()])
        return made

    def inputs(self, action: WriteName, record: RecordType) -> type:
        """The input of a mutation of several records."""
        made = input_type(inputs_name(action, record), f"The input of `{plural_name(action, record)}`.")
        described = f"{INPUTS[action]} {_MOST}"
        inputs = input_field("inputs", list_of(self.input(action, record)), described)
        add_fields(made, [inputs, input_field("atomic", bool, _ATOMIC, True), *_of_every_input()])
        return made

    def actions(self, every: Sequence[tuple[WriteName, RecordType]]) -> type:
        """The input of several mutations in one transaction."""
        made = input_type("WriteInput", f"The input of `{TOGETHER}`.")
        actions = input_field("actions", list_of(self._action(every)), f"What to do. {_MOST}")
        add_fields(made, [actions, *_of_every_input()])
        return made

    def _action(self, every: Sequence[tuple[WriteName, RecordType]]) -> type:
        """One action of several: exactly one mutation's input."""
        made = input_type("WriteAction", "One of these.", is_one_of=True)
        fields = [
            input_field(
                mutation_name(action, record),
                nullable(self.input(action, record)),
                mutation_description(self._graph, action, record),
            )
            for action, record in every
        ]
        add_fields(made, fields)
        return made

    def _to(self, record: RecordType) -> type:
        """The input of the key that a record is moved to."""
        made = input_type(to_name(record), "The new key. Omitted parts stay the same.")
        given = [each for each in given_fields(record) if each.of.name in moved_names(record)]
        types = [(each, self._type(each)) for each in given]
        add_fields(
            made,
            [
                input_field(
                    each.name,
                    type_ if len(types) == 1 else nullable(type_),
                    _described(record, each, "move"),
                )
                for each, type_ in types
            ],
        )
        return made

    @cached_property
    def _on_edges(self) -> OutputType:
        return enum_type(OnEdges, docstring(OnEdges.__doc__), member_docstrings(OnEdges))

    def _may_be_left_out(self, record: RecordType, each: Given) -> bool:
        """Whether a field may be missing: several fields stored in one attribute need only one value."""
        if each.is_optional:
            return True
        if not isinstance(each.of, Field):
            return False
        ends = record.ends.values()
        return any(each.of.attribute == path for end in ends for path in end.attributes.values())

    def _field(self, record: RecordType, each: Given, action: WriteName) -> Any:
        """A field of a record: of a new one with its default, of one that may be stored without."""
        type_, default = self._type(each), each.default if action in ("create", "put") else MISSING
        is_needed = action not in _OF_STORED and not self._may_be_left_out(record, each)
        is_needed = is_needed or (default is not MISSING and not each.of.optional)
        shown, described = type_ if is_needed else nullable(type_), _described(record, each, action)
        return input_field(each.name, shown, described, default, record.deprecated(each.of.name))

    def _key_field(self, record: RecordType, each: Given) -> Any:
        """The field of a part of the key of a stored record, which its id may name instead."""
        is_optional = may_be_absent(record, (each.of.name,))
        described = sentences(_described(record, each, "move"), WITHOUT_PART if is_optional else None)
        deprecated = record.deprecated(each.of.name)
        return input_field(each.name, nullable(self._type(each)), described, deprecated=deprecated)

    def _nested_fields(self, record: RecordType) -> list[Any]:
        fields = []
        for path in nested_lists(self._graph, record):
            of = self._nested(path)
            type_ = nullable(of if path.is_one else list_of(of))
            described = sentences(of_list(path), "Created in the same transaction.")
            fields.append(input_field(camel(path.name), type_, described))
        return fields

    def _nested(self, path: AccessPath) -> type:
        """The input of a record that is created with the node that lists it."""
        name, record, end = nested_name(path), path.record, cast(str, path.end)
        if name not in self._made:
            told = f"{a(record.name).capitalize()} that is created with its {in_words(end)}."
            made = self._made[name] = input_type(name, told)
            fields = [self._field(record, each, "create") for each in given_fields(record, without=end)]
            add_fields(made, [*fields, *self._nested_fields(record)])
        return self._made[name]

    def _part_fields(self, record: RecordType) -> list[Any]:
        """The fields that add to numbers, sets and lists, and remove from sets."""
        found = []
        for word, (described, _) in PARTS.items():
            fields, name = part_fields(record, word), part_name(record, word)
            if fields and name not in self._made:
                made = self._made[name] = input_type(name, described)
                types = [(each, nullable(self._value(each.type))) for each in fields]
                add_fields(
                    made,
                    [input_field(camel(each.name), type_, of_stored(record, each)) for each, type_ in types],
                )
            if fields:
                found.append(input_field(word, nullable(self._made[name]), described))
        return found

    # --- Types ------------------------------------------------------------------------------------------

    def _type(self, each: Given) -> OutputType:
        if isinstance(each.of, Field):
            return self._value(each.of.type)
        [*slots] = each.of.identity
        if len(slots) == 1:
            return self._scalar(slots[0].text.type)
        return self._key(each.of.members[0])

    def _key(self, record: RecordType) -> type:
        """The input of the key of a node with several key fields."""
        name = key_name(record)
        if name not in self._made:
            made = self._made[name] = input_type(name, f"The key of {with_article(record.name)}.")
            types = {slot.path: slot.text.type for slot in record.identity}
            fields = []
            for path, of in types.items():
                leaf, is_optional = record.leaf_name(path), may_be_absent(record, path)
                type_ = nullable(self._scalar(of)) if is_optional else self._scalar(of)
                fields.append(input_field(camel(leaf), type_, of_key_part(leaf, optional=is_optional)))
            add_fields(made, fields)
        return self._made[name]

    def _value(self, type_: FieldType) -> OutputType:
        if type_.of is not None:
            element = self._value(type_.of)
            return list_of(nullable(element) if type_.of_optional else element)
        return self._struct(type_) if type_.kind == "object" else self._scalar(type_)

    def _struct(self, type_: FieldType) -> type:
        name = f"{type_name(type_)}Input"
        if name not in self._made:
            described = class_docstring(type_.cls) or of_type(type_name(type_))
            made, descriptions = input_type(name, described), member_docstrings(type_.cls)
            self._made[name] = made
            fields = []
            for member in type_.members:
                of, default = self._value(member.type), default_input(member.type, member.default)
                is_needed = not member.optional and (default is not MISSING or not member.has_default)
                described = descriptions.get(member.name) or of_field(
                    type_name(type_), member.name, member.type
                )
                shown = of if is_needed else nullable(of)
                fields.append(input_field(camel(member.name), shown, described, default))
            add_fields(made, fields)
        return self._made[name]


def _id_field(record: RecordType) -> Any:
    """The field that names a stored record, as its key does."""
    described = f"The `id` of the {in_words(record.name)}, in place of its key."
    return input_field(ID, nullable(cast(type, strawberry.ID)), described)


def _of_every_input() -> list[Any]:
    """The fields that the input of every mutation has."""
    retries = "Makes retries safe: a mutation that is sent again with the same key runs once."
    return [
        input_field(MUTATION_ID, nullable(str), "Any text; the payload returns it."),
        input_field(IDEMPOTENCY_KEY, nullable(str), retries),
    ]


def _described(record: RecordType, each: Given, action: WriteName) -> str | None:
    """The description of an input field, with the value of a new record if the field is omitted and has no default."""
    if not isinstance(each.of, Field):
        return of_given_end(record, each.of)
    left_out = ""
    if action not in _OF_STORED:
        if each.of.kept == "id":
            left_out = f"Generated by the server if omitted. `{NAME_PREFIX}a` generates one that the rest of the mutation can refer to as `{NAME_PREFIX}a`."
        elif each.default is not MISSING and action == "upsert":
            shown = _default_text(each.default)
            left_out = f"{shown} in a new one if omitted." if shown else ""
    return sentences(of_stored(record, each.of), left_out)


def _default_text(value: object) -> str | None:
    """A default in GraphQL syntax; None for types without a short form."""
    match value:
        case Enum():
            return f"`{value.name}`"
        case bool() | int() | float() | str():
            return f"`{json.dumps(value)}`"
        case Decimal():
            return f'`"{number_text(value)}"`'
    return None
