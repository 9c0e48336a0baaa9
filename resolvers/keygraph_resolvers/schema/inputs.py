"""The inputs of lists, `where` and the ranges on a sort key: their types, and the meaning of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from keygraph.dynamo.conditions import And, Condition, Not, Or, Path, conjunction
from keygraph.dynamo.limits import IN_VALUES
from keygraph.errors import BadUserInput
from keygraph.graph import Graph
from keygraph.keys.template import Slot
from keygraph.keys.types import FieldType, Moment
from keygraph.keys.union import NodeText
from keygraph.lists.ranges import Narrowing, ValueRange
from keygraph.model.comparisons import EQUALITY, OPERATORS, comparison, with_default
from keygraph.model.paths import AccessPath, Argument
from keygraph.model.records import RecordType
from keygraph.names import camel
from keygraph_resolvers.naming.descriptions import a, of_type
from keygraph_resolvers.naming.global_ids import (
    is_global_id,
    is_key,
    read_global_id,
    refuse_global_id,
    text_with_offset,
)
from keygraph_resolvers.naming.names import (
    Filterable,
    between_name,
    condition_name,
    field_name,
    filterable_fields,
    range_name,
    types_name,
    where_name,
)
from keygraph_resolvers.schema.definitions import (
    OutputType,
    add_fields,
    enum_type,
    input_field,
    input_type,
    list_of,
    nullable,
)

DEFAULT_PAGE_SIZE = 20


class SortDirection(Enum):
    """Whether a list is read from its start or from its end."""

    ASC = "ASC"
    """From the least to the greatest."""
    DESC = "DESC"
    """From the greatest to the least."""


_BY_TYPE = "Conditions for each type. Types without conditions are not filtered."
_NODES = (
    "All given conditions must match. A node is given by its `id`, because its key does not show its type."
)
_CONDITIONS = "All given conditions must match."
_RANGE = "One value, or those from one to another."

_JOINS = {
    "and": "All of these conditions. An empty list has no effect.",
    "or": "Any of these conditions. Empty conditions are ignored; an empty list has no effect.",
    "not": "Not this. An empty object is no condition.",
}
_DESCRIPTIONS = {
    "eq": "Equal to this.",
    "ne": "Not equal to this.",
    "in": f"Equal to one of these. At most {IN_VALUES}.",
    "lt": "Less than this.",
    "lte": "Less than this, or equal to it.",
    "gt": "Greater than this.",
    "gte": "Greater than this, or equal to it.",
    "between": "From one value to another, both included.",
    "beginsWith": "Begins with this.",
    "contains": "Contains this part or member.",
    "exists": "Whether there is a value.",
    "from": "From this value on. Inclusive.",
    "to": "Up to this value. Inclusive.",
}

_TIMES = {"fromTime": "Made at this time or later.", "toTime": "Made at this time or before."}


class InputTypes:
    """The input types of a schema, each made once."""

    def __init__(self, scalar: Callable[[FieldType], OutputType]) -> None:
        """`scalar` returns the GraphQL type of a field's type."""
        self._scalar = scalar
        self._made: dict[str, type] = {}
        self._enums: dict[str, OutputType] = {}

    def where(self, path: AccessPath) -> type:
        """The filter of a list."""
        name = where_name(path)
        if name not in self._made and path.members:
            self._made[name] = input_type(name, _BY_TYPE)
            fields = [
                input_field(
                    field_name(each.record),
                    nullable(self.where(each)),
                    f"Conditions on {a(each.record.name)}.",
                )
                for each in path.members
            ]
            add_fields(self._made[name], fields)
        elif name not in self._made:
            made = self._made[name] = input_type(name, "All given conditions must match.")
            fields = [
                input_field(
                    camel(compared.name),
                    nullable(self._condition(compared)),
                    f"Conditions on `{camel(compared.name)}`.",
                    deprecated=path.record.deprecated(compared.name),
                )
                for compared in filterable_fields(path)
            ]
            taken = {field.python_name for field in fields}
            several = nullable(list_of(made))
            types = {"and": several, "or": several, "not": nullable(made)}
            joins = [
                input_field(word, type_, _JOINS[word]) for word, type_ in types.items() if word not in taken
            ]
            add_fields(made, [*fields, *joins])
        return self._made[name]

    def types(self, path: AccessPath) -> OutputType:
        """The enum of the types that a list may be filtered by."""
        name = types_name(path)
        if name not in self._enums:
            enum = Enum(name, {record.name: record.name for record in path.records})  # type: ignore[misc]
            self._enums[name] = enum_type(
                enum, "A type in the list.", {name: of_type(name) for name in enum.__members__}
            )
        return self._enums[name]

    def _condition(self, compared: Filterable) -> type:
        name, type_ = condition_name(compared), compared.type
        if name not in self._made:
            made = self._made[name] = input_type(name, _NODES if compared.node else _CONDITIONS)
            element = type_.of or type_
            # A type with members has no scalar to compare with.
            operators = () if element.kind in ("object", "json", "list", "set") else OPERATORS[type_.kind]
            if compared.node is not None:
                operators = EQUALITY
            scalar = self._scalar(element) if operators else bool
            types: dict[str, OutputType] = {"in": list_of(scalar)}
            if "between" in operators:
                types["between"] = self._between(element, scalar)
            fields = [
                input_field(operator, nullable(types.get(operator, scalar)), _DESCRIPTIONS[operator])
                for operator in operators
            ]
            add_fields(made, [*fields, input_field("exists", nullable(bool), _DESCRIPTIONS["exists"])])
        return self._made[name]

    def _between(self, element: FieldType, scalar: OutputType) -> type:
        name = between_name(element)
        if name not in self._made:
            made = self._made[name] = input_type(name, _DESCRIPTIONS["between"])
            add_fields(made, [input_field(end, scalar, _DESCRIPTIONS[end]) for end in ("from", "to")])
        return self._made[name]

    def range(self, argument: Argument) -> type:
        """The input of an argument on a sort key."""
        name = range_name(argument)
        if name not in self._made:
            made = self._made[name] = input_type(name, _RANGE)
            scalar = self._scalar(argument.type)
            operators = ["eq"]
            if argument.has_range:
                operators += ["from", "to"]
            if argument.is_text:
                operators.append("beginsWith")
            fields = [
                input_field(operator, nullable(scalar), _DESCRIPTIONS[operator]) for operator in operators
            ]
            if argument.has_time:
                time = nullable(self._scalar(FieldType("datetime")))
                fields += [input_field(name, time, told) for name, told in _TIMES.items()]
            add_fields(made, fields)
        return self._made[name]


# --- Values -------------------------------------------------------------------------------------------


def narrowings(graph: Graph, path: AccessPath, given: Mapping[str, Any]) -> dict[str, Narrowing]:
    """Returns the narrowing of the sort key that each argument asks for, by argument name.

    Null for an optional part means that it is absent. Raises BadUserInput if another part must equal null.
    """
    found = {}
    for argument in path.ranged:
        name = camel(argument.name)
        said = given.get(name)
        if path.is_one and said is not None:
            # An index lookup takes only values.
            said = {"eq": said}
        told = {operator: value for operator, value in (said or {}).items() if value is not None}
        if (said is None and name in given and argument.optional) or (said and said.get("eq", said) is None):
            if told:
                raise BadUserInput(f"{name}: use eq, or from and to, or beginsWith")
            if not argument.optional:
                raise BadUserInput(f"{name}.eq cannot be null")
            found[argument.name] = Narrowing(is_absent=True)
        if not told:
            continue
        texts = {
            operator: _key_text(graph, path, argument.slot, value, operator)
            for operator, value in told.items()
        }
        lows = [texts[operator] for operator in ("from", "fromTime") if operator in texts]
        highs = [texts[operator] for operator in ("to", "toTime") if operator in texts]
        if argument.slot.text.is_descending:
            lows, highs = highs, lows
        found[argument.name] = Narrowing(
            texts.get("eq"),
            max(lows, default=None),
            min(highs, default=None),
            texts.get("beginsWith"),
            text_with_offset(argument.slot, told.get("eq")),
            _value_range(argument.slot, told),
        )
    return found


def _value_range(slot: Slot, said: Mapping[str, Any]) -> ValueRange | None:
    """The range of values if the range of their texts is not enough; None if it is, or there is no range."""
    low, high = said.get("from"), said.get("to")
    is_decided = slot.computed or slot.text.type.is_text or slot.text.decides(low, high)
    return None if is_decided or low is high is None else ValueRange(low, high)


def required_texts(graph: Graph, path: AccessPath, given: Mapping[str, Any]) -> dict[str, str | None]:
    """The texts of the partition's arguments, by argument name."""
    texts: dict[str, str | None] = {}
    for argument in path.required:
        name, slot = camel(argument.name), argument.slot
        value = in_utc(name, slot, given.get(name))
        texts[argument.name] = None if value is None else _key_text(graph, path, slot, value)
    return texts


def in_utc(name: str, slot: Slot, value: Any) -> Any:
    """Returns the value of an argument that is, or is part of, an exact key. Raises BadUserInput for a time with an
    offset, because the table may have it with the offset or in UTC."""
    if text_with_offset(slot, value) is not None:
        raise BadUserInput(
            f"{name}: a time that keys are found by has no offset: write {slot.text.render(value)}"
        )
    return value


def _key_text(graph: Graph, path: AccessPath, slot: Slot, value: Any, operator: str = "eq") -> str:
    """The key text of a client's value for a slot. Raises BadUserInput if it has none."""
    if operator == "beginsWith":
        return slot.text.prefix(str(value))
    if operator in _TIMES and slot.text.time_bound is not None:
        return slot.text.time_bound(value, operator == "fromTime")
    meant = key_value(graph, path.record, slot, value)
    if operator in ("from", "to"):
        return graph.bound_of(path.record, slot, meant, is_low=operator == "from")
    return graph.text_of(path.record, slot, meant)


def key_value(graph: Graph, record: RecordType, slot: Slot, value: Any) -> Any:
    """Returns the meaning of a client's value for a slot. For a node of one of several types, it is the global id.

    Raises BadUserInput for a key in the place of an id, and for an id in the place of a key.
    """
    if isinstance(slot.text, NodeText) and value is not None:
        return _node_text(graph, slot.text, camel(record.leaf_name(slot.path)), value)
    if isinstance(value, str) and is_global_id(graph, value) and is_key(record, slot.path):
        refuse_global_id(graph, camel(record.leaf_name(slot.path)), value)
    return value


def _node_text(graph: Graph, text: NodeText, name: str, value: str) -> str:
    """The key of the node with that global id, which includes its type."""
    wanted = [member for variant in text.variants for member in variant.members]
    record, identity = read_global_id(graph, value, name, [graph.types[member] for member in wanted])
    if record.name not in wanted:
        raise BadUserInput(f"{name}: expected an id of {' or '.join(sorted(wanted))}")
    return record.partition_text(identity)


def conditions(
    graph: Graph, path: AccessPath, given: Mapping[str, Any], most_terms: int
) -> dict[AccessPath, Condition | None]:
    """Returns the conditions of a list's `where` for each requested type, by the path to it; None for a type without
    conditions. Raises BadUserInput."""
    said = given.get("where") or {}
    wheres = {each: said.get(field_name(each.record)) or {} for each in path.members} or {path: said}
    if sum(map(_terms, wheres.values())) > most_terms:
        raise BadUserInput(f"where: at most {most_terms} conditions")
    types = given.get("types")
    if types is not None and not types:
        raise BadUserInput("types: name one at least")
    names = None if types is None else {each.value for each in types}
    return {
        each: _condition(graph, each, where)
        for each, where in wheres.items()
        if names is None or each.record.name in names
    }


def _terms(where: Mapping[str, Any]) -> int:
    """The number of conditions in a `where`; each one that combines others counts as well."""
    count = 0
    for name, said in where.items():
        if isinstance(said, list):
            count += sum(1 + _terms(each) for each in said if each)
        elif said is not None:
            count += 1 + _terms(said) if name == "not" else len(said)
    return count


def _condition(graph: Graph, path: AccessPath, where: Mapping[str, Any]) -> Condition | None:
    """The condition of a part of a `where`."""
    fields = {camel(compared.name): compared for compared in filterable_fields(path)}
    parts: list[Condition] = []
    for name, said in where.items():
        if said is None:
            continue
        if name in fields:
            compared, own = fields[name], list[Condition]()
            for operator, value in said.items():
                meant = _compared_value(graph, compared, f"where.{name}.{operator}", value)
                both = tuple(
                    _comparison(name, compared.type, compared.attribute, operator, each)
                    for each in _as_stored(compared.type.of or compared.type, operator, meant)
                )
                own.append(both[0] if len(both) == 1 else And(both) if operator == "ne" else Or(both))
            joined = conjunction(*own)
            if joined is not None:
                parts.append(with_default(joined, compared.type, compared.attribute, compared.default))
        elif name == "not":
            inner = _condition(graph, path, said)
            parts += [] if inner is None else [Not(inner)]
        else:
            inners = [inner for each in said if each and (inner := _condition(graph, path, each)) is not None]
            if name == "and":
                parts += inners
            elif inners:
                parts.append(Or(tuple(inners)))
    return conjunction(*parts)


def _compared_value(graph: Graph, compared: Filterable, where: str, value: Any) -> Any:
    if compared.node is None or value is None or isinstance(value, bool):
        for each in (value if isinstance(value, list) else [value]) if compared.is_key else ():
            refuse_global_id(graph, where, each)
        return value
    if isinstance(value, list):
        return [_node_text(graph, compared.node, where, each) for each in value]
    return _node_text(graph, compared.node, where, value)


def _comparison(name: str, type_: FieldType, path: Path, operator: str, value: Any) -> Condition:
    try:
        return comparison(type_, path, operator, value)
    except ValueError as error:
        raise BadUserInput(f"where.{name}.{operator}: {error}") from None


def _as_stored(type_: FieldType, operator: str, value: Any) -> list[Any]:
    """The values to compare with. A time with an offset may be stored in UTC or as the client wrote it, so tests for
    equality include both. Order is that of UTC."""
    is_equality = operator in ("eq", "ne", "in", "contains")
    if type_.kind != "datetime" or type_.written is not None or not is_equality:
        return [value]
    values = value if isinstance(value, list) else [value]
    said = [Moment.of_text(each.said) for each in values if each is not None and each.said is not None]
    if isinstance(value, list):
        return [value, said] if said else [value]
    return [value, *said]
