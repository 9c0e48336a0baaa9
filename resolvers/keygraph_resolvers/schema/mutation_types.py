"""The fields of mutations, and the types of their payloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import strawberry
from strawberry.types.field import StrawberryField

from keygraph.declare.declaration import WriteName
from keygraph.graph import Graph
from keygraph.keys.types import FieldType
from keygraph.model.records import End, RecordType
from keygraph_resolvers.naming.descriptions import in_words
from keygraph_resolvers.naming.mutation_names import (
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    TOGETHER,
    is_named,
    mutation_description,
    mutation_name,
    payload_name,
    plural_name,
    results_name,
)
from keygraph_resolvers.naming.names import field_name
from keygraph_resolvers.schema.definitions import (
    OutputType,
    ServedField,
    add_fields,
    argument,
    list_of,
    nullable,
    object_type,
)
from keygraph_resolvers.schema.field_kinds import (
    Attribute,
    GlobalId,
    ResultList,
    Writes,
    WritesEach,
    WritesTogether,
    WrittenRecord,
)
from keygraph_resolvers.schema.mutation_inputs import INPUTS, KEY_DESCRIPTION, MutationInputs
from keygraph_resolvers.schema.mutations import MOST_INPUTS

_EACH = "Does `{}` for each input: all in one transaction, or with `atomic: false` each on its own."
_RESULTS = "In the order of the inputs; null for each input that failed."
_TOGETHER = "Runs these actions in one transaction: all or none."
_ANSWER = "The result of `{}`."
_ATOMIC = "Whether all inputs are written in one transaction, or each in its own."
_MOST = f"At most {MOST_INPUTS:,}."


class MutationTypes:
    """Makes the fields of mutations, and their types."""

    def __init__(
        self,
        graph: Graph,
        scalar: Callable[[FieldType], OutputType],
        object_: Callable[[RecordType], type],
        end_field: Callable[[RecordType, End], StrawberryField],
    ) -> None:
        """`scalar`, `object_` and `end_field` return the types of values and of records, and the field of an end."""
        self._graph = graph
        self._scalar = scalar
        self._object = object_
        self._end_field = end_field

    def fields(self) -> list[StrawberryField]:
        """The mutations of each type's records."""
        inputs = MutationInputs(self._graph, self._scalar)
        every = [(action, record) for record in self._graph.types.values() for action in record.writes]
        if not every:
            return []
        payloads = {
            Writes(action, record): nullable(self._payload(action, record)) for action, record in every
        }
        key = argument(IDEMPOTENCY_KEY, nullable(str), KEY_DESCRIPTION)
        fields: list[StrawberryField] = []
        of_several: list[StrawberryField] = []
        for kind, payload in payloads.items():
            action, record = kind.action, kind.record
            name, several = mutation_name(action, record), plural_name(action, record)
            given = inputs.input(action, record)
            described, reason = mutation_description(self._graph, action, record), record.notes.deprecated
            arguments = [argument("input", given, INPUTS[action])]
            fields.append(ServedField(name, payload, kind, arguments, described, reason))
            results = object_type(results_name(action, record), _ANSWER.format(several))
            add_fields(
                results, [ServedField("results", list_of(payload), ResultList(), description=_RESULTS)]
            )
            arguments = [
                argument("inputs", list_of(given), f"{INPUTS[action]} {_MOST}"),
                argument("atomic", bool, _ATOMIC, True),
                key,
            ]
            described = _EACH.format(name)
            each = WritesEach(action, record)
            of_several.append(ServedField(several, nullable(results), each, arguments, described, reason))
        result = object_type(
            "WriteResult", "The result of one action: the field with its name; all other fields are null."
        )
        named = {mutation_name(kind.action, kind.record): kind for kind in payloads}
        add_fields(
            result,
            [
                ServedField(name, payloads[kind], kind, description=_ANSWER.format(name))
                for name, kind in named.items()
            ],
        )
        written = object_type("WritePayload", _ANSWER.format(TOGETHER))
        add_fields(
            written,
            [
                ServedField(
                    "results", list_of(result), ResultList(), description="In the order of the actions."
                )
            ],
        )
        arguments = [argument("actions", list_of(inputs.action(every)), f"What to do. {_MOST}"), key]
        return [
            *fields,
            *of_several,
            ServedField(TOGETHER, nullable(written), WritesTogether(), arguments, _TOGETHER),
        ]

    def _payload(self, action: WriteName, record: RecordType) -> type:
        made = object_type(payload_name(action, record), _ANSWER.format(mutation_name(action, record)))
        fields: list[StrawberryField] = []
        if action != "delete" and record.order:
            shown = nullable(self._object(record))
            described = f"The {in_words(record.name)}, as it was written."
            fields.append(
                ServedField(field_name(record), shown, WrittenRecord(record), description=described)
            )
        if action == "delete":
            described = "The `id` that it had."
            fields.append(
                ServedField("deletedId", cast(type, strawberry.ID), GlobalId(), description=described)
            )
        if not record.is_node and (action == "delete" or not record.order):
            fields += [
                self._end_field(record, record.ends[name])
                for name in record.key_ends
                if name in record.key_fields
            ]
        if action == "delete" and is_named(self._graph, record):
            described = "How many edges and records were deleted with it, or do not name it any more."
            fields.append(ServedField("detached", int, Attribute("detached"), description=described))
        described = "The `clientMutationId` of the input."
        fields.append(
            ServedField(MUTATION_ID, nullable(str), Attribute("client_mutation_id"), description=described)
        )
        add_fields(made, fields)
        return made
