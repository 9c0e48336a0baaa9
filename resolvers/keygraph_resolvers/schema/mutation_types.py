"""The fields of mutations: their inputs, whose values `mutations` interprets, and the types of their payloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import cast

from strawberry.types.field import StrawberryField

from keygraph.declare.declaration import WriteName
from keygraph.declare.docstrings import class_docstring, member_docstrings
from keygraph.dynamo.items import number_text
from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.model.fields import Field
from keygraph.model.paths import AccessPath
from keygraph.model.records import End, RecordType
from keygraph.names import camel, pascal, with_article
from keygraph.writing.requests import OnEdges
from keygraph_resolvers.naming import mutation_names as naming
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
from keygraph_resolvers.naming.names import field_name, type_name
from keygraph_resolvers.schema import field_kinds as kinds
from keygraph_resolvers.schema.definitions import (
    ID_TYPE,
    OutputType,
    SchemaTypes,
    ServedField,
    argument,
    input_field,
    list_of,
    nullable,
)
from keygraph_resolvers.schema.mutations import MOST_INPUTS, NAME_PREFIX

_EACH = "Does `{}` for each input: all in one transaction, or with `atomic: false` each on its own."
_RESULTS = "In the order of the inputs; null for each input that failed."
_ANSWER = "The result of `{}`."
_INPUTS = "The inputs, and whether all of them are one transaction."
_NEW_KEY = "The new key. Omitted parts stay the same."
_ON_EDGES = {
    "REFUSE": "The mutation fails with `CONFLICT` while an edge, a record or another node names the node.",
    "DETACH": "Edges and records that name the node are deleted with it. Where their end is optional it is removed "
    "instead, also\nof other nodes; another node that cannot do without it makes the mutation fail with `CONFLICT`.",
}
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


@dataclass(frozen=True)
class MutationTypes:
    """Makes the fields of mutations, and their types."""

    _graph: Graph
    _types: SchemaTypes
    _object: Callable[[RecordType], type]
    _end_field: Callable[[RecordType, End], StrawberryField]

    def fields(self) -> list[StrawberryField]:
        """The mutations of each type's records."""
        every = [(action, record) for record in self._graph.types.values() for action in record.writes]
        if not every:
            return []
        fields: list[StrawberryField] = []
        of_several: list[StrawberryField] = []
        answers: list[StrawberryField] = []
        for action, record in every:
            name, several = naming.mutation_name(action, record), naming.plural_name(action, record)
            kind, of_payload = kinds.Writes(action, record), partial(self._payload_fields, action, record)
            payload = self._payload(f"{pascal(action)}{record.name}Payload", name, of_payload)
            described, reason = (
                naming.mutation_description(self._graph, action, record),
                record.notes.deprecated,
            )
            given = [argument("input", self._input(action, record), INPUTS[action])]
            fields.append(ServedField(name, payload, kind, described, given, reason))
            if record.has_bulk_writes:
                results = self._results(f"{pascal(several)}Payload", several, payload, _RESULTS)
                given = [argument("input", self._inputs(action, record), _INPUTS)]
                each, described = kinds.WritesEach(action, record), _EACH.format(name)
                of_several.append(ServedField(several, results, each, described, given, reason))
            answers.append(ServedField(name, payload, kind, _ANSWER.format(name)))
        described = "The result of one action: the field with its name; all other fields are null."
        result = self._types.object(
            "WriteResult", f"the result of an action of {naming.WRITE_ACTIONS}", described, lambda: answers
        )
        written = self._results("WritePayload", naming.WRITE_ACTIONS, result, "In the order of the actions.")
        given = [argument("input", self._actions(every), "The actions.")]
        described, kind_of_all = "Runs these actions in one transaction: all or none.", kinds.WritesActions()
        of_all = ServedField(naming.WRITE_ACTIONS, written, kind_of_all, described, given)
        return [*fields, *of_several, of_all]

    # --- Payloads -------------------------------------------------------------------------------------

    def _results(self, name: str, mutation: str, result: OutputType, described: str) -> OutputType:
        """The payload of a mutation with several results."""
        results = ServedField("results", list_of(result), kinds.ResultList(), described)
        return self._payload(name, mutation, lambda: [results])

    def _payload(
        self, name: str, mutation: str, fields: Callable[[], Iterable[StrawberryField]]
    ) -> OutputType:
        described = "The `clientMutationId` of the input."
        every = ServedField(
            naming.MUTATION_ID, nullable(str), kinds.Attribute("client_mutation_id"), described
        )
        use, described = f"the payload of {mutation}", _ANSWER.format(mutation)
        return nullable(self._types.object(name, use, described, lambda: [*fields(), every]))

    def _payload_fields(self, action: WriteName, record: RecordType) -> Iterator[StrawberryField]:
        if action != "delete" and record.order:
            described = f"The {in_words(record.name)}, as it was written."
            type_ = nullable(self._object(record))
            yield ServedField(field_name(record), type_, kinds.WrittenRecord(record), described)
        if action == "delete":
            yield ServedField("deletedId", ID_TYPE, kinds.GlobalId(), "The `id` that it had.")
        if action in ("put", "upsert"):
            described = "Whether there was none with this key."
            yield ServedField("created", bool, kinds.Attribute(kinds.CREATED), described)
        if action == "move":
            described = "The `id` that it had before."
            yield ServedField("previousId", ID_TYPE, kinds.Attribute("previous_id"), described)
        if not record.is_node and (action == "delete" or not record.order):
            for name in record.key_ends:
                if name in record.key_fields:
                    yield self._end_field(record, record.ends[name])
        if action == "delete" and naming.is_named(self._graph, record):
            described = "How many edges and records were deleted with it, or do not name it any more."
            yield ServedField("detached", int, kinds.Attribute("detached"), described)

    # --- Inputs ---------------------------------------------------------------------------------------

    def _input(self, action: WriteName, record: RecordType) -> type:
        fields = partial(self._input_fields, action, record)
        return self._input_of(
            f"{pascal(action)}{record.name}Input", naming.mutation_name(action, record), fields
        )

    def _input_of(self, name: str, mutation: str, fields: Callable[[], Iterable[StrawberryField]]) -> type:
        retries = "Makes retries safe: a mutation that is sent again with the same key runs once."
        every = [
            input_field(naming.MUTATION_ID, nullable(str), "Any text; the payload returns it."),
            input_field(naming.IDEMPOTENCY_KEY, nullable(str), retries),
        ]
        use, described = f"the input of {mutation}", f"The input of `{mutation}`."
        return self._types.input(name, use, described, lambda: [*fields(), *every])

    def _input_fields(self, action: WriteName, record: RecordType) -> Iterator[StrawberryField]:
        key = naming.key_names(record)
        if action in _OF_STORED:
            described = f"The `id` of the {in_words(record.name)}, in place of its key."
            yield input_field(naming.ID, nullable(ID_TYPE), described)
            for name in naming.computed_key_names(record):
                yield input_field(camel(name), nullable(str), of_key_part(name, optional=False))
        for each in naming.input_fields(record):
            in_key = each.of.name in key
            if action in _OF_STORED and in_key:
                yield self._key_field(each)
            elif action not in _BY_KEY_ALONE or in_key:
                yield self._field(each, action)
        if action == "create":
            yield from self._nested_fields(record)
        if action in ("update", "upsert"):
            yield from self._part_fields(record)
        if action == "move":
            yield input_field(naming.TO, self._to(record), _NEW_KEY)
        if action == "delete" and naming.is_named(self._graph, record):
            described = "What becomes of the edges, records and nodes that name it."
            enum = self._types.enum(OnEdges, "what becomes of a deleted node's edges", _ON_EDGES)
            yield input_field(naming.ON_EDGES, enum, described, OnEdges.REFUSE)
        if action in (*_OF_STORED, "upsert") and record.version is not None:
            described = "The version that it must have; otherwise the mutation fails with `CONFLICT`."
            yield input_field(
                naming.EXPECTED_VERSION, nullable(self._types.scalar(record.version.type)), described
            )

    def _inputs(self, action: WriteName, record: RecordType) -> type:
        """The input of a mutation of several records."""
        name = naming.plural_name(action, record)
        inputs = input_field("inputs", list_of(self._input(action, record)), f"{INPUTS[action]} {_MOST}")
        atomic = input_field("atomic", bool, _ATOMIC, True)
        return self._input_of(f"{pascal(name)}Input", name, lambda: [inputs, atomic])

    def _actions(self, every: Sequence[tuple[WriteName, RecordType]]) -> type:
        """The input of several mutations in one transaction, with exactly one mutation's input for each action."""
        use = f"the input of {naming.WRITE_ACTIONS}"
        fields = [
            input_field(
                naming.mutation_name(action, record),
                nullable(self._input(action, record)),
                naming.mutation_description(self._graph, action, record),
                kind=kinds.Writes(action, record),
            )
            for action, record in every
        ]
        action_type = self._types.input("WriteAction", use, "One of these.", lambda: fields, is_one_of=True)
        actions = input_field("actions", list_of(action_type), f"What to do. {_MOST}")
        return self._input_of("WriteInput", naming.WRITE_ACTIONS, lambda: [actions])

    def _to(self, record: RecordType) -> type:
        """The input of the key that a record is moved to."""
        # What only a move changes: the parts of the table's key, and what methods write it from.
        moved = naming.key_names(record).union(*(record.needs_of(slot) for slot in record.identity))
        given = [each for each in naming.input_fields(record) if each.of.name in moved]

        def fields() -> Iterator[StrawberryField]:
            for each in given:
                type_ = self._type(each) if len(given) == 1 else nullable(self._type(each))
                yield input_field(each.name, type_, _described(each, "move"))

        use = f"the new key of {naming.mutation_name('move', record)}"
        return self._types.input(f"Move{record.name}ToInput", use, _NEW_KEY, fields)

    def _field(self, each: naming.InputField, action: WriteName, *, is_read: bool = False) -> StrawberryField:
        """A field of a record: of a new one with its default, of one that may be stored without."""
        record, type_ = each.record, self._type(each)
        default = each.default if action in ("create", "put") else MISSING
        # Of several fields that are stored in one attribute, one is enough.
        is_shared = isinstance(each.of, Field) and any(
            each.of.attribute in end.attributes.values() for end in record.ends.values()
        )
        is_needed = action not in _OF_STORED and not each.is_optional and not is_shared
        is_needed = is_needed or (default is not MISSING and not each.of.optional)
        own, described = type_ if is_needed else nullable(type_), _described(each, action)
        kind = None if each.in_key else kinds.WrittenField(record, action, each.of.name, is_read)
        return input_field(each.name, own, described, default, record.deprecated(each.of.name), kind)

    def _key_field(self, each: naming.InputField) -> StrawberryField:
        """The field of a part of the key of a stored record, which its id may name instead."""
        is_optional = naming.may_be_absent(each.record, (each.of.name,))
        described = sentences(_described(each, "move"), WITHOUT_PART if is_optional else None)
        deprecated = each.record.deprecated(each.of.name)
        return input_field(each.name, nullable(self._type(each)), described, deprecated=deprecated)

    def _nested_fields(self, record: RecordType) -> Iterator[StrawberryField]:
        """The fields of records that are created with the node that lists them."""
        for path in naming.nested_lists(self._graph, record):
            of = self._types.input(
                f"{record.name}{pascal(path.name)}Input",
                f"what creates the {path.name} of a {record.name}",
                f"{a(path.record.name).capitalize()} that is created with its {in_words(cast(str, path.end))}.",
                partial(self._fields_of_nested, path),
            )
            described = sentences(of_list(path), "Created in the same transaction.")
            of_path = of if path.is_one else list_of(of)
            kind = kinds.WrittenField(path.record, "create", None)
            yield input_field(camel(path.name), nullable(of_path), described, kind=kind)

    def _fields_of_nested(self, path: AccessPath) -> Iterator[StrawberryField]:
        for each in naming.input_fields(path.record, without=path.end):
            yield self._field(each, "create")
        yield from self._nested_fields(path.record)

    def _part_fields(self, record: RecordType) -> Iterator[StrawberryField]:
        """The fields that add to numbers, sets and lists, and remove from sets."""
        keys = (key for each in record.keys.values() for key in each.attributes)
        texts = {(key.name,) for key in keys if key.type == "S"}
        for word, (described, fits) in naming.PARTS.items():
            fields = [
                self._field(each, "update", is_read=True)
                for each in naming.input_fields(record)
                if isinstance(each.of, Field) and fits(each.of.type)
                if not each.in_key and each.of.attribute not in texts
            ]
            if fields:
                name, use = f"{record.name}{pascal(word)}Input", f"the part {word} of update{record.name}"
                of = self._types.input(name, use, described, partial(list, fields))
                yield input_field(word, nullable(of), described)

    # --- Types ------------------------------------------------------------------------------------------

    def _type(self, each: naming.InputField) -> OutputType:
        if isinstance(each.of, Field):
            return self._value(each.of.type)
        [*slots] = each.of.identity
        if len(slots) == 1:
            return self._types.scalar(slots[0].text.type)
        return self._key(each.of.members[0])

    def _key(self, record: RecordType) -> type:
        """The input of the key of a node with several key fields."""

        def fields() -> Iterator[StrawberryField]:
            for path, of in {slot.path: slot.text.type for slot in record.identity}.items():
                leaf, is_optional = record.leaf_name(path), naming.may_be_absent(record, path)
                type_ = nullable(self._types.scalar(of)) if is_optional else self._types.scalar(of)
                yield input_field(camel(leaf), type_, of_key_part(leaf, optional=is_optional))

        described = f"The key of {with_article(record.name)}."
        return self._types.input(f"{record.name}Key", f"the key of {record.name}", described, fields)

    def _value(self, type_: FieldType) -> OutputType:
        return self._types.value(type_, self._struct)

    def _struct(self, type_: FieldType) -> type:
        own = type_name(type_)

        def fields() -> Iterator[StrawberryField]:
            descriptions = member_docstrings(type_.cls)
            for member in type_.members:
                of, default = self._value(member.type), naming.default_input(member.type, member.default)
                is_needed = not member.optional and (default is not MISSING or not member.has_default)
                described = descriptions.get(member.name) or of_field(own, member.name, member.type)
                yield input_field(camel(member.name), of if is_needed else nullable(of), described, default)

        described = class_docstring(type_.cls) or of_type(own)
        return self._types.input(f"{own}Input", f"the input of {own}", described, fields)


def _described(each: naming.InputField, action: WriteName) -> str | None:
    """The description of an input field, with the value of a new record if the field is omitted and has no default."""
    if each.end is not None or not isinstance(each.of, Field):
        return of_given_end(each.record, cast(End, each.end))
    left_out = ""
    if action not in _OF_STORED:
        if each.of.kept == "id":
            left_out = f"Generated by the server if omitted. `{NAME_PREFIX}a` generates one that the rest of the mutation can refer to as `{NAME_PREFIX}a`."
        elif each.default is not MISSING and action == "upsert":
            text = _default_text(each.default)
            left_out = f"{text} in a new one if omitted." if text else ""
    return sentences(of_stored(each.record, each.of), left_out)


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
