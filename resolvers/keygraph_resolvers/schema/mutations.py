"""The inputs of mutations: their types, and what their values mean.

Each mutation has one input and one payload. `write_requests` makes of an input what is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

from keygraph.dynamo.items import number_text
from keygraph.errors import BadUserInput, FieldName, InputPath, Refusal, WriteRefused
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.declaration import WriteName
from keygraph.model.docstrings import class_docstring, docstring, member_docstrings
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.names import camel, with_article
from keygraph.writing.items import Refusals, new_id, with_ids
from keygraph.writing.requests import Change, Create, Delete, Move, OnEdges, Put, Upsert, WriteRequest
from keygraph.writing.sending.idempotency import LONGEST_KEY, IdempotencyKey
from keygraph_resolvers.naming.descriptions import (
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
from keygraph_resolvers.naming.global_ids import is_key, read_global_id, refuse_global_id
from keygraph_resolvers.naming.mutation_names import (
    EXPECTED_VERSION,
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    ON_EDGES,
    PARTS,
    TO,
    Given,
    given_fields,
    input_name,
    is_named,
    key_name,
    key_names,
    mutation_description,
    mutation_name,
    nested_lists,
    nested_name,
    part_fields,
    part_name,
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
from keygraph_resolvers.schema.field_kinds import Writes, WritesEach, WritesTogether
from keygraph_resolvers.schema.inputs import key_value

KEY_DESCRIPTION = "Makes retries safe: a mutation that is sent again with the same key is carried out once."
INPUTS: Mapping[WriteName, str] = {
    "create": "What is created.",
    "put": "What is written.",
    "update": "The key, and the fields that change.",
    "upsert": "The key, and the fields that are set or change.",
    "move": "The key, and the other key.",
    "delete": "The key of what is deleted.",
}
"""What the input of a mutation is."""
NAME_PREFIX = "_:"
"""What the names of new ids begin with, as those of blank nodes in RDF and in Dgraph's mutations."""
MOST_INPUTS = 1000
"""How many inputs one mutation may have."""
_BY_KEY_ALONE: tuple[WriteName, ...] = ("delete", "move")
_OF_STORED: tuple[WriteName, ...] = ("update", *_BY_KEY_ALONE)


class MutationInputs:
    """The inputs of a schema's mutations, each made once."""

    def __init__(self, graph: Graph, scalar: Callable[[FieldType], OutputType]) -> None:
        """`scalar` gives the GraphQL type of a field's type."""
        self._graph = graph
        self._scalar = scalar
        self._made: dict[str, type] = {}

    def input(self, action: WriteName, record: RecordType) -> type:
        """The input of a mutation."""
        name = input_name(action, record)
        if name in self._made:
            return self._made[name]
        made = self._made[name] = input_type(name, f"What `{mutation_name(action, record)}` takes.")
        key = key_names(record)
        given = given_fields(record)
        fields = []
        for each in given:
            in_key = each.of.name in key
            if action in _BY_KEY_ALONE and not in_key:
                continue
            type_ = self._type(each)
            is_needed = in_key if action in _OF_STORED else not self._may_be_left_out(record, each)
            described = _described(record, each, is_new=action in ("create", "put"))
            shown, reason = type_ if is_needed else nullable(type_), record.deprecated(each.of.name)
            fields.append(input_field(each.name, shown, described, deprecated=reason))
        if action == "create":
            fields += self._nested_fields(record)
        if action == "update":
            fields += self._part_fields(record)
        if action == "move":
            described = "What its key is to be; what is left out stays."
            fields.append(input_field(TO, self._to(record), described))
        if action == "delete" and is_named(self._graph, record):
            described = "What becomes of the edges, records and nodes that name it."
            fields.append(input_field(ON_EDGES, self._on_edges, described, OnEdges.REFUSE))
        if action in _OF_STORED and record.version is not None:
            described = "The version that it must have; otherwise the mutation fails with `CONFLICT`."
            fields.append(
                input_field(EXPECTED_VERSION, nullable(self._scalar(record.version.type)), described)
            )
        fields.append(input_field(MUTATION_ID, nullable(str), "Any text; the payload returns it."))
        fields.append(input_field(IDEMPOTENCY_KEY, nullable(str), KEY_DESCRIPTION))
        add_fields(made, fields)
        return made

    def action(self, every: Sequence[tuple[WriteName, RecordType]]) -> type:
        """What one action of several is: the input of one of the mutations."""
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
        """The key that a record is moved to."""
        made = input_type(to_name(record), "A key. What is left out stays.")
        given = [each for each in given_fields(record) if each.of.name in key_names(record)]
        types = [(each, self._type(each)) for each in given]
        add_fields(
            made,
            [
                input_field(
                    each.name,
                    type_ if len(types) == 1 else nullable(type_),
                    _described(record, each, is_new=False),
                )
                for each, type_ in types
            ],
        )
        return made

    @cached_property
    def _on_edges(self) -> OutputType:
        return enum_type(OnEdges, docstring(OnEdges.__doc__), member_docstrings(OnEdges))

    def _may_be_left_out(self, record: RecordType, each: Given) -> bool:
        """Whether a field may be missing: what is stored in one attribute needs to be given once."""
        if each.is_optional:
            return True
        if not isinstance(each.of, Field):
            return False
        ends = record.ends.values()
        return any(each.of.attribute == path for end in ends for path in end.attributes.values())

    def _nested_fields(self, record: RecordType) -> list[Any]:
        fields = []
        for path in nested_lists(self._graph, record):
            type_ = nullable(list_of(self._nested(path.record, cast(str, path.end))))
            described = sentences(of_list(path), "Created in the same transaction.")
            fields.append(input_field(camel(path.name), type_, described))
        return fields

    def _nested(self, record: RecordType, end: str) -> type:
        """A record that is created with the node at one of its ends."""
        name = nested_name(record, end)
        if name not in self._made:
            told = f"{a(record.name).capitalize()} that is created with its {in_words(end)}."
            made = self._made[name] = input_type(name, told)
            fields = []
            for each in given_fields(record, without=end):
                type_ = self._type(each)
                left_out = self._may_be_left_out(record, each)
                described = _described(record, each, is_new=True)
                shown, reason = nullable(type_) if left_out else type_, record.deprecated(each.of.name)
                fields.append(input_field(each.name, shown, described, deprecated=reason))
            add_fields(made, [*fields, *self._nested_fields(record)])
        return self._made[name]

    def _part_fields(self, record: RecordType) -> list[Any]:
        """What is added to numbers, sets and lists, and taken from sets."""
        found = []
        for word, (described, _) in PARTS.items():
            fields = part_fields(record, word)
            if fields:
                made = input_type(part_name(record, word), described)
                add_fields(
                    made,
                    [
                        input_field(
                            camel(each.name), nullable(self._value(each.type)), of_stored(record, each)
                        )
                        for each in fields
                    ],
                )
                found.append(input_field(word, nullable(made), described))
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
        """The key of a node of several key fields."""
        name = key_name(record)
        if name not in self._made:
            made = self._made[name] = input_type(name, f"The key of {with_article(record.name)}.")
            names = {record.leaf_name(slot.path): slot.text.type for slot in record.identity}
            add_fields(
                made,
                [
                    input_field(camel(name), self._scalar(type_), of_key_part(name, optional=False))
                    for name, type_ in names.items()
                ],
            )
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
            fields = [
                input_field(
                    camel(member.name),
                    nullable(self._value(member.type))
                    if member.optional or member.has_default
                    else self._value(member.type),
                    descriptions.get(member.name) or of_field(type_name(type_), member.name, member.type),
                )
                for member in type_.members
            ]
            add_fields(made, fields)
        return self._made[name]


def _described(record: RecordType, each: Given, *, is_new: bool) -> str | None:
    """The description of a field of an input, with what a new record gets where it is left out."""
    if not isinstance(each.of, Field):
        return of_given_end(record, each.of)
    left_out = ""
    if is_new:
        if each.of.kept == "id":
            left_out = f"Made by the server if it is left out. `{NAME_PREFIX}a` makes one that the rest of the mutation calls so."
        elif each.of.has_default and each.of.default is not None:
            shown = _default_text(each.of.default)
            left_out = f"{shown} if it is left out." if shown else ""
    return sentences(of_stored(record, each.of), left_out)


def _default_text(value: object) -> str | None:
    """A default as GraphQL writes it; None where that would not be short."""
    match value:
        case Enum():
            return f"`{value.name}`"
        case bool() | int() | float() | str():
            return f"`{json.dumps(value)}`"
        case Decimal():
            return f'`"{number_text(value)}"`'
    return None


# --- What an input means --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Input:
    """One input: what it is of, what it says, and where it stands."""

    action: WriteName
    record: RecordType
    values: Mapping[str, Any]
    where: InputPath


@dataclass(frozen=True, slots=True)
class Told:
    """What the arguments of a mutation say."""

    inputs: Sequence[Input]
    is_atomic: bool = True
    """Whether all inputs are written in one transaction."""
    idempotency_key: str | None = None
    """That of all inputs; one may have a key of its own."""


def told_of(graph: Graph, kind: Writes | WritesEach | WritesTogether, given: Mapping[str, Any]) -> Told:
    """What the arguments of a mutation say. Raises WriteRefused for more inputs than one mutation may have."""
    match kind:
        case Writes(action, record):
            return Told([Input(action, record, given["input"], ("input",))])
        case WritesEach(action, record):
            inputs = [
                Input(action, record, each, ("inputs", number)) for number, each in enumerate(given["inputs"])
            ]
            told = Told(inputs, given["atomic"], given.get(IDEMPOTENCY_KEY))
        case _:
            actions = {
                mutation_name(action, record): (action, record)
                for record in graph.types.values()
                for action in record.writes
            }
            inputs = [
                Input(*actions[name], values, ("actions", number, name))
                for number, each in enumerate(given["actions"])
                for name, values in each.items()
            ]
            told = Told(inputs, idempotency_key=given.get(IDEMPOTENCY_KEY))
    refusals = Refusals()
    if len(inputs) > MOST_INPUTS:
        problem = f"This mutation has {len(inputs):,} inputs, and the limit is {MOST_INPUTS:,}."
        refusals.add(inputs[0].where[:1], problem, count=len(inputs), limit=MOST_INPUTS)
    for each in inputs if told.is_atomic else ():
        if each.values.get(IDEMPOTENCY_KEY) is not None:
            problem = "All of this is one write: give its idempotency key as an argument of the mutation."
            refusals.add((*each.where, IDEMPOTENCY_KEY), problem)
    refusals.stop()
    return told


def write_requests(graph: Graph, given: Sequence[Input]) -> list[list[WriteRequest]]:
    """What each input asks for; the first is of its record itself. Raises WriteRefused with all that is wrong."""
    meaning = _Meaning(graph)
    requests = [meaning.requests(each.action, each.record, each.values, each.where) for each in given]
    meaning.refuse_unknown_names()
    meaning.refusals.stop()
    return requests


def idempotency_key(given: Sequence[Input], name: tuple[str | int, ...], where: InputPath) -> IdempotencyKey:
    """The key under which these inputs are written. `where` is its place. Raises WriteRefused where it cannot be one."""
    text = str(name[0])
    if not 0 < len(text) <= LONGEST_KEY:
        told = f"An idempotency key has 1 to {LONGEST_KEY} characters."
        raise WriteRefused([Refusal("BAD_USER_INPUT", (told,), where)])
    asked = [
        (each.action, each.record.name, {**each.values, MUTATION_ID: None, IDEMPOTENCY_KEY: None})
        for each in given
    ]
    written = json.dumps(asked, default=repr, sort_keys=True)
    return IdempotencyKey(name, hashlib.sha256(written.encode()).digest(), where)


class _Known:
    """What the types of a graph say of inputs, each found once."""

    def __init__(self, graph: Graph) -> None:
        self.fields = cache(_known_fields)
        self.ids = cache(lambda record: [each for each in record.fields.values() if each.kept == "id"])
        self.key = cache(key_names)
        self.lists = cache(
            lambda record: [
                (FieldName(path.name), camel(path.name), path, cast(str, path.end))
                for path in nested_lists(graph, record)
            ]
        )


class _KnownField(NamedTuple):
    """One field of an input."""

    name: str
    shown: FieldName
    """The same in a place of the input."""
    of: Field | End
    is_meant: bool
    """Whether a value is what it means."""
    parts: Sequence[tuple[Slot, str, str, RecordType | None]]
    """Of an end: the parts of the node's key, what they are called in the model and in an input, and of which type it
    may be a new id."""


def _known_fields(record: RecordType, without: str | None) -> list[_KnownField]:
    found = []
    for name, of in ((each.name, each.of) for each in given_fields(record, without)):
        parts: list[tuple[Slot, str, str, RecordType | None]] = []
        if isinstance(of, End):
            member = of.members[0]
            leaves = ((slot, member.leaf_name(slot.path)) for slot in member.identity)
            parts = [(slot, leaf, camel(leaf), _of_new_id(member, slot.path)) for slot, leaf in leaves]
        is_scalar = isinstance(of, Field) and of.type.of is None and of.type.kind != "object"
        is_meant = is_scalar and _of_new_id(record, (of.name,)) is None and of.name not in key_names(record)
        found.append(_KnownField(name, FieldName(name), of, is_meant, parts))
    return found


def _of_new_id(record: RecordType, path: Sequence[str]) -> RecordType | None:
    """The type whose records get ids in the field at the end of a path; None for other fields."""
    name, *inner = path
    if inner:
        end = record.ends.get(name)
        return None if end is None or end.text else _of_new_id(end.members[0], inner)
    field = record.fields.get(name)
    return record if field is not None and field.kept == "id" else None


class _Meaning:
    """What inputs mean."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known = graph.made(_Known)
        self.refusals = Refusals()
        self._ids: dict[tuple[str, str], str] = {}
        """The new ids that have names, by the type of the record and the name."""
        self._named: list[tuple[tuple[str, str], InputPath]] = []
        """Where these names stand."""
        self._created: set[tuple[str, str]] = set()
        """Those of records that are created."""

    def requests(
        self, action: WriteName, record: RecordType, given: Mapping[str, Any], where: InputPath
    ) -> list[WriteRequest]:
        values = self._values(record, given, where)
        if action in ("create", "put", "upsert"):
            values = self._with_ids(record, values, given)
        match action:
            case "create":
                return [Create(record, values, where), *self._nested(record, values, given, where)]
            case "put":
                return [Put(record, values, where)]
            case "upsert":
                return [Upsert(record, values, where)]
        identity = self._identity(record, values, where)
        version = given.get(EXPECTED_VERSION)
        if action == "delete":
            on_edges = OnEdges(given.get(ON_EDGES, OnEdges.REFUSE))
            return [Delete(record, identity, version, where, on_edges)]
        if action == "move":
            to = (*where, TO)
            return [Move(record, identity, self._values(record, given[TO], to), version, where, to)]
        key = self._known.key(record)
        added, taken = (
            {
                field.name: self._value(field.type, said[camel(field.name)])
                for field in record.fields.values()
                if said.get(camel(field.name)) is not None
            }
            for word in PARTS
            for said in [given.get(word) or {}]
        )
        changed = {name: value for name, value in values.items() if name not in key}
        for name in sorted({*changed} & {*added, *taken} | {*added} & {*taken}):
            self.refusals.add((*where, FieldName(name)), FieldName(name), " is changed twice.")
        return [Change(record, identity, changed, added, taken, version, where)]

    def _nested(
        self, record: RecordType, values: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> list[WriteRequest]:
        found: list[WriteRequest] = []
        owner: Texts | None = None
        for shown, name, path, end in self._known.lists(record):
            for number, each in enumerate(given.get(name) or ()):
                at = (*where, shown, number)
                if owner is None:
                    owner = self._identity(record, values, where)
                own = {**self._values(path.record, each, at, without=end), end: owner}
                own = self._with_ids(path.record, own, each)
                found.append((Create if path.record.is_node else Put)(path.record, own, at))
                if path.record.is_node:
                    found += self._nested(path.record, own, each, at)
        return found

    # --- New ids ----------------------------------------------------------------------------------------

    def _with_ids(
        self, record: RecordType, values: dict[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The values of a new record, with an id for each field that gets one and has none."""
        fields = self._known.ids(record)
        self._created |= {(record.name, str(given.get(camel(field.name)))) for field in fields}
        return with_ids(record, values) if fields else values

    def _id(self, record: RecordType | None, value: Any, where: InputPath) -> Any:
        """The value of a field in which records of a type get ids; for the name of a new id, that id."""
        if record is None or not str(value).startswith(NAME_PREFIX):
            return value
        named = (record.name, str(value))
        self._named.append((named, where))
        return self._ids.setdefault(named, new_id())

    def refuse_unknown_names(self) -> None:
        """Refuses names of what is not created."""
        for named, where in self._named:
            if named not in self._created:
                record, name = named
                self.refusals.add(where, f"{name} names no {record} that this mutation creates.")

    # --- Values -----------------------------------------------------------------------------------------

    def _values(
        self, record: RecordType, given: Mapping[str, Any], where: InputPath, without: str | None = None
    ) -> dict[str, Any]:
        """The values of fields and ends, by their names, of those that are given."""
        values: dict[str, Any] = {}
        for each in self._known.fields(record, without):
            if each.name in given:
                value = given[each.name]
                if value is not None and not each.is_meant:
                    value = self._meant(record, each, value, (*where, each.shown))
                values[each.of.name] = value
        return values

    def _meant(self, record: RecordType, each: _KnownField, value: Any, at: InputPath) -> Any:
        """What the value of a field means; None where it cannot be used, which is told."""
        if isinstance(each.of, Field):
            own = _of_new_id(record, (each.of.name,))
            try:
                if is_key(record, (each.of.name,)):
                    refuse_global_id(self._graph, each.name, value)
            except BadUserInput as error:
                self.refusals.take(at, error)
            return self._value(each.of.type, self._id(own, value, at))
        try:
            return self._end(each.of, each.parts, value, at)
        except BadUserInput as error:
            self.refusals.take(at, error)
            return None

    def _value(self, type_: FieldType, value: Any) -> Any:
        """A value of a field; that of a nested dataclass is an object of it."""
        if value is None:
            return None
        if type_.of is not None:
            return [self._value(type_.of, member) for member in value]
        if type_.kind != "object":
            return value
        names = {camel(member.name): member for member in type_.members}
        return type_.cls(
            **{names[name].name: self._value(names[name].type, each) for name, each in value.items()}
        )

    def _end(
        self,
        end: End,
        parts: Sequence[tuple[Slot, str, str, RecordType | None]],
        value: Any,
        where: InputPath,
    ) -> Texts:
        """The identity of the node that is named for an end."""
        member = end.members[0]
        if end.text is not None:
            slot = end.identity[0]
            text, name = cast(NodeText, slot.text), camel(end.leaf_name(()))
            record, identity = read_global_id(self._graph, value, name)
            if record.name not in {name for variant in text.variants for name in variant.members}:
                raise BadUserInput(f"expected an id of {end.type_name}")
            return (record.partition_text(identity),)
        said = {}
        for slot, name, shown, new in parts:
            own = self._id(new, value if len(parts) == 1 else value.get(shown), where)
            said[name] = key_value(self._graph, member, slot, own)
        return self._graph.identity(member, said)

    def _identity(self, record: RecordType, values: Mapping[str, Any], where: InputPath) -> Texts:
        """The identity of the record that has these values."""
        said: dict[str, Any] = {}
        for slot in record.identity:
            name, *inner = slot.path
            if name in record.ends:
                end, texts = record.ends[name], values.get(name) or ()
                found = [
                    text for own, text in zip(end.identity, texts, strict=False) if own.path == tuple(inner)
                ]
                said[record.leaf_name(slot.path)] = slot.text.value(found[0]) if found else None
            else:
                said[record.leaf_name(slot.path)] = values.get(name)
        try:
            return self._graph.identity(record, said)
        except BadUserInput as error:
            self.refusals.take(where, error)
            return ()
