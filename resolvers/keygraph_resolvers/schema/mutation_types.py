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
    CREATED,
    Attribute,
    GlobalId,
    ResultList,
    Writes,
    WritesEach,
    WritesTogether,
    WrittenRecord,
)
from keygraph_resolvers.schema.mutation_inputs import INPUTS, MutationInputs

_EACH = "Does `{}` for each input: all in one transaction, or with `atomic: false` each on its own."
_RESULTS = "In the order of the inputs; null for each input that failed."
_TOGETHER = "Runs these actions in one transaction: all or none."
_ANSWER = "The result of `{}`."
_INPUTS = "The inputs, and whether all of them are one transaction."


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
        fields: list[StrawberryField] = []
        of_several: list[StrawberryField] = []
        for kind, payload in payloads.items():
            action, record = kind.action, kind.record
            name, several = mutation_name(action, record), plural_name(action, record)
            described, reason = mutation_description(self._graph, action, record), record.notes.deprecated
            given = [argument("input", inputs.input(action, record), INPUTS[action])]
            fields.append(ServedField(name, payload, kind, given, described, reason))
            results = _results(results_name(action, record), several, payload, _RESULTS)
            given = [argument("input", inputs.inputs(action, record), _INPUTS)]
            each, described = WritesEach(action, record), _EACH.format(name)
            of_several.append(ServedField(several, nullable(results), each, given, described, reason))
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
        written = _results("WritePayload", TOGETHER, result, "In the order of the actions.")
        given = [argument("input", inputs.actions(every), "The actions.")]
        together = ServedField(TOGETHER, nullable(written), WritesTogether(), given, _TOGETHER)
        return [*fields, *of_several, together]

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
        if action in ("put", "upsert"):
            described = "Whether there was none with this key."
            fields.append(ServedField("created", bool, Attribute(CREATED), description=described))
        if action == "move":
            described = "The `id` that it had before."
            previous = Attribute("previous_id")
            fields.append(
                ServedField("previousId", cast(type, strawberry.ID), previous, description=described)
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
        add_fields(made, [*fields, _mutation_id()])
        return made


def _results(name: str, mutation: str, result: OutputType, described: str) -> type:
    """The payload of a mutation with several results."""
    made = object_type(name, _ANSWER.format(mutation))
    results = ServedField("results", list_of(result), ResultList(), description=described)
    add_fields(made, [results, _mutation_id()])
    return made


def _mutation_id() -> StrawberryField:
    """The field that every payload has."""
    described = "The `clientMutationId` of the input."
    return ServedField(MUTATION_ID, nullable(str), Attribute("client_mutation_id"), description=described)
