"""Interprets the inputs of mutations: `write_requests` turns them into writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from typing import Any, NamedTuple, cast

from keygraph.codes import Code
from keygraph.declare.declaration import WriteName
from keygraph.dynamo.value import value
from keygraph.errors import BadUserInput, FieldName, InputPath, Refusal, WriteRefused
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType
from keygraph.keys.union import NodeText
from keygraph.model.fields import Field
from keygraph.model.record_keys import Texts
from keygraph.model.records import End, RecordType
from keygraph.names import camel, public_path
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
from keygraph.writing.steps import StepMaker
from keygraph_resolvers.naming.global_ids import is_key, read_global_id, read_id_of, refuse_global_id
from keygraph_resolvers.naming.mutation_names import (
    EXPECTED_VERSION,
    ID,
    IDEMPOTENCY_KEY,
    MUTATION_ID,
    ON_EDGES,
    PARTS,
    TO,
    computed_key_names,
    given_fields,
    key_names,
    may_be_absent,
    mutation_name,
    nested_lists,
)
from keygraph_resolvers.schema.field_kinds import Writes, WritesEach, WritesTogether
from keygraph_resolvers.schema.inputs import key_value

NAME_PREFIX = "_:"
"""The prefix of names of new ids, the same as for blank nodes in RDF and in Dgraph's mutations."""
MOST_INPUTS = 1000
"""The most inputs of one mutation."""


@value(frozen=True, slots=True)
class Input:
    """One input: its action and record type, its values, and its place."""

    action: WriteName
    record: RecordType
    values: Mapping[str, Any]
    where: InputPath


@value(frozen=True, slots=True)
class Told:
    """The arguments of a mutation."""

    inputs: Sequence[Input]
    is_atomic: bool = True
    """Whether all inputs are written in one transaction."""
    idempotency_key: str | None = None
    """The key of all inputs; a single input may have its own key."""
    client_mutation_id: str | None = None
    """What the payload of all inputs returns."""


def told_of(graph: Graph, kind: Writes | WritesEach | WritesTogether, given: Mapping[str, Any]) -> Told:
    """Reads the arguments of a mutation. Raises WriteRefused for more inputs than one mutation may have."""
    where, own = ("input",), given["input"]
    key, mutation_id = own.get(IDEMPOTENCY_KEY), own.get(MUTATION_ID)
    match kind:
        case Writes(action, record):
            return Told([Input(action, record, own, where)])
        case WritesEach(action, record):
            inputs = [
                Input(action, record, each, (*where, "inputs", number))
                for number, each in enumerate(own["inputs"])
            ]
            told = Told(inputs, own["atomic"], key, mutation_id)
        case _:
            actions = {
                mutation_name(action, record): (action, record)
                for record in graph.types.values()
                for action in record.writes
            }
            inputs = [
                Input(*actions[name], values, (*where, "actions", number, name))
                for number, each in enumerate(own["actions"])
                for name, values in each.items()
            ]
            told = Told(inputs, True, key, mutation_id)
    refusals = Refusals()
    if len(inputs) > MOST_INPUTS:
        problem = f"This mutation has {len(inputs):,} inputs, and the limit is {MOST_INPUTS:,}."
        refusals.add(inputs[0].where[:2], problem, count=len(inputs), limit=MOST_INPUTS)
    for each in inputs if told.is_atomic else ():
        if each.values.get(IDEMPOTENCY_KEY) is not None:
            problem = "All of this is one write: give the idempotency key in the mutation's own input."
            refusals.add((*each.where, IDEMPOTENCY_KEY), problem)
    refusals.stop()
    return told


def write_requests(
    graph: Graph, given: Sequence[Input], read: Collection[Writes] = ()
) -> list[list[WriteRequest]]:
    """Returns the writes of each input; the first is of its own record. Raises WriteRefused with all problems.

    `read` are the mutations whose payload says whether there was a record before.
    """
    meaning, steps = _Meaning(graph, read), graph.made(StepMaker)
    requests = [meaning.requests(each.action, each.record, each.values, each.where) for each in given]
    meaning.refuse_unknown_names()
    if meaning.refusals.found:
        # The rest of what is wrong, so that a client learns all of it at once.
        places = meaning.refusals.places
        for refusal in (each for several in requests for one in several for each in steps.problems(one)):
            place = public_path(refusal.path)
            if not any(place[: len(each)] == each[: len(place)] for each in places):
                meaning.refusals.put(refusal)
    meaning.refusals.stop()
    return requests


def idempotency_key(given: Sequence[Input], name: tuple[str | int, ...], where: InputPath) -> IdempotencyKey:
    """The key under which these inputs are written. `where` is its place. Raises WriteRefused if it is not valid."""
    text = str(name[0])
    if not 0 < len(text) <= LONGEST_KEY:
        told = f"An idempotency key has 1 to {LONGEST_KEY} characters."
        raise WriteRefused([Refusal(Code.BAD_USER_INPUT, (told,), where)])
    asked = [
        (each.action, each.record.name, {**each.values, MUTATION_ID: None, IDEMPOTENCY_KEY: None})
        for each in given
    ]
    written = json.dumps(asked, default=repr, sort_keys=True)
    return IdempotencyKey(name, hashlib.sha256(written.encode()).digest(), where)


class _Known:
    """Facts about the types of a graph that interpret inputs, each computed once."""

    def __init__(self, graph: Graph) -> None:
        self.fields = cache(_known_fields)
        self.ids = cache(lambda record: [each for each in record.fields.values() if each.kept == "id"])
        self.key = cache(key_names)
        self.needed = cache(_needed_key_fields)
        self.computed = cache(computed_key_names)
        self.identity = cache(
            lambda record: [
                (slot, end_text(record.ends[slot.path[0]], slot) if slot.path[0] in record.ends else None)
                for slot in record.identity
            ]
        )
        self.lists = cache(
            lambda record: [
                (FieldName(path.name), camel(path.name), path, cast(str, path.end))
                for path in nested_lists(graph, record)
            ]
        )


class _KeyPart(NamedTuple):
    """A part of the key of the node at an end."""

    slot: Slot
    name: str
    """Its name in the model."""
    shown: str
    """Its name in an input."""
    of_new: RecordType | None
    """The type whose new id it may be."""


class _KnownField(NamedTuple):
    """One field of an input."""

    name: str
    shown: FieldName
    """The name as an element of a path in the input."""
    of: Field | End
    is_meant: bool
    """Whether a value means itself."""
    is_key: bool
    """Whether it is a key field of a node."""
    of_new: RecordType | None
    """The type whose new id it may be."""
    default: Any
    """The default in the schema, which is the same as no value."""
    parts: Sequence[_KeyPart]
    """The key parts of an end."""


def _known_fields(record: RecordType, without: str | None) -> list[_KnownField]:
    found = []
    for name, of, default in ((each.name, each.of, each.default) for each in given_fields(record, without)):
        parts: list[_KeyPart] = []
        if isinstance(of, End):
            member = of.members[0]
            leaves = ((slot, member.leaf_name(slot.path)) for slot in member.identity)
            parts = [
                _KeyPart(slot, leaf, camel(leaf), _of_new_id(member, slot.path)) for slot, leaf in leaves
            ]
        is_scalar = isinstance(of, Field) and of.type.of is None and of.type.kind != "object"
        of_new = _of_new_id(record, (of.name,)) if isinstance(of, Field) else None
        is_meant = is_scalar and of_new is None and of.name not in key_names(record)
        own = MISSING if of.name in key_names(record) else default
        is_key_field = is_key(record, (of.name,))
        found.append(_KnownField(name, FieldName(name), of, is_meant, is_key_field, of_new, own, parts))
    return found


def _needed_key_fields(record: RecordType) -> list[_KnownField]:
    """The fields of an input that every key of the record type has."""
    key = key_names(record)
    known = _known_fields(record, None)
    return [each for each in known if each.of.name in key and not may_be_absent(record, (each.of.name,))]


def _of_new_id(record: RecordType, path: Sequence[str]) -> RecordType | None:
    """The type whose records get ids in the field at the end of a path; None for other fields."""
    name, *inner = path
    if inner:
        end = record.ends.get(name)
        return None if end is None or end.text else _of_new_id(end.members[0], inner)
    field = record.fields.get(name)
    return record if field is not None and field.kept == "id" else None


class _Meaning:
    """Interprets inputs."""

    def __init__(self, graph: Graph, read: Collection[Writes]) -> None:
        self._graph = graph
        self._known = graph.made(_Known)
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
        version = given.get(EXPECTED_VERSION)
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
            on_edges = OnEdges(given.get(ON_EDGES, OnEdges.REFUSE))
            return [Delete(record, identity, version, where, on_edges)]
        if action == "move":
            to = (*where, TO)
            return [Move(record, identity, self._values(record, given[TO], to), version, where, to)]
        key = self._known.key(record)
        changed = {name: value for name, value in values.items() if name not in key}
        added, taken = self._parts(record, changed, given, where)
        return [Change(record, identity, changed, added, taken, version, where)]

    def _parts(
        self, record: RecordType, changed: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> list[dict[str, Any]]:
        """Returns what an input adds to values, and what it removes from them. Refuses values that it changes too."""
        added, taken = (
            {
                field.name: self._value(field.type, said[camel(field.name)])
                for field in record.fields.values()
                if said.get(camel(field.name)) is not None
            }
            for word in PARTS
            for said in [given.get(word) or {}]
        )
        for name in sorted({*changed} & {*added, *taken} | {*added} & {*taken}):
            self.refusals.add((*where, FieldName(name)), FieldName(name), " is changed twice.")
        return [added, taken]

    def _nested(
        self, record: RecordType, values: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> list[WriteRequest]:
        found: list[WriteRequest] = []
        owner: Texts | None = None
        for shown, name, path, end in self._known.lists(record):
            several = given.get(name)
            if several is not None and path.is_one:
                several = [several]
            for number, each in enumerate(several or ()):
                at = (*where, shown) if path.is_one else (*where, shown, number)
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
        fields = self._known.ids(record)
        if not fields:
            return values
        self._created |= {(record.name, str(given.get(camel(field.name)))) for field in fields}
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
        for each in self._known.fields(record, without):
            name = each.name
            if name in given:
                value = given[name]
                if is_new and value == each.default:
                    continue
                if value is not None and not each.is_meant:
                    value = self._meant(each, value, (*where, each.shown))
                values[each.of.name] = value
        return values

    def _meant(self, each: _KnownField, value: Any, at: InputPath) -> Any:
        """Interprets the value of a field; None if it cannot be used, which is reported."""
        if isinstance(each.of, Field):
            try:
                if each.is_key:
                    refuse_global_id(self._graph, each.name, value)
            except BadUserInput as error:
                self.refusals.take(at, error)
            return self._value(each.of.type, self._id(each.of_new, value, at))
        try:
            return self._end(each.of, each.parts, value, at)
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

    def _end(self, end: End, parts: Sequence[_KeyPart], value: Any, where: InputPath) -> Texts:
        """The identity of the node that an end names."""
        member = end.members[0]
        if end.text is not None:
            slot = end.identity[0]
            text, name = cast(NodeText, slot.text), camel(end.leaf_name(()))
            record, identity = read_global_id(self._graph, value, name, end.members)
            if record.name not in {name for variant in text.variants for name in variant.members}:
                raise BadUserInput(f"expected an id of {end.type_name}")
            return (record.partition_text(identity),)
        said = {}
        for slot, name, shown, new in parts:
            own = self._id(new, value if len(parts) == 1 else value.get(shown), where)
            said[name] = key_value(self._graph, member, slot, own)
        return self._graph.identity(member, said)

    def _stored_identity(
        self, record: RecordType, values: Mapping[str, Any], given: Mapping[str, Any], where: InputPath
    ) -> Texts:
        """The identity of the stored record that an input names by its id, by its key, or by both."""
        needed = self._known.needed(record)
        id_ = given.get(ID)
        if id_ is not None:
            try:
                identity = read_id_of(self._graph, record, id_)
            except BadUserInput as error:
                self.refusals.take((*where, ID), error)
                return ()
            key = {name: each for name, each in values.items() if name in self._known.key(record)}
            is_other = any(each is not None for each in key.values())
            if is_other and self._identity(record, key, where) != identity:
                self.refusals.add((*where, ID), f"id names another {record.name} than the key fields do.")
            return identity
        texts = {name: given.get(camel(name)) for name in self._known.computed(record)}
        missing = [each.shown for each in needed if given.get(each.name) is None]
        missing += [FieldName(name) for name, text in texts.items() if text is None]
        for shown in missing:
            self.refusals.add(
                (*where, shown), shown, f" of {record.name} is missing: give the whole key, or id."
            )
        return () if missing else self._identity(record, {**values, **texts}, where)

    def _identity(self, record: RecordType, values: Mapping[str, Any], where: InputPath) -> Texts:
        """The identity of the record with these values."""
        texts: list[str] = []
        try:
            for slot, text_of_end in self._known.identity(record):
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
