"""Interprets the inputs of mutations: `write_requests` turns them into writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, cast

from keygraph.codes import Code
from keygraph.declare.declaration import WriteName
from keygraph.dynamo.items import stable_text
from keygraph.dynamo.rules import refuse_many_actions
from keygraph.dynamo.value import value
from keygraph.errors import BadUserInput, FieldName, InputPath, Refusal, TransactionTooLarge, WriteRefused
from keygraph.graph import Graph
from keygraph.kept import kept
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.names import camel, public_path
from keygraph.writing.context import WriteContext
from keygraph.writing.items import Refusals, end_text
from keygraph.writing.requests import (
    Change,
    Create,
    Delete,
    Move,
    OnEdges,
    Put,
    Upsert,
    WriteRequest,
    new_id,
    with_ids,
)
from keygraph.writing.sending.idempotency import LONGEST_KEY, IdempotencyKey
from keygraph.writing.steps import value_problems
from keygraph_resolvers.naming import mutation_names as naming
from keygraph_resolvers.naming.global_ids import read_global_id, read_id_of, refuse_global_id
from keygraph_resolvers.schema.field_kinds import Writes, WritesActions, WritesEach
from keygraph_resolvers.schema.inputs import key_value

NAME_PREFIX = "_:"
"""The prefix of names of new ids, the same as for blank nodes in RDF and in Dgraph's mutations."""
MOST_INPUTS = 1000


@value(frozen=True, slots=True)
class Input:
    """One input: its action and record type, its values, and its place."""

    action: WriteName
    record: RecordType
    values: Mapping[str, Any]
    where: InputPath


@value(frozen=True, slots=True)
class MutationArguments:
    inputs: Sequence[Input]
    is_atomic: bool = True
    """Whether all inputs are written in one transaction."""
    idempotency_key: str | None = None
    """The key of all inputs; a single input may have its own key."""
    client_mutation_id: str | None = None
    """What the payload of all inputs returns."""


def mutation_arguments(
    graph: Graph, kind: Writes | WritesEach | WritesActions, given: Mapping[str, Any]
) -> MutationArguments:
    """Reads the arguments of a mutation. Raises WriteRefused for more inputs than one mutation may have."""
    where, own = ("input",), given["input"]
    key, mutation_id = own.get(naming.IDEMPOTENCY_KEY), own.get(naming.MUTATION_ID)
    match kind:
        case Writes(action, record):
            return MutationArguments([Input(action, record, own, where)])
        case WritesEach(action, record):
            inputs = [
                Input(action, record, each, (*where, "inputs", number))
                for number, each in enumerate(own["inputs"])
            ]
            arguments = MutationArguments(inputs, own["atomic"], key, mutation_id)
        case _:
            actions = {
                naming.mutation_name(action, record): (action, record)
                for record in graph.types.values()
                for action in record.writes
            }
            inputs = [
                Input(*actions[name], values, (*where, "actions", number, name))
                for number, each in enumerate(own["actions"])
                for name, values in each.items()
            ]
            arguments = MutationArguments(inputs, True, key, mutation_id)
    refusals = Refusals()
    if len(inputs) > MOST_INPUTS:
        problem = f"This mutation has {len(inputs):,} inputs, and the limit is {MOST_INPUTS:,}."
        refusals.add(inputs[0].where[:2], problem, count=len(inputs), limit=MOST_INPUTS)
    for each in inputs if arguments.is_atomic else ():
        if each.values.get(naming.IDEMPOTENCY_KEY) is not None:
            problem = "All of this is one write: give the idempotency key in the mutation's own input."
            refusals.add((*each.where, naming.IDEMPOTENCY_KEY), problem)
    refusals.stop()
    return arguments


def write_requests(
    graph: Graph, given: Sequence[Input], read: Collection[Writes] = ()
) -> list[list[WriteRequest]]:
    """Returns the writes of each input; the first is of its own record. Raises WriteRefused with all problems.

    `read` are the mutations whose payload says whether there was a record before.
    """
    try:
        count = sum(_written_with(graph, each.record, each.values) for each in given)
        refuse_many_actions(count, "without those that it only checks")
    except TransactionTooLarge as error:
        raise WriteRefused([Refusal(error.code, error.parts, given[0].where[:1], error.details)]) from None
    meaning, context = _Meaning(graph, read), graph.made(WriteContext)
    requests = [meaning.requests(each.action, each.record, each.values, each.where) for each in given]
    meaning.refuse_unknown_names()
    if meaning.refusals.found:
        # The rest of what is wrong, so that a client learns all of it at once.
        places = meaning.refusals.places
        for refusal in (
            each for several in requests for one in several for each in value_problems(context, one)
        ):
            place = public_path(refusal.path)
            if not any(place[: len(each)] == each[: len(place)] for each in places):
                meaning.refusals.put(refusal)
    meaning.refusals.stop()
    return requests


def _written_with(graph: Graph, record: RecordType, given: Mapping[str, Any]) -> int:
    """Returns how many records an input writes, with those below it."""
    count = 1
    for path in naming.nested_lists(graph, record):
        below = given.get(camel(path.name)) or ()
        several = [below] if path.is_one and below else below
        count += sum(_written_with(graph, path.record, each) for each in several)
    return count


def idempotency_key(given: Sequence[Input], name: tuple[str | int, ...], where: InputPath) -> IdempotencyKey:
    """The key under which these inputs are written. `where` is its place. Raises WriteRefused if it is not valid."""
    text = str(name[0])
    if not 0 < len(text) <= LONGEST_KEY:
        problem = f"An idempotency key has 1 to {LONGEST_KEY} characters."
        raise WriteRefused([Refusal(Code.BAD_USER_INPUT, (problem,), where)])
    requested = [
        (
            each.action,
            each.record.name,
            {**each.values, naming.MUTATION_ID: None, naming.IDEMPOTENCY_KEY: None},
        )
        for each in given
    ]
    return IdempotencyKey(name, hashlib.sha256(stable_text(requested).encode()).digest(), where)


@kept("inputs", 2048, 2_000)
def _parts_of_key(record: RecordType) -> list[tuple[Slot, Callable[[Texts], str | None] | None]]:
    """The slots of a type's identity, with a function for the text of each that is read from the node at an end."""
    pairs = ((slot, record.ends.get(slot.path[0])) for slot in record.identity)
    return [(slot, None if end is None else end_text(end, slot)) for slot, end in pairs]


class _Meaning:
    """Interprets inputs."""

    def __init__(self, graph: Graph, read: Collection[Writes]) -> None:
        self._graph = graph
        self._read = read
        self.refusals = Refusals()
        self._ids: dict[tuple[str, str], str] = {}
        """The named new ids, by the type of the record and the name."""
        self._named: list[tuple[tuple[str, str], InputPath]] = []
        """The places of these names."""
        self._created: set[tuple[str, str]] = set()
        """The names of created records."""

    def requests(
        self, action: WriteName, record: RecordType, given: Mapping[str, Any], where: InputPath
    ) -> list[WriteRequest]:
        values = self._values(record, given, where, is_new=action in ("create", "put"))
        if action in ("create", "put", "upsert"):
            values = self._with_ids(record, values, given)
        version = given.get(naming.EXPECTED_VERSION)
        match action:
            case "create":
                return [Create(record, values, where), *self._nested(record, values, given, where)]
            case "put":
                return [Put(record, values, where, Writes(action, record) in self._read)]
            case "upsert":
                added, taken = self._parts(record, values, given, where)
                return [Upsert(record, values, where, added, taken, version)]
        identity = self._stored_identity(record, values, given, where)
        if action == "delete":
            on_edges = OnEdges(given.get(naming.ON_EDGES, OnEdges.REFUSE))
            return [Delete(record, identity, version, where, on_edges)]
        if action == "move":
            to = (*where, naming.TO)
            return [Move(record, identity, self._values(record, given[naming.TO], to), version, where, to)]
        key = naming.key_names(record)
        changed = {name: value for name, value in values.items() if name not in key}
        added, taken = self._parts(record, changed, given, where)
        return [Change(record, identity, changed, added, taken, version, where)]

    def _parts(
        self, record: RecordType, changed: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> list[dict[str, Any]]:
        """Returns what an input adds to values, and what it removes from them. Refuses values that it changes too."""
        added, taken = (
            {
                each.of.name: self._meant(each, changes[each.name], (*where, word, each.name))
                for each in naming.input_fields(record)
                if changes.get(each.name) is not None
            }
            for word in naming.PARTS
            for changes in [given.get(word) or {}]
        )
        for name in sorted({*changed} & {*added, *taken} | {*added} & {*taken}):
            input_name = FieldName(record.fields[name].input_name)
            self.refusals.add((*where, input_name), input_name, " is changed twice.")
        return [added, taken]

    def _nested(
        self, record: RecordType, values: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> list[WriteRequest]:
        found: list[WriteRequest] = []
        owner: Texts | None = None
        for path in naming.nested_lists(self._graph, record):
            input_name, end = FieldName(path.name), path.end or ""
            several = given.get(camel(path.name))
            if several is not None and path.is_one:
                several = [several]
            for number, each in enumerate(several or ()):
                at = (*where, input_name) if path.is_one else (*where, input_name, number)
                if owner is None:
                    owner = self._identity(record, values, where)
                own = self._values(path.record, each, at, without=end, is_new=True)
                own[end] = owner
                own = self._with_ids(path.record, own, each)
                found.append((Create if path.record.is_node else Put)(path.record, own, at))
                if path.record.is_node:
                    found += self._nested(path.record, own, each, at)
        return found

    # --- New ids ----------------------------------------------------------------------------------------

    def _with_ids(
        self, record: RecordType, values: dict[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the values of a new record, with an id for each field that generates one and has none."""
        names = naming.new_id_names(record)
        if not names:
            return values
        self._created |= {(record.name, str(given.get(name))) for name in names}
        return with_ids(record, values)

    def _id(self, record: RecordType | None, value: Any, where: InputPath) -> Any:
        """Returns the value of a field that holds ids of a record type; for the name of a new id, that id."""
        if record is None or not str(value).startswith(NAME_PREFIX):
            return value
        named = (record.name, str(value))
        self._named.append((named, where))
        return self._ids.setdefault(named, new_id())

    def refuse_unknown_names(self) -> None:
        """Refuses names that no created record has."""
        for named, where in self._named:
            if named not in self._created:
                record, name = named
                self.refusals.add(where, f"{name} names no {record} that this mutation creates.")

    # --- Values -----------------------------------------------------------------------------------------

    def _values(
        self,
        record: RecordType,
        given: Mapping[str, Any],
        where: InputPath,
        without: str | None = None,
        *,
        is_new: bool = False,
    ) -> dict[str, Any]:
        """Returns the given values of fields and ends, by their names. The default of a new record is not given."""
        values: dict[str, Any] = {}
        for each in naming.input_fields(record, without):
            if each.name in given:
                value = given[each.name]
                if is_new and each.default is not MISSING and value == each.default and not each.in_key:
                    continue
                if value is not None and not each.is_meant:
                    value = self._meant(each, value, (*where, each.name))
                values[each.of.name] = value
        return values

    def _meant(self, each: naming.InputField, value: Any, at: InputPath) -> Any:
        """Interprets the value of a field; None if it cannot be used, which is reported."""
        if each.end is None and isinstance(each.of, Field):
            try:
                if each.record.is_node and each.in_key:
                    refuse_global_id(self._graph, each.name, value)
            except BadUserInput as error:
                self.refusals.take(at, error)
            return self._value(each.of.type, self._id(each.of_new, value, at))
        try:
            if each.of is not each.end:
                return self._members(each, value, at)
            return self._node(each, value, at)
        except BadUserInput as error:
            self.refusals.take(at, error)
            return None

    def _value(self, type_: FieldType, value: Any) -> Any:
        """Converts a value of a field; for a nested dataclass, to an object of it."""
        if value is None:
            return None
        if type_.of is not None:
            return [self._value(type_.of, member) for member in value]
        if type_.kind != "object":
            return value
        return type_.cls(
            **{
                member.name: self._value(member.type, value.get(camel(member.name)))
                for member in type_.members
                if camel(member.name) in value or not member.has_default
            }
        )

    def _members(self, field: naming.InputField, values: Sequence[Any], where: InputPath) -> list[Texts]:
        """The identities of the nodes that the members of a list or set name. Those that name none are reported."""
        found = []
        for number, each in enumerate(values):
            try:
                found.append(self._node(field, each, (*where, number)))
            except BadUserInput as error:
                self.refusals.add((*where, number), *error.parts)
        return found

    def _node(self, field: naming.InputField, value: Any, where: InputPath) -> Texts:
        """The identity of the node that a value names."""
        end = cast(End, field.end)
        member = end.members[0]
        if end.text is not None:
            slot = end.identity[0]
            text, name = cast(NodeText, slot.text), camel(end.leaf_name(()))
            record, identity = read_global_id(self._graph, value, name)
            if record.name not in {name for variant in text.variants for name in variant.members}:
                raise BadUserInput(f"expected an id of {end.type_name}")
            return (record.partition_text(identity),)
        key = {}
        for slot, name, input_name, new in field.parts:
            own = self._id(new, value if len(field.parts) == 1 else value.get(input_name), where)
            key[name] = key_value(self._graph, member, slot, own)
        return self._graph.identity(member, key)

    def _stored_identity(
        self, record: RecordType, values: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> Texts:
        """The identity of the stored record that an input names by its id, by its key, or by both."""
        id_ = given.get(naming.ID)
        if id_ is not None:
            try:
                identity = read_id_of(self._graph, record, id_)
            except BadUserInput as error:
                self.refusals.take((*where, naming.ID), error)
                return ()
            key = {name: each for name, each in values.items() if name in naming.key_names(record)}
            is_other = any(each is not None for each in key.values())
            if is_other and self._identity(record, key, where) != identity:
                self.refusals.add(
                    (*where, naming.ID), f"id names another {record.name} than the key fields do."
                )
            return identity
        texts = {name: given.get(camel(name)) for name in naming.computed_key_names(record)}
        missing = [
            each.name
            for each in naming.input_fields(record)
            if each.in_key
            and given.get(each.name) is None
            and not naming.may_be_absent(record, (each.of.name,))
        ]
        missing += [FieldName(name) for name, text in texts.items() if text is None]
        for input_name in missing:
            self.refusals.add(
                (*where, input_name), input_name, f" of {record.name} is missing: give the whole key, or id."
            )
        return () if missing else self._identity(record, {**values, **texts}, where)

    def _identity(self, record: RecordType, values: Mapping[str, Any], where: InputPath) -> Texts:
        texts: list[str] = []
        try:
            for slot, text_of_end in _parts_of_key(record):
                value = values.get(slot.path[0])
                if text_of_end is None:
                    texts.append(self._graph.given_text(record, slot, value))
                else:
                    texts.append((value and text_of_end(value)) or "")
            self._graph.check_identity(record, texts)
        except BadUserInput as error:
            self.refusals.take(where, error)
            return ()
        return tuple(texts)
